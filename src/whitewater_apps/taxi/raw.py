"""Raw files: their form told by content, and how they are cut into units that are read independently."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

from whitewater.engines import Device
from whitewater.errors import InputError
from whitewater.io.text_files import GZIP, line_blocks, open_text, ranges
from whitewater.tables.arrow_kinds import from_arrow
from whitewater.tables.blocks import Encoded, Parsed, RawBlock, moved
from whitewater.tables.csv_text import parse_lines
from whitewater.tables.parquet.blocks import row_group_blocks
from whitewater_apps.taxi.schema import ALIASES, NOT_CARRIED, Era, recognise

Form = Literal["parquet", "text", "gzip"]
# Lines looked at to learn how many fields the rows have, where the header has fewer.
SAMPLE_LINES = 200
BYTES_A_ROW = 100
# More than any header has.
HEADER_BYTES = 1 << 16
SEPARATORS = {b";": "semicolons", b"\t": "tabs", b"|": "vertical bars"}
SHOWN = 80


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
    """A part of a file that one task reads: a row group, or lines by the bytes where they begin and end."""

    file: RawFile
    start: int
    stop: int | None


def open_all(paths: Sequence[Path]) -> list[RawFile]:
    """Recognise files by their content; see `open_raw`. The error tells of every file that is refused."""
    files, faults = [], []
    for path in paths:
        try:
            files.append(open_raw(path))
        except InputError as error:
            faults.append(str(error))
    refuse(faults)
    return files


def refuse(faults: Sequence[str]) -> None:
    """Raise InputError with the faults of files, if there are any."""
    if len(faults) > 1:
        raise InputError("\n- ".join([f"{len(faults)} files are refused.", *faults]))
    if faults:
        raise InputError(faults[0])


def open_raw(path: Path) -> RawFile:
    """Recognise a file by its content.

    Raises InputError if it cannot be read, is empty, is damaged, holds no trips, or has columns that are not
    understood.
    """
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}. Check taxi.fetch.files.paths.") from error
    if magic == b"PAR1":
        return _open_parquet(path)
    return _open_text(path, "gzip" if magic.startswith(GZIP) else "text")


def units(file: RawFile, *, block_rows: int) -> list[Unit]:
    """Cut a file into units; those of text hold about ``block_rows`` rows."""
    if file.form == "parquet":
        import pyarrow.parquet as pq

        return [Unit(file, group, group + 1) for group in range(pq.read_metadata(file.path).num_row_groups)]
    return [Unit(file, start, stop) for start, stop in ranges(file.path, file.body, block_rows * BYTES_A_ROW)]


def blocks(unit: Unit, device: Device, *, block_rows: int) -> Iterator[Parsed]:
    """Read the columns of a unit's era, at most about ``block_rows`` rows at a time."""
    file = unit.file
    columns = {column.raw_name: column.kind for column in file.era.columns.values()}
    if file.form == "parquet":
        for block in row_group_blocks(device, file.path, unit.start, columns, block_rows=block_rows):
            yield Parsed(block, _rows(block), ())
        return
    size = block_rows * BYTES_A_ROW if unit.stop is None else unit.stop - unit.start
    for text in line_blocks(file.path, unit.start, unit.stop, block=size):
        parsed = parse_lines(text, file.fields, columns)
        yield replace(parsed, block={name: moved(values, device) for name, values in parsed.block.items()})


def fault_of(line: str, file: RawFile) -> str:
    """Say why a line could not be parsed: by its number of fields, or by the first field that is not of its kind."""
    import pyarrow as pa

    shown = repr(line if len(line) <= SHOWN else f"{line[:SHOWN]}...")
    try:
        fields = next(csv.reader([line], strict=True))
    except csv.Error as error:
        return f"{shown} is no line of CSV ({error})"
    if len(fields) != len(file.fields):
        return f"{shown} has {len(fields)} fields, not {len(file.fields)}"
    text = dict(zip(file.fields, fields, strict=True))
    for column in file.era.columns.values():
        try:
            from_arrow(pa.array([text[column.raw_name]]), column.kind)
        except ValueError as error:
            return f"column {column.raw_name!r}: {error}"
    return f"{shown} has unsound quotes"


def _rows(block: RawBlock) -> int:
    first = next(iter(block.values()))
    return len(first.codes if isinstance(first, Encoded) else first)


def _open_parquet(path: Path) -> RawFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        footer = pq.read_metadata(path)
        schema = footer.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path} is a damaged or truncated Parquet file ({error}). Download or write it again."
        ) from error
    numeric = [field.name for field in schema if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)]
    era = recognise(schema.names, path=str(path), numeric=numeric)
    for column in era.columns.values():
        try:
            # No values: what is wrong is the type.
            from_arrow(pa.nulls(0, schema.field(column.raw_name).type), column.kind)
        except (ValueError, pa.ArrowException) as error:
            raise InputError(f"{path}: column {column.raw_name!r}: {error}. Write it as TLC does.") from error
    if not footer.num_rows:
        raise _without_trips(path)
    return RawFile(path, "parquet", era)


def _open_text(path: Path, form: Form) -> RawFile:
    try:
        with open_text(path) as stream:
            header = stream.readline(HEADER_BYTES)
            if fault := _fault_of_header(header):
                raise InputError(f"{path} {fault}")
            sample = [line for line in islice(stream, SAMPLE_LINES) if line.strip()]
        names = header.decode("utf-8-sig").rstrip("\r\n").split(",")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is neither Parquet nor readable CSV ({error}). Check the file.") from error
    names = [name.strip().strip('"') for name in names]
    if _is_trip(names):
        raise InputError(f"{path} has no header: its first line begins with {','.join(names)[:SHOWN]!r}. "
                         "Put the names of the columns before the first trip.")  # fmt: skip
    era = recognise(names, path=str(path))
    if not sample:
        raise _without_trips(path)
    return RawFile(path, form, era, _fields(names, sample, path=path), len(header))


def _without_trips(path: Path) -> InputError:
    return InputError(f"{path} has columns, but no trips. Remove it from taxi.fetch.files.paths or download it again.")


def _fault_of_header(header: bytes) -> str | None:
    """Say why the first line of a file cannot be a header of comma-separated text."""
    if not header.strip():
        return "is empty. Remove it from taxi.fetch.files.paths or download it again."
    if header.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "is text in UTF-16. Save it as UTF-8."
    if b"\0" in header:
        return "is neither Parquet nor text. Check the file."
    if b"\r" in header.rstrip(b"\r\n"):
        return "ends its lines with CR alone. Convert the line ends to LF."
    found = next((name for mark, name in SEPARATORS.items() if mark in header and b"," not in header), None)
    return found and f"separates its fields by {found}. Separate them by commas."


def _is_trip(names: Sequence[str]) -> bool:
    """Tell whether the first line is a trip: no name of a column is there, but a number or a date."""
    known = any(name.lower() in ALIASES or name.lower() in NOT_CARRIED for name in names)
    return not known and any(name[:1].isdigit() for name in names)


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
