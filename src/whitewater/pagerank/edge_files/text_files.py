"""Files of lines, plain or gzip: where their lines begin, and how they are cut into units that are read independently.

Memory is bounded by a block, or by a line where one is longer. A plain file is cut into ranges of bytes; the lines of a
range are those that begin in it. A gzip file, of one member or many, is read from its beginning.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from whitewater.errors import InputError
from whitewater.pagerank.edge_files.matrix_market import BANNER, Matrix, read_matrix

# Bytes of lines parsed at once, and of a range: some seconds of work.
BLOCK_BYTES = 8 << 20
RANGE_BYTES = 64 << 20
LONGEST_LINE = 512 << 20
# What a line of comment begins with, by the setting; those of `head` are comments ahead of the first row only.
COMMENTS = {"head": (b"#", b"%"), "none": (), "#": (b"#",), "%": (b"%",)}
# Gzip, with its header and checksum; its largest window.
_GZIP = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_EDGES_OF_SNAP = re.compile(rb"^#\s*Nodes:\s*\d+\s+Edges:\s*(\d+)\s*$")
_OTHER_FORMS = {
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"PK\x03\x04": "ZIP",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
}
_SHOWN = 80


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
    first
        The first two fields of that line, whatever they are.
    """

    path: Path
    is_gzip: bool
    header: tuple[str, ...] = ()
    body: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    matrix: Matrix | None = None
    declared: int | None = None
    comment: bytes = b""
    first: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unit:
    """A part of a file that one task reads: a range of bytes, or of a gzip file all, where ``stop`` is 0."""

    file: TextFile
    start: int
    stop: int


@dataclass(frozen=True)
class Lines:
    """Whole lines, the last with its newline; ``offset`` is where they begin in the text of the file."""

    file: TextFile
    offset: int
    data: bytes

    def line_number(self, position: int) -> int:
        """Return the number of the line, from 1, at ``position`` of the data."""
        return _line_number(self.file, self.offset) + self.data.count(b"\n", 0, position)

    def fault(self, position: int, problem: str, remedy: str) -> InputError:
        """Return the error that names file, line number and line at ``position`` of the data."""
        number = self.line_number(position)
        begin = self.data.rfind(b"\n", 0, position) + 1
        line = self.data[begin : begin + _SHOWN + 1].split(b"\n")[0].rstrip(b"\r")
        more = "..." if len(line) > _SHOWN else ""
        return InputError(f"{self.file.path}, line {number}: {problem}: {_shown(line[:_SHOWN])}{more}. {remedy}")


def _shown(line: bytes) -> str:
    """Return text in quotes, and bytes that are none with escapes."""
    try:
        return repr(line.decode())
    except UnicodeDecodeError:
        return repr(line).removeprefix("b")


def open_text(
    path: Path, *, has_header: bool = False, delimiter: bytes | None = None, comment: str = "none"
) -> TextFile:
    """Recognise a file of lines, and read those ahead of its first row.

    Parameters
    ----------
    path
        The file, plain or gzip.
    has_header
        Whether its first line that is no comment names the columns.
    delimiter
        What separates the names; None: blanks.
    comment
        A key of `COMMENTS`.

    Raises
    ------
    InputError
        If the file cannot be read, is compressed in another way or in UTF-16, has no header where it should have one,
        or is a matrix that is not understood.
    """
    try:
        with path.open("rb") as stream:
            magic = stream.read(6)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}. Check pagerank.fetch, and fetch it again."
        ) from error
    for start, form in _OTHER_FORMS.items():
        if magic.startswith(start):
            raise InputError(f"{path} is compressed as {form}. Unpack it, or give it as gzip.")
    file = TextFile(path, magic.startswith(_GZIP_MAGIC))
    first = next(_first_lines(file), b"")
    if first.startswith(_UTF_16) or b"\0" in first[:4]:
        raise InputError(f"{path} is no text in UTF-8, but most likely in UTF-16. Convert it, such as with "
                         "`iconv -f UTF-16 -t UTF-8`.")  # fmt: skip
    file = replace(file, body=len(_MARK) if first.startswith(_MARK) else 0)
    return _with_head(file, has_header=has_header, delimiter=delimiter, marks=COMMENTS[comment])


def units(file: TextFile, *, size: int = RANGE_BYTES) -> list[Unit]:
    """Cut a file into units of about ``size`` bytes; they depend on the file only."""
    if file.is_gzip:
        return [Unit(file, file.body, 0)]
    end = file.path.stat().st_size
    return [Unit(file, start, min(start + size, end)) for start in range(file.body, end, size)]


def lines(unit: Unit, *, block: int = BLOCK_BYTES) -> Iterator[Lines]:
    """Yield the lines of a unit, about ``block`` bytes of them at a time.

    Raises
    ------
    InputError
        If the file cannot be read, a gzip file is damaged or cut off, or a line has no end.
    """
    offset = unit.start
    try:
        with unit.file.path.open("rb", buffering=0) as stream:
            if unit.file.is_gzip:
                pieces = _without(unit.start, _ahead(_unzipped(stream, unit.file.path, block)))
            else:
                offset = _line_start(stream, unit.start, unit.file)
                pieces = _pieces(stream, offset, _line_start(stream, unit.stop, unit.file), block)
            for data in _whole_lines(pieces, unit.file.path):
                yield Lines(unit.file, offset, data)
                offset += len(data)
    except OSError as error:
        raise InputError(f"{unit.file.path} cannot be read: {error.strerror}. Fetch it again.") from error


def _whole_lines(pieces: Iterator[bytes], path: Path) -> Iterator[bytes]:
    """Yield pieces that are cut after newlines; the last one gets a newline if it has none."""
    carried: list[bytes] = []
    size = 0
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join([*carried, piece[:end]])
            carried, size = [], 0
        carried.append(piece[end:])
        size += len(carried[-1])
        if size > LONGEST_LINE:
            raise InputError(f"{path} has a line of more than {LONGEST_LINE >> 20} MiB. It is no file of text lines.")
    if size:
        yield b"".join([*carried, b"\n"])


def _pieces(stream: BinaryIO, start: int, stop: int, block: int) -> Iterator[bytes]:
    stream.seek(start)
    while start < stop and (piece := stream.read(min(block, stop - start))):
        yield piece
        start += len(piece)


def _line_start(stream: BinaryIO, position: int, file: TextFile) -> int:
    """Return where the first line begins that does not begin before ``position``."""
    if position <= file.body:
        return file.body
    position -= 1
    stream.seek(position)
    while piece := stream.read(1 << 16):
        end = piece.find(b"\n")
        if end >= 0:
            return position + end + 1
        position += len(piece)
    return position


def _unzipped(stream: BinaryIO, path: Path, block: int) -> Iterator[bytes]:
    """Yield the text of a gzip file, at most ``block`` bytes at a time."""
    member = zlib.decompressobj(_GZIP)
    data, begun = b"", False
    try:
        while data := (member.unconsumed_tail or member.unused_data.lstrip(b"\0") or stream.read(block // 8 + 1)):
            if member.eof:
                member, begun = zlib.decompressobj(_GZIP), False
            begun = True
            if piece := member.decompress(data, block):
                yield piece
    except zlib.error as error:
        raise InputError(f"{path} is a damaged gzip file ({error}). Fetch it again.") from error
    if begun and not member.eof:
        raise InputError(f"{path} is a gzip file that is cut off. Fetch it again.")


def _ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces while a thread makes the next one, so that a file is unzipped while it is parsed."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, pieces, None)
        while (piece := following.result()) is not None:
            following = pool.submit(next, pieces, None)
            yield piece


def _without(count: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Leave out the first bytes."""
    for piece in pieces:
        rest = piece[count:]
        count -= len(piece) - len(rest)
        if rest:
            yield rest


def _with_head(file: TextFile, *, has_header: bool, delimiter: bytes | None, marks: tuple[bytes, ...]) -> TextFile:
    """Return the file with what the lines ahead of its first row say."""
    blanks = b" \t\r\n".replace(delimiter or b"\n", b"\n")
    body, banner, row, comments, empty = file.body, b"", b"", list[bytes](), 0
    for line in _first_lines(file):
        stripped = line.strip(blanks)
        if b"\r" in stripped:
            raise lone_return(file, len(comments) + empty + 1)
        banner = stripped if stripped.lower().startswith(BANNER) else banner
        if stripped and not stripped.startswith((*marks, b"%") if banner else marks):
            row = line
            break
        empty += not stripped
        comments += [stripped] if stripped else []
        body += len(line)
    if has_header and not row:
        raise InputError(
            f"{file.path} has no header. Set pagerank.fetch.edges.header to false, or fetch the file again."
        )
    headers, names = int(has_header or bool(banner)), _names(row, delimiter)
    return TextFile(
        file.path,
        file.is_gzip,
        header=names if has_header else (),
        body=body + headers * len(row),
        counts=Counter(
            lines=len(comments) + empty + headers, comments=len(comments), empty_lines=empty, headers=headers
        ),
        matrix=read_matrix(file.path, banner, row) if banner else None,
        declared=next((int(found[1]) for each in comments if (found := _EDGES_OF_SNAP.match(each))), None),
        comment=comments[0] if comments else b"",
        first=names[:2],
    )


def lone_return(file: TextFile, number: int) -> InputError:
    """Return the error of a line, given by its number, that has a carriage return within."""
    return InputError(
        f"{file.path}, line {number}: a carriage return (CR) stands within the line. Lines end with LF, or CR and LF: "
        r"convert the file, such as with `tr '\r' '\n'`."
    )


def _names(line: bytes, delimiter: bytes | None) -> tuple[str, ...]:
    return tuple(name.strip().strip(b'"').decode("utf-8", "backslashreplace") for name in line.split(delimiter))


def _first_lines(file: TextFile) -> Iterator[bytes]:
    """Yield lines from the body on, each with its newline."""
    whole = Unit(file, file.body, 0 if file.is_gzip else file.path.stat().st_size)
    return (line + b"\n" for each in lines(whole, block=1 << 16) for line in each.data[:-1].split(b"\n"))


def _line_number(file: TextFile, offset: int) -> int:
    """Return the number of the line, from 1, that begins at an offset of the text."""
    number, position = 1, 0
    for each in lines(Unit(TextFile(file.path, file.is_gzip), 0, 0 if file.is_gzip else offset)):
        if position + len(each.data) > offset:
            return number + each.data.count(b"\n", 0, offset - position)
        number += each.data.count(b"\n")
        position += len(each.data)
    return number
