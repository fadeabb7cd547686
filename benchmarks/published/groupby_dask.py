"""R5: a mean by group of a year of CSV: ``groupby("passenger_count").trip_distance.mean()`` of a Dask DataFrame.

As pandas defines it: trips without a number of passengers are in no group, and distances that are empty do not count.
The year 2016 had 131 million trips. The layout of its first half holds for all of them here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pydantic import JsonValue

from benchmarks.published.csv_sum import MONTHS_OF_2016, block_bytes
from benchmarks.published.dask_cluster import dask_client
from benchmarks.published.row import BOTH, CallCase, Row, Timed, Variant, Work
from benchmarks.published.yellow_csv import DTYPES, YellowCsv, check_counts, duckdb_source, parse, units_of
from whitewater.tables.casts import Kind
from whitewater.tables.raw_files import Unit

FILES = YellowCsv(months=MONTHS_OF_2016, rows=131_160_000)
KEY, VALUE = "passenger_count", "trip_distance"
KINDS: dict[str, Kind] = {KEY: "number", VALUE: "number"}


def answer(means: Mapping[Any, Any]) -> JsonValue:
    """Return the mean of each number of passengers."""
    return {str(int(passengers)): float(mean) for passengers, mean in means.items()}


@contextmanager
def as_published(work: Work) -> Iterator[Timed]:
    """Use a Dask DataFrame, of pandas' or cuDF's."""
    import dask.dataframe as dd

    paths = [str(path) for path in FILES.paths(work)]
    blocksize = block_bytes(work, FILES)
    with dask_client(work.device, work.cluster, threads=work.threads):
        # Unless it is told to leave them out, as pandas does, Dask's mean has a group of those without a key.
        def means() -> Any:
            trips = dd.read_csv(paths, blocksize=blocksize, dtype=DTYPES)
            return trips.groupby(KEY, dropna=True)[VALUE].mean().compute()

        yield Timed(means, answer=answer_of_series)


def answer_of_series(means: Any) -> JsonValue:
    """Return the answer of a series of pandas' or cuDF's."""
    return answer(dict(zip(means.index.to_numpy().tolist(), means.to_numpy().tolist(), strict=True)))


@contextmanager
def fused(work: Work) -> Iterator[Timed]:
    """Parse only the two columns, range by range, and keep only counts and sums of the groups of each range."""
    with work.device.workers(work.cluster, threads=work.threads) as workers:

        def means() -> Any:
            units = units_of(FILES.paths(work), work, KINDS)
            parts = [part for _, found in workers.as_completed(groups, units, {}) for part in found]
            return pa.concat_tables(parts).group_by(KEY).aggregate([("count", "sum"), ("sum", "sum")])

        yield Timed(means, answer=answer_of_sums)


def groups(unit: Unit) -> list[pa.Table]:
    """Return count and sum of the distances of each number of passengers."""
    found = []
    for table in parse(unit):
        check_counts(table, KEY, unit)
        sums = table.group_by(KEY).aggregate([(VALUE, "count"), (VALUE, "sum")])
        found.append(sums.rename_columns([KEY, "count", "sum"]))
    return found


def answer_of_sums(sums: pa.Table) -> JsonValue:
    """Return the answer of counts and sums, of those numbers of passengers with which a trip has a distance."""
    known = [each for each in sums.to_pylist() if each[KEY] is not None and each["count_sum"]]
    return answer({each[KEY]: each["sum_sum"] / each["count_sum"] for each in known})


@contextmanager
def with_pandas(work: Work) -> Iterator[Timed]:
    """Read both columns of all files with pandas, then group."""
    import pandas as pd

    paths = FILES.paths(work)

    def means() -> Any:
        trips = pd.concat([pd.read_csv(path, usecols=[KEY, VALUE]) for path in paths], ignore_index=True)
        return trips.groupby(KEY)[VALUE].mean()

    yield Timed(means, answer=answer_of_series)


@contextmanager
def with_polars(work: Work) -> Iterator[Timed]:
    """Stream with Polars."""
    import polars as pl

    def means() -> Any:
        trips = pl.scan_csv(FILES.paths(work)).drop_nulls(KEY)
        return trips.group_by(KEY).agg(pl.col(VALUE).mean()).collect(engine="streaming")

    yield Timed(means, answer=lambda frame: answer(dict(frame.rows())))


@contextmanager
def with_pyarrow(work: Work) -> Iterator[Timed]:
    """Read a table with pyarrow's data set, then group."""
    import pyarrow.dataset as ds

    paths = [str(path) for path in FILES.paths(work)]

    def means() -> Any:
        table = ds.dataset(paths, format="csv").to_table(columns=[KEY, VALUE], filter=ds.field(KEY).is_valid())
        return table.group_by(KEY).aggregate([(VALUE, "mean")])

    yield Timed(means, answer=lambda found: answer({each[KEY]: each[f"{VALUE}_mean"] for each in found.to_pylist()}))


@contextmanager
def with_duckdb(work: Work) -> Iterator[Timed]:
    """Query the files with DuckDB, which is told their types."""
    import duckdb

    source = duckdb_source(FILES.paths(work))
    query = f"SELECT {KEY}, avg({VALUE}) FROM {source} WHERE {KEY} IS NOT NULL GROUP BY {KEY}"  # noqa: S608
    with duckdb.connect(config={"threads": work.threads}) as connection:
        yield Timed(lambda: connection.execute(query).fetchall(), answer=lambda rows: answer(dict(rows)))


ROW = Row(
    id="R5",
    name="groupby_dask",
    title='`groupby("passenger_count").trip_distance.mean()` of the yellow-taxi CSV of 2016',
    cases=(
        CallCase(
            name="",
            variants=(
                Variant("whitewater", fused),
                Variant("as_published", as_published, devices=BOTH),
                Variant("pandas", with_pandas),
                Variant("polars", with_polars, packages=("polars",)),
                Variant("pyarrow", with_pyarrow),
                Variant("duckdb", with_duckdb, packages=("duckdb",)),
            ),
            oracle="pandas",
            size=FILES.size,
            prepare=FILES.make,
        ),
    ),
)
