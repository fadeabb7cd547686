"""Yellow-taxi months as CSV, as published in 2015 and until June 2016: how they are made, and how ours reads them.

The trips are simulated, see `whitewater_apps.taxi.synthetic.months`. Some lack the number of passengers or the
distance, which are empty fields. Files are shared by the rows of the table that want the same ones, and read from the
page cache: they have just been written, or read by the warm-ups.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.published.row import SEED, Work
from benchmarks.report import Size
from whitewater.errors import InputError
from whitewater.tables.casts import Kind
from whitewater.tables.eras import RawColumn
from whitewater.tables.raw_files import BYTES_A_ROW, Unit, arrow_blocks, open_raw, units
from whitewater_apps.taxi import synthetic as simulation
from whitewater_apps.taxi.schema import SOURCE

if TYPE_CHECKING:
    import pyarrow as pa

# Trips that are simulated at once; a file larger than that is several such pieces, each with trips of the whole month,
# as the files of 2015, which are in no order of time either.
PIECE_ROWS = 500_000
# Share of the trips whose field is empty.
EMPTY = {"passenger_count": 0.05, "trip_distance": 0.005}
DEGREES = ("pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude")
# Miles and US dollars.
HUNDREDTHS = (
    "trip_distance", "fare_amount", "extra", "mta_tax", "tip_amount", "tolls_amount", "improvement_surcharge",
    "total_amount",
)  # fmt: skip
# What a Dask DataFrame must be told: it takes types from the first ten lines, in which amounts may happen to be whole,
# and pandas makes floats of integers where a field is empty.
DTYPES = dict.fromkeys(("passenger_count", *DEGREES, *HUNDREDTHS), "float64")
# Units of ours: several for each thread, so that none waits long for the others; and small beside memory.
UNITS_A_THREAD, UNIT_ROWS = 4, 32_768


@dataclass(frozen=True)
class YellowCsv:
    """Files of one month each, in the layout of the time, with so many rows in all at the published size.

    The months are from 2015-01 to 2016-06. In later files of 2016 the lines have two commas more than the header, for
    which pandas and Dask shift all columns by two.
    """

    months: tuple[str, ...]
    rows: int

    def rows_of_a_file(self, work: Work) -> int:
        """Return the number of lines of each file, without its header."""
        return max(1, round(self.rows * work.scale / len(self.months)))

    def paths(self, work: Work) -> list[Path]:
        """Return the files, absolute, so that workers find them wherever they were started."""
        folder = work.folder.resolve().parent / f"yellow-csv-{_model()[:8]}"
        return [folder / f"yellow_tripdata_{month}-{self.rows_of_a_file(work)}.csv" for month in self.months]

    def make(self, work: Work) -> None:
        """Make the files that are not there."""

        def make(month: str, path: Path) -> None:
            if not path.exists():
                _write(path, month, self.rows_of_a_file(work))

        paths = self.paths(work)
        paths[0].parent.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(work.threads) as pool:
            list(pool.map(make, self.months, paths))

    def size(self, work: Work) -> Size:
        """Return rows and bytes of the files."""
        paths = self.paths(work)
        rows = self.rows_of_a_file(work) * len(paths)
        return Size(rows=rows, bytes=sum(path.stat().st_size for path in paths), basis="file")


def units_of(paths: Sequence[Path], work: Work, kinds: Mapping[str, Kind]) -> list[Unit]:
    """Cut files into ranges of whole lines, of which the named columns are read, each as its kind."""
    rows = sum(path.stat().st_size for path in paths) // BYTES_A_ROW
    block_rows = max(1, min(UNIT_ROWS, rows // (UNITS_A_THREAD * work.threads)))
    columns = {name: RawColumn(name, kind) for name, kind in kinds.items()}
    files = [replace(file, era=replace(file.era, columns=columns)) for path in paths for file in open_raw(path, SOURCE)]
    return units(files, rows=block_rows)


def duckdb_source(paths: Sequence[Path]) -> str:
    """Return DuckDB's table of files, in SQL, with its types, which take a second to guess; text that is not read."""
    header = paths[0].open().readline().strip().split(",")
    types = {name: "DOUBLE" if name in DTYPES else "VARCHAR" for name in header}
    return f"read_csv({[str(path) for path in paths]}, columns = {types}, header = true, auto_detect = false)"


def parse(unit: Unit) -> list[pa.Table]:
    """Return the columns of a unit, by their names in the file, numbers as float64.

    It is one table, or none for a unit in which no line begins.

    Raises
    ------
    InputError
        If a line could not be parsed: pandas, which fills up short lines, would not leave it out.
    """
    parsed = list(arrow_blocks(unit, rows=PIECE_ROWS))
    malformed = [line for each in parsed for line in each.malformed]
    if malformed:
        raise InputError(f"{unit.file.path} has {len(malformed)} lines that cannot be parsed, the first of a part is "
                         f"{malformed[0]!r}. Remove the file, so that it is made again.")  # fmt: skip
    return [table for table, _ in parsed]


def check_counts(table: pa.Table, column: str, unit: Unit) -> None:
    """Raise InputError if a column has a number that is negative or not whole."""
    import pyarrow.compute as pc

    values = table[column]
    if pc.any(pc.or_(pc.less(values, 0), pc.not_equal(pc.floor(values), values))).as_py():
        raise InputError(f"{unit.file.path} has a {column} that is negative or not whole. "
                         "Remove the file, so that it is made again.")  # fmt: skip


def _write(path: Path, month: str, rows: int) -> None:
    import pyarrow.csv as pa_csv

    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("wb") as file:
        for number, table in enumerate(_pieces(month, rows)):
            options = pa_csv.WriteOptions(include_header=number == 0, quoting_style="none", quoting_header="none")
            pa_csv.write_csv(table, file, options)
    beside.replace(path)


def _pieces(month: str, rows: int) -> Iterator[pa.Table]:
    from whitewater_apps.taxi.synthetic.months import simulate_month

    for number, start in enumerate(range(0, rows, PIECE_ROWS)):
        size = min(PIECE_ROWS, rows - start)
        yield _with_empty_fields(
            simulate_month("yellow", month, rows=size, seed=SEED + number), seed=(SEED, number, *month.encode())
        )


def _with_empty_fields(trips: pa.Table, *, seed: Sequence[int]) -> pa.Table:
    import pyarrow as pa

    random = np.random.default_rng(seed)
    for name, share in EMPTY.items():
        empty = random.random(len(trips)) < share
        values = pa.array(trips[name].to_numpy(), trips.schema.field(name).type, mask=empty)
        trips = trips.set_column(trips.schema.get_field_index(name), name, values)
    return trips


def _model() -> str:
    """Return a checksum of the code that the files come from, so that those of older code are not used."""
    sources = [Path(__file__), *sorted(Path(next(iter(simulation.__path__))).glob("*.py"))]
    return sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
