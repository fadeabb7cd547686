"""Lines of text as edges and vertices: pairs (SNAP, LDBC's .e, Common Crawl, Matrix Market) and adjacency.

Arrow reads a block of lines that all have the same plain fields; another one, or one with a fault, is read line by
line. A line that cannot be read stops the run with its file, number and content.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.arrow_arrays import to_numpy
from whitewater.errors import ConfigError, InputError
from whitewater.pagerank.edge_files.matrix_market import BANNER, Matrix, check_settings, read_matrix
from whitewater.pagerank.edge_files.names import Batch, ids_of, vertices_of, wrong_column
from whitewater.pagerank.edges_folder import LARGEST_WEIGHT
from whitewater.text_files import BYTE_ORDER_MARK, LONGEST_LINE, line_blocks, open_text, parse, ranges

if TYPE_CHECKING:
    from whitewater.config.pagerank import Edges

# Bytes of a part that one task reads: some seconds of work.
RANGE_BYTES = 64 << 20
_OTHERS = {"tab": b"\t", "comma": b",", "semicolon": b";", "whitespace": None}
_SEPARATORS = {**_OTHERS, "space": b" "}
# What a line of comment begins with, by the setting; those of `head` are comments ahead of the first row only.
_COMMENTS: dict[str, tuple[bytes, ...]] = {"head": (b"#", b"%"), "none": (), "#": (b"#",), "%": (b"%",)}
_EDGES_OF_SNAP = re.compile(rb"^#\s*Nodes:\s*\d+\s+Edges:\s*(\d+)\s*$")
_FIELDS = 3
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_SHOWN = 80
_NAMES = re.compile(rb"[\t -/:-~]+")
_WORD = re.compile(rb"[^ \t\r]+")
# A field that may stand in quotes, with what ends it.
_QUOTED = re.compile(rb'[ \t\r]*(?:"([^"]*)"|(?!")([^,]*?))[ \t\r]*(,|$)')
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_REAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TEXT = "It must be text in UTF-8: convert it, or fetch it again if it is damaged."
_CHECK = "Correct the file, or set pagerank.fetch.edges"
_NO_INTEGER = (
    "an id is no integer",
    f"{_CHECK}.ids to text if ids are names, or .delimiter and .header if fields are found wrongly.",
)
_TOO_LARGE = ("an id does not fit 64 bits with sign", f"{_CHECK}.ids to text.")
_MISSING = ("a field is missing", f"{_CHECK}: .delimiter, .header, or .weighted to false if there are no weights.")
_TOO_MANY = (
    "there are too many fields",
    f"{_CHECK}.layout to adjacency if a vertex and all its targets are on a line, or .delimiter and .header.",
)
_NO_WEIGHT = (
    f"a weight is not a number above 0 and up to {LARGEST_WEIGHT:g}",
    f"{_CHECK}.weighted to false if weights shall not count.",
)
_QUOTES = ("a quoted field has no end, or quotes in it", f"{_CHECK}.delimiter.")
_OUTSIDE = (
    "an index is not from 1 to the size that the matrix declares",
    "Correct the file, or fetch it again.",
)
# Faults that have another cause where fields are found wrongly.
_OF_FIELDS = (_NO_INTEGER, _MISSING, _TOO_MANY)
# No integer of 64 bits has more.
_DIGITS = 19


class _LineError(ValueError):
    """What is wrong with a line, and the remedy."""


@dataclass(frozen=True)
class TextFile:
    """A file of lines, and what the lines ahead of its first row say.

    Attributes
    ----------
    header
        The fields of the first line that is no comment, where that names columns.
    body
        Where the lines of rows begin, in bytes of the text.
    counts
        How many ``lines`` there are ahead of these, of which are ``comments``, ``empty_lines`` and ``headers``.
    matrix
        What a file of Matrix Market declares.
    declared
        How many edges a comment as those of SNAP tells of.
    comment
        The first comment, as it stands.
    """

    path: Path
    header: tuple[str, ...]
    body: int
    counts: Counter[str]
    matrix: Matrix | None
    declared: int | None
    comment: bytes


@dataclass(frozen=True)
class Unit:
    """Lines of a file that one task reads, by the bytes of the text where they begin and end."""

    file: TextFile
    start: int
    stop: int | None

    @property
    def path(self) -> Path:
        """The file."""
        return self.file.path


def open_file(path: Path, settings: Edges) -> TextFile:
    """Read the lines of a file ahead of its first row.

    Raises
    ------
    InputError
        If it cannot be read as text, has no header where it should have one, or is a matrix that is not understood.
    ConfigError
        If the settings are not those of a matrix, or a header would be an edge.
    """
    separator, marks = _SEPARATORS[settings.delimiter], _COMMENTS[settings.comment]
    banner, row, comments, empty = b"", b"", list[bytes](), 0
    with open_text(path) as stream:
        start = stream.read(4)
        if start.startswith(_UTF_16) or b"\0" in start:
            raise InputError(f"{path} is no text in UTF-8, but most likely in UTF-16. Convert it, such as with "
                             "`iconv -f UTF-16 -t UTF-8`.")  # fmt: skip
        body = len(BYTE_ORDER_MARK) if start.startswith(BYTE_ORDER_MARK) else 0
        stream.seek(body)
        while line := stream.readline(LONGEST_LINE):
            stripped = line.strip(_blanks(separator) + b"\n")
            if b"\r" in stripped:
                raise _lone_return(path, len(comments) + empty + 1)
            banner = stripped if stripped.lower().startswith(BANNER) else banner
            if stripped and not stripped.startswith((*marks, b"%") if banner else marks):
                row = line
                break
            empty += not stripped
            comments += [stripped] if stripped else []
            body += len(line)
    names = tuple(each.strip().strip(b'"').decode("utf-8", "backslashreplace") for each in row.split(separator))
    matrix = read_matrix(path, banner, row) if banner else None
    if matrix:
        check_settings(path, matrix, settings)
    if settings.header and not row:
        raise InputError(f"{path} has no header. Set pagerank.fetch.edges.header to false, or fetch the file again.")
    if not settings.header and names[:2] == (settings.source_column, settings.target_column):
        raise ConfigError(f"{path}: the first line names the columns {', '.join(names[:2])}. Set pagerank.fetch.edges."
                          "header to true; if it is an edge nevertheless, set .source_column to another name."
                          )  # fmt: skip
    headers = int(settings.header or bool(banner))
    counts = {"lines": len(comments) + empty + headers, "comments": len(comments), "empty_lines": empty,
              "headers": headers}  # fmt: skip
    declared = next((int(found[1]) for each in comments if (found := _EDGES_OF_SNAP.match(each))), None)
    return TextFile(
        path,
        header=names if settings.header else (),
        body=body + headers * len(row),
        counts=Counter(counts),
        matrix=matrix,
        declared=declared,
        comment=comments[0] if comments else b"",
    )


def units(file: TextFile) -> list[Unit]:
    """Cut a file into units of about `RANGE_BYTES`; they depend on the file only."""
    return [Unit(file, start, stop) for start, stop in ranges(file.path, file.body, RANGE_BYTES)]


def may_be_edge(comment: bytes, settings: Edges) -> bool:
    """Return whether a comment at the head of a file reads as an edge between names, such as ``%41`` and ``Java``."""
    first, *others = comment.split(_SEPARATORS[settings.delimiter]) or [b""]
    names = settings.ids == "text" and settings.comment == "head"
    return names and len(first.strip()) > 1 and 1 <= len(others) < _FIELDS


def read_edges(unit: Unit, settings: Edges) -> Iterator[Batch]:
    """Yield the edges of a unit, and of adjacency the vertices that its lines begin with.

    Raises
    ------
    InputError
        If a line lacks a field or has too many, an id is no integer of 64 bits or no UTF-8, a weight is not finite and
        above 0, or the file is damaged.
    """
    wanted = _wanted(unit.file, settings)
    for block in _blocks(unit, settings):
        if settings.layout == "adjacency":
            rows, counts = block.each_line(block.ids)
            sources, targets = [row[0] for row in rows for _ in row[1:]], [each for row in rows for each in row[1:]]
            arrays = [block.array("id", values) for values in (sources, targets, [row[0] for row in rows])]
            (source, target, firsts), names = ids_of(arrays)
            yield Batch(source, target, None, firsts, names, counts)
        else:
            columns, counts = block.columns(wanted)
            (source, target), names = ids_of([columns["source"], columns["target"]])
            weight = to_numpy(columns["weight"]) if settings.weighted else None
            yield Batch(source, target, weight, None, names, counts)


def read_vertices(unit: Unit, settings: Edges) -> tuple[Counter[str], list[pa.Table]]:
    """Return counts of the ``rows`` and lines of a unit, and its vertices as tables of vertex and, if any, name.

    Raises
    ------
    InputError
        See `read_edges`; or if only some vertices have a name, or ids of text have one besides.
    """
    counts, tables = Counter[str](), []
    for block in _blocks(unit, settings):
        columns, counted = block.columns({"vertex": 0}, named=True)
        counts += counted + Counter(rows=len(columns["vertex"]))
        names = columns.get("name")
        if names is not None and settings.ids == "text":
            raise InputError(f"{unit.path}: ids are text and have a name besides. Leave the second field out: an id "
                             "of text is the name of its vertex.")  # fmt: skip
        if names is not None and names.null_count:
            vertex = columns["vertex"].filter(names.is_null())[0]
            raise InputError(f"{unit.path}: vertex {vertex} has no name, but others do. Give all a name, or none.")
        if len(columns["vertex"]):
            tables.append(vertices_of(columns["vertex"], names))
    return counts, tables


def _wanted(file: TextFile, settings: Edges) -> dict[str, int]:
    """Return the place of each field that is read."""
    names = {"source": settings.source_column, "target": settings.target_column}
    if settings.weighted:
        names["weight"] = settings.weight_column
    if not file.header:
        return {role: place for place, role in enumerate(names)}
    for name in names.values():
        if file.header.count(name) != 1:
            raise wrong_column(file.path, name, file.header)
    return {role: file.header.index(name) for role, name in names.items()}


def _blanks(separator: bytes | None) -> bytes:
    """Return what may stand around fields."""
    return b" \t\r".replace(separator or b"\n", b"")


def _lone_return(path: Path, number: int) -> InputError:
    return InputError(
        f"{path}, line {number}: a carriage return (CR) stands within the line. Lines end with LF, or CR and LF: "
        r"convert the file, such as with `tr '\r' '\n'`."
    )


def _blocks(unit: Unit, settings: Edges) -> Iterator[_Block]:
    offset = unit.start
    for data in line_blocks(unit.path, unit.start, unit.stop):
        block = _Block(unit.file, offset, data, settings)
        block.check_text()
        yield block
        offset += len(data)


@dataclass(frozen=True)
class _Block:
    """Whole lines, which begin at ``offset`` of the text of the file."""

    file: TextFile
    offset: int
    data: bytes
    settings: Edges

    @property
    def _separator(self) -> bytes | None:
        return _SEPARATORS[self.settings.delimiter]

    @property
    def _marks(self) -> tuple[bytes, ...]:
        """What comments begin with below the head of the file."""
        return () if self.settings.comment == "head" else _COMMENTS[self.settings.comment]

    @property
    def _most(self) -> int:
        return len(self.file.header) or _FIELDS

    def check_text(self) -> None:
        """Refuse carriage returns within lines, and names that are not UTF-8."""
        # Counting is much faster than looking for a pattern.
        if self.data.count(b"\r") != self.data.count(b"\r\n"):
            position = next(re.finditer(rb"\r(?!\n)", self.data)).start()
            raise _lone_return(self.file.path, self._number(self.data.count(b"\n", 0, position)))
        if self.settings.ids == "text":
            try:
                self.data.decode()
            except UnicodeDecodeError as error:
                raise self._fault(self.data.count(b"\n", 0, error.start), "the line is not UTF-8", _TEXT) from error
            if (position := self.data.find(0)) >= 0:
                raise self._fault(self.data.count(b"\n", 0, position), "the line has a byte 0", _TEXT)

    def columns(self, wanted: Mapping[str, int], *, named: bool = False) -> tuple[dict[str, pa.Array], Counter[str]]:
        """Return the fields by their places, perhaps also names, which are the second, if any; and counts of lines."""
        try:
            return self._alike(wanted, named=named)
        except ValueError:
            rows, counts = self.each_line(partial(self._row, wanted=wanted, named=named))
        roles = [*wanted, "name"] if named and any(row[-1] for row in rows) else [*wanted]
        return {role: self.array(role, [row[place] for row in rows]) for place, role in enumerate(roles)}, counts

    def each_line(self, read: Callable[[list[bytes]], list[Any]]) -> tuple[list[list[Any]], Counter[str]]:
        """Return what a function makes of the fields of each line that is neither empty nor a comment, and counts."""
        rows, comments, unread = [], 0, 0
        for at, line in enumerate(self.data[:-1].split(b"\n")):
            stripped = line.strip(_blanks(self._separator))
            if stripped.startswith(self._marks):
                comments += 1
            elif stripped:
                try:
                    fields = self._split(stripped)
                    rows.append(read(fields))
                except _LineError as error:
                    cause = self._other_cause(at, stripped) if error.args in _OF_FIELDS else None
                    raise self._fault(at, *(cause or error.args)) from error
                unread += len(fields) > len(rows[-1])
        return rows, self._counts(len(rows), comments, unread)

    def ids(self, fields: list[bytes]) -> list[int | bytes]:
        """Return fields as ids."""
        return [self._value("id", text) for text in fields]

    def _value(self, role: str, text: bytes) -> Any:
        """Return a field as a weight, the text of a name, or the number of a vertex."""
        if not text:
            raise _LineError(*_MISSING)
        if role == "weight":
            weight = float(text) if _REAL.fullmatch(text) else 0.0
            if not 0 < weight <= LARGEST_WEIGHT:
                raise _LineError(*_NO_WEIGHT)
            return weight
        if self.settings.ids == "text":
            return text
        if not _INTEGER.fullmatch(text):
            raise _LineError(*_NO_INTEGER)
        if len(text.lstrip(b"+-0")) > _DIGITS or not -(2**63) <= int(text) < 2**63:
            raise _LineError(*_TOO_LARGE)
        return int(text)

    def array(self, role: str, values: Sequence[Any]) -> pa.Array:
        """Return values of fields as an array."""
        return pa.array(values, self._type(role))

    def _type(self, role: str) -> pa.DataType:
        if role == "weight":
            return pa.float64()
        return pa.string() if role == "name" or self.settings.ids == "text" else pa.int64()

    def _row(self, fields: list[bytes], *, wanted: Mapping[str, int], named: bool) -> list[Any]:
        row = [self._value(role, fields[place] if place < len(fields) else b"") for role, place in wanted.items()]
        if len(fields) > self._most:
            raise _LineError(*_TOO_MANY)
        if self._outside(*row[:2]).any():
            raise _LineError(*_OUTSIDE)
        return [*row, b"".join(fields[1:2]) or None] if named else row

    def _outside(self, source: Any, target: Any = 1) -> Any:
        """Return which indices are outside of the matrix, if the file is one."""
        if self.file.matrix is None:
            return np.False_
        rows, columns = self.file.matrix.rows, self.file.matrix.columns
        return np.less(source, 1) | np.greater(source, rows) | np.less(target, 1) | np.greater(target, columns)

    def _alike(self, wanted: Mapping[str, int], *, named: bool) -> tuple[dict[str, pa.Array], Counter[str]]:
        """Let Arrow read the lines. Raises ValueError if one is not as the first, or what it holds is not plain."""
        data, comments = self.data, 0
        for mark in self._marks:
            if mark in data:
                data, comments = re.subn(rb"(?m)^[ \t]*" + mark + rb".*\n", b"", data)
        # Arrow takes other quotes than we do, and integers that are hexadecimal.
        hexadecimal = self.settings.ids == "integer" and (b"0x" in data or b"0X" in data)
        if hexadecimal or (self._separator == b"," and b'"' in data):
            raise ValueError
        data = data if self._separator else _with_tabs(data)
        fields = len(self._split(data.lstrip(b"\r\n").partition(b"\n")[0]))
        places = {**wanted, "name": 1} if named and fields > 1 else wanted
        if not max(places.values()) < fields <= self._most:
            raise ValueError
        types = {str(place): self._type(role) for role, place in places.items()}
        delimiter = (self._separator or b"\t").decode()
        table = parse(data, [str(place) for place in range(fields)], types, delimiter=delimiter, null=None)
        columns = {role: _whole(table.column(str(place)).combine_chunks()) for role, place in places.items()}
        if self._outside(*list(columns.values())[:2]).any():
            raise ValueError
        rows = table.num_rows
        return columns, self._counts(rows, comments, rows * (fields > len(places)))

    def _split(self, line: bytes) -> list[bytes]:
        """Return the fields of a line; a delimiter that ends it begins none."""
        if self._separator is None:
            return _WORD.findall(line)
        if self._separator == b"," and b'"' in line:
            fields = _quoted(line)
        else:
            fields = [each.strip(_blanks(self._separator)) for each in line.split(self._separator)]
        return fields[:-1] if fields[1:] and not fields[-1] else fields

    def _counts(self, rows: int, comments: int, unread: int) -> Counter[str]:
        lines = self.data.count(b"\n")
        return Counter(lines=lines, comments=comments, empty_lines=lines - rows - comments, unread_fields=unread)

    def _number(self, at: int) -> int:
        """Return the number, from 1, of the line that ``at`` lines are ahead of in the block."""
        before = line_blocks(self.file.path, 0, self.offset)
        return sum(data.count(b"\n") for data in before) + at + 1

    def _fault(self, at: int, problem: str, remedy: str) -> InputError:
        """Return the error that names file, number and text of a line."""
        line = self.data.split(b"\n", at + 1)[at].rstrip(b"\r")
        try:
            shown = repr(line[:_SHOWN].decode())
        except UnicodeDecodeError:
            shown = repr(line[:_SHOWN]).removeprefix("b")
        more = "..." if len(line) > _SHOWN else ""
        return InputError(f"{self.file.path}, line {self._number(at)}: {problem}: {shown}{more}. {remedy}")

    def _other_cause(self, at: int, line: bytes) -> tuple[str, str] | None:
        """Return why the fields of a line are found wrongly, and the remedy, where the line tells."""
        mark = line[:1].decode("ascii", "replace")
        if mark in _COMMENTS and mark != self.settings.comment:
            return (f"the line begins with {mark!r}, but is not at the head of the file",
                    f"If such lines are comments anywhere, set pagerank.fetch.edges.comment to '{mark}'; else correct "
                    "the file.")  # fmt: skip
        for name, separator in _OTHERS.items():
            # A blank may follow a comma, but tabs are blanks.
            least = len(line.split(self._separator)) + (self._separator is not None or separator == b"\t")
            if least <= len(line.split(separator)) in {2, _FIELDS} and separator != self._separator:
                return (f"fields are not separated as delimiter {self.settings.delimiter!r} says, but by {name}",
                        "Write commas or tabs instead, and say so in pagerank.fetch.edges.delimiter."
                        if name == "semicolon" else f"Set pagerank.fetch.edges.delimiter to {name}.")  # fmt: skip
        if self.offset == self.file.body and at == 0 and not self.file.header and _NAMES.fullmatch(line):
            return ("the first line seems to name the columns",
                    "If so, set pagerank.fetch.edges.header to true, and .source_column and .target_column."
                    )  # fmt: skip
        return None


def _quoted(line: bytes) -> list[bytes]:
    fields, position, comma = list[bytes](), 0, b","
    while comma:
        found = _QUOTED.match(line, position)
        if found is None:
            raise _LineError(*_QUOTES)
        quoted, plain, comma = found.groups()
        fields.append(plain if quoted is None else quoted)
        position = found.end()
    return fields


def _with_tabs(data: bytes) -> bytes:
    """Return lines with one tab between their fields, where there are blanks, and none around them."""
    data = data.replace(b" ", b"\t")
    if data.startswith(b"\t") or any(each in data for each in (b"\t\t", b"\n\t", b"\t\n", b"\t\r")):
        return re.sub(rb"\t\t+", b"\t", re.sub(rb"(?m)^\t+|\t+\r?$", b"", data))
    return data


def _whole(column: pa.Array) -> pa.Array:
    """Return names without blanks around them, or numbers. Raises ValueError if a name is empty, or a weight wrong."""
    if pa.types.is_string(column.type):
        column = pc.ascii_trim(column, characters=" \t\r")
        wrong = len(column) and not pc.min(pc.binary_length(column)).as_py()
    elif pa.types.is_floating(column.type):
        numbers = to_numpy(column)
        wrong = not ((numbers > 0) & (numbers <= LARGEST_WEIGHT)).all()
    else:
        wrong = False
    if wrong:
        raise ValueError
    return column
