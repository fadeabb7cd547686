"""Lines of text as edges and vertices: pairs (SNAP, LDBC's .e, Common Crawl, Matrix Market) and adjacency.

A line that cannot be read stops the run with its file, number and content.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whitewater.devices.arrow_kinds import empty
from whitewater.devices.delimited_words import long_numbers
from whitewater.errors import InputError
from whitewater.pagerank.edge_files import text_kernels
from whitewater.pagerank.edge_files.batches import NO_TEXT, Batch, ids_of, wrong_column
from whitewater.pagerank.edge_files.names import SCHEMA, table_of
from whitewater.pagerank.edge_files.text_files import COMMENTS, Lines, TextFile, Unit, lines, lone_return
from whitewater.pagerank.edges_folder import LARGEST_WEIGHT

if TYPE_CHECKING:
    from whitewater.config.pagerank import Edges
    from whitewater.devices.protocol import Array

DELIMITERS = {"whitespace": None, "tab": b"\t", "comma": b",", "space": b" "}
# What fields may be separated by where the settings are wrong.
_SEPARATORS = {"tab": b"\t", "comma": b",", "semicolon": b";", "whitespace": None}
_FIELDS = 3
_NAMES = re.compile(rb"[\t -/:-~]+")
_LONE_RETURN = re.compile(rb"\r(?!\n)")
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
        f"a weight is not a number above 0 and up to {LARGEST_WEIGHT:g}",
        f"{_CHECK}.weighted to false if weights shall not count.",
    ),
    text_kernels.QUOTES: ("a quoted field has no end, or quotes in it", f"{_CHECK}.delimiter."),
    text_kernels.JUNK: ("something stands between a field and its end", f"{_CHECK}.delimiter."),
    text_kernels.OUTSIDE: (
        "an index is not from 1 to the size that the matrix declares",
        "Correct the file, or fetch it again.",
    ),
}
# Faults that have another cause where fields are found wrongly.
_OF_FIELDS = {text_kernels.NO_INTEGER, text_kernels.MISSING, text_kernels.TOO_MANY, text_kernels.JUNK}
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
        kinds = np.zeros(text_kernels.LINES, np.int64)
        rows, fault = text_kernels.parse_pairs(text, plan, ends, (weights, long), kinds)
        _refuse(block, rows, fault, settings)
        weight = _checked_weights(block, text, weights[:rows], long[:rows]) if settings.weighted else None
        source, target = (ids_of(text, each[:rows], named=named) for each in ends)
        yield Batch(text if named else NO_TEXT, source, target, weight, counts=_counted(rows, kinds))


def read_adjacency(unit: Unit, settings: Edges) -> Iterator[Batch]:
    """Yield the edges of a unit, and the vertices that its lines begin with; see `read_pairs`."""
    named = settings.ids == "text"
    plan = _plan(unit.file, settings)
    for block in lines(unit):
        text = _text(block, named=named)
        most = len(text) // 2 + 1
        ends = empty(most, np.dtype(np.int64)), empty(most, np.dtype(np.int64))
        firsts = empty(most, np.dtype(np.int64))
        kinds = np.zeros(text_kernels.LINES, np.int64)
        edges, rows, fault = text_kernels.parse_adjacency(text, plan, ends, firsts, kinds)
        _refuse(block, edges, fault, settings)
        source, target = (ids_of(text, each[:edges], named=named) for each in ends)
        found = ids_of(text, firsts[:rows], named=named)
        yield Batch(text if named else NO_TEXT, source, target, None, found, _counted(rows, kinds))


def read_vertices(unit: Unit, settings: Edges) -> tuple[Counter[str], pa.Table]:
    """Return counts of the ``rows`` and lines of a unit, and its vertices as a table of vertex and, if any, name.

    Raises
    ------
    InputError
        See `read_pairs`; or if only some vertices have a name, or ids of text have one besides.
    """
    found = [_vertices(block, settings) for block in lines(unit)]
    tables = [table for counts, table in found if counts["rows"]]
    counted = sum((counts for counts, _ in found), Counter[str]())
    return counted, pa.concat_tables(tables) if tables else SCHEMA.empty_table()


def may_be_edge(comment: bytes, settings: Edges) -> bool:
    """Return whether a comment at the head of a file reads as an edge between names, such as ``%41`` and ``Java``."""
    first, *others = comment.split(DELIMITERS[settings.delimiter]) or [b""]
    names = settings.ids == "text" and settings.comment == "head"
    return names and len(first.strip()) > 1 and 1 <= len(others) < _FIELDS


def _vertices(block: Lines, settings: Edges) -> tuple[Counter[str], pa.Table]:
    is_text = settings.ids == "text"
    text = _text(block, named=True)
    most = len(text) // 2 + 1
    ids, names = np.empty(most, np.int64), np.empty(most, np.int64)
    plan = _plan_of(0, -1, -1, max(_FIELDS, len(block.file.header)), settings)
    kinds = np.zeros(text_kernels.LINES, np.int64)
    rows, named, fault = text_kernels.parse_vertices(text, plan, ids, names, kinds)
    _refuse(block, rows, fault, settings)
    ids, names = ids[:rows], names[:rows]
    if named not in {0, rows}:
        at = int(np.flatnonzero(names == 0)[0])
        raise InputError(f"{block.file.path}: vertex {ids[at]} has no name, but others do. Give all a name, or none.")
    if named and is_text:
        raise InputError(f"{block.file.path}: ids are text and have a name besides. Leave the second field out: an id "
                         "of text is the name of its vertex.")  # fmt: skip
    counts = _counted(rows, kinds) + Counter(rows=rows)
    if is_text:
        return counts, table_of(text, ids, ids_of(text, ids, named=True).ids)
    return counts, table_of(text, names, ids) if named else pa.table({"vertex": pa.array(ids)})


def _counted(rows: int, kinds: Array) -> Counter[str]:
    """Return how many lines there are, and what those are that are no rows."""
    comments, empty_lines, unread = kinds.tolist()
    lines_read = rows + comments + empty_lines
    return Counter(lines=lines_read, comments=comments, empty_lines=empty_lines, unread_fields=unread)


def _plan(file: TextFile, settings: Edges) -> Array:
    if not file.header:
        plan = _plan_of(0, 1, 2 if settings.weighted else -1, _FIELDS, settings)
        if file.matrix:
            plan[[text_kernels.ROWS, text_kernels.COLUMNS]] = file.matrix.rows, file.matrix.columns
        return plan
    wanted = [settings.source_column, settings.target_column, *([settings.weight_column] * settings.weighted)]
    for name in wanted:
        if file.header.count(name) != 1:
            raise wrong_column(file.path, name, file.header)
    places = [file.header.index(name) for name in wanted]
    return _plan_of(places[0], places[1], places[2] if settings.weighted else -1, len(file.header), settings)


def _plan_of(source: int, target: int, weight: int, fields: int, settings: Edges) -> Array:
    delimiter = DELIMITERS[settings.delimiter]
    plan = np.zeros(text_kernels.PLAN, np.int64)
    plan[[text_kernels.SOURCE, text_kernels.TARGET, text_kernels.WEIGHT]] = source, target, weight
    plan[text_kernels.MOST_FIELDS] = fields
    plan[text_kernels.DELIMITER] = delimiter[0] if delimiter else text_kernels.BLANKS
    plan[text_kernels.IS_TEXT] = settings.ids == "text"
    plan[text_kernels.COMMENT] = ord(settings.comment) if len(settings.comment) == 1 else text_kernels.NO_COMMENT
    return plan


def _text(block: Lines, *, named: bool) -> Array:
    """Return the bytes of a block; those that hold names must be UTF-8."""
    # Looking for a byte is much faster where there is none.
    if b"\r" in block.data and (lone := _LONE_RETURN.search(block.data)):
        raise lone_return(block.file, block.line_number(lone.start()))
    if named and not block.data.isascii():
        try:
            block.data.decode()
        except UnicodeDecodeError as error:
            raise block.fault(error.start, "the line is not UTF-8", _TEXT_REMEDY) from error
    if named and (position := block.data.find(0)) >= 0:
        raise block.fault(position, "the line has a byte 0", _TEXT_REMEDY)
    return np.frombuffer(block.data, np.uint8)


def _refuse(block: Lines, position: int, fault: int, settings: Edges) -> None:
    if fault:
        cause = _other_cause(block, position, settings) if fault in _OF_FIELDS else None
        raise block.fault(position, *(cause or _FAULTS[fault]))


def _other_cause(block: Lines, position: int, settings: Edges) -> tuple[str, str] | None:
    """Return why the fields of a line are found wrongly, and the remedy, where the line tells."""
    line = block.data[position : block.data.index(b"\n", position)].strip()
    mark = line[:1].decode("ascii", "replace")
    if mark in COMMENTS and mark != settings.comment:
        return (f"the line begins with {mark!r}, but is not at the head of the file",
                f"If such lines are comments anywhere, set pagerank.fetch.edges.comment to '{mark}'; else correct the "
                "file.")  # fmt: skip
    chosen = DELIMITERS[settings.delimiter]
    for name, separator in _SEPARATORS.items():
        # A blank may follow a comma, but tabs are blanks.
        least = len(line.split(chosen)) + (chosen is not None or separator == b"\t")
        if least <= len(line.split(separator)) in {2, _FIELDS} and separator != chosen:
            return (f"fields are not separated as delimiter {settings.delimiter!r} says, but by {name}",
                    f"Set pagerank.fetch.edges.delimiter to {name}." if name in DELIMITERS else
                    "Write commas or tabs instead, and say so in pagerank.fetch.edges.delimiter.")  # fmt: skip
    if block.offset + position == block.file.body and not settings.header and _NAMES.fullmatch(line):
        return ("the first line seems to name the columns",
                "If so, set pagerank.fetch.edges.header to true, and .source_column and .target_column.")  # fmt: skip
    return None


def _checked_weights(block: Lines, text: Array, weights: Array, long: Array) -> Array:
    """Return the weights with those of many digits filled in."""
    is_long = (long != 0).astype(np.int64)
    for _, at, nearest in long_numbers(text, np.stack([long, is_long, is_long])):
        weights[at] = nearest
        wrong = at[~((nearest > 0) & (nearest <= LARGEST_WEIGHT))]
        if len(wrong):
            raise block.fault(int(long[wrong[0]] >> 32), *_FAULTS[text_kernels.NO_WEIGHT])
    return weights
