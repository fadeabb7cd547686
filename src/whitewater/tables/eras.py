"""What every engine must know of a table: its columns and what raw files call them, codes of values, and rules."""

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from whitewater.errors import InputError
from whitewater.tables.casts import Clock, Kind


@dataclass(frozen=True)
class RawColumn:
    """The name of a column in a raw file, and the kind it is read as."""

    raw_name: str
    kind: Kind


@dataclass(frozen=True)
class Era:
    """A layout of raw files."""

    columns: Mapping[str, RawColumn]  # by column of the table
    ignored_columns: tuple[str, ...]
    constants: Mapping[str, int] = field(default_factory=dict)  # columns with one value, which follows from the names

    @property
    def raw_kinds(self) -> dict[str, Kind]:
        """The kind of each raw column that is read."""
        return {column.raw_name: column.kind for column in self.columns.values()}


@dataclass(frozen=True)
class Codes:
    """The fixed vocabulary of a column of codes or counts: integers from ``least`` to ``largest``."""

    largest: int
    spellings: Mapping[str, int] = field(default_factory=dict)  # the codes of texts in lower case
    least: int = 0
    null: int | None = None  # the code that stands for null
    nullable: bool = True  # whether null is valid

    def code_of(self, text: str | None) -> int | None:
        """Return the code of a text: None for null or blank, -1 if it is not in the vocabulary."""
        key = (text or "").strip().lower()
        if not key:
            return None
        digits, _, fraction = key.partition(".")
        # No code has more than nine digits, and Python refuses to parse very long integers.
        code = int(digits) if digits.isdecimal() and len(digits) <= 9 and not fraction.strip("0") else -1
        return self.spellings.get(key, code if code <= self.largest else -1)


@dataclass(frozen=True)
class Rule:
    """Reject the rows whose ``quantity``, a column or a value computed from columns, meets a test.

    ``test`` is a comparison from Python's module `operator`, with a number as ``operand``; ``in`` or ``not in``, with a
    tuple of integers as ``operand``; or ``missing``, which is met by nulls. A null meets no other test.
    """

    reason: str
    quantity: str
    test: Callable[[Any, Any], Any] | Literal["missing", "in", "not in"]
    operand: Any = None

    def is_broken_by(self, value: Any, *, is_null: str, is_in: str) -> Any:
        """Return whether each value breaks the rule, or null; an engine names two methods of its columns."""
        if self.test == "missing":
            return getattr(value, is_null)()
        if self.test == "in":
            return getattr(value, is_in)(self.operand)
        if self.test == "not in":
            return ~(getattr(value, is_in)(self.operand) | getattr(value, is_null)())
        return self.test(value, self.operand)


@dataclass(frozen=True)
class Source:
    """The raw files of a table, and the names that its columns may have in them.

    ``aliases`` maps a raw name, stripped and in lower case, to a column of the table, or to None for a raw column to
    ignore. ``kinds`` is what each column is read as; a ``code`` is read as a number if the file stores numbers, else as
    text. ``required`` columns are in every file. ``clock`` says how times are read.

    Error messages use the rest: ``of``, what such a file is and who publishes it, such as ``("a file of taxi trips with
    fares", "TLC")``; what its ``rows`` are called; and the ``setting`` that names the files.
    """

    aliases: Mapping[str, str | None]
    kinds: Mapping[str, Kind | Literal["code"]]
    required: tuple[str, ...]
    of: tuple[str, str]
    rows: str
    setting: str
    clock: Clock

    def recognize(self, raw_names: Sequence[str], *, path: str, numeric: Collection[str] = ()) -> Era:
        """Return the era of a file with these columns; ``numeric`` are those that it stores as numbers.

        Raises InputError if a column is unknown, two columns have the same meaning, or a required one is missing.
        """
        what, publisher = self.of
        unknown = [name for name in raw_names if name.strip().lower() not in self.aliases]
        if unknown:
            raise InputError(f"{path}: columns not understood: {', '.join(map(self._with_hint, unknown))}. "
                             f"Rename them as in files of {publisher}, or remove them.")  # fmt: skip
        columns: dict[str, RawColumn] = {}
        ignored = []
        for name in raw_names:
            column = self.aliases[name.strip().lower()]
            if column is None:
                ignored.append(name)
                continue
            if column in columns:
                first = columns[column].raw_name
                both = f"columns {first!r} and {name!r} both mean {column}"
                raise InputError(f"{path}: {f'column {name!r} appears twice' if first == name else both}. Remove one.")
            kind = self.kinds[column]
            columns[column] = RawColumn(name, kind if kind != "code" else "number" if name in numeric else "text")
        missing = [name for name in self.required if name not in columns]
        if missing:
            raise InputError(f"{path}: not {what}: no column for {', '.join(missing)} "
                             f"among {', '.join(map(repr, raw_names))}.")  # fmt: skip
        return Era(columns, tuple(ignored))

    def _with_hint(self, name: str) -> str:
        near = difflib.get_close_matches(name.strip().lower(), filter(self.aliases.get, self.aliases), 1)
        return f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name)
