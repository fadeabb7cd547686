"""Lines of text as edges and vertices: pairs (SNAP, LDBC's .e, Common Crawl, Matrix Market) and adjacency.

Blocks of lines are cut into fields, and these are read as arrays. The first line that cannot be read stops the run with
its file, number and content. Source of the form of Matrix Market: R. F. Boisvert, R. Pozo, K. A. Remington, "The Matrix
Market Exchange Formats: Initial Design", NISTIR 5935 (1996).
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.engines.device import Array
from whitewater.errors import ConfigError, InputError
from whitewater.graphs.config import EdgeFiles
from whitewater.graphs.edges_folder import LARGEST_WEIGHT, Batch
from whitewater.graphs.vertex_ids import ids_of, vertices_of
from whitewater.io.text_files import BYTE_ORDER_MARK, LONGEST_LINE, line_blocks, open_text, ranges
from whitewater.tables.arrow_arrays import to_numpy

# Bytes of a part that one task reads: some seconds of work.
RANGE_BYTES = 64 << 20
_OTHERS = {"tab": b"\t", "comma": b",", "semicolon": b";", "whitespace": None}
_SEPARATORS = {**_OTHERS, "space": b" "}
# What a line of comment begins with, by the setting; those of `head` are comments ahead of the first row only.
_COMMENTS: dict[str, tuple[bytes, ...]] = {"head": (b"#", b"%"), "none": (), "#": (b"#",), "%": (b"%",)}
_EDGES_OF_SNAP = re.compile(rb"^#\s*Nodes:\s*\d+\s+Edges:\s*(\d+)\s*$")
# Fields of a line of pairs at most, where no header names them.
_FIELDS = 3
_BANNER = b"%%matrixmarket"
# Words of the first line, and why a matrix of them cannot be read.
_NO_GRAPHS = {
    "array": "it lists all entries, also those that are 0. Write it in the format coordinate.",
    "complex": "its entries are complex, and no weights. Write it as pattern, or as real with weights above 0.",
    "skew-symmetric": "each entry stands for another one of the opposite sign, and weights are above 0. Write all its "
    "edges as general, with weights above 0 or as pattern.",
    "hermitian": "each entry stands for its complex conjugate, too. Write all its edges as general.",
}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_SHOWN = 80
_NAMES = re.compile(rb"[\t -/:-~]+")
# A field that may stand in quotes, with what ends it.
_QUOTED = re.compile(rb'[ \t\r]*(?:"([^"]*)"|(?!")([^,]*?))[ \t\r]*(,|$)')
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_REAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# No integer of 64 bits has more digits.
_DIGITS = 19


# What may be wrong with a line, which is shown, and the remedy.
_CHECK = "Correct the file, or set pagerank.fetch.edges"
_NOT_TEXT = "{line}. It must be text in UTF-8: convert it, or fetch it again if it is damaged."
_LONE_RETURN = (
    "a carriage return (CR) stands within the line: {line}. Lines end with LF, or CR and LF: convert the file, such as "
    r"with `tr '\r' '\n'`."
)
_NO_INTEGER = (
    f"an id is not an integer: {{line}}. {_CHECK}.ids to text if ids are names, or .delimiter and .header if "
    "fields are found wrongly."
)
_TOO_LARGE = f"an id does not fit 64 bits with sign: {{line}}. {_CHECK}.ids to text."
_MISSING = (
    f"a field is missing: {{line}}. {_CHECK}: .delimiter, .header, or .weighted to false if there are no weights."
)
_TOO_MANY = (
    f"there are too many fields: {{line}}. {_CHECK}.layout to adjacency if a vertex and all its targets are on a "
    "line, or .delimiter and .header."
)
_NO_WEIGHT = (
    f"a weight is not a number above 0 and up to {LARGEST_WEIGHT:g}: {{line}}. {_CHECK}.weighted to false if "
    "weights shall not count."
)
_QUOTES = f"a quoted field has no end, or quotes in it: {{line}}. {_CHECK}.delimiter."
_OUTSIDE = "an index is not from 1 to the size that the matrix declares: {line}. Correct the file, or fetch it again."


@dataclass(frozen=True)
class TextFile:
    """A file of lines, and what the lines ahead of its first row say."""

    path: Path
    header: tuple[str, ...]  # the fields of the first line that is not a comment, where that names columns
    body: int  # where the lines of rows begin, in bytes of the text
    counts: Counter[str]  # lines ahead of these, of which are comments, empty_lines and headers
    declared: int | None  # how many edges there are, as a comment like those of SNAP or Matrix Market says
    size: tuple[int, int] | None  # rows and columns of a file of Matrix Market
    is_doubtful: bool  # whether the first comment reads as an edge between names, such as ``%41`` and ``Java``


class Unit(NamedTuple):
    """Lines of a file that one task reads, by the bytes of the text where they begin and end."""

    file: TextFile
    start: int
    stop: int | None


def open_file(path: Path, settings: EdgeFiles) -> TextFile:
    """Read the lines of a file ahead of its first row."""
    separator, marks = _SEPARATORS[settings.delimiter], _COMMENTS[settings.comment]
    banner, row, ahead = b"", b"", list[bytes]()
    with open_text(path) as stream:
        start = stream.read(4)
        if start.startswith(_UTF_16) or b"\0" in start:
            raise InputError(f"{path} is not text in UTF-8, but most likely in UTF-16. Convert it, such as with "
                             "`iconv -f UTF-16 -t UTF-8`.")  # fmt: skip
        body = len(BYTE_ORDER_MARK) if start.startswith(BYTE_ORDER_MARK) else 0
        stream.seek(body)
        while line := stream.readline(LONGEST_LINE):
            stripped = line.strip(_blanks(separator) + b"\n")
            if b"\r" in stripped:
                raise _error(path, len(ahead) + 1, stripped, _LONE_RETURN)
            banner = stripped if stripped.lower().startswith(_BANNER) else banner
            if stripped and not stripped.startswith((*marks, b"%") if banner else marks):
                row = line
                break
            ahead.append(stripped)
            body += len(line)
    names = tuple(each.strip().strip(b'"').decode("utf-8", "backslashreplace") for each in row.split(separator))
    if settings.header and not row:
        raise InputError(f"{path} has no header. Set pagerank.fetch.edges.header to false, or fetch the file again.")
    if not settings.header and names[:2] == (settings.source_column, settings.target_column):
        raise ConfigError(f"{path}: the first line names the columns {', '.join(names[:2])}. Set pagerank.fetch.edges."
                          "header to true; if it is an edge nevertheless, set .source_column to another name."
                          )  # fmt: skip
    comments, headers = list(filter(None, ahead)), int(settings.header or bool(banner))
    counts = Counter(lines=len(ahead) + headers, comments=len(comments), empty_lines=len(ahead) - len(comments),
                     headers=headers)  # fmt: skip
    first, *others = next(iter(comments), b"").split(separator) or [b""]
    is_doubtful = settings.ids == "text" and settings.comment == "head" and len(first.strip()) > 1
    declared = next((int(found[1]) for each in comments if (found := _EDGES_OF_SNAP.match(each))), None)
    size, declared = _read_sizes(path, banner, row, settings) if banner else (None, declared)
    return TextFile(path, names if settings.header else (), body + headers * len(row), counts, declared, size,
                    is_doubtful and 1 <= len(others) < _FIELDS)  # fmt: skip


def _read_sizes(path: Path, banner: bytes, sizes: bytes, settings: EdgeFiles) -> tuple[tuple[int, int], int]:
    """Return rows and columns of a matrix, and its entries, from their line; ``banner`` is the first of the file."""
    from scipy.io import mminfo

    try:
        rows, columns, entries, *words = mminfo(BytesIO(banner + b"\n" + sizes))
    except ValueError as error:
        raise InputError(
            f"{path} begins as a Matrix Market file, but: {error} Its first line must be such as '%%MatrixMarket "
            "matrix coordinate pattern general', and its line of sizes three numbers: rows, columns and entries. Fetch "
            "it again, or correct the line."
        ) from error
    for word in words:
        if word in _NO_GRAPHS:
            raise InputError(f"{path} is a matrix of Matrix Market of the kind {word}: {_NO_GRAPHS[word]}")
    wanted: dict[str, str | bool] = {"layout": "pairs", "delimiter": "whitespace", "header": False, "ids": "integer"}
    # Of a symmetric matrix an entry stands for both directions; a pattern has no weights.
    wanted |= dict.fromkeys(["directed"] * ("symmetric" in words) + ["weighted"] * ("pattern" in words), False)
    for name, value in wanted.items():
        if getattr(settings, name) != value:
            found, wanted_value = (str(each).lower() for each in (getattr(settings, name), value))
            raise ConfigError(f"{path} is a {' '.join(words)} matrix, but pagerank.fetch.edges.{name} is {found}. Set "
                              f"it to {wanted_value}.")  # fmt: skip
    return (rows, columns), entries


def units(file: TextFile) -> list[Unit]:
    """Cut a file into units of about `RANGE_BYTES`; they depend on the file only."""
    return [Unit(file, start, stop) for start, stop in ranges(file.path, file.body, RANGE_BYTES)]


def read_edges(unit: Unit, settings: EdgeFiles) -> Iterator[Batch]:
    """Yield the edges of a unit, and of adjacency the vertices that its lines begin with."""
    file = unit.file
    names = settings.columns_of(file.path, file.header) if file.header else ()
    places = [file.header.index(name) for name in names] or list(range(2 + settings.weighted))
    for block in _blocks(unit, settings):
        if settings.layout == "adjacency":
            fields, rows = block.rows.values, to_numpy(pc.list_parent_indices(block.rows))
            block.refuse(to_numpy(pc.binary_length(fields)) == 0, _MISSING, rows)
            [ids], named = ids_of([block.ids(fields, rows)])
            starts = to_numpy(block.rows.offsets)[:-1]
            source, target = np.repeat(ids[starts], block.sizes - 1), np.delete(ids, starts)
            yield Batch(source, target, None, ids[starts], named, block.counts())
        else:
            block.check_sizes(max(places))
            (source, target), named = ids_of([block.ids(block.fields(place)) for place in places[:2]])
            if file.size:
                beyond = (source > file.size[0]) | (target > file.size[1])
                block.refuse(beyond | (source < 1) | (target < 1), _OUTSIDE)
            weight = block.weights(block.fields(places[2])) if settings.weighted else None
            yield Batch(source, target, weight, None, named, block.counts(len(places)))


def read_vertices(unit: Unit, settings: EdgeFiles) -> tuple[Counter[str], list[pa.Table]]:
    """Return counts of the ``rows`` and lines of a unit, and its vertices as tables of vertex and, if any, name."""
    counts, tables = Counter[str](), []
    for block in _blocks(unit, settings):
        block.check_sizes(0)
        vertices, named = block.ids(block.fields(0)), block.sizes > 1
        if named.any() and settings.ids == "text":
            raise InputError(f"{unit.file.path}: ids are text and have a name besides. Leave the second field out: an "
                             "id of text is the name of its vertex.")  # fmt: skip
        if named.any() and not named.all():
            raise InputError(f"{unit.file.path}: vertex {vertices[int(named.argmin())]} has no name, but others do. "
                             "Give all a name, or none.")  # fmt: skip
        counts += block.counts(2) + Counter(rows=len(vertices))
        if len(vertices):
            tables.append(vertices_of(vertices, block.fields(1) if named.any() else None))
    return counts, tables


def _blanks(separator: bytes | None) -> bytes:
    """Return what may stand around fields."""
    return b" \t\r".replace(separator or b"\n", b"")


class _Block:
    """Whole lines, which begin at ``offset`` of the text of the file.

    Lines that are neither empty nor comments are ``rows``, lists of fields; ``at`` are their places among the lines,
    and ``sizes`` how many fields each has, int64 (rows,).
    """

    def __init__(self, file: TextFile, settings: EdgeFiles, offset: int, data: bytes) -> None:
        self._file, self._settings, self._offset, self._data = file, settings, offset, data
        self._separator = _SEPARATORS[settings.delimiter]
        self._check_text()
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
        offsets = pa.py_buffer(np.concatenate([[0], ends]).astype(np.int32))
        lines = self._trimmed(pa.StringArray.from_buffers(len(ends), offsets, pa.py_buffer(data)), b"\n")
        is_row = pc.greater(pc.binary_length(lines), 0)
        self._lines, self._comments = len(lines), 0
        for mark in () if settings.comment == "head" else _COMMENTS[settings.comment]:
            is_comment = pc.starts_with(lines, mark.decode())
            self._comments = is_comment.true_count
            is_row = pc.and_not(is_row, is_comment)
        self.at = to_numpy(pc.indices_nonzero(is_row)).astype(np.int64)
        self.rows = self._cut(lines.filter(is_row))
        self.sizes = to_numpy(pc.list_value_length(self.rows)).astype(np.int64)

    def _check_text(self) -> None:
        """Refuse carriage returns within lines, and names that are not UTF-8."""
        # Counting is much faster than looking for a pattern.
        if self._data.count(b"\r") != self._data.count(b"\r\n"):
            raise self._error_at(next(re.finditer(rb"\r(?!\n)", self._data)).start(), _LONE_RETURN)
        if self._settings.ids == "text":
            try:
                self._data.decode()
            except UnicodeDecodeError as error:
                raise self._error_at(error.start, f"the line is not UTF-8: {_NOT_TEXT}") from error
            if (position := self._data.find(0)) >= 0:
                raise self._error_at(position, f"the line has a byte 0: {_NOT_TEXT}")

    def _trimmed(self, texts: pa.Array, more: bytes = b"") -> pa.Array:
        """Return texts without what may stand around fields."""
        return pc.ascii_trim(texts, characters=(_blanks(self._separator) + more).decode())

    def _cut(self, lines: pa.Array) -> pa.Array:
        """Return the fields of lines, a list for each; a delimiter that ends a line begins none."""
        if self._separator is None:
            return pc.ascii_split_whitespace(lines)
        separator = self._separator.decode()
        if pc.any(pc.ends_with(lines, separator)).as_py():
            lines = pc.replace_substring_regex(lines.view(pa.binary()), f"{separator}$", "").view(pa.string())
        if separator != "," or b'"' not in self._data:
            cut = pc.split_pattern(lines, separator)
            return pa.ListArray.from_arrays(cut.offsets, self._trimmed(cut.values))
        rows = zip(self.at.tolist(), lines.view(pa.binary()).to_pylist(), strict=True)
        cut = pa.array([self._quoted(at, line) for at, line in rows], pa.list_(pa.binary()))
        return pa.ListArray.from_arrays(cut.offsets, cut.values.view(pa.string()))

    def _quoted(self, at: int, line: bytes) -> list[bytes]:
        fields, position, comma = list[bytes](), 0, b","
        while comma:
            found = _QUOTED.match(line, position)
            if found is None:
                raise self._error(at, _QUOTES)
            quoted, plain, comma = found.groups()
            fields.append(plain if quoted is None else quoted)
            position = found.end()
        return fields

    def check_sizes(self, last: int) -> None:
        """Refuse rows that have no field at place ``last``, or more than there may be."""
        self.refuse(self.sizes <= last, _MISSING)
        self.refuse(self.sizes > (len(self._file.header) or _FIELDS), _TOO_MANY)

    def fields(self, place: int) -> pa.Array:
        """Return the field of each row at a place; none may be empty."""
        texts = pc.list_element(self.rows, place)
        self.refuse(to_numpy(pc.binary_length(texts)) == 0, _MISSING)
        return texts

    def ids(self, texts: pa.Array, rows: Array | None = None) -> pa.Array:
        """Return fields, one of each row or of the ``rows`` given, as ids: names, or int64."""
        if self._settings.ids == "text":
            return texts
        # Arrow also takes integers that are hexadecimal, and none with a plus.
        if not any(each in self._data for each in (b"x", b"X", b"+")):
            with suppress(pa.ArrowInvalid):
                return texts.cast(pa.int64())
        words = texts.view(pa.binary()).to_pylist()
        self.refuse([_INTEGER.fullmatch(each) is None for each in words], _NO_INTEGER, rows)
        large = (len(each.lstrip(b"+-0")) > _DIGITS or not -(2**63) <= int(each) < 2**63 for each in words)
        self.refuse(list(large), _TOO_LARGE, rows)
        return pa.array(map(int, words), pa.int64())

    def weights(self, texts: pa.Array) -> Array:
        """Return fields, one of each row, as weights, float64."""
        try:
            weights = to_numpy(texts.cast(pa.float64()))
        except pa.ArrowInvalid:
            words = texts.view(pa.binary()).to_pylist()
            weights = np.array([float(each) if _REAL.fullmatch(each) else 0.0 for each in words])
        self.refuse(~((weights > 0) & (weights <= LARGEST_WEIGHT)), _NO_WEIGHT)
        return weights

    def counts(self, read: int = sys.maxsize) -> Counter[str]:
        """Return counts of the lines, and of rows with more fields than are read."""
        empty, unread = self._lines - self._comments - len(self.at), int((self.sizes > read).sum())
        return Counter(lines=self._lines, comments=self._comments, empty_lines=empty, unread_fields=unread)

    def refuse(self, wrong: Array | Sequence[bool], fault: str, rows: Array | None = None) -> None:
        """Raise the error that names the first that is wrong, if any is: of all rows, or of fields of ``rows``."""
        if np.any(wrong):
            first = int(np.argmax(wrong))
            line = int(self.at[first if rows is None else rows[first]])
            raise self._error(line, self._other_cause(line, fault) or fault)

    def _line(self, at: int) -> bytes:
        return self._data.split(b"\n", at + 1)[at].strip(_blanks(self._separator))

    def _error_at(self, position: int, fault: str) -> InputError:
        return self._error(self._data.count(b"\n", 0, position), fault)

    def _error(self, at: int, fault: str) -> InputError:
        before = sum(data.count(b"\n") for data in line_blocks(self._file.path, 0, self._offset))
        return _error(self._file.path, before + at + 1, self._line(at), fault)

    def _other_cause(self, at: int, fault: str) -> str | None:
        """Return why the fields of a line are found wrongly, and the remedy, where the line tells."""
        line, of_fields = self._line(at), fault in {_NO_INTEGER, _MISSING, _TOO_MANY}
        mark = line[:1].decode("ascii", "replace")
        if of_fields and mark in _COMMENTS and mark != self._settings.comment:
            return (f"the line begins with {mark!r}, but is not at the head of the file: {{line}}. If such lines are "
                    f"comments anywhere, set pagerank.fetch.edges.comment to '{mark}'; else correct the file."
                    )  # fmt: skip
        for name, separator in _OTHERS.items() if of_fields else ():
            # A blank may follow a comma, but tabs are blanks.
            least = len(line.split(self._separator)) + (self._separator is not None or separator == b"\t")
            if least <= len(line.split(separator)) in {2, _FIELDS} and separator != self._separator:
                remedy = f"Set pagerank.fetch.edges.delimiter to {name}."
                if name == "semicolon":
                    remedy = "Write commas or tabs instead, and say so in pagerank.fetch.edges.delimiter."
                delimiter = self._settings.delimiter
                return f"fields are not separated as delimiter {delimiter!r} says, but by {name}: {{line}}. {remedy}"
        if self._offset == self._file.body and at == 0 and not self._file.header and _NAMES.fullmatch(line):
            return ("the first line seems to name the columns: {line}. If so, set pagerank.fetch.edges.header to true, "
                    "and .source_column and .target_column.")  # fmt: skip
        return None


def _blocks(unit: Unit, settings: EdgeFiles) -> Iterator[_Block]:
    offset = unit.start
    for data in line_blocks(unit.file.path, unit.start, unit.stop):
        yield _Block(unit.file, settings, offset, data)
        offset += len(data)


def _error(path: Path, number: int, line: bytes, fault: str) -> InputError:
    """Return the error that names file, number and text of a line."""
    try:
        shown = repr(line[:_SHOWN].decode())
    except UnicodeDecodeError:
        shown = repr(line[:_SHOWN]).removeprefix("b")
    more = "..." if len(line) > _SHOWN else ""
    return InputError(f"{path}, line {number}: {fault.format(line=shown + more)}")
