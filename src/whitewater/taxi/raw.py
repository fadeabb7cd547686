"""Raw files: their form told by content, and how they are cut into units that are read independently."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

from whitewater.devices import Device, Encoded, Parsed, RawBlock
from whitewater.errors import InputError
from whitewater.taxi.schema import Era, recognise

Form = Literal["parquet", "text", "gzip"]
# Lines looked at to learn how many fields the rows have, where the header has fewer.
SAMPLE_LINES = 200
BYTES_A_ROW = 100


@dataclass(frozen=True)
class RawFile:
    """A file of one era: ``fields`` are all fields of a line of text, in order, pads of the header included."""

    path: Path
    form: Form
    era: Era
    fields: tuple[str, ...] = ()
    body: int = 0


@dataclass(frozen=True)
class Unit:
    """A part of a file that one task reads: a row group, a range of bytes that holds whole lines, or all of a gzip."""

    file: RawFile
    start: int
    stop: int


def open_raw(path: Path) -> RawFile:
    """Recognise a file by its content.

    Raises
    ------
    InputError
        If it cannot be read, is empty, is damaged, or holds columns that are not understood.
    """
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}. Check taxi.fetch.files.paths.") from error
    if magic == b"PAR1":
        return _open_parquet(path)
    return _open_text(path, "gzip" if magic[:2] == b"\x1f\x8b" else "text")


def units(file: RawFile, *, block_rows: int) -> list[Unit]:
    """Cut a file into units; those of text hold about ``block_rows`` rows."""
    if file.form == "parquet":
        import pyarrow.parquet as pq

        return [Unit(file, group, group + 1) for group in range(pq.read_metadata(file.path).num_row_groups)]
    if file.form == "gzip":
        return [Unit(file, 0, 0)]
    size, step = file.path.stat().st_size, block_rows * BYTES_A_ROW
    return [Unit(file, start, min(start + step, size)) for start in range(file.body, size, step)]


def blocks(unit: Unit, device: Device, *, block_rows: int) -> Iterator[Parsed]:
    """Read the columns of a unit's era, at most about ``block_rows`` rows at a time."""
    file = unit.file
    columns = {column.raw_name: column.kind for column in file.era.columns.values()}
    if file.form == "parquet":
        for block in device.row_group_blocks(file.path, unit.start, columns, block_rows=block_rows):
            yield Parsed(block, _rows(block), ())
        return
    for text in _lines(unit, size=block_rows * BYTES_A_ROW):
        yield device.parse_delimited(text, file.fields, columns)


def _rows(block: RawBlock) -> int:
    first = next(iter(block.values()))
    return len(first.codes if isinstance(first, Encoded) else first)


def _open_parquet(path: Path) -> RawFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path} is a damaged or truncated Parquet file ({error}). Download or write it again."
        ) from error
    numeric = [field.name for field in schema if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)]
    return RawFile(path, "parquet", recognise(schema.names, path=str(path), numeric=numeric))


def _open_text(path: Path, form: Form) -> RawFile:
    try:
        with gzip.open(path, "rb") if form == "gzip" else path.open("rb") as stream:
            header = stream.readline()
            sample = [line for line in islice(stream, SAMPLE_LINES) if line.strip()]
        names = header.decode("utf-8-sig").rstrip("\r\n").split(",")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is neither Parquet nor readable CSV ({error}). Check the file.") from error
    if not header.strip():
        raise InputError(f"{path} is empty. Remove it from taxi.fetch.files.paths or download it again.")
    names = [name.strip().strip('"') for name in names]
    era = recognise(names, path=str(path))
    return RawFile(path, form, era, _fields(names, sample, path=path), len(header))


def _fields(names: Sequence[str], sample: Sequence[bytes], *, path: Path) -> tuple[str, ...]:
    """Pad the header to the usual number of fields: in some eras rows end with more commas than the header has."""
    counts = [line.count(b",") + 1 for line in sample]
    usual = max(set(counts), key=counts.count) if counts else len(names)
    pads = [
        line.rstrip(b"\r\n").split(b",", len(names))[-1]
        for line, fields in zip(sample, counts, strict=True)
        if fields == usual
    ]
    if usual > len(names) and any(pad.strip(b", ") for pad in pads):
        raise InputError(f"{path}: rows have {usual} fields, but the header names {len(names)}, so it is not clear "
                         "which column is which. Correct the header.")  # fmt: skip
    return (*names, *(f"pad {number}" for number in range(usual - len(names))))


def _lines(unit: Unit, *, size: int) -> Iterator[bytes]:
    """Yield whole lines of a unit, about ``size`` bytes at a time; a line belongs to the unit in which it starts."""
    if unit.file.form == "gzip":
        yield from _gzip_lines(unit.file, size=size)
        return
    with unit.file.path.open("rb") as stream:
        start, stop = (_line_start(stream, position, unit.file) for position in (unit.start, unit.stop))
        stream.seek(start)
        if text := stream.read(stop - start):
            yield text


def _line_start(stream: BinaryIO, position: int, file: RawFile) -> int:
    """Return where the first line begins that does not begin before ``position``."""
    if position <= file.body:
        return file.body
    stream.seek(position - 1)
    return position - 1 + len(stream.readline())


def _gzip_lines(file: RawFile, *, size: int) -> Iterator[bytes]:
    try:
        with gzip.open(file.path, "rb") as stream:
            stream.readline()
            while text := stream.read(size):
                yield text + stream.readline()
    except (OSError, EOFError) as error:
        raise InputError(f"{file.path} is a damaged or truncated gzip file ({error}). Download it again.") from error
