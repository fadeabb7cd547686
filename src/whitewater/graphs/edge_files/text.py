"""Reads edges and vertices from text: pairs (SNAP, LDBC's .e, Common Crawl, Matrix Market) and adjacency lists.

Blocks of lines are split into fields and read as arrays. The first line that cannot be read stops the run with its
file, number and content. Matrix Market: R. F. Boisvert, R. Pozo, K. A. Remington, "The Matrix Market Exchange Formats:
Initial Design", NISTIR 5935 (1996).
"""

import csv
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
from whitewater.graphs.vertex_ids import compute_ids, vertex_table
from whitewater.io.text_files import BYTE_ORDER_MARK, LONGEST_LINE, line_blocks, open_text, ranges
from whitewater.tables.arrow_arrays import to_numpy

# Bytes that one task reads: a few seconds of work.
RANGE_BYTES = 64 << 20
# Delimiters that an error suggests.
_SUGGESTIONS = {"tab": b"\t", "comma": b",", "semicolon": b";", "whitespace": None}
_SEPARATORS = {**_SUGGESTIONS, "space": b" "}
# Prefixes of comment lines, by the setting; those of `head` count only before the first row.
_COMMENTS: dict[str, tuple[bytes, ...]] = {"head": (b"#", b"%"), "none": (), "#": (b"#",), "%": (b"%",)}
_SNAP_COUNTS = re.compile(rb"^#\s*Nodes:\s*\d+\s+Edges:\s*(\d+)\s*$")
# Maximum fields of a line of pairs without a header.
_FIELDS = 3
# Why matrices of these kinds cannot be read.
_UNSUPPORTED = {
    "array": "it lists all entries, even those that are 0. Write it in the format coordinate.",
    "complex": "complex entries cannot be weights. Write it as pattern, or as real with weights above 0.",
    "skew-symmetric": "each entry implies one of the opposite sign, but weights must be above 0. Write all edges as "
    "general, with weights above 0 or as pattern.",
    "hermitian": "each entry implies its complex conjugate. Write all edges as general.",
}
_NAMES = re.compile(rb"[\t -/:-~]+")
# A field, perhaps in quotes, and its delimiter.
_QUOTED = re.compile(rb'[ \t\r]*(?:"([^"]*)"|(?!")([^,]*?))[ \t\r]*(,|$)')
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_REAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

# Faults of a line, and the remedies.
_CHECK = "Correct the file, or set pagerank.fetch.edges"
_NOT_TEXT = "{line}. It must be text in UTF-8: convert it, or fetch it again if it is damaged."
_LONE_RETURN = (
    r"a carriage return (CR) stands within the line: {line}. Lines end with LF or CRLF: convert it with `tr '\r' '\n'`."
)
_NO_INTEGER = (
    f"an id is not an integer: {{line}}. {_CHECK}.ids to text if ids are names, or .delimiter and .header if "
    "the line is split wrongly."
)
_TOO_LARGE = f"an id does not fit 64 bits with sign: {{line}}. {_CHECK}.ids to text."
_MISSING = f"a field is missing: {{line}}. {_CHECK}.delimiter, .header, or .weighted to false without weights."
_TOO_MANY = (
    f"there are too many fields: {{line}}. {_CHECK}.layout to adjacency if a vertex and all its targets are on a "
    "line, or .delimiter and .header."
)
_NO_WEIGHT = (
    f"a weight is not a number above 0 and up to {LARGEST_WEIGHT:g}: {{line}}. {_CHECK}.weighted to false to "
    "ignore weights."
)
_QUOTES = f"a quoted field has no end, or quotes in it: {{line}}. {_CHECK}.delimiter."
_OUTSIDE = "an index is not between 1 and the declared size of the matrix: {line}. Correct the file, or fetch it again."


@dataclass(frozen=True)
class TextFile:
    """A text file, and what its lines before the first row say."""

    path: Path
    header: tuple[str, ...]  # the column names, if there is a header
    body: int  # byte of the text where the rows begin
    counts: Counter[str]  # lines before the rows: lines, comments, empty_lines and headers
    declared: int | None  # the number of edges by a comment of SNAP, or by Matrix Market
    size: tuple[int, int] | None  # rows and columns of Matrix Market
    is_doubtful: bool  # whether the first comment may be an edge between names, such as ``%41`` and ``Java``


class Unit(NamedTuple):
    """Lines that one task reads: the bytes of the text from ``start`` to ``stop``."""

    file: TextFile
    start: int
    stop: int | None


def open_file(path: Path, settings: EdgeFiles) -> TextFile | None:
    """Read the lines of a text file before its first row; return None for Parquet."""
    separator, marks = _SEPARATORS[settings.delimiter], _COMMENTS[settings.comment]
    banner, row, ahead = b"", b"", list[bytes]()
    with open_text(path) as stream:
        start = stream.read(4)
        if start == b"PAR1":
            return None
        if start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in start:
            raise InputError(f"{path} is not text in UTF-8, but most likely in UTF-16. Convert it, such as with "
                             "`iconv -f UTF-16 -t UTF-8`.")  # fmt: skip
        body = len(BYTE_ORDER_MARK) if start.startswith(BYTE_ORDER_MARK) else 0
        stream.seek(body)
        while line := stream.readline(LONGEST_LINE):
            stripped = line.strip(_padding(separator) + b"\n")
            if b"\r" in stripped:
                raise _error(path, len(ahead) + 1, stripped, _LONE_RETURN)
            banner = stripped if stripped.lower().startswith(b"%%matrixmarket") else banner
            if stripped and not stripped.startswith((*marks, b"%") if banner else marks):
                row = line
                break
            ahead.append(stripped)
            body += len(line)
    names = _split_header(row, separator)
    if settings.header and not row:
        raise InputError(f"{path} has no header. Set pagerank.fetch.edges.header to false, or fetch the file again.")
    if not settings.header and names[:2] == (settings.source_column, settings.target_column):
        raise ConfigError(f"{path}: the first line names the columns {', '.join(names[:2])}. Set pagerank.fetch.edges."
                          "header to true; if it is an edge, set .source_column to another name.")  # fmt: skip
    comments, headers = list(filter(None, ahead)), int(settings.header or bool(banner))
    counts = Counter(lines=len(ahead) + headers, comments=len(comments), empty_lines=len(ahead) - len(comments),
                     headers=headers)  # fmt: skip
    first, *rest = next(iter(comments), b"").split(separator) or [b""]
    is_doubtful = settings.ids == "text" and settings.comment == "head" and len(first.strip()) > 1
    declared = next((int(match[1]) for comment in comments if (match := _SNAP_COUNTS.match(comment))), None)
    size, declared = _read_sizes(path, banner, row, settings) if banner else (None, declared)
    return TextFile(path, names if settings.header else (), body + headers * len(row), counts, declared, size,
                    is_doubtful and 1 <= len(rest) < _FIELDS)  # fmt: skip


def _split_header(row: bytes, separator: bytes | None) -> tuple[str, ...]:
    """Return the fields of the first row; some may be in quotes if commas separate them."""
    fields = [name.decode("utf-8", "backslashreplace") for name in row.split(separator)]
    if separator == b"," and b'"' in row:
        [fields] = csv.reader([row.decode("utf-8", "backslashreplace")], skipinitialspace=True)
    return tuple(name.strip().strip('"') for name in fields)


def _read_sizes(path: Path, banner: bytes, sizes: bytes, settings: EdgeFiles) -> tuple[tuple[int, int], int]:
    """Return the rows and columns of a Matrix Market matrix, and its entries, from its first line and its sizes."""
    from scipy.io import mminfo

    try:
        rows, columns, entries, *words = mminfo(BytesIO(banner + b"\n" + sizes))
    except ValueError as error:
        raise InputError(
            f"{path} begins as a Matrix Market file, but: {error} Its first line must be like '%%MatrixMarket matrix "
            "coordinate pattern general', and its line of sizes three numbers: rows, columns and entries. Fetch it "
            "again, or correct the line."
        ) from error
    for word in words:
        if word in _UNSUPPORTED:
            raise InputError(f"{path} is a Matrix Market file of the kind {word}: {_UNSUPPORTED[word]}")
    required: dict[str, str | bool] = {"layout": "pairs", "delimiter": "whitespace", "header": False, "ids": "integer"}
    if "symmetric" in words:
        required["directed"] = False
    if "pattern" in words:
        required["weighted"] = False
    for name, value in required.items():
        if (setting := getattr(settings, name)) != value:
            raise ConfigError(f"{path} is a {' '.join(words)} matrix, but pagerank.fetch.edges.{name} is "
                              f"{str(setting).lower()}. Set it to {str(value).lower()}.")  # fmt: skip
    return (rows, columns), entries


def units(file: TextFile) -> list[Unit]:
    """Cut a file into units of about `RANGE_BYTES`, which depend on the file only."""
    return [Unit(file, start, stop) for start, stop in ranges(file.path, file.body, RANGE_BYTES)]


def read_edges(unit: Unit, settings: EdgeFiles) -> Iterator[Batch]:
    """Yield the edges of a unit, for adjacency lists with the first vertex of each line."""
    file = unit.file
    names = settings.columns_of(file.path, file.header) if file.header else ()
    columns = [file.header.index(name) for name in names] or list(range(2 + settings.weighted))
    for block in _blocks(unit, settings):
        if settings.layout == "adjacency":
            fields, rows = block.rows.values, to_numpy(pc.list_parent_indices(block.rows))
            block.refuse(to_numpy(pc.binary_length(fields)) == 0, _MISSING, rows)
            [ids], names_table = compute_ids([block.ids(fields, rows)])
            starts = to_numpy(block.rows.offsets)[:-1]
            source, target = np.repeat(ids[starts], block.sizes - 1), np.delete(ids, starts)
            yield Batch(source, target, None, ids[starts], names_table, block.counts())
        else:
            block.check_sizes(max(columns))
            (source, target), names_table = compute_ids([block.ids(block.fields(column)) for column in columns[:2]])
            if file.size:
                is_beyond = (source > file.size[0]) | (target > file.size[1])
                block.refuse(is_beyond | (source < 1) | (target < 1), _OUTSIDE)
            weight = block.weights(block.fields(columns[2])) if settings.weighted else None
            yield Batch(source, target, weight, None, names_table, block.counts(len(columns)))


def read_vertices(unit: Unit, settings: EdgeFiles) -> tuple[Counter[str], list[pa.Table]]:
    """Return the counts of ``rows`` and lines of a unit, and tables of its vertices, with names if there are any."""
    counts, tables = Counter[str](), []
    for block in _blocks(unit, settings):
        block.check_sizes(0)
        vertices, is_named = block.ids(block.fields(0)), block.sizes > 1
        if is_named.any() and settings.ids == "text":
            raise InputError(f"{unit.file.path}: ids are text and have a name besides. Leave the second field out: an "
                             "id of text is the name of its vertex.")  # fmt: skip
        if is_named.any() and not is_named.all():
            raise InputError(f"{unit.file.path}: vertex {vertices[int(is_named.argmin())]} has no name, but others do. "
                             "Give all a name, or none.")  # fmt: skip
        if is_named.any():
            block.check_names()
        counts += block.counts(2) + Counter(rows=len(vertices))
        if len(vertices):
            tables.append(vertex_table(vertices, block.fields(1) if is_named.any() else None))
    return counts, tables


def _padding(separator: bytes | None) -> bytes:
    """Return the bytes that are stripped from fields."""
    return b" \t\r".replace(separator or b"\n", b"")


class _Block:
    """Whole lines from byte ``offset`` of the text.

    ``rows`` are the lists of fields of lines that are neither empty nor comments; ``line_numbers`` and ``sizes``, int64
    (rows,), are the line of each row in the block, from 0, and its number of fields.
    """

    def __init__(self, file: TextFile, settings: EdgeFiles, offset: int, data: bytes) -> None:
        self._file, self._settings, self._offset, self._data = file, settings, offset, data
        self._separator = _SEPARATORS[settings.delimiter]
        # Counting is much faster than a regular expression.
        if data.count(b"\r") != data.count(b"\r\n"):
            raise self._error_at(next(re.finditer(rb"\r(?!\n)", data)).start(), _LONE_RETURN)
        if settings.ids == "text":
            self.check_names()
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
        offsets = pa.py_buffer(np.concatenate([[0], ends]).astype(np.int32))
        lines = self._trim(pa.StringArray.from_buffers(len(ends), offsets, pa.py_buffer(data)), b"\n")
        is_row = pc.greater(pc.binary_length(lines), 0)
        self._lines, self._comments = len(lines), 0
        if settings.comment in {"#", "%"}:
            is_comment = pc.starts_with(lines, settings.comment)
            self._comments = is_comment.true_count
            is_row = pc.and_not(is_row, is_comment)
        self.line_numbers = to_numpy(pc.indices_nonzero(is_row)).astype(np.int64)
        self.rows = self._split(lines.filter(is_row))
        self.sizes = to_numpy(pc.list_value_length(self.rows)).astype(np.int64)

    def check_names(self) -> None:
        """Refuse lines that are not UTF-8, or have a byte 0."""
        try:
            self._data.decode()
        except UnicodeDecodeError as error:
            raise self._error_at(error.start, f"the line is not UTF-8: {_NOT_TEXT}") from error
        if (position := self._data.find(0)) >= 0:
            raise self._error_at(position, f"the line has a byte 0: {_NOT_TEXT}")

    def _trim(self, texts: pa.Array, more: bytes = b"") -> pa.Array:
        return pc.ascii_trim(texts, characters=(_padding(self._separator) + more).decode())

    def _split(self, lines: pa.Array) -> pa.Array:
        """Return the list of fields of each line; a delimiter at the end of a line starts no field."""
        if self._separator is None:
            return pc.ascii_split_whitespace(lines)
        separator = self._separator.decode()
        if pc.any(pc.ends_with(lines, separator)).as_py():
            lines = pc.replace_substring_regex(lines.view(pa.binary()), f"{separator}$", "").view(pa.string())
        if separator != "," or b'"' not in self._data:
            fields = pc.split_pattern(lines, separator)
            return pa.ListArray.from_arrays(fields.offsets, self._trim(fields.values))
        rows = zip(self.line_numbers.tolist(), lines.view(pa.binary()).to_pylist(), strict=True)
        fields = pa.array([self._split_quoted(number, line) for number, line in rows], pa.list_(pa.binary()))
        return pa.ListArray.from_arrays(fields.offsets, fields.values.view(pa.string()))

    def _split_quoted(self, number: int, line: bytes) -> list[bytes]:
        fields, position, comma = list[bytes](), 0, b","
        while comma:
            match = _QUOTED.match(line, position)
            if match is None:
                raise self._error(number, _QUOTES)
            quoted, plain, comma = match.groups()
            fields.append(plain if quoted is None else quoted)
            position = match.end()
        return fields

    def check_sizes(self, last: int) -> None:
        """Refuse rows without a field ``last``, and rows with too many fields."""
        self.refuse(self.sizes <= last, _MISSING)
        self.refuse(self.sizes > (len(self._file.header) or _FIELDS), _TOO_MANY)

    def fields(self, column: int) -> pa.Array:
        """Return a field of each row, and refuse empty ones."""
        texts = pc.list_element(self.rows, column)
        self.refuse(to_numpy(pc.binary_length(texts)) == 0, _MISSING)
        return texts

    def ids(self, texts: pa.Array, rows: Array | None = None) -> pa.Array:
        """Return fields as ids, names or int64; ``rows`` are the rows of the fields, by default one field per row."""
        if self._settings.ids == "text":
            return texts
        # Arrow would accept hexadecimal integers, and refuse a plus sign.
        if not any(character in self._data for character in (b"x", b"X", b"+")):
            with suppress(pa.ArrowInvalid):
                return texts.cast(pa.int64())
        words = texts.view(pa.binary()).to_pylist()
        self.refuse([_INTEGER.fullmatch(word) is None for word in words], _NO_INTEGER, rows)
        # More than 19 digits are not parsed, which takes quadratic time.
        is_large = (len(word.lstrip(b"+-0")) > 19 or not -(2**63) <= int(word) < 2**63 for word in words)
        self.refuse(list(is_large), _TOO_LARGE, rows)
        return pa.array(map(int, words), pa.int64())

    def weights(self, texts: pa.Array) -> Array:
        """Return one field per row as weights, float64."""
        try:
            weights = to_numpy(texts.cast(pa.float64()))
        except pa.ArrowInvalid:
            words = texts.view(pa.binary()).to_pylist()
            weights = np.array([float(word) if _REAL.fullmatch(word) else 0.0 for word in words])
        self.refuse(~((weights > 0) & (weights <= LARGEST_WEIGHT)), _NO_WEIGHT)
        return weights

    def counts(self, read: int = sys.maxsize) -> Counter[str]:
        """Count the lines, and the rows with more fields than are ``read``."""
        empty, unread = self._lines - self._comments - len(self.line_numbers), int((self.sizes > read).sum())
        return Counter(lines=self._lines, comments=self._comments, empty_lines=empty, unread_fields=unread)

    def refuse(self, is_wrong: Array | Sequence[bool], fault: str, rows: Array | None = None) -> None:
        """Raise an error for the first wrong row, or field of ``rows``, if any is wrong."""
        if np.any(is_wrong):
            first = int(np.argmax(is_wrong))
            number = int(self.line_numbers[first if rows is None else rows[first]])
            raise self._error(number, self._explain(number, fault) or fault)

    def _line(self, number: int) -> bytes:
        return self._data.split(b"\n", number + 1)[number].strip(_padding(self._separator))

    def _error_at(self, position: int, fault: str) -> InputError:
        return self._error(self._data.count(b"\n", 0, position), fault)

    def _error(self, number: int, fault: str) -> InputError:
        before = sum(data.count(b"\n") for data in line_blocks(self._file.path, 0, self._offset))
        return _error(self._file.path, before + number + 1, self._line(number), fault)

    def _explain(self, number: int, fault: str) -> str | None:
        """Return why a line is split into the wrong fields, and the remedy, if the line shows it."""
        line, is_split_fault = self._line(number), fault in {_NO_INTEGER, _MISSING, _TOO_MANY}
        prefix = line[:1].decode("ascii", "replace")
        if is_split_fault and prefix in _COMMENTS and prefix != self._settings.comment:
            return (f"the line begins with {prefix!r}, but is not at the head of the file: {{line}}. If all such lines "
                    f"are comments, set pagerank.fetch.edges.comment to '{prefix}'; else correct the file."
                    )  # fmt: skip
        for name, separator in _SUGGESTIONS.items() if is_split_fault else ():
            # A space may follow a comma, but a tab is whitespace itself.
            least = len(line.split(self._separator)) + (self._separator is not None or separator == b"\t")
            if least <= len(line.split(separator)) in {2, _FIELDS} and separator != self._separator:
                remedy = f"Set pagerank.fetch.edges.delimiter to {name}."
                if name == "semicolon":
                    remedy = "Write commas or tabs instead, and say so in pagerank.fetch.edges.delimiter."
                delimiter = self._settings.delimiter
                return f"fields are not separated as delimiter {delimiter!r} says, but by {name}: {{line}}. {remedy}"
        if self._offset == self._file.body and number == 0 and not self._file.header and _NAMES.fullmatch(line):
            return ("the first line seems to name the columns: {line}. If so, set pagerank.fetch.edges.header to true, "
                    "and .source_column and .target_column.")  # fmt: skip
        return None


def _blocks(unit: Unit, settings: EdgeFiles) -> Iterator[_Block]:
    offset = unit.start
    for data in line_blocks(unit.file.path, unit.start, unit.stop):
        yield _Block(unit.file, settings, offset, data)
        offset += len(data)


def _error(path: Path, number: int, line: bytes, fault: str) -> InputError:
    """Return the error that names the file, and the number and text of a line."""
    start = line[:80]
    try:
        text = repr(start.decode())
    except UnicodeDecodeError:
        text = repr(start).removeprefix("b")
    return InputError(f"{path}, line {number}: {fault.format(line=text if line == start else f'{text}...')}")
