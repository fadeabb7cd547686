"""Step `clean`: every trip is kept, or goes to quarantine with all its reasons; none is lost."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from whitewater.errors import InputError, shorten_list
from whitewater.io.store import read_json, write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.partitions import Part, group_parts
from whitewater.tables.quarantine import finish_data_sets, write_malformed
from whitewater_apps.taxi.config import Clean
from whitewater_apps.taxi.operations import operations
from whitewater_apps.taxi.partitions import STANDARDIZED, TRIP_SCHEMA, UNKNOWN_MONTH, DataSets, directory
from whitewater_apps.taxi.quality import Rows, Tally, summarize, unknown_zones
from whitewater_apps.taxi.rules import reasons, rules
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
    _check_zones(counts, table, run.settings)
    summary = summarize(catalog, counts, targets.reasons, table)
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


def _check_zones(counts: Tally, zones: Zones, settings: Clean) -> None:
    """Say how many trips are of zones that the table lacks; refuse a table that lacks too many."""
    for end, locations in (("pickup", counts.pickups), ("dropoff", counts.dropoffs)):
        with_location = sum(trips for (_, location), trips in locations.items() if location is not None)
        unknown = unknown_zones(locations, zones)
        if not unknown:
            continue
        message = (
            f"the table of zones lacks the {end}_location_id of {unknown.total()} of {with_location} trips: "
            f"{shorten_list([*unknown])}"
        )
        if unknown.total() > settings.max_unknown_zone_fraction * with_location:
            raise InputError(f"{message}. taxi.clean.max_unknown_zone_fraction allows a share of "
                             f"{settings.max_unknown_zone_fraction:g}: name the whole table in taxi.fetch.files.zones, "
                             "such as TLC's taxi_zone_lookup.csv.")  # fmt: skip
        logger.warning("%s; their borough is null", message)


if __name__ == "__main__":
    main(clean)
