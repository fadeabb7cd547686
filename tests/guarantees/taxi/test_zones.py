"""A table of zones that is not that of the trips is refused; what it lacks of them is counted."""

from pathlib import Path

import pyarrow.parquet as pq

from tests.guarantees.running import Clone
from tests.helpers.raw_files import write_parquet, write_zones, yellow_frame

QUALITY = "results/taxi/cpu/quality.json"
TRIPS = {"source": "files", "files": {"paths": ["trips.parquet"], "zones": "zones.csv"}}


def write_part_of_zones(path: Path, ids: range) -> None:
    """Write a table of the zones with these ids only."""
    header, *rows = write_zones(path).read_text().splitlines()
    path.write_text("\n".join([header, *(row for row in rows if int(row.split(",")[0]) in ids)]) + "\n")


def test_a_table_that_lacks_most_zones_of_the_trips_stops_the_run(fresh: Clone) -> None:
    write_parquet(yellow_frame(500), fresh / "trips.parquet")
    write_part_of_zones(fresh / "zones.csv", range(1, 50))
    ended = fresh.run("taxi", {"fetch": TRIPS, "clean": {"exclude_pickup_boroughs": ["Manhattan"]}}, QUALITY)
    assert ended.message.startswith("InputError: the table of zones lacks the pickup_location_id of ")
    assert "395 of 500 trips: 52, 53, " in ended.message
    assert "taxi.clean.max_unknown_zone_fraction" in ended.message
    assert "taxi.fetch.files.zones" in ended.message
    assert not (fresh / QUALITY).exists()
    assert not (fresh / "results/taxi/cpu/trips").exists()


def test_the_few_ids_that_a_table_lacks_are_counted_by_file_and_said(fresh: Clone) -> None:
    frame = yellow_frame(500)
    frame["PULocationID"] = frame["PULocationID"].clip(upper=263)
    frame.loc[:4, "PULocationID"] = [264, 265, 265, 265, 264]
    frame["DOLocationID"] = frame["DOLocationID"].clip(upper=263)
    write_parquet(frame, fresh / "trips.parquet")
    write_part_of_zones(fresh / "zones.csv", range(1, 264))
    ended = fresh.run("taxi", {"fetch": TRIPS}, QUALITY)
    assert ended.status == 0, ended.terminal
    [file] = fresh.json(QUALITY)["files"]
    assert file["unknown_pickup_zones"] == {"264": 2, "265": 3}
    assert file["unknown_dropoff_zones"] == {}
    log = (fresh / "logs/taxi/cpu/clean.log").read_text()
    assert "the table of zones lacks the pickup_location_id of 5 of 500 trips: 264, 265" in log
    assert pq.read_table(fresh / "results/taxi/cpu/trips").num_rows == fresh.json(QUALITY)["totals"]["rows_out"]


def test_boroughs_cannot_be_excluded_without_a_table_of_zones(fresh: Clone) -> None:
    write_parquet(yellow_frame(100), fresh / "trips.parquet")
    fetch = {"source": "files", "files": {"paths": ["trips.parquet"]}}
    ended = fresh.run("taxi", {"fetch": fetch, "clean": {"exclude_pickup_boroughs": ["Unknown"]}}, QUALITY)
    assert ended.message.startswith("ConfigError:")
    assert "fetch.files.zones" in ended.message
    assert fresh.run("taxi", {"fetch": fetch}, QUALITY).status == 0
