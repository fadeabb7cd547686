"""Step `clean`: keep each trip, or quarantine it with all the reasons to reject it."""

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
from whitewater_apps.taxi.data_sets import UNKNOWN_MONTH, Catalog, DataSets, Tally, directory, month_name
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
    parts = [
        Part(path, entry["file"], pq.read_metadata(path).num_rows)
        for entry in catalog
        for path in sorted(standardized.glob(f"part-{entry['file']:04d}-*.parquet"))
    ]
    partitions = group_parts(parts, rows=run.device.partition_rows)
    with run.workers() as workers, TemporaryDirectory(dir=quarantine, prefix=".duplicates-") as folder:
        if run.settings.duplicates == "quarantine":
            from whitewater.tables.with_polars import mark_duplicates

            partitions = mark_duplicates(
                partitions, STANDARDIZED_SCHEMA, hashed=REQUIRED, folder=Path(folder), workers=workers
            )
        tally = clean_trips(partitions, cleaning_rules, into=into, workers=workers)
    tally += _quarantine_malformed(standardized, catalog, quarantine)
    summary = _summarize(catalog, tally, into.reasons, zone_table)
    _check_zones(summary["files"], run.settings)
    finish_data_sets(trips, quarantine, TRIP_SCHEMA, summary["totals"], directory=directory(0, UNKNOWN_MONTH))
    write_json(quality, summary)
    run.note(**summary["totals"])
    logger.info("%(rows_in)d trips read, %(rows_out)d kept, %(quarantined)d in quarantine", summary["totals"])


def _quarantine_malformed(standardized: Path, catalog: Catalog, quarantine: Path) -> Tally:
    """Write malformed lines to quarantine; count them under mask 1, which is bit 0 alone."""
    rows = Counts()
    for entry in catalog:
        service = SERVICES.index(entry["service"]) if entry["service"] in SERVICES else 0
        for path in sorted(standardized.glob(f"malformed-{entry['file']:04d}-*.parquet")):
            lines = pq.read_table(path)["raw_line"]
            target = quarantine / directory(service, UNKNOWN_MONTH) / path.name
            write_malformed(lines, target, schema=TRIP_SCHEMA, origin=entry["origin"])
            rows[entry["file"], service, UNKNOWN_MONTH, 1] += len(lines)
    return Tally(rows)


def _summarize(catalog: Catalog, tally: Tally, reasons: Sequence[str], zones: Zones) -> dict[str, Any]:
    """Return the content of `quality.json`; raises IntegrityError if rows of a file were lost or counted twice."""
    masks_of_file: dict[int, Counter[int]] = defaultdict(Counter)
    masks_of_month: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for (file, service, month, mask), rows in tally.rows.items():
        masks_of_file[file][mask] += rows
        # A null service, -1, comes first. It is listed as the first service, whose directory has its rows.
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


def _count_unknown_zones(rows: Counts, file: int, zones: Zones) -> dict[str, int]:
    """Count the trips of a file by location id, for ids that are not in the table of zones."""
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
        **{f"unknown_{end}_zones": _count_unknown_zones(rows, entry["file"], zones) for end, rows in ends.items()},
    }


def _check_zones(files: Sequence[Mapping[str, Any]], settings: Clean) -> None:
    """Warn of locations that are not in the table of zones; refuse the table if they are too many."""
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
