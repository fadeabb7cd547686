"""Step `clean`: keep each trip, or quarantine it with all the reasons to reject it; no trip is lost."""

import logging
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from whitewater.errors import InputError, IntegrityError, shorten_list
from whitewater.io.store import read_json, write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.partitions import Part, group_parts
from whitewater.tables.quarantine import count_reasons, finish_data_sets, funnel, total_rows, write_malformed
from whitewater.tables.raw_files import Counts
from whitewater_apps.taxi.config import Clean
from whitewater_apps.taxi.data_sets import UNKNOWN_MONTH, DataSets, Tally, directory, month_name
from whitewater_apps.taxi.rules import UNREADABLE, reasons, rules
from whitewater_apps.taxi.schema import REQUIRED, SERVICES, STANDARDIZED_SCHEMA, TRIP_SCHEMA
from whitewater_apps.taxi.zones import Zones, read_zones

logger = logging.getLogger(__name__)


def clean(
    run: Run[Clean], *, standardized: Path, zones: Path, trips: Output, quarantine: Output, quality: Output
) -> None:
    """Split the standardized trips into kept and quarantined ones, by the rules of section ``taxi.clean``."""
    if run.engine == "local":
        from whitewater_apps.taxi.with_polars import clean_trips
    else:
        from whitewater_apps.taxi.with_dask import clean_trips
    catalog = read_json(standardized / "files.json")
    zone_table = read_zones(zones)
    cleaning_rules = rules(run.settings, zone_table, catalog)
    origins = {entry["file"]: entry["origin"] for entry in catalog}
    into = DataSets(trips, quarantine, reasons(cleaning_rules), origins)
    trips.mkdir()
    quarantine.mkdir()
    partitions = group_parts(parts(standardized, catalog), rows=run.device.partition_rows)
    with run.workers() as workers, TemporaryDirectory(dir=quarantine, prefix=".duplicates-") as folder:
        if run.settings.duplicates == "quarantine":
            from whitewater.tables.with_polars import mark_duplicates

            partitions = mark_duplicates(
                partitions, STANDARDIZED_SCHEMA, hashed=REQUIRED, folder=Path(folder), workers=workers
            )
        tally = clean_trips(partitions, cleaning_rules, into=into, workers=workers)
    tally += quarantine_malformed(standardized, catalog, quarantine)
    summary = summarize(catalog, tally, into.reasons, zone_table)
    _check_zones(summary["files"], run.settings)
    finish_data_sets(trips, quarantine, TRIP_SCHEMA, summary["totals"], directory=directory(0, UNKNOWN_MONTH))
    write_json(quality, summary)
    run.note(**summary["totals"])
    logger.info("%(rows_in)d trips read, %(rows_out)d kept, %(quarantined)d in quarantine", summary["totals"])


def parts(standardized: Path, catalog: Sequence[Mapping[str, Any]]) -> list[Part]:
    """List the parts of a standardized data set, file by file."""
    return [
        Part(path, entry["file"], pq.read_metadata(path).num_rows)
        for entry in catalog
        for path in sorted(standardized.glob(f"part-{entry['file']:04d}-*.parquet"))
    ]


def quarantine_malformed(standardized: Path, catalog: Sequence[Mapping[str, Any]], quarantine: Path) -> Tally:
    """Write the lines that could not be parsed to quarantine; count them under mask 1, whose only bit is bit 0."""
    codes = {service: code for code, service in enumerate(SERVICES)}
    rows = Counts()
    for entry in catalog:
        service = codes.get(entry["service"], 0)
        for path in sorted(standardized.glob(f"malformed-{entry['file']:04d}-*.parquet")):
            lines = pq.read_table(path)["raw_line"]
            target = quarantine / directory(service, UNKNOWN_MONTH) / path.name
            write_malformed(lines, target, schema=TRIP_SCHEMA, origin=entry["origin"])
            rows[entry["file"], service, UNKNOWN_MONTH, 1] += len(lines)
    return Tally(rows)


def summarize(
    catalog: Sequence[Mapping[str, Any]], tally: Tally, reasons: Sequence[str], zones: Zones
) -> dict[str, Any]:
    """Return the content of `quality.json`.

    In ``by_reason`` a row counts once under each of its reasons; in the funnel it counts once, under the first of them.

    Raises IntegrityError if some rows of a file are neither kept nor quarantined, or are counted twice.
    """
    masks_of_file: dict[int, Counter[int]] = defaultdict(Counter)
    masks_of_month: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for (file, service, month, mask), rows in tally.rows.items():
        masks_of_file[file][mask] += rows
        # A null service sorts first, as -1, and is listed under the first service, in whose directory its rows are.
        masks_of_month[-1 if service is None else service, month][mask] += rows
    files = [_summarize_file(entry, masks_of_file[entry["file"]], tally, reasons, zones) for entry in catalog]
    return {
        "totals": total_rows(files),
        "funnel": funnel(sum(masks_of_file.values(), Counter()), reasons, rare=UNREADABLE),
        "by_month": [
            {"service": SERVICES[max(service, 0)], "month": month_name(month), **count_reasons(masks, reasons)}
            for (service, month), masks in sorted(masks_of_month.items())
        ],
        "files": files,
    }


def _unknown_zones(rows: Counts, file: int, zones: Zones) -> dict[str, int]:
    """Return the trips of a file for each location id that the table of zones lacks, in the order of the ids."""
    trips = {location: count for (number, location), count in rows.items() if number == file and location is not None}
    return {str(location): trips[location] for location in sorted(trips) if zones.boroughs[location] is None}


def _summarize_file(
    entry: Mapping[str, Any], masks: Counter[int], tally: Tally, reasons: Sequence[str], zones: Zones
) -> dict[str, Any]:
    counts = count_reasons(masks, reasons)
    if counts["rows_in"] != entry["rows"]:
        raise IntegrityError(f"{entry['path']}: {entry['rows']} rows were standardized, but {counts['rows_in']} "
                             "were cleaned. Run the steps `standardize` and `clean` again.")  # fmt: skip
    ends = {"pickup": tally.pickups, "dropoff": tally.dropoffs}
    return {
        **{name: entry[name] for name in ("path", "origin", "service", "malformed", "columns_not_carried")},
        **counts,
        "quarantined": counts["rows_in"] - counts["rows_out"],
        **{f"without_{end}_zone": rows[entry["file"], None] for end, rows in ends.items()},
        **{f"unknown_{end}_zones": _unknown_zones(rows, entry["file"], zones) for end, rows in ends.items()},
    }


def _check_zones(files: Sequence[Mapping[str, Any]], settings: Clean) -> None:
    """Warn of trips whose zones the table lacks; refuse the table if there are too many of them."""
    for end in ("pickup", "dropoff"):
        with_location = sum(file["rows_in"] - file["malformed"] - file[f"without_{end}_zone"] for file in files)
        unknown: Counter[str] = sum((Counter(file[f"unknown_{end}_zones"]) for file in files), Counter())
        if not unknown:
            continue
        message = (
            f"the table of zones lacks the {end}_location_id of {unknown.total()} of {with_location} trips: "
            f"{shorten_list(sorted(unknown, key=int))}"
        )
        if unknown.total() > settings.max_unknown_zone_fraction * with_location:
            raise InputError(f"{message}. That is a larger share than taxi.clean.max_unknown_zone_fraction "
                             f"({settings.max_unknown_zone_fraction:g}) allows. Name the complete table, such as TLC's "
                             "taxi_zone_lookup.csv, in taxi.fetch.files.zones.")  # fmt: skip
        logger.warning("%s; their borough is null", message)


if __name__ == "__main__":
    main(clean)
