"""Records of a file of a web archive, read strictly: what is cut, torn or no WARC is an error that names the place.

The reader of `warcio` forgives much: it takes the end of a file for the end of a record, goes on after a torn gzip
member as if there had been no more, and prints where it finds that a length was wrong. So gzip members are decompressed
here, with their checksums, and lengths are checked; only of the four bytes that end a record some may be missing, or
belong to its length. What nobody can see is a file cut exactly between two records: compare its size or checksum with
those where it came from.

Source: ISO 28500:2017, the WARC file format 1.1; RFC 1952, gzip.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from whitewater.errors import InputError

if TYPE_CHECKING:
    from warcio.recordloader import ArcWarcRecord

GZIP = b"\x1f\x8b"
MAGIC = b"WARC/"
# What tapes and disks fill files up with.
PADDING = b"\0"
BLOCK = 1 << 16
REMEDY = "Get the file again."


def warc_records(path: Path) -> Iterator[ArcWarcRecord]:
    """Yield the records of a file, plain or gzip; of HTTP records the headers are not parsed.

    The body of a record can be read until the next one is asked for; what is left of it is passed over, and checked.

    Raises
    ------
    InputError
        If the file is empty, cannot be read or is no WARC, if a gzip member or a record is cut or damaged, or if the
        length of a record is wrong.
    """
    try:
        with path.open("rb") as file:
            yield from _records(path, file)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}. Check pagerank.fetch.warc.files.") from error


def _records(path: Path, file: BinaryIO) -> Iterator[ArcWarcRecord]:
    from warcio.archiveiterator import WARCIterator
    from warcio.exceptions import ArchiveLoadFailed

    stream = _stream(path, file)
    iterator = WARCIterator(stream, no_record_parse=True, block_size=BLOCK)
    place = ""
    try:
        for record in iterator:
            _refuse_wrong_length(iterator.err_count, path, place)
            place = stream.place(iterator.offset)
            length = _length(record, path, place)
            yield record
            while record.raw_stream.read(BLOCK):
                pass
            if record.raw_stream.tell() != length:
                raise InputError(f"{path} is cut: of the {length:,} bytes of the record at {place} there are "
                                 f"{record.raw_stream.tell():,}. {REMEDY}")  # fmt: skip
    except ArchiveLoadFailed as error:
        told = " ".join(str(error).split())
        raise InputError(f"{path} is damaged: what follows the record at {place} is none ({told}). {REMEDY}") from error
    _refuse_wrong_length(iterator.err_count, path, place)
    if not place:
        raise InputError(f"{path} holds no record. {REMEDY}")


def _length(record: ArcWarcRecord, path: Path, place: str) -> int:
    length = record.rec_headers.get_header("Content-Length")
    if record.rec_type is None or length is None or not (length.isascii() and length.isdigit()):
        raise InputError(f"{path} is cut or damaged: the record at {place} has the WARC-Type {record.rec_type} and the "
                         f"Content-Length {length}. {REMEDY}")  # fmt: skip
    return int(length)


def _refuse_wrong_length(faults: int, path: Path, place: str) -> None:
    if faults:
        raise InputError(f"{path} is damaged: the record at {place} does not end where its Content-Length says. "
                         f"{REMEDY}")  # fmt: skip


def _stream(path: Path, file: BinaryIO) -> _Plain | _Members:
    head = file.read(len(MAGIC))
    file.seek(0)
    if not head:
        raise InputError(f"{path} is empty. {REMEDY}")
    if head.startswith(GZIP):
        return _Members(path, file)
    _refuse_other_format(path, head)
    return _Plain(file)


def _refuse_other_format(path: Path, data: bytes) -> None:
    if not data.startswith(MAGIC):
        raise InputError(f"{path} is no WARC file: it begins with {data[:16]!r}. Check pagerank.fetch.warc.files.")


class _Plain:
    """The bytes of a file that is not compressed."""

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read
        self.tell = file.tell

    def place(self, offset: int) -> str:
        """Tell where the record is that begins at ``offset``."""
        return f"byte {offset:,}"


class _Members:
    """The decompressed bytes of the gzip members of a file; what `read` returns at once is of one member."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._inside = False
        self._waiting = b""
        self._member = 0
        self._given = 0

    def read(self, size: int) -> bytes:
        """Return at most ``size`` bytes; none at the end of the file."""
        while self._fill():
            data = self._next(size)
            if data:
                if not self._given:
                    _refuse_other_format(self._path, data)
                self._given += len(data)
                return data
        return b""

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._given

    def place(self, offset: int) -> str:
        """Tell where the record is that begins at ``offset`` of the decompressed bytes, and was read last."""
        return f"byte {offset:,} of what is decompressed (gzip member at byte {self._member:,})"

    def _fill(self) -> bool:
        """Get compressed bytes where none are waiting; False at the end of the file."""
        while not self._waiting:
            block = self._file.read(BLOCK)
            if not block and self._inside:
                raise InputError(f"{self._path} is cut: its last gzip member, at byte {self._member:,}, is not whole. "
                                 f"{REMEDY}")  # fmt: skip
            if not block:
                return False
            self._waiting = block if self._inside else block.lstrip(PADDING)
        if not self._inside:
            self._inside = True
            self._member = self._file.tell() - len(self._waiting)
        return True

    def _next(self, size: int) -> bytes:
        try:
            data = self._inflate.decompress(self._waiting, size)
        except zlib.error as error:
            raise InputError(f"{self._path} is damaged in the gzip member at byte {self._member:,}: {error}. "
                             f"{REMEDY}") from error  # fmt: skip
        self._waiting = self._inflate.unconsumed_tail
        if self._inflate.eof:
            self._waiting = self._inflate.unused_data.lstrip(PADDING)
            self._inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
            self._inside = False
        return data
