"""A table as data, for every engine: the names that its columns had over the years, the codes of values, its rules."""

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from whitewater.errors import InputError
from whitewater.tables.casts import Clock, Kind


@dataclass(frozen=True)
class RawColumn:
    """How a column of the table is read from a raw file."""

    raw_name: str
    kind: Kind


@dataclass(frozen=True)
class Era:
    """A form of raw file.

    ``columns`` says where each column of the table comes from, ``not_carried`` which raw columns are left out, and
    ``constants`` holds columns that have one value in the whole file, which the names of the others tell.
    """

    columns: Mapping[str, RawColumn]
    not_carried: tuple[str, ...]
    constants: Mapping[str, int] = field(default_factory=dict)

    @property
    def raw_kinds(self) -> dict[str, Kind]:
        """The raw columns that are read, and the kind of each."""
        return {column.raw_name: column.kind for column in self.columns.values()}


@dataclass(frozen=True)
class Codes:
    """The fixed vocabulary of a column of codes or counts: integers from ``least`` to ``largest``.

    ``spellings`` are the codes of texts, in lower case. Code ``null`` stands for null. Where ``nullable`` is false,
    null is not understood either.
    """

    largest: int
    spellings: Mapping[str, int] = field(default_factory=dict)
    least: int = 0
    null: int | None = None
    nullable: bool = True

    def code_of(self, text: str | None) -> int | None:
        """Return the code of a text: None for null or blank, -1 for one that is not understood."""
        key = (text or "").strip().lower()
        if not key:
            return None
        digits = key.removesuffix(".0")
        # No code has more digits than nine, and Python reads no number that is very long.
        code = int(digits) if digits.isdecimal() and len(digits) <= 9 else -1
        return self.spellings.get(key, code if code <= self.largest else -1)


@dataclass(frozen=True)
class Rule:
    """Reject the rows whose ``quantity``, a column or a value computed from columns, meets a test.

    ``test`` is a comparison from Python's module `operator`, with the number ``operand``; or ``in`` or ``not in``, with
    a tuple of integers as ``operand``; or ``missing``, which nulls meet. A null meets no other test.
    """

    reason: str
    quantity: str
    test: Callable[[Any, Any], Any] | Literal["missing", "in", "not in"]
    operand: Any = None

    def is_broken_by(self, value: Any, *, is_null: str, is_in: str) -> Any:
        """Return whether each value of a column breaks the rule, or null; an engine's columns have two such methods."""
        if self.test == "missing":
            return getattr(value, is_null)()
        if self.test == "in":
            return getattr(value, is_in)(self.operand)
        if self.test == "not in":
            return ~(getattr(value, is_in)(self.operand) | getattr(value, is_null)())
        return self.test(value, self.operand)


@dataclass(frozen=True)
class Source:
    """Where the raw files of a table come from, and what they may call its columns.

    ``aliases`` lead from a raw name, stripped and in lower case, to the column of the table, or to None for what the
    table leaves out. ``kinds`` tell what each column is read as: a ``code`` is a number where the file stores it as
    one, and else text. ``required`` columns are in every file.

    Errors say ``of`` what such a file is, and whose: ``("a file of taxi trips with fares", "TLC")``; what its ``rows``
    are called, such as trips; and which ``setting`` names the files. ``clock`` tells how times are read.
    """

    aliases: Mapping[str, str | None]
    kinds: Mapping[str, Kind | Literal["code"]]
    required: tuple[str, ...]
    of: tuple[str, str]
    rows: str
    setting: str
    clock: Clock

    def recognize(self, raw_names: Sequence[str], *, path: str, numeric: Collection[str] = ()) -> Era:
        """Return the era that has columns of such names; ``numeric`` are those that the file stores as numbers.

        Raises InputError if a column is not understood, two mean the same, or one that is required is missing.
        """
        what, whose = self.of
        unknown = [name for name in raw_names if name.strip().lower() not in self.aliases]
        if unknown:
            raise InputError(f"{path}: columns not understood: {', '.join(map(self._with_hint, unknown))}. "
                             f"Rename them to those of a {whose} file, or remove them.")  # fmt: skip
        columns: dict[str, RawColumn] = {}
        not_carried = []
        for name in raw_names:
            column = self.aliases[name.strip().lower()]
            if column is None:
                not_carried.append(name)
                continue
            if column in columns:
                first = columns[column].raw_name
                both = f"columns {first!r} and {name!r} both mean {column}"
                raise InputError(f"{path}: {f'column {name!r} is there twice' if first == name else both}. Remove one.")
            kind = self.kinds[column]
            columns[column] = RawColumn(name, kind if kind != "code" else "number" if name in numeric else "text")
        missing = [name for name in self.required if name not in columns]
        if missing:
            raise InputError(f"{path}: not {what}: no column for {', '.join(missing)} "
                             f"among {', '.join(map(repr, raw_names))}.")  # fmt: skip
        return Era(columns, tuple(not_carried))

    def _with_hint(self, name: str) -> str:
        near = difflib.get_close_matches(name.strip().lower(), filter(self.aliases.get, self.aliases), 1)
        return f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name)
