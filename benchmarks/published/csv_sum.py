"""R4: the sum of one column of 10 GB of CSV in several files: ``passenger_count.sum()`` of a Dask DataFrame."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.published.dask_cluster import dask_client
from benchmarks.published.row import BOTH, CallCase, Published, Row, Timed, Variant, Work
from benchmarks.published.yellow_csv import DTYPES, YellowCsv, check_counts, duckdb_source, parse, units_of
from whitewater.tables.casts import Kind
from whitewater.tables.raw_files import Unit

MONTHS_OF_2016 = ("2016-01", "2016-02", "2016-03", "2016-04", "2016-05", "2016-06")
# 10 GB; half as many as in all of 2016.
FILES = YellowCsv(months=MONTHS_OF_2016, rows=65_580_000)
COLUMN = "passenger_count"
KINDS: dict[str, Kind] = {COLUMN: "number"}
# Dask's blocks: those of 64 MB that it makes of large files, but at least two for each thread.
BLOCK_BYTES, BLOCKS_A_THREAD = 64_000_000, 2


def block_bytes(work: Work, files: YellowCsv) -> int:
    """Return how many bytes of CSV are one partition of a Dask DataFrame."""
    return max(1, min(BLOCK_BYTES, files.size(work).bytes // (BLOCKS_A_THREAD * work.threads)))


@contextmanager
def as_published(work: Work) -> Iterator[Timed]:
    """Use a Dask DataFrame, of pandas' or cuDF's."""
    import dask.dataframe as dd

    paths = [str(path) for path in FILES.paths(work)]
    blocksize = block_bytes(work, FILES)
    with dask_client(work.device, work.cluster, threads=work.threads):

        def total() -> float:
            return float(dd.read_csv(paths, blocksize=blocksize, dtype=DTYPES)[COLUMN].sum().compute())

        yield Timed(total, answer=int)


@contextmanager
def projected(work: Work) -> Iterator[Timed]:
    """Parse only the numbers of this column, range by range, and keep only the sum of each range."""
    with work.device.workers(work.cluster, threads=work.threads) as workers:

        def total() -> int:
            units = units_of(FILES.paths(work), work, KINDS)
            return sum(part for _, part in workers.as_completed(passengers, units, {}))

        yield Timed(total)


def passengers(unit: Unit) -> int:
    """Return the sum of a range; an empty field adds nothing."""
    import pyarrow.compute as pc

    total = 0
    for table in parse(unit):
        check_counts(table, COLUMN, unit)
        total += int(pc.sum(table[COLUMN], min_count=0).as_py())
    return total


@contextmanager
def with_pandas(work: Work) -> Iterator[Timed]:
    """Read with pandas, file by file."""
    import pandas as pd

    paths = FILES.paths(work)
    yield Timed(lambda: sum(pd.read_csv(path, usecols=[COLUMN])[COLUMN].sum() for path in paths), answer=int)


@contextmanager
def with_polars(work: Work) -> Iterator[Timed]:
    """Stream with Polars."""
    import polars as pl

    paths = FILES.paths(work)
    yield Timed(lambda: pl.scan_csv(paths).select(pl.col(COLUMN).sum()).collect(engine="streaming").item(), answer=int)


@contextmanager
def with_pyarrow(work: Work) -> Iterator[Timed]:
    """Scan with pyarrow's data set."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    paths = [str(path) for path in FILES.paths(work)]

    def total() -> int:
        batches = ds.dataset(paths, format="csv").to_batches(columns=[COLUMN])
        return sum(pc.sum(batch[COLUMN]).as_py() or 0 for batch in batches)

    yield Timed(total)


@contextmanager
def with_duckdb(work: Work) -> Iterator[Timed]:
    """Query the files with DuckDB, which is told their types."""
    import duckdb

    query = f"SELECT sum({COLUMN}) FROM {duckdb_source(FILES.paths(work))}"  # noqa: S608 (nothing from outside)
    with duckdb.connect(config={"threads": work.threads}) as connection:
        yield Timed(lambda: connection.execute(query).fetchall()[0][0], answer=int)


ROW = Row(
    id="R4",
    name="csv_sum",
    title="`passenger_count.sum()` of 10 GB of yellow-taxi CSV",
    cases=(
        CallCase(
            name="",
            variants=(
                Variant("whitewater", projected),
                Variant("as_published", as_published, devices=BOTH),
                Variant("pandas", with_pandas),
                Variant("polars", with_polars, packages=("polars",)),
                Variant("pyarrow", with_pyarrow),
                Variant("duckdb", with_duckdb, packages=("duckdb",)),
            ),
            oracle="pandas",
            size=FILES.size,
            prepare=FILES.make,
            published=(
                Published("1 core", 194.0),
                Published("8 cores", 58.0),
                Published("40 cores", 35.0),
                Published("1 GPU", 11.0),
                Published("8 GPUs", 5.0),
            ),
        ),
    ),
)
