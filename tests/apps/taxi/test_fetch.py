"""The step `fetch`: whatever the source, a catalog of checked files and one table of zones."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.helpers.real_data import needs_real_data, real_data
from whitewater.engines import resolve as resolve_device
from whitewater.errors import ConfigError, InputError
from whitewater.io.download import Downloads, Input
from whitewater.step import Run, execute
from whitewater_apps.taxi.config import Fetch
from whitewater_apps.taxi.steps.fetch import fetch, find_inputs, tlc_urls
from whitewater_apps.taxi.synthetic.months import simulate_month, write_zones
from whitewater_apps.taxi.zones import read_zones

LOCAL = "LocationID,zone,borough\n1,Newark Airport,EWR\n2,Jamaica Bay,Queens\n2,Jamaica Bay,Queens\n"


@pytest.fixture
def folder(folder: Path) -> Path:
    """A working directory with the files a.csv and b.csv of trips and a table of zones."""
    (folder / "trips").mkdir()
    (folder / "trips" / "a.csv").write_text("a")
    (folder / "trips" / "b.csv.gz").write_bytes(gzip.compress(b"b"))
    (folder / "zones.csv").write_text(LOCAL)
    return folder


@pytest.fixture
def site(served: tuple[str, Path]) -> str:
    """A copy of TLC's server with two months of green trips."""
    root = served[1] / "site"
    (root / "trip-data").mkdir(parents=True)
    for name in ("2019-06", "2019-07"):
        table = simulate_month("green", name, rows=50, seed=1)
        pq.write_table(table, root / "trip-data" / f"green_tripdata_{name}.parquet")
    write_zones(root / "misc" / "taxi_zone_lookup.csv")
    return f"{served[0]}/site"


def files(*paths: str, zones: str = "zones.csv") -> Fetch:
    return Fetch.model_validate({"source": "files", "files": {"paths": paths, "zones": zones}})


def tlc(url: str, *months: str) -> Fetch:
    settings = {"base_url": url, "services": ["green"], "months": months, "retries": 0}
    return Fetch.model_validate({"source": "tlc", "tlc": settings})


def sources(settings: Fetch) -> list[Input]:
    return find_inputs(settings, Downloads(Path("data"), {}), place=Path("data"), threads=2)


def run_step(settings: Fetch) -> dict[str, Any]:
    run = Run(application="taxi", step="fetch", device=resolve_device("cpu"), settings=settings)
    outputs = {"inputs": Path("data/taxi/inputs.json"), "zones": Path("data/taxi/zones.csv")}
    execute(run, fetch, inputs={}, outputs=outputs, record=Path("logs/fetch.json"))
    written: dict[str, Any] = json.loads(outputs["inputs"].read_text())
    return written


def test_the_step_writes_a_catalog_and_a_table_with_each_zone_once(folder: Path) -> None:
    written = run_step(files("trips/*.csv"))
    assert written["files"] == [
        {"path": "trips/a.csv", "origin": "trips/a.csv", "bytes": 1, "sha256": hashlib.sha256(b"a").hexdigest()}
    ]
    assert written["zones"]["origin"] == "zones.csv"
    text = Path("data/taxi/zones.csv").read_text()
    assert text == "LocationID,Borough,Zone,service_zone\n1,EWR,Newark Airport,N/A\n2,Queens,Jamaica Bay,N/A\n"
    facts = json.loads(Path("logs/fetch.json").read_text())["facts"]
    assert facts == {"files": 1, "bytes": 1, "zones_repeated": 1}


def test_the_default_source_is_simulated_and_a_second_run_changes_nothing(folder: Path) -> None:
    settings = Fetch.model_validate({"generated": {"scale": 0.0005, "months": ["2019-03"]}})
    first = run_step(settings)
    assert [Path(file["path"]).name for file in first["files"]] == [
        "yellow_tripdata_2019-03.csv", "green_tripdata_2019-03.parquet", "fhvhv_tripdata_2019-03.parquet",
    ]  # fmt: skip
    assert {file["origin"] for file in first["files"]} == {"simulated"}
    for file in first["files"]:
        assert hashlib.sha256(Path(file["path"]).read_bytes()).hexdigest() == file["sha256"]
    assert len(read_zones(Path("data/taxi/zones.csv")).borough_names) == 8
    assert run_step(settings) == first


def test_files_are_used_in_place_and_sorted_however_they_are_named(folder: Path) -> None:
    found = sources(files("trips/b*", "trips/a.csv"))
    assert [Path(file.path).name for file in found] == ["a.csv", "b.csv.gz", "zones.csv"]
    assert found == sources(files("trips/a.csv", "trips/b*"))


def test_a_file_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(InputError, match=r"trips/none\.csv does not exist"):
        sources(files("trips/a.csv", "trips/none.csv"))


def test_one_table_of_zones_only(folder: Path) -> None:
    shutil.copy("zones.csv", "zones2.csv")
    with pytest.raises(InputError, match="matches 2 files"):
        sources(files("trips/a.csv", zones="zones*.csv"))


def test_without_a_table_of_zones_every_borough_is_unknown_and_that_is_said(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = sources(files("trips/a.csv", zones=""))
    assert len(read_zones(Path(found[-1].path)).names) == 266
    assert "every location is in the borough Unknown" in caplog.text


def test_urls_and_local_files_may_be_mixed_and_secrets_are_left_out(folder: Path, site: str) -> None:
    url = f"{site}/trip-data/green_tripdata_2019-06.parquet?token=abc123"
    written = run_step(files(url, "trips/a.csv", zones=f"{site}/misc/taxi_zone_lookup.csv"))
    assert "abc123" not in Path("data/taxi/inputs.json").read_text() + Path("data/taxi/registry.json").read_text()
    assert [file["origin"].rpartition("/")[2] for file in written["files"]] == [
        "green_tripdata_2019-06.parquet?token=...", "a.csv",
    ]  # fmt: skip


def test_tlc_files_and_zones_come_from_the_base_url(folder: Path, site: str) -> None:
    written = run_step(tlc(f"{site}/", "2019-06", "2019-07"))
    assert [file["origin"] for file in written["files"]] == [
        f"{site}/trip-data/green_tripdata_{name}.parquet" for name in ("2019-06", "2019-07")
    ]
    assert written["zones"]["origin"] == f"{site}/misc/taxi_zone_lookup.csv"
    assert len(read_zones(Path("data/taxi/zones.csv")).within("Manhattan")) == 69


def test_the_official_addresses() -> None:
    urls = tlc_urls(Fetch().tlc)
    server = "https://d37ci6vzurychx.cloudfront.net"
    assert urls == [f"{server}/trip-data/yellow_tripdata_2019-03.parquet", f"{server}/misc/taxi_zone_lookup.csv"]


def test_a_service_before_its_time_is_a_configuration_error(folder: Path) -> None:
    settings = Fetch.model_validate({"generated": {"services": ["fhvhv"], "months": ["2018-01"]}})
    with pytest.raises(ConfigError, match=r"no fhvhv trips before 2019-02.*months"):
        sources(settings)


@needs_real_data
def test_all_real_files_are_cataloged_with_their_checksums(folder: Path) -> None:
    eras = real_data("taxi", "eras")
    found = sources(files(f"{eras}/*.csv", zones=str(real_data("taxi", "taxi_zone_lookup.csv"))))
    assert len(found) == 15 + 1
    assert all(hashlib.sha256(Path(file.path).read_bytes()).hexdigest() == file.sha256 for file in found)


@needs_real_data
def test_the_real_tables_of_zones_agree() -> None:
    official = read_zones(real_data("taxi", "taxi_zone_lookup.csv"))
    seaborn = read_zones(real_data("taxi", "seaborn", "raw_taxi_zones.csv"))
    sizes = {borough: len(official.within(borough)) for borough in official.borough_names}
    assert sizes == {
        "Bronx": 43, "Brooklyn": 61, "EWR": 1, "Manhattan": 69, "Queens": 69, "Staten Island": 20, "Unknown": 2,
    }  # fmt: skip
    assert (official.duplicates, seaborn.duplicates) == (0, 3)
    assert seaborn.names[1:56] == official.names[1:56]
