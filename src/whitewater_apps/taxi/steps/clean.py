"""Step `clean`: every trip is kept, or goes to quarantine with all its reasons; none is lost."""

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
from whitewater.tables.quarantine import add_up, count_reasons, finish_data_sets, funnel, write_malformed
from whitewater_apps.taxi.config import Clean
from whitewater_apps.taxi.operations import operations
from whitewater_apps.taxi.partitions import (
    STANDARDIZED,
    TRIP_SCHEMA,
    UNKNOWN_MONTH,
    DataSets,
    Rows,
    Tally,
    directory,
    month_name,
)
from whitewater_apps.taxi.rules import UNREADABLE, reasons, rules
from whitewater_apps.taxi.schema import REQUIRED, SERVICES
from whitewater_apps.taxi.zones import Zones, read_zones

logger = logging.getLogger(__name__)


def clean(
    run: Run[Clean], *, standardized: Path, zones: Path, trips: Output, quarantine: Output, quality: Output
) -> None:
    """Split the standardized trips into kept and rejected ones, by the rules of section ``taxi.clean``."""
    catalog = read_json(standardized / "files.json")
    table = read_zones(zones)
    cleaning_rules = rules(run.settings, table, catalog)
    targets = DataSets(
        trips, quarantine, reasons(cleaning_rules), {entry["file"]: entry["origin"] for entry in catalog}
    )
    trips.mkdir()
    quarantine.mkdir()
    partitions = group_parts(parts(standardized, catalog), rows=run.device.partition_rows)
    with run.workers() as workers, TemporaryDirectory(dir=quarantine, prefix=".duplicates-") as folder:
        if run.settings.duplicates == "quarantine":
            from whitewater.tables.duplicates import mark_duplicates

            partitions = mark_duplicates(
                partitions, STANDARDIZED, hashed=REQUIRED, folder=Path(folder), workers=workers
            )
        counts = operations(run.engine).clean(partitions, cleaning_rules, into=targets, workers=workers)
    counts += quarantine_lines(standardized, catalog, quarantine)
    summary = summarize(catalog, counts, targets.reasons, table)
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


def quarantine_lines(standardized: Path, catalog: Sequence[Mapping[str, Any]], quarantine: Path) -> Tally:
    """Write the lines that could not be parsed into quarantine; return how many, under bit 0 of the mask."""
    codes = {service: code for code, service in enumerate(SERVICES)}
    rows: Rows = Counter()
    for entry in catalog:
        service = codes.get(entry["service"], 0)
        for path in sorted(standardized.glob(f"malformed-{entry['file']:04d}-*.parquet")):
            lines = pq.read_table(path)["raw_line"]
            written = quarantine / directory(service, UNKNOWN_MONTH) / path.name
            write_malformed(lines, written, schema=TRIP_SCHEMA, origin=entry["origin"])
            rows[entry["file"], service, UNKNOWN_MONTH, 1] += len(lines)
    return Tally(rows)


def summarize(
    catalog: Sequence[Mapping[str, Any]], counts: Tally, reasons: Sequence[str], zones: Zones
) -> dict[str, Any]:
    """Return the content of `quality.json`.

    A row counts once under each of its reasons in ``by_reason``, and once in the funnel: under its first.

    Raises IntegrityError if a file's rows are not all accounted for.
    """
    by_file: dict[int, Counter[int]] = defaultdict(Counter)
    by_month: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for (file, service, month, mask), rows in counts.rows.items():
        by_file[file][mask] += rows
        by_month[-1 if service is None else service, month][mask] += rows
    files = [_file(entry, by_file[entry["file"]], counts, reasons, zones) for entry in catalog]
    return {
        "totals": add_up(files),
        "funnel": funnel(sum(by_file.values(), Counter()), reasons, rare=UNREADABLE),
        "by_month": [
            {"service": SERVICES[max(service, 0)], "month": month_name(month), **count_reasons(masks, reasons)}
            for (service, month), masks in sorted(by_month.items())
        ],
        "files": files,
    }


def _unknown_zones(locations: Rows, file: int, zones: Zones) -> dict[str, int]:
    """Count the trips of a file by each location id that the table of zones lacks, in order."""
    known = ((location, trips) for (of, location), trips in locations.items() if of == file and location is not None)
    return {str(location): trips for location, trips in sorted(known) if zones.boroughs[location] is None}


def _file(
    entry: Mapping[str, Any], masks: Counter[int], counts: Tally, reasons: Sequence[str], zones: Zones
) -> dict[str, Any]:
    by_reason = count_reasons(masks, reasons)
    if by_reason["rows_in"] != entry["rows"]:
        raise IntegrityError(f"{entry['path']}: {entry['rows']} rows were standardized, but {by_reason['rows_in']} "
                             "were cleaned. Run the steps `standardize` and `clean` again.")  # fmt: skip
    ends = {"pickup": counts.pickups, "dropoff": counts.dropoffs}
    return {
        **{name: entry[name] for name in ("path", "origin", "service", "malformed", "columns_not_carried")},
        **by_reason,
        "quarantined": by_reason["rows_in"] - by_reason["rows_out"],
        **{f"without_{end}_zone": rows[entry["file"], None] for end, rows in ends.items()},
        **{f"unknown_{end}_zones": _unknown_zones(rows, entry["file"], zones) for end, rows in ends.items()},
    }


def _check_zones(files: Sequence[Mapping[str, Any]], settings: Clean) -> None:
    """Say how many trips are of zones that the table lacks; refuse a table that lacks too many."""
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
            raise InputError(f"{message}. taxi.clean.max_unknown_zone_fraction allows a share of "
                             f"{settings.max_unknown_zone_fraction:g}: name the whole table in taxi.fetch.files.zones, "
                             "such as TLC's taxi_zone_lookup.csv.")  # fmt: skip
        logger.warning("%s; their borough is null", message)


if __name__ == "__main__":
    main(clean)
