"""Files of delimited text, plain or gzip: opened, cut where lines begin, and parsed some lines at a time by Arrow.

A line is one record: a quoted field does not go on in the next line. Memory is bounded by a block, or by a line where
one is longer.
"""

import gzip
import os
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from whitewater.errors import InputError

# Bytes of lines that are parsed at once.
BLOCK_BYTES = 8 << 20
LONGEST_LINE = 512 << 20
GZIP = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_RETURN, _QUOTE = "a carriage return in the line", "a quote that does not begin or end its field"
_OTHER_FORMS = {b"\x28\xb5\x2f\xfd": "Zstandard", b"PK\x03\x04": "ZIP", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}


@contextmanager
def open_text(path: str | Path, origin: str = "", *, member: str = "") -> Iterator[BinaryIO]:
    """Open the text of a file, plain or gzip, of one member or many, or that of a ``member`` of a zip file.

    ``origin`` is what the user calls the text. Raises InputError if the file cannot be read, or is compressed in
    another way; also while it is read, if it is cut off or damaged.
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
            if not start.startswith(GZIP):
                yield file
                return
            with gzip.open(file) as stream:
                yield cast("BinaryIO", stream)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, RuntimeError) as error:
        raise InputError(f"{name} cannot be unpacked ({error}). Unpack it, or pack it again.") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        form = "zip" if member else "gzip"
        is_cut = isinstance(error, EOFError)
        what = f"{form} file that is cut off (truncated)" if is_cut else f"damaged {form} file ({error})"
        raise InputError(f"{name} is a {what}. Check the file. If its source is whole, fetch it again.") from error
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}. Check its path, or fetch it again.") from error


def ranges(path: str | Path, begin: int, size: int) -> list[tuple[int, int | None]]:
    """Return where about ``size`` bytes of whole lines each begin and end, the last at the end of the file, or None.

    A gzip file is one range, since it can only be read from its beginning.
    """
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
    """Yield whole lines, about ``block`` bytes of them at a time, from one byte of the text, or up to one.

    The last line gets a line feed if it has none. A thread reads ahead, so that a file is unpacked while it is parsed.
    Raises InputError if a line has no end; see `open_text`, too.
    """
    carried: list[bytes] = []
    with open_text(path, origin, member=member) as stream:
        stream.seek(start)
        length = (sys.maxsize if stop is None else stop) - start
        for piece in _ahead(stream, length, block or BLOCK_BYTES):
            end = piece.rfind(b"\n") + 1
            if end:
                yield b"".join([*carried, piece[:end]])
                carried = []
            carried.append(piece[end:])
            if sum(map(len, carried)) > LONGEST_LINE:
                raise InputError(f"{origin or path}: a line is longer than {LONGEST_LINE:,} bytes. It is not a file of "
                                 "text lines.")  # fmt: skip
    if any(carried):
        yield b"".join([*carried, b"\n"])


def _ahead(stream: BinaryIO, length: int, block: int) -> Iterator[bytes]:
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(stream.read, min(block, length))
        while piece := following.result():
            length -= len(piece)
            following = pool.submit(stream.read, min(block, length))
            yield piece


def parse_sound(
    data: bytes, names: Sequence[str], types: Mapping[str, pa.DataType], *, delimiter: str, quoted: bool
) -> tuple[pa.Table, dict[int, str]]:
    """Return some fields of the lines that are sound, and what is wrong with each other line, by its number.

    ``names`` are all fields of a line, ``types`` those that are wanted, and as what; they may stand in double quotes if
    ``quoted``. An empty field is null. Lines are numbered as those of `filled_lines`. Unsound ones have more or fewer
    fields, a torn quote, a carriage return within, or bytes that are not UTF-8. Raises ValueError if a field cannot be
    read as its type.
    """
    faults: dict[int, str] = {}

    def refuse(row: pa.csv.InvalidRow) -> str:
        faults[row.number - 1] = f"Expected {row.expected_columns} columns, got {row.actual_columns}"
        return "skip"

    torn = _torn(data, delimiter if quoted else None)
    if torn:
        # Arrow takes a torn quote to go on in the lines that follow, and a carriage return for the end of a line.
        wide = delimiter.encode() * len(names)
        lines = (wide if number in torn else line for number, line in enumerate(filled_lines(data)))
        data = b"\n".join([*lines, b""])
    table = pa.csv.read_csv(
        # Arrow takes no empty text.
        pa.BufferReader(data or b"\n"),
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=list(names)),
        parse_options=pa.csv.ParseOptions(
            delimiter=delimiter, quote_char='"' if quoted else False, invalid_row_handler=refuse
        ),
        convert_options=pa.csv.ConvertOptions(
            include_columns=list(types), column_types=types, null_values=[""], strings_can_be_null=True
        ),
    )
    return table, {**faults, **torn}


def filled_lines(data: bytes) -> list[bytes]:
    """Return the lines that are not empty, without their ends."""
    return list(filter(None, data.replace(b"\r\n", b"\n").split(b"\n")))


def _torn(data: bytes, delimiter: str | None) -> dict[int, str]:
    """Return which lines Arrow would take for others, and why; of quoted fields if there is a delimiter."""
    has_quotes = delimiter is not None and b'"' in data
    has_returns = b"\r" in data and data.count(b"\r") > data.count(b"\r\n")
    if not has_quotes and not has_returns and _is_utf8(data):
        return {}
    lines = filled_lines(data)
    # A field stands in quotes wholly, or does not begin with one.
    field = rf'(?:"(?:[^"\r]|"")*"|[^"\r{delimiter}][^\r{delimiter}]*|)'
    sound = rf"\A{field}(?:[{delimiter}]{field})*\z" if delimiter else r"\A[^\r]*\z"
    unsound = pc.invert(pc.match_substring_regex(pa.array(lines, pa.binary()), sound))
    torn = {n: _RETURN if b"\r" in lines[n] else _QUOTE for n in pc.indices_nonzero(unsound).to_pylist()}
    if not _is_utf8(data):
        torn |= {number: "bytes that are not UTF-8" for number, line in enumerate(lines) if not _is_utf8(line)}
    return torn


def _is_utf8(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False
