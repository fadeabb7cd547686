"""R3: one file of CSV as a data frame: ``len(read_csv(yellow 2015-01))``, 12,748,986 rows of 19 columns.

Every variant has all columns in memory afterwards. Times stay text in pandas and Polars, which do not parse them unless
they are told to, and take longer then; cuDF, pyarrow, DuckDB and ours read them as times. Ours is told the kinds of the
columns, the others infer them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import JsonValue

from benchmarks.published.dask_cluster import frames_of
from benchmarks.published.row import BOTH, CallCase, Published, Row, Timed, Variant, Work
from benchmarks.published.yellow_csv import DEGREES, HUNDREDTHS, YellowCsv, parse, units_of
from whitewater.engines import Array
from whitewater.tables.casts import Kind

FILES = YellowCsv(months=("2015-01",), rows=12_748_986)
TIMES = ("tpep_pickup_datetime", "tpep_dropoff_datetime")
FLAG = "store_and_fwd_flag"
INTEGERS = ("VendorID", "passenger_count", "RateCodeID", "payment_type")
KINDS: dict[str, Kind] = {
    **dict.fromkeys((*INTEGERS, *DEGREES, *HUNDREDTHS), "number"),
    **dict.fromkeys(TIMES, "timestamp"),
    FLAG: "text",
}
# What is added up is whole numbers, so that nothing is rounded: of degrees 0.0001, about 10 m.
FRACTIONS = {**dict.fromkeys(INTEGERS, 1), **dict.fromkeys(DEGREES, 10_000), **dict.fromkeys(HUNDREDTHS, 100)}
# Seconds are counted from here, so that the sums of all rows, weighted, are below 2**63.
SINCE = np.datetime64("2015-01-01", "s").astype(np.int64)
# Weights of the rows, so that values which have changed places are noticed. A prime number.
WEIGHTS = 997


def path_of(work: Work) -> Path:
    """Return the file."""
    [path] = FILES.paths(work)
    return path


def checksums(number: Callable[[str], Array], seconds: Callable[[str], Array], flag: Array) -> JsonValue:
    """Return the rows, and of each column how many values there are, their sum, and their weighted sum, all integers.

    Parameters
    ----------
    number
        Returns the column of a name as float64 (rows,), NaN where it is empty, on the host.
    seconds
        Returns a column of times as seconds since 1970, int64 (rows,).
    flag
        Where the flag is Y, bool (rows,).
    """
    columns = {name: number(name) * fraction for name, fraction in FRACTIONS.items()}
    columns |= {name: (seconds(name) - SINCE).astype(np.float64) for name in TIMES}
    columns[FLAG] = flag.astype(np.float64)
    return {"rows": len(flag)} | {name: _checksum(values) for name, values in columns.items()}


def _checksum(values: Array) -> list[JsonValue]:
    known = ~np.isnan(values)
    whole = np.rint(values[known]).astype(np.int64)
    weights = (np.arange(len(values)) % WEIGHTS + 1)[known]
    return [int(known.sum()), int(whole.sum()), int(whole @ weights)]


@contextmanager
def as_published(work: Work) -> Iterator[Timed]:
    """Read with pandas or cuDF, with nothing but the name of the file."""
    frames, path = frames_of(work.device), path_of(work)

    def number(frame: Any, name: str) -> Array:
        return np.asarray(frame[name].astype("float64").to_numpy(na_value=np.nan))

    def seconds(frame: Any, name: str) -> Array:
        times = frames.to_datetime(frame[name], format="%Y-%m-%d %H:%M:%S")
        return np.asarray(times.astype("datetime64[s]").astype("int64").to_numpy())

    def answer(frame: Any) -> JsonValue:
        return checksums(partial(number, frame), partial(seconds, frame), (frame[FLAG] == "Y").to_numpy())

    yield Timed(lambda: frames.read_csv(path), answer=answer)


@contextmanager
def parsed_on_threads(work: Work) -> Iterator[Timed]:
    """Ranges of lines, each parsed in one pass into a table of Arrow: numbers are float64, the flag a dictionary."""
    path = path_of(work)
    with ThreadPoolExecutor(work.threads) as pool:

        def tables() -> list[Any]:
            return list(chain.from_iterable(pool.map(parse, units_of([path], work, KINDS))))

        yield Timed(tables, answer=answer_of_tables)


def answer_of_tables(tables: Sequence[Any]) -> JsonValue:
    """Return the checksums of the parts of an Arrow table."""
    import pyarrow as pa

    return answer_of_arrow(pa.concat_tables(tables).unify_dictionaries())


@contextmanager
def with_polars(work: Work) -> Iterator[Timed]:
    """Read with Polars; times stay text, which is faster."""
    import polars as pl

    path = path_of(work)

    def answer(frame: pl.DataFrame) -> JsonValue:
        return checksums(
            lambda name: frame[name].cast(pl.Float64).to_numpy(),
            lambda name: frame[name].str.to_datetime("%Y-%m-%d %H:%M:%S").dt.epoch("s").to_numpy(),
            (frame[FLAG] == "Y").to_numpy(),
        )

    yield Timed(lambda: pl.read_csv(path), answer=answer)


@contextmanager
def with_pyarrow(work: Work) -> Iterator[Timed]:
    """Read with pyarrow, which keeps the columns in the chunks that its threads have parsed."""
    import pyarrow.csv as pa_csv

    path = path_of(work)
    yield Timed(lambda: pa_csv.read_csv(path), answer=answer_of_arrow)


def answer_of_arrow(table: Any) -> JsonValue:
    """Return the checksums of an Arrow table."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return checksums(
        lambda name: table[name].cast(pa.float64()).to_numpy(),
        lambda name: table[name].cast(pa.timestamp("s")).cast(pa.int64()).to_numpy(),
        pc.equal(table[FLAG], "Y").to_numpy(),
    )


@contextmanager
def with_duckdb(work: Work) -> Iterator[Timed]:
    """Make a table of DuckDB in memory."""
    import duckdb

    path = str(path_of(work))
    with duckdb.connect(config={"threads": work.threads}) as connection:
        yield Timed(
            lambda: connection.execute("CREATE OR REPLACE TABLE trips AS FROM read_csv($path)", {"path": path}),
            answer=lambda _: answer_of_arrow(connection.table("trips").to_arrow_table()),
        )


ROW = Row(
    id="R3",
    name="csv_read",
    title="`len(read_csv(...))` of 1.9 GB of yellow-taxi trips, 12,748,986 rows of 19 columns",
    cases=(
        CallCase(
            name="",
            variants=(
                Variant("whitewater", parsed_on_threads, memory=1.5),
                Variant("as_published", as_published, devices=BOTH, memory=4.0),
                Variant("polars", with_polars, packages=("polars",), memory=2.5),
                Variant("pyarrow", with_pyarrow, memory=3.0),
                Variant("duckdb", with_duckdb, packages=("duckdb",), memory=3.0),
            ),
            oracle="as_published",
            size=FILES.size,
            prepare=FILES.make,
            published=(Published("pandas", 29.2), Published("cuDF", 2.12)),
        ),
    ),
)
