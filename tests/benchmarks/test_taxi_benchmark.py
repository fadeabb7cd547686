"""The variants of the taxi benchmark do the same work: DuckDB's SQL, which shares no code with ours, is the oracle."""

from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest

from benchmarks.measure import differences
from benchmarks.taxi import with_duckdb, with_whitewater, with_whitewater_dask
from benchmarks.taxi.simulated_months import CSV_SCHEMA, Months, prepare
from benchmarks.taxi.variant import Work
from benchmarks.taxi.written import inspect_written


@pytest.fixture(scope="module")
def months(tmp_path_factory: pytest.TempPathFactory) -> Months:
    directory = tmp_path_factory.mktemp("months")
    return prepare(directory, months=2, rows=5_000, seed=1, with_csv=True, processes=1)


ENGINES = pytest.mark.parametrize("engine", [with_whitewater, with_whitewater_dask])


@ENGINES
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_whitewater_and_duckdb_give_the_same_aggregates(months: Months, form: str, engine: ModuleType) -> None:
    work = Work(getattr(months, form), months.zones, threads=2, output=None)
    ours, theirs = (variant.compute(work) for variant in (engine, with_duckdb))
    assert list(differences(ours, theirs, tolerance=1e-9)) == []
    trips = sum(trips for trips, _ in ours["by_hour"].values())
    assert months.rows / 2 < trips < months.rows
    assert trips == sum(trips for trips, _ in ours["by_borough"].values())


@ENGINES
def test_whitewater_and_duckdb_write_the_same_trips(months: Months, tmp_path: Path, engine: ModuleType) -> None:
    ours, theirs = (tmp_path / name for name in ("ours", "theirs"))
    engine.compute(Work(months.parquet, months.zones, threads=2, output=ours))
    with_duckdb.compute(Work(months.parquet, months.zones, threads=2, output=theirs))
    assert list(differences(inspect_written(ours), inspect_written(theirs), tolerance=1e-9)) == []


def test_a_row_that_is_lost_is_noticed(months: Months, tmp_path: Path) -> None:
    whole, torn = (tmp_path / name for name in ("whole", "torn"))
    for directory, rows in ((whole, 5_000), (torn, 4_999)):
        directory.mkdir()
        pq.write_table(pq.read_table(months.parquet[0]).slice(0, rows), directory / "trips.parquet")
    assert any("rows" in each for each in differences(inspect_written(torn), inspect_written(whole), tolerance=1e-9))


def test_months_are_made_once_and_csv_has_the_layout_of_2019(months: Months) -> None:
    directory = months.zones.parent.parent
    made = {path: path.stat().st_mtime_ns for path in months.parquet}
    again = prepare(directory, months=2, rows=5_000, seed=1, with_csv=False, processes=1)
    assert again.sha256 == months.sha256
    assert {path: path.stat().st_mtime_ns for path in again.parquet} == made
    header, first = months.csv[0].read_text().splitlines()[:2]
    assert header.split(",") == CSV_SCHEMA.names
    assert first.split(",")[1].startswith("2019-01-01 00:")
