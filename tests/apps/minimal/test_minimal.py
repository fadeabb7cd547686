"""The minimal application: every line of raw files is accounted for, and its table is that of an oracle."""

import json
from pathlib import Path
from typing import Any, Literal

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure

from whitewater.engines import resolve
from whitewater.step import Output, Run
from whitewater_apps.minimal import config, figures
from whitewater_apps.minimal.headline import headline
from whitewater_apps.minimal.steps.aggregate import aggregate
from whitewater_apps.minimal.steps.fetch import fetch
from whitewater_apps.minimal.steps.read import read

Engine = Literal["local", "dask"]


def run_steps(folder: Path, *, engine: Engine = "local", **settings: Any) -> Path:
    """Run the steps on the files that the settings name, or on generated ones; return the folder of results."""
    minimal, results = config.Minimal(**settings), folder / engine
    results.mkdir()

    def run(step: str) -> Run[Any]:
        return Run("minimal", step, resolve("cpu"), getattr(minimal, step), threads=2, engine=engine)

    fetch(run("fetch"), inputs=Output(folder / "inputs.json"))
    data_sets = {name: Output(results / name) for name in ("readings", "quarantine")}
    read(run("read"), inputs=folder / "inputs.json", **data_sets, quality=Output(results / "quality.json"))
    tables = {"table": Output(results / "wind_by_hour.parquet"), "csv": Output(results / "wind_by_hour.csv")}
    aggregate(run("aggregate"), readings=results / "readings", **tables)
    return results


def test_every_line_is_kept_or_in_quarantine_with_its_reasons(folder: Path) -> None:
    results = run_steps(folder)
    lines = (folder / "generated/week-1.csv").read_text().splitlines()[1:]
    rows = len(lines) + pq.read_metadata(folder / "generated/week-2.parquet").num_rows
    kept, rejected = (pd.read_parquet(results / name) for name in ("readings", "quarantine"))
    assert len(kept) + len(rejected) == rows
    reasons = {("malformed_line",), ("missing_wind_speed",), ("wind_speed_negative",)}
    assert set(rejected["reasons"].map(tuple)) == reasons
    assert set(rejected["raw_line"].dropna()) == set(lines[-3:])
    totals = {"rows_in": rows, "rows_out": len(kept), "quarantined": len(rejected)}
    assert json.loads((results / "quality.json").read_text())["totals"] == totals


def test_the_table_is_that_of_duckdb(folder: Path) -> None:
    found = pd.read_parquet(run_steps(folder) / "wind_by_hour.parquet")
    sound = "columns={'station': 'text', 'time': 'timestamp', 'wind_speed': 'double'}, ignore_errors=true"
    oracle = duckdb.execute(
        f"""
        with raw as (
            from read_csv('{folder}/generated/week-1.csv', header=true, auto_detect=false, {sound})
            union all from '{folder}/generated/week-2.parquet'
        )
        select station, hour(time) as hour, count(*) as n, avg(wind_speed) as mean, stddev(wind_speed) as deviation,
               median(wind_speed) as median
        from raw where wind_speed between 0 and 113 group by all order by all
        """
    ).df()
    assert found[["station", "hour"]].to_numpy().tolist() == oracle[["station", "hour"]].to_numpy().tolist()
    assert found["values"].tolist() == oracle["n"].tolist()
    assert found["mean"].to_numpy() == pytest.approx(oracle["mean"].to_numpy(), rel=1e-9)
    assert found["deviation"].to_numpy() == pytest.approx(oracle["deviation"].to_numpy(), rel=1e-6)
    assert (abs(found["median"] - oracle["median"]) <= found["median_error"]).all()


def test_stations_are_those_that_the_readings_name(folder: Path) -> None:
    (folder / "wind.csv").write_text('station_id,DATE,wind_speed,note\n"Ås, nord",2025-06-01 14:30:00,2.5,\n,x,1,\n')
    settings: dict[str, Any] = {"aggregate": {"minimum_readings": 1}, "read": {"max_malformed_fraction": 0.5}}
    table = pd.read_parquet(run_steps(folder, fetch={"files": ["wind.csv"]}, **settings) / "wind_by_hour.parquet")
    assert table[["station", "hour", "mean"]].to_numpy().tolist() == [["Ås, nord", 14, 2.5]]


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_files_without_a_good_reading_leave_an_empty_table(folder: Path, engine: Engine) -> None:
    (folder / "wind.csv").write_text("station,time,wind_speed\nA,2025-06-01 14:30:00,-1\n")
    results = run_steps(folder, engine=engine, fetch={"files": ["wind.csv"]})
    assert len(pd.read_parquet(results / "wind_by_hour.parquet")) == 0
    assert headline(results) == ["No station has enough readings in any hour."]
    assert isinstance(figures.wind_by_hour(pd.read_parquet(results / "wind_by_hour.parquet"), stations=6), Figure)


@pytest.mark.parametrize(
    ("means", "rest"),
    [
        ([10.0, 9.8, 3.0], "; of the other 2 hours of stations, 1 may be as windy, within noise."),
        ([10.0, 8.0, 3.0], ", more than in any other of 3 hours of stations."),
        ([10.0], "."),
    ],
)
def test_the_strongest_wind_has_an_interval_and_is_compared_with_all_others(
    folder: Path, means: list[float], rest: str
) -> None:
    table = pd.DataFrame({"station": "A", "hour": range(14, 14 + len(means)), "values": 100, "mean": means})
    table.assign(deviation=1.0).to_parquet(folder / "wind_by_hour.parquet")
    # The standard error of a mean of 100 values with the deviation 1 is 0.1.
    assert headline(folder) == [f"The wind is strongest at station A at 14:00: 10.0 [9.8, 10.2] m/s (n = 100){rest}"]
