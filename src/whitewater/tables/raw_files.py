"""Raw files of a table, Parquet or CSV, plain, gzip or zip: recognized by content, split into units, read in tasks."""

import codecs
import csv
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.errors import InputError
from whitewater.io.store import read_json
from whitewater.io.text_files import GZIP, line_blocks, map_lines, open_text, ranges
from whitewater.step import Run
from whitewater.tables.casts import Clock, Lines, cast_column, is_plain, parse_lines
from whitewater.tables.config import RawFiles
from whitewater.tables.eras import Era, Source
from whitewater.tables.partitions import ranges_of, write_table

Form = Literal["parquet", "text", "gzip", "zip"]
PARQUET = b"PAR1"
# Of a zip file, and of an empty one.
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
BYTES_A_ROW = 100
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
YEARS_0_TO_9999 = (-62_167_219_200, 253_402_300_800)  # in seconds since 1970
SEPARATORS = {b";": "semicolons", b"\t": "tabs", b"|": "vertical bars"}
LONGEST_QUOTE = 80
# Numbers of rows by a key, such as service and month, and of `MALFORMED` lines, which cannot be parsed.
Counts = Counter[Any]
MALFORMED = "malformed_line"
# Frames of an engine, and the malformed lines of each block.
Frames = Iterator[tuple[Any, tuple[str, ...]]]
# Rows, an int64 mask of the rules that each row breaks (rows,), and the malformed lines.
CheckedBlocks = Iterator[tuple[pa.Table, Array, tuple[str, ...]]]


@dataclass(frozen=True)
class RawFile:
    """A file of one era, or a member of a zip file."""

    path: Path
    form: Form
    era: Era
    clock: Clock
    fields: tuple[str, ...] = ()  # of text: all fields of a line, with padding
    body: int = 0  # of text: the byte after the header
    member: str = ""
    group_rows: tuple[int, ...] = ()  # of Parquet: the rows of each row group
    plain: bool = False  # of Parquet: whether all columns are `is_plain`

    @property
    def name(self) -> str:
        """The path, and the member of a zip file."""
        return f"{self.path}/{self.member}" if self.member else str(self.path)


@dataclass(frozen=True)
class Unit:
    """A part of a file that one task reads: row groups, or the lines that begin at these bytes, from start to stop."""

    file: RawFile
    start: int
    stop: int | None
    place: tuple[int, int] = (0, 0)  # number of the file, and of the unit in it

    @property
    def row_groups(self) -> range:
        """The row groups of a Parquet file that are in the unit."""
        return range(self.start, self.stop or len(self.file.group_rows))

    @property
    def rows(self) -> range:
        """The rows of a Parquet file that are in the unit; empty for text."""
        first, end = (sum(self.file.group_rows[:group]) for group in (self.start, self.stop))
        return range(first, end)

    def stem(self, piece: int) -> str:
        """Return ``FILE-UNIT-PIECE``, the name of the files written from a unit."""
        return "-".join(f"{number:04d}" for number in (*self.place, piece))


def read_files(
    run: Run[RawFiles], inputs: Path, source: Source, read: Callable[[Unit], Counts]
) -> list[tuple[RawFile, Counts]]:
    """Call ``read`` with each unit of the raw files in ``inputs``, the list of step `fetch`; return their counts.

    Raises InputError as `open_all`, or if files have more malformed lines than the settings allow, and IntegrityError
    if files changed since `fetch`.
    """
    from whitewater.io.places import check_fetched

    entries, settings = read_json(inputs)["files"], run.settings
    with check_fetched(entries, rule=f"{run.application}_fetch", threads=run.threads):
        files = open_all([Path(entry["path"]) for entry in entries], source)
        all_units, counts_of_files = units(files, rows=settings.block_rows), [Counts() for _ in files]
        with run.workers() as workers:
            for unit, counts in zip(all_units, workers.map(read, all_units, label=run.step, ordered=True), strict=True):
                counts_of_files[unit.place[0]].update(counts)
    results = list(zip(files, counts_of_files, strict=True))
    limit, key = settings.max_malformed_fraction, f"{run.application}.{run.step}.max_malformed_fraction"
    _refuse(
        [
            f"{file.name}: {counts[MALFORMED]} of {counts.total()} lines cannot be parsed, more than {key} ({limit:g}) "
            f"allows. The first: {_first_fault(file, settings.block_rows)}. Correct the file, or raise the limit to "
            "send such lines to quarantine."
            for file, counts in results
            if counts[MALFORMED] > limit * counts.total()
        ]
    )
    return results


def open_all(paths: Iterable[Path], source: Source) -> list[RawFile]:
    """Recognize files by their content; a member of a zip file is a file.

    Raises one InputError for all files that are unreadable, empty, damaged, without rows, or with unknown columns.
    """
    files: list[RawFile] = []
    faults: list[str] = []
    for path in paths:
        try:
            files += open_raw(path, source)
        except InputError as error:
            faults.append(str(error))
    _refuse(faults)
    return files


def _refuse(faults: Sequence[str]) -> None:
    """Raise InputError if files have faults."""
    if faults:
        raise InputError("\n- ".join([f"{len(faults)} files are refused.", *faults] if len(faults) > 1 else faults))


def open_raw(path: Path, source: Source) -> list[RawFile]:
    """Recognize a file by its content; see `open_all`."""
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}. Check {source.setting}.") from error
    if magic == PARQUET:
        return [_open_parquet(path, source)]
    if path.suffix == ".parquet":
        raise InputError(f"{path} is damaged, or not Parquet: it does not begin with PAR1. Get it again, or rename it.")
    if magic in ZIP:
        return [_open_text(path, "zip", source, member) for member in _list_members(path)]
    return [_open_text(path, "gzip" if magic.startswith(GZIP) else "text", source)]


def units(files: Iterable[RawFile], *, rows: int) -> list[Unit]:
    """Split files into units of about ``rows`` rows: whole row groups, or ranges of lines."""
    result: list[Unit] = []
    for number, file in enumerate(files):
        bounds: Sequence[tuple[int, int | None]] = [(file.body, None)]
        if file.form == "parquet":
            bounds = ranges_of(file.group_rows, rows)
        elif not file.member:
            bounds = ranges(file.path, file.body, rows * BYTES_A_ROW)
        result += [Unit(file, start, stop, (number, place)) for place, (start, stop) in enumerate(bounds)]
    return result


def arrow_blocks(unit: Unit, *, rows: int) -> Iterator[Lines]:
    """Read the raw columns of a unit's era, about ``rows`` rows at a time, and the malformed lines.

    Raises InputError if the file is damaged, or a value of a Parquet file is not of its column's kind.
    """
    file = unit.file
    if file.form == "parquet":
        yield from _parquet_blocks(unit, rows)
        return
    blocks: Iterable[bytes | memoryview]
    if file.form == "text":
        blocks = [map_lines(file.path, unit.start, unit.stop)]
    else:
        blocks = line_blocks(file.path, unit.start, unit.stop, member=file.member, block=rows * BYTES_A_ROW)
    for lines in blocks:
        yield parse_lines(lines, file.fields, file.era.raw_kinds, clock=file.clock)


def write_unit(
    unit: Unit, frames: Frames, folder: Path, *, schema: pa.Schema, write: Callable[[Any, Path, pa.Schema], None],
    count: Callable[[Any], Counts],
) -> Counts:  # fmt: skip
    """Write each frame as a part with those columns of the schema that it has, and its malformed lines; count both."""
    counts = Counts()
    for piece, (frame, malformed) in enumerate(frames):
        name = f"{unit.stem(piece)}.parquet"
        if malformed:
            write_table(pa.table({"raw_line": pa.array(malformed, pa.string())}), folder / f"malformed-{name}")
            counts[MALFORMED] += len(malformed)
        if len(frame):
            present = pa.schema([field for field in schema if field.name in frame.columns])
            write(frame, folder / f"part-{name}", present)
            counts.update(count(frame))
    return counts


def _first_fault(file: RawFile, rows: int) -> str:
    """Say why the first malformed line could not be parsed."""
    blocks = (block for unit in units([file], rows=rows) for block in arrow_blocks(unit, rows=rows))
    line = next(line for block in blocks for line in block.malformed)
    quoted = repr(line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE]}...")
    try:
        fields = next(csv.reader([line], strict=True))
    except csv.Error as error:
        return f"{quoted} is not a line of CSV ({error})"
    if len(fields) != len(file.fields):
        return f"{quoted} has {len(fields)} fields, not {len(file.fields)}"
    text = dict(zip(file.fields, fields, strict=True))
    for name, kind in file.era.raw_kinds.items():
        try:
            cast_column(pa.array([text[name]]), kind, clock=file.clock)
        except ValueError as error:
            return f"column {name!r}: {error}"
    return f"{quoted} has an unbalanced quote, a carriage return, or bytes that are not UTF-8"


def _parquet_blocks(unit: Unit, rows: int) -> Iterator[Lines]:
    file, kinds = unit.file, unit.file.era.raw_kinds
    where = ""
    try:
        # Buffered, without reading ahead: memory grows with the block, not with the row group.
        with pq.ParquetFile(
            file.path, buffer_size=1 << 20, pre_buffer=False, page_checksum_verification=True
        ) as parquet:
            for batch in parquet.iter_batches(rows, unit.row_groups, list(kinds), use_threads=False):
                columns = {}
                for name, kind in kinds.items():
                    where = f": column {name!r}"
                    columns[name] = cast_column(batch[name], kind, clock=file.clock)
                where = ""
                yield Lines(pa.table(columns), ())
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{file.path}, row group {unit.start}{where} {error}. Get the file again, or leave it "
                         "out.") from error  # fmt: skip


def _open_parquet(path: Path, source: Source) -> RawFile:
    try:
        footer = pq.read_metadata(path)
        schema = footer.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path} is a damaged or truncated Parquet file ({error}). Download or write it again."
        ) from error
    numeric = [field.name for field in schema if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)]
    era = source.recognize(schema.names, path=str(path), numeric=numeric)
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    types = {name: schema.field(name).type for name in era.raw_kinds}
    for name, kind in era.raw_kinds.items():
        try:
            # Without values, only the type can be wrong.
            cast_column(pa.nulls(0, types[name]), kind, clock=source.clock)
        except (ValueError, pa.ArrowException) as error:
            raise InputError(f"{path}: column {name!r}: {error}. Write it as {source.of[1]} does.") from error
        if pa.types.is_timestamp(types[name]) and _has_odd_times(footer, footer.schema.names.index(name), types[name]):
            raise InputError(f"{path}: column {name!r} has a time outside the years 0 to 9999. Write it as null.")
    # cuDF moves a column that pandas wrote as its index out of the columns.
    plain = all(is_plain(types[name], kind) and name not in index for name, kind in era.raw_kinds.items())
    if not footer.num_rows:
        raise _without_rows(str(path), source)
    group_rows = tuple(footer.row_group(number).num_rows for number in range(footer.num_row_groups))
    return RawFile(path, "parquet", era, source.clock, group_rows=group_rows, plain=plain)


def _has_odd_times(footer: pq.FileMetaData, column: int, type_: pa.TimestampType) -> bool:
    """Return whether the statistics of a column tell of times that text could not, such as DuckDB's infinity."""
    low, high = (second * PER_SECOND[type_.unit] for second in YEARS_0_TO_9999)
    groups = (footer.row_group(number).column(column).statistics for number in range(footer.num_row_groups))
    return any(not low <= each.min_raw <= each.max_raw < high for each in groups if each and each.has_min_max)


def _list_members(path: Path) -> list[str]:
    """Return the files in a zip file, in order, without those that macOS adds."""
    try:
        with zipfile.ZipFile(path) as archive:
            files = [member.filename for member in archive.infolist() if not member.is_dir()]
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(f"{path} is a damaged or truncated zip file ({error}). Download or write it again.") from error
    names = [name for name in files if not name.startswith("__MACOSX/")]
    if not names:
        raise InputError(f"{path} is a zip file without files. Remove it, or pack it again.")
    return names


def _open_text(path: Path, form: Form, source: Source, member: str = "") -> RawFile:
    where = f"{path}/{member}" if member else str(path)
    try:
        with open_text(path, member=member) as stream:
            header = stream.readline(1 << 16)  # longer than any header
            if fault := _check_header(header, source):
                raise InputError(f"{where} {fault}")
            sample = [row for line in islice(stream, 200) if (row := _split(line.decode(errors="replace")))]
        names = [name.strip().strip('"') for name in _split(header.decode("utf-8-sig"))]
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is neither Parquet nor readable CSV ({error}). Check the file.") from error
    if any(name[:1].isdigit() for name in names) and not any(name.lower() in source.aliases for name in names):
        raise InputError(f"{where} has no header: its first line begins with {','.join(names)[:LONGEST_QUOTE]!r}. "
                         "Put the names of the columns before the first row.")  # fmt: skip
    era = source.recognize(names, path=where)
    if not sample:
        raise _without_rows(where, source)
    # In some eras, rows end with more commas than the header.
    [(width, _)] = Counter(sorted(map(len, sample))).most_common(1)
    pads = range(width - len(names))
    if pads and any(field.strip() for row in sample if len(row) == width for field in row[len(names) :]):
        raise InputError(f"{where}: rows have {width} fields, but the header names {len(names)}, so it is not clear "
                         "which column is which. Correct the header.")  # fmt: skip
    fields = (*names, *(f"pad {number}" for number in pads))
    return RawFile(path, form, era, source.clock, fields=fields, body=len(header), member=member)


def _split(line: str) -> list[str]:
    """Return the fields of a line of CSV; none if it is blank."""
    text = line.rstrip("\r\n")
    try:
        return next(csv.reader([text])) if text.strip() else []
    except csv.Error:  # a field is too long, or has a carriage return
        return text.split(",")


def _without_rows(where: str, source: Source) -> InputError:
    return InputError(f"{where} has columns, but no {source.rows}. Remove it from {source.setting} or get it again.")


def _check_header(header: bytes, source: Source) -> str | None:
    """Say why the first line of a file cannot be a header of CSV, or return None."""
    faults = {
        f"is empty. Remove it from {source.setting} or get it again.": not header.strip(),
        "is text in UTF-16. Save it as UTF-8.": header.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)),
        "is packed once more. Unpack the file that holds it.": header.startswith((PARQUET, *ZIP, GZIP)),
        "is neither Parquet nor text. Check the file.": b"\0" in header,
        "ends its lines with CR alone. Convert the line ends to LF.": b"\r" in header.rstrip(b"\r\n"),
    }
    for mark, name in SEPARATORS.items():
        faults[f"separates its fields by {name}. Separate them by commas."] = mark in header and b"," not in header
    return next((fault for fault, has_fault in faults.items() if has_fault), None)
