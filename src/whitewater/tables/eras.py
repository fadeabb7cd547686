"""Eras: the names that a table's columns had over the years, by which files of all of them are read as one table."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from whitewater.errors import InputError
from whitewater.tables.casts import Kind


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

    ``spellings`` are the codes of texts, in lower case. Code ``null`` stands for null. Where ``required`` is true, null
    is not understood either.
    """

    largest: int
    spellings: Mapping[str, int] = field(default_factory=dict)
    least: int = 0
    null: int | None = None
    required: bool = False

    def code_of(self, text: str | None) -> int | None:
        """Return the code of a text: None for null or blank, -1 for one that is not understood."""
        key = (text or "").strip().lower()
        if not key:
            return None
        digits = key.removesuffix(".0")
        # No code has more digits than nine, and Python reads no number that is very long.
        code = int(digits) if digits.isdecimal() and len(digits) <= 9 else -1
        return self.spellings.get(key, code if code <= self.largest else -1)


class Recognize(Protocol):
    """Tells the era of a file by its columns; raises InputError where it is not one."""

    def __call__(self, raw_names: Sequence[str], *, path: str, numeric: Collection[str] = ()) -> Era: ...


@dataclass(frozen=True)
class Names:
    """What the raw files of a table may call its columns.

    Parameters
    ----------
    aliases
        Raw name, stripped and in lower case, to column of the table.
    not_carried
        Known raw names that the table leaves out.
    kinds
        What each column is read as.
    spelled
        Columns of codes that some files spell out; where a file stores one as numbers, it is read as such.
    required
        Columns that every file has.
    of
        What such a file is, and whose: ``("a file of taxi trips with fares", "TLC")``.
    """

    aliases: Mapping[str, str]
    not_carried: frozenset[str]
    kinds: Mapping[str, Kind]
    spelled: Collection[str]
    required: tuple[str, ...]
    of: tuple[str, str]

    def __contains__(self, raw_name: str) -> bool:
        return raw_name.strip().lower() in {*self.aliases, *self.not_carried}

    def era(self, raw_names: Sequence[str], *, path: str, numeric: Collection[str] = ()) -> Era:
        """Return the era that has columns of such names; ``numeric`` are those that the file stores as numbers.

        Raises InputError if a column is not understood, two mean the same, or one that is required is missing.
        """
        what, whose = self.of
        unknown = [name for name in raw_names if name not in self]
        if unknown:
            raise InputError(f"{path}: columns not understood: {', '.join(map(self._with_hint, unknown))}. "
                             f"Rename them to those of a {whose} file, or remove them.")  # fmt: skip
        columns: dict[str, RawColumn] = {}
        not_carried = []
        for name in raw_names:
            column = self.aliases.get(name.strip().lower())
            if column is None:
                not_carried.append(name)
                continue
            if column in columns:
                raise InputError(f"{path}: {_both(columns[column].raw_name, name, column)}. Remove one.")
            columns[column] = RawColumn(
                name, "text" if column in self.spelled and name not in numeric else self.kinds[column]
            )
        missing = [name for name in self.required if name not in columns]
        if missing:
            raise InputError(f"{path}: not {what}: no column for {', '.join(missing)} "
                             f"among {', '.join(map(repr, raw_names))}.")  # fmt: skip
        return Era(columns, tuple(not_carried))

    def _with_hint(self, name: str) -> str:
        near = difflib.get_close_matches(name.strip().lower(), self.aliases, 1)
        return f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name)


def _both(first: str, second: str, column: str) -> str:
    if first == second:
        return f"column {first!r} is there twice"
    return f"columns {first!r} and {second!r} both mean {column}"
