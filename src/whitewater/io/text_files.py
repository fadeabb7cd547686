"""Delimited text files, plain or gzip: open them, split them at line starts, and parse blocks of lines with Arrow.

A line is one record: quoted fields hold no line breaks. Memory is bounded by a block, or by the longest line.
"""

import gzip
import mmap
import os
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from whitewater.errors import InputError

BLOCK_BYTES = 8 << 20  # of lines that are parsed at once
CACHED_BYTES = 64 << 10  # that are searched at once
LONGEST_LINE = 512 << 20
GZIP = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_RETURN, _QUOTE = "a carriage return in the line", "a quote that does not begin or end its field"
_OTHER_FORMS = {b"\x28\xb5\x2f\xfd": "Zstandard", b"PK\x03\x04": "ZIP", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}


@contextmanager
def open_text(path: str | Path, origin: str = "", *, member: str = "") -> Iterator[BinaryIO]:
    """Open a text file, plain or gzip (of any number of members), or a ``member`` of a zip file.

    Messages call it ``origin``. Raises InputError if the file cannot be read or has another compression; also during
    reading, if it is truncated or damaged.
    """
    name = origin or f"{path}/{member}".removesuffix("/")
    try:
        if member:
            with zipfile.ZipFile(path) as archive, archive.open(member) as unpacked:
                yield cast("BinaryIO", unpacked)
            return
        with Path(path).open("rb") as file:
            start = file.read(6)
            for magic, form in _OTHER_FORMS.items():
                if start.startswith(magic):
                    raise InputError(f"{name} is compressed as {form}. Unpack it, or give it as gzip.")
            file.seek(0)
            with gzip.open(file) if start.startswith(GZIP) else file as stream:
                yield cast("BinaryIO", stream)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, RuntimeError) as error:
        raise InputError(f"{name} cannot be unpacked ({error}). Unpack it, or pack it again.") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        form = "zip" if member else "gzip"
        is_truncated = isinstance(error, EOFError)
        problem = f"{form} file that is cut off (truncated)" if is_truncated else f"damaged {form} file ({error})"
        raise InputError(f"{name} is a {problem}. Check the file. If its source is whole, fetch it again.") from error
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}. Check its path, or fetch it again.") from error


def ranges(path: str | Path, begin: int, size: int) -> list[tuple[int, int | None]]:
    """Return ranges of whole lines, about ``size`` bytes each; the last has no end, and a gzip file is one range."""
    starts = [begin]
    with Path(path).open("rb") as file:
        is_gzip = file.read(len(GZIP)) == GZIP
        file.seek(begin + size)
        while not is_gzip and file.readline(LONGEST_LINE) and file.peek(1):
            starts.append(file.tell())
            file.seek(size, os.SEEK_CUR)
    return list(zip(starts, [*starts[1:], None], strict=True))


def line_blocks(
    path: str | Path, start: int = 0, stop: int | None = None, *, origin: str = "", member: str = "",
    block: int | None = None
) -> Iterator[bytes]:  # fmt: skip
    """Yield blocks of whole lines, about ``block`` bytes each, between two byte offsets of the text.

    The last line gets a line feed if it has none. A thread reads ahead, so that a file is unpacked while it is parsed.
    Raises InputError as `open_text` does, or if a line is too long.
    """
    incomplete: list[bytes] = []
    with open_text(path, origin, member=member) as stream:
        stream.seek(start)
        length = (sys.maxsize if stop is None else stop) - start
        for piece in _read_ahead(stream, length, block or BLOCK_BYTES):
            end = piece.rfind(b"\n") + 1
            if end:
                yield b"".join([*incomplete, piece[:end]])
                incomplete = []
            incomplete.append(piece[end:])
            if sum(map(len, incomplete)) > LONGEST_LINE:
                raise _too_long(origin or path)
    if any(incomplete):
        yield b"".join([*incomplete, b"\n"])


def map_lines(path: str | Path, start: int, stop: int | None) -> memoryview:
    """Map the lines of a plain file between two byte offsets into memory, which is faster than a copy.

    Raises InputError if the file cannot be read, is empty, or has a line that `ranges` had to cut. The process dies of
    SIGBUS if another shortens the file.
    """
    with open_text(path) as stream:
        if hasattr(os, "posix_fadvise"):  # not on macOS
            os.posix_fadvise(stream.fileno(), start, stop - start if stop else 0, os.POSIX_FADV_WILLNEED)
        try:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise InputError(f"{path} is empty. Fetch it again.") from error
    if stop and mapped[stop - 1 : stop] not in (b"\n", b""):
        raise _too_long(path)
    return memoryview(mapped)[start:stop]


def _too_long(name: str | Path) -> InputError:
    return InputError(f"{name}: a line is longer than {LONGEST_LINE:,} bytes. It is not a file of text lines.")


def _read_ahead(stream: BinaryIO, length: int, block: int) -> Iterator[bytes]:
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(stream.read, min(block, length))
        while piece := future.result():
            length -= len(piece)
            future = pool.submit(stream.read, min(block, length))
            yield piece


def parse_valid_lines(
    data: bytes | memoryview, names: Sequence[str], types: Mapping[str, pa.DataType], *, delimiter: str, quoted: bool,
    errors: Literal["strict", "replace"] = "strict",
) -> tuple[pa.Table, dict[int, str]]:  # fmt: skip
    """Return a table of the valid lines, and what is wrong with each invalid line, by its number.

    ``names`` are all fields of a line, ``types`` the fields to return and their types. Fields may be in double quotes
    if ``quoted``; an empty field is null. `nonempty_lines` numbers the lines. Invalid lines have too many or too few
    fields, an unpaired quote, a carriage return inside, or bytes that are not UTF-8, if ``errors`` is not to replace
    them. Raises ValueError if a field cannot be converted to its type.
    """
    faults: dict[int, str] = {}

    def skip_invalid(row: pa.csv.InvalidRow) -> str:
        faults[row.number - 1] = f"Expected {row.expected_columns} columns, got {row.actual_columns}"
        return "skip"

    found = _scan(data)
    quoted = quoted and found.quotes
    if not found.is_ascii and errors == "replace":
        data = str(data, "utf-8", "replace").encode()
    misread: dict[int, str] = {}
    if quoted or found.returns or not found.is_ascii:
        misread = _misread_lines(bytes(data), delimiter if quoted else None)
    if misread:
        # To Arrow, an unpaired quote continues in the following lines, and a carriage return ends a line.
        too_wide = delimiter.encode() * len(names)
        lines = (too_wide if number in misread else line for number, line in enumerate(nonempty_lines(bytes(data))))
        data = b"\n".join([*lines, b""])
    table = pa.csv.read_csv(
        pa.BufferReader(data or b"\n"),  # Arrow refuses empty text
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=list(names)),
        parse_options=pa.csv.ParseOptions(
            delimiter=delimiter, quote_char='"' if quoted else False, invalid_row_handler=skip_invalid
        ),
        convert_options=pa.csv.ConvertOptions(
            include_columns=list(types), column_types=types, null_values=[""], strings_can_be_null=True
        ),
    )
    return table, {**faults, **misread}


class _Found(NamedTuple):
    quotes: bool
    returns: bool
    is_ascii: bool


def _scan(data: bytes | memoryview) -> _Found:
    # In pieces that stay in the cache of a core, so that the whole is fetched from memory once.
    pieces = (bytes(data[start : start + CACHED_BYTES]) for start in range(0, len(data), CACHED_BYTES))
    quotes, returns, is_ascii = False, False, True
    for piece in pieces:
        quotes, returns, is_ascii = quotes or b'"' in piece, returns or b"\r" in piece, is_ascii and piece.isascii()
    return _Found(quotes, returns, is_ascii)


def nonempty_lines(data: bytes) -> list[bytes]:
    """Return the lines that are not empty, without their ends."""
    return list(filter(None, data.replace(b"\r\n", b"\n").split(b"\n")))


def _misread_lines(data: bytes, delimiter: str | None) -> dict[int, str]:
    """Return the numbers of lines that Arrow would misread, and why; some fields are quoted if there is a delimiter."""
    has_returns = b"\r" in data and data.count(b"\r") > data.count(b"\r\n")
    if delimiter is None and not has_returns and is_utf8_text(data):
        return {}
    lines = nonempty_lines(data)
    # A field is quoted from end to end, or does not begin with a quote.
    mark = rf"\{delimiter}" if delimiter and delimiter in r"\]^-" else delimiter
    field = rf'(?:"(?:[^"\r]|"")*"|[^"\r{mark}][^\r{mark}]*|)'
    valid = rf"\A{field}(?:[{mark}]{field})*\z" if delimiter else r"\A[^\r]*\z"
    is_invalid = pc.invert(pc.match_substring_regex(pa.array(lines, pa.binary()), valid))
    reasons = {n: _RETURN if b"\r" in lines[n] else _QUOTE for n in pc.indices_nonzero(is_invalid).to_pylist()}
    if not is_utf8_text(data):
        reasons |= {number: "bytes that are not UTF-8" for number, line in enumerate(lines) if not is_utf8_text(line)}
    return reasons


def is_utf8_text(data: bytes) -> bool:
    """Return whether bytes are text in UTF-8."""
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False
