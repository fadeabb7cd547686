"""Rows of the SQL dump of one of MediaWiki's tables, columns found by the names in its ``CREATE TABLE`` statement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from whitewater.devices.arrow_kinds import empty
from whitewater.errors import InputError
from whitewater.pagerank.edge_files.text_files import Lines, Unit, lines, open_text
from whitewater.pagerank.wikipedia_kernels import INTEGER, LONGEST_PREFIX, SKIPPED, TEXT, make_names, parse_inserts

if TYPE_CHECKING:
    from whitewater.devices.protocol import Array

Column = Literal["integer", "text"]
_TABLE = re.compile(rb"^CREATE TABLE (?:IF NOT EXISTS )?`([^`]+)` \((.*?)^\)", re.DOTALL | re.MULTILINE)
_COLUMN = re.compile(rb"^\s*`([^`]+)`", re.MULTILINE)
_FIRST_ROW = re.compile(rb"^INSERT INTO ", re.MULTILINE)
# What a dump with comments begins and ends with.
_HEAD = re.compile(rb"^-- \w+ dump ", re.MULTILINE)
_END = b"-- Dump completed"
_END_BYTES = 1000
_SHOWN = 60
_FETCH = "Fetch it again."


@dataclass(frozen=True)
class Rows:
    """Some rows: int64 (rows,) of each column, of texts their spans ``begin << 32 | length`` in ``text``, uint8."""

    columns: dict[str, Array]
    text: Array

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def chosen(self, rows: Array) -> Rows:
        """Return the rows at which ``rows``, bool, is true."""
        return Rows({name: values[rows] for name, values in self.columns.items()}, self.text)

    def names(self, namespace: str, title: str) -> tuple[Array, Array]:
        """Return names made of titles, as uint8 text and int64 (rows,) spans of it; see `make_names`."""
        titles = self.columns[title]
        size = int((titles & 0xFFFFFFFF).sum()) + LONGEST_PREFIX * len(titles)
        names, spans = np.empty(size, np.uint8), np.empty(len(titles), np.int64)
        make_names(self.text, titles, self.columns[namespace], names, spans)
        return names, spans


def columns_of(path: Path, table: str) -> tuple[str, ...]:
    """Return the names of the columns of the table that a dump holds.

    Raises
    ------
    InputError
        If the file cannot be read, or is no dump of the table.
    """
    head = next(lines(_whole(path)), None)
    return _columns(head.data if head else b"", path, table)


def read_rows(path: Path, table: str, columns: Mapping[str, Column]) -> Iterator[Rows]:
    """Yield some columns of the rows of a dump.

    Raises
    ------
    InputError
        If the file is no dump of the table, lacks a column, is cut off, or has a row that is not understood.
    """
    plan, has_end, inside, end = None, False, False, b""
    for block in lines(_whole(path)):
        if plan is None:
            found = _columns(block.data, path, table)
            plan, has_end = _plan(found, columns, path, table), bool(_HEAD.search(block.data[:_END_BYTES]))
        rows, inside = _parsed(block, plan, columns, inside)
        end = (end + block.data[-_END_BYTES:])[-_END_BYTES:]
        if len(rows):
            yield rows
    if inside or plan is None or (has_end and _END not in end):
        raise InputError(f"{path} is cut off: it ends within the rows of table {table}, or ahead of its end. {_FETCH}")


def _whole(path: Path) -> Unit:
    file = open_text(path)
    return Unit(file, 0, 0 if file.is_gzip else path.stat().st_size)


def _columns(head: bytes, path: Path, table: str) -> tuple[str, ...]:
    first_row = _FIRST_ROW.search(head)
    found = _TABLE.search(head, 0, first_row.start() if first_row else len(head))
    if found is None:
        raise InputError(f"{path} is no SQL dump: no CREATE TABLE stands at its beginning. Give a dump of {table}.")
    named, *columns = (name.decode("utf-8", "backslashreplace") for name in (found[1], *_COLUMN.findall(found[2])))
    if named != table:
        raise InputError(f"{path} is the dump of table {named}, not of {table}. Check pagerank.fetch.wikipedia.")
    return tuple(columns)


def _plan(found: Sequence[str], wanted: Mapping[str, Column], path: Path, table: str) -> Array:
    missing = [name for name in wanted if name not in found]
    if missing:
        raise InputError(f"{path}: table {table} has no column {', '.join(missing)}; it has {', '.join(found)}. "
                         "Give dumps of MediaWiki's tables as they are published.")  # fmt: skip
    kinds = {"integer": INTEGER, "text": TEXT}
    slots = {name: slot for slot, name in enumerate(wanted)}
    return np.array([(kinds[wanted[name]], slots[name]) if name in wanted else (SKIPPED, 0) for name in found])


def _parsed(block: Lines, plan: Array, columns: Mapping[str, Column], inside: bool) -> tuple[Rows, bool]:
    data = np.frombuffer(block.data, np.uint8)
    # A row has a character and a delimiter for each column, and two brackets.
    values = empty(len(columns) * (len(data) // (2 * len(plan) + 1) + 1), np.dtype(np.int64)).reshape(len(columns), -1)
    text = empty(len(data), np.dtype(np.uint8))
    rows, written, inside, fault = parse_inserts(data, plan, values, text, inside)
    if fault >= 0:
        at = repr(block.data[fault : fault + _SHOWN]).removeprefix("b")
        raise block.fault(fault, f"the row {at}... cannot be read", f"The dump is damaged, or cut off. {_FETCH}")
    if "text" in columns.values():
        _refuse_other_text(text[:written], block)
    return Rows(dict(zip(columns, values[:, :rows], strict=True)), text[:written]), inside


def _refuse_other_text(text: Array, block: Lines) -> None:
    try:
        str(text.data, "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{block.file.path} has a title that is not UTF-8 ({error}). {_FETCH}") from error
