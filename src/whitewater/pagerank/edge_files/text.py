"""Lines of text as edges and vertices: pairs (SNAP, LDBC's .e, Common Crawl, Matrix Market) and adjacency.

A line that cannot be read stops the run with its file, number and content.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whitewater.devices.arrow_kinds import empty
from whitewater.devices.delimited_words import long_numbers
from whitewater.errors import ConfigError, InputError
from whitewater.pagerank.edge_files import text_kernels
from whitewater.pagerank.edge_files.batches import NO_TEXT, Batch, ids_of
from whitewater.pagerank.edge_files.names import SCHEMA, table_of
from whitewater.pagerank.edge_files.text_files import Lines, TextFile, Unit, lines

if TYPE_CHECKING:
    from whitewater.config.pagerank import Edges
    from whitewater.devices.protocol import Array

DELIMITERS = {"whitespace": None, "tab": b"\t", "comma": b",", "space": b" "}
_FIELDS = 3
_CHECK = "Correct the file, or set pagerank.fetch.edges"
_FAULTS = {
    text_kernels.NO_INTEGER: (
        "an id is no integer",
        f"{_CHECK}.ids to text if ids are names, or .delimiter and .header if fields are found wrongly.",
    ),
    text_kernels.TOO_LARGE: ("an id does not fit 64 bits with sign", f"{_CHECK}.ids to text."),
    text_kernels.MISSING: (
        "a field is missing",
        f"{_CHECK}: .delimiter, .header, or .weighted to false if there are no weights.",
    ),
    text_kernels.TOO_MANY: (
        "there are too many fields",
        f"{_CHECK}.layout to adjacency if a vertex and all its targets are on a line, or .delimiter and .header.",
    ),
    text_kernels.NO_WEIGHT: (
        "a weight is not a finite number above 0",
        f"{_CHECK}.weighted to false if weights shall not count.",
    ),
    text_kernels.QUOTES: ("a quoted field has no end, or quotes in it", f"{_CHECK}.delimiter."),
    text_kernels.JUNK: ("something stands between a field and its end", f"{_CHECK}.delimiter."),
}
_TEXT_REMEDY = "It must be text in UTF-8: convert it, or fetch it again if it is damaged."


def read_pairs(unit: Unit, settings: Edges) -> Iterator[Batch]:
    """Yield the edges of a unit.

    Raises
    ------
    InputError
        If a line lacks a field or has too many, an id is no integer of 64 bits or no UTF-8, a weight is not finite and
        above 0, or the file is damaged.
    """
    named = settings.ids == "text"
    plan = _plan(unit.file, settings)
    for block in lines(unit):
        text = _text(block, named=named)
        most = len(text) // 4 + 1
        ends = empty(most, np.dtype(np.int64)), empty(most, np.dtype(np.int64))
        weights = empty(most if settings.weighted else 0, np.dtype(np.float64))
        long = np.zeros(len(weights), np.int64)
        rows, fault = text_kernels.parse_pairs(text, plan, ends, weights, long)
        _refuse(block, rows, fault)
        weight = _with_long(block, text, weights[:rows], long[:rows]) if settings.weighted else None
        source, target = (ids_of(text, each[:rows], named=named) for each in ends)
        yield Batch(text if named else NO_TEXT, source, target, weight)


def read_adjacency(unit: Unit, settings: Edges) -> Iterator[Batch]:
    """Yield the edges of a unit, and the vertices that its lines begin with; see `read_pairs`."""
    named = settings.ids == "text"
    plan = _plan(unit.file, settings)
    for block in lines(unit):
        text = _text(block, named=named)
        most = len(text) // 2 + 1
        ends = empty(most, np.dtype(np.int64)), empty(most, np.dtype(np.int64))
        firsts = empty(most, np.dtype(np.int64))
        edges, rows, fault = text_kernels.parse_adjacency(text, plan, ends, firsts)
        _refuse(block, edges, fault)
        source, target = (ids_of(text, each[:edges], named=named) for each in ends)
        found = ids_of(text, firsts[:rows], named=named)
        yield Batch(text if named else NO_TEXT, source, target, None, found)


def read_vertices(unit: Unit, settings: Edges) -> tuple[int, pa.Table]:
    """Return the rows of a unit, and its vertices as a table: vertex, and name where they have one.

    Raises
    ------
    InputError
        See `read_pairs`; or if only some vertices have a name, or ids of text have one besides.
    """
    found = [_vertices(block, settings) for block in lines(unit)]
    tables = [table for rows, table in found if rows]
    return sum(rows for rows, _ in found), pa.concat_tables(tables) if tables else SCHEMA.empty_table()


def _vertices(block: Lines, settings: Edges) -> tuple[int, pa.Table]:
    is_text = settings.ids == "text"
    text = _text(block, named=True)
    most = len(text) // 2 + 1
    ids, names = np.empty(most, np.int64), np.empty(most, np.int64)
    plan = _plan_of(0, -1, -1, max(_FIELDS, len(block.file.header)), settings)
    rows, named, fault = text_kernels.parse_vertices(text, plan, ids, names)
    _refuse(block, rows, fault)
    ids, names = ids[:rows], names[:rows]
    if named not in {0, rows}:
        at = int(np.flatnonzero(names == 0)[0])
        raise InputError(f"{block.file.path}: vertex {ids[at]} has no name, but others do. Give all a name, or none.")
    if named and is_text:
        raise InputError(f"{block.file.path}: ids are text and have a name besides. Leave the second field out: an id "
                         "of text is the name of its vertex.")  # fmt: skip
    if is_text:
        return rows, table_of(text, ids, ids_of(text, ids, named=True).ids)
    return rows, table_of(text, names, ids) if named else pa.table({"vertex": pa.array(ids)})


def _plan(file: TextFile, settings: Edges) -> Array:
    if not file.header:
        return _plan_of(0, 1, 2 if settings.weighted else -1, _FIELDS, settings)
    wanted = [settings.source_column, settings.target_column, *([settings.weight_column] * settings.weighted)]
    for name in wanted:
        if file.header.count(name) != 1:
            raise ConfigError(
                f"{file.path}: the header has no column {name!r}, or more than one; it has {', '.join(file.header)}. "
                "Set pagerank.fetch.edges.source_column, .target_column and .weight_column."
            )
    places = [file.header.index(name) for name in wanted]
    return _plan_of(places[0], places[1], places[2] if settings.weighted else -1, len(file.header), settings)


def _plan_of(source: int, target: int, weight: int, fields: int, settings: Edges) -> Array:
    delimiter = DELIMITERS[settings.delimiter]
    plan = np.zeros(text_kernels.PLAN, np.int64)
    plan[[text_kernels.SOURCE, text_kernels.TARGET, text_kernels.WEIGHT]] = source, target, weight
    plan[text_kernels.MOST_FIELDS] = fields
    plan[text_kernels.DELIMITER] = delimiter[0] if delimiter else text_kernels.BLANKS
    plan[text_kernels.IS_TEXT] = settings.ids == "text"
    return plan


def _text(block: Lines, *, named: bool) -> Array:
    """Return the bytes of a block; those that hold names must be UTF-8."""
    if named and not block.data.isascii():
        try:
            block.data.decode()
        except UnicodeDecodeError as error:
            raise block.fault(error.start, "the line is not UTF-8", _TEXT_REMEDY) from error
    if named and (position := block.data.find(0)) >= 0:
        raise block.fault(position, "the line has a byte 0", _TEXT_REMEDY)
    return np.frombuffer(block.data, np.uint8)


def _refuse(block: Lines, position: int, fault: int) -> None:
    if fault:
        raise block.fault(position, *_FAULTS[fault])


def _with_long(block: Lines, text: Array, weights: Array, long: Array) -> Array:
    """Return the weights with those of many digits filled in."""
    is_long = (long != 0).astype(np.int64)
    for _, at, nearest in long_numbers(text, np.stack([long, is_long, is_long])):
        weights[at] = nearest
        wrong = at[~((nearest > 0) & np.isfinite(nearest))]
        if len(wrong):
            _refuse(block, int(long[wrong[0]] >> 32), text_kernels.NO_WEIGHT)
    return weights
