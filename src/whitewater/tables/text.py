"""Lines of comma-separated text as columns of Arrow; those that cannot be parsed are handed back as they stood."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.io.text_files import filled_lines, parse_sound
from whitewater.tables.casts import TYPES, Clock, Kind, are_readable, cast_column

_UTC = Clock("UTC")


class Lines(NamedTuple):
    """The columns of the lines that could be parsed, in order, and the other lines, in order and without their ends."""

    table: pa.Table
    malformed: tuple[str, ...]


def parse_lines(data: bytes, names: Sequence[str], kinds: Mapping[str, Kind], *, clock: Clock = _UTC) -> Lines:
    r"""Parse whole lines of comma-separated text without a header.

    Parameters
    ----------
    data
        Lines that end with ``\n`` or ``\r\n``, each a record: a quoted field does not go on in the next line. Empty
        lines are not rows.
    names
        All fields of a line, in order.
    kinds
        The fields wanted, and what each becomes: float64, ``timestamp[us]``, or text in a dictionary. An empty field is
        null. Blanks around numbers are ignored.
    clock
        How times are read; those of a form of their own take longer.

    Returns
    -------
    Lines
        Malformed are lines with another number of fields, with unsound quotes, or with a field that is not of its kind.
        Bytes that are not UTF-8 are replaced.
    """
    text = data if data.isascii() else data.decode("utf-8", "replace").encode()
    text = text if text.endswith(b"\n") else text + b"\n"
    parsed = None if clock.form else _read_at_once(text, names, kinds)
    table, malformed = parsed or _read_readable(text, names, kinds, clock)
    lines = filled_lines(text) if malformed else []
    return Lines(table, tuple(lines[number].decode() for number in sorted(malformed)))


def _read_at_once(text: bytes, names: Sequence[str], kinds: Mapping[str, Kind]) -> tuple[pa.Table, list[int]] | None:
    """Return the rows and the numbers of the other lines; None where a field may not be of its kind."""
    types = {name: TYPES[kind] for name, kind in kinds.items()}
    try:
        table, faults = parse_sound(text, names, types, delimiter=",", quoted=True)
    except ValueError:
        return None
    return (table, list(faults)) if all(map(_is_finite, table.columns)) else None


def _is_finite(column: pa.ChunkedArray) -> bool:
    """Return whether there is neither "nan" nor "inf", nor a number beyond the doubles, nor a sum that is."""
    return not pa.types.is_floating(column.type) or math.isfinite(pc.sum(column, min_count=0).as_py())


def _read_readable(
    text: bytes, names: Sequence[str], kinds: Mapping[str, Kind], clock: Clock
) -> tuple[pa.Table, list[int]]:
    """Return the rows whose fields are all of their kinds, and the numbers of the other lines."""
    table, faults = parse_sound(text, names, dict.fromkeys(kinds, pa.string()), delimiter=",", quoted=True)
    checks = [are_readable(table[name], kind, clock) for name, kind in kinds.items() if kind != "text"]
    readable = reduce(pc.and_, checks, pa.chunked_array([pa.repeat(True, len(table))]))
    numbers = np.delete(np.arange(len(table) + len(faults)), list(faults))
    torn = [int(numbers[row]) for row in pc.indices_nonzero(pc.invert(readable)).to_pylist()]
    table = table.filter(readable)
    columns = {name: cast_column(table[name], kind, clock=clock) for name, kind in kinds.items()}
    return pa.table(columns), [*faults, *torn]
