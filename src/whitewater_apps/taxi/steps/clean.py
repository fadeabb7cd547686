"""Step `clean`: every trip is kept, or goes to quarantine with all its reasons; none is lost."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from whitewater.engines import Array, Device
from whitewater.errors import InputError, shorten_list
from whitewater.io.store import read_json, remove_unfinished, write_json, write_whole
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.blocks import NULL_INTEGER, Block, select
from whitewater.tables.calendar import MONTHS, month_index, month_number
from whitewater.tables.parquet.blocks import row_group_blocks, write_parquet
from whitewater_apps.taxi.blocks import column
from whitewater_apps.taxi.config import Clean
from whitewater_apps.taxi.partitions import (
    directory,
    partitions,
    write_malformed,
    write_rejected,
)
from whitewater_apps.taxi.quality import Ids, Tally, check_written, summarise
from whitewater_apps.taxi.rules import Rule, broken, reasons, rules
from whitewater_apps.taxi.schema import KINDS, SERVICES
from whitewater_apps.taxi.zones import Zones, read_zones

logger = logging.getLogger(__name__)
TRIP_KINDS = {name: kind for name, kind in KINDS.items() if name != "service"}
ALL_ROWS = 2**31 - 1
MAIN_SHARE, NEAR_MONTHS = 0.9, 12


@dataclass(frozen=True)
class Part:
    """A standardised part, and the file that its rows came from."""

    path: Path
    file: int
    origin: str
    service: int


@dataclass(frozen=True)
class Cleaning:
    """What every task of the step needs; picklable, so rules are made where they are used."""

    settings: Clean
    zones: Zones
    device: Device
    usual_months: Mapping[int, Mapping[int, Array]]
    trips: Path
    quarantine: Path

    def rules(self, file: int) -> tuple[Rule, ...]:
        """Return the rules for the trips of one file."""
        usual = {code: self.device.to_device(months) for code, months in self.usual_months[file].items()}
        return rules(self.settings, self.zones, self.device, usual_months=usual)


def clean(
    run: Run[Clean], *, standardised: Path, zones: Path, trips: Output, quarantine: Output, quality: Output
) -> None:
    """Split the standardised trips into kept and rejected ones, by the rules of section ``taxi.clean``."""
    catalogue = read_json(standardised / "files.json")
    share = run.settings.minimum_month_share
    usual = {entry["file"]: usual_months(entry, share) for entry in catalogue}
    cleaning = Cleaning(run.settings, read_zones(zones), run.device, usual, trips, quarantine)
    trips.mkdir()
    quarantine.mkdir()
    with run.workers() as workers:
        work = partial(clean_part, cleaning=cleaning)
        tallies = list(workers.map(work, parts(standardised, catalogue), label="clean"))
    _check_zones(tallies, run.settings)
    for data_set in (trips, quarantine):
        remove_unfinished(data_set)
    _keep_schema(trips, quarantine, run.local_device)
    names = reasons(replace(cleaning, device=run.local_device).rules(0))
    summary = summarise(catalogue, tallies, names)
    check_written(summary, trips=trips, quarantine=quarantine)
    write_json(quality, summary)
    run.note(**summary["totals"])
    logger.info("%(rows_in)d trips read, %(rows_out)d kept, %(quarantined)d in quarantine", summary["totals"])


def parts(standardised: Path, catalogue: Sequence[Mapping[str, Any]]) -> list[Part]:
    """List the parts of a standardised data set, those with malformed lines included."""
    codes = {service: code for code, service in enumerate(SERVICES)}
    return [
        Part(path, entry["file"], entry["origin"], codes.get(entry["service"], 0))
        for entry in catalogue
        for kind in ("part", "malformed")
        for path in sorted(standardised.glob(f"{kind}-{entry['file']:04d}-*.parquet"))
    ]


def usual_months(entry: Mapping[str, Any], minimum_share: float) -> dict[int, Array]:
    """Return, by code of service, bool (months + 1,): the months that are not stray; the last is false.

    A month is usual that holds ``minimum_share`` of a file's trips and is at most `NEAR_MONTHS` from one of the main
    months: the fewest that hold `MAIN_SHARE` of them together. Among few trips a single one is no small share, but
    that its clock was wrong is still seen. Empty when ``minimum_share`` is 0: the rule is off.
    """
    usual = {code: np.zeros(MONTHS + 1, bool) for code in range(len(SERVICES)) if minimum_share > 0}
    for service, counts in entry["months"].items() if usual else ():
        months = np.array([month_number(*map(int, name.split("-"))) for name in counts])
        rows = np.array(list(counts.values()))
        falling = np.argsort(-rows, kind="stable")
        before = np.cumsum(rows[falling]) - rows[falling]
        main = months[falling][before < MAIN_SHARE * rows.sum()]
        near = (np.abs(months[:, None] - main) <= NEAR_MONTHS).any(axis=1)
        usual[SERVICES.index(service)][months] = near & (rows >= minimum_share * rows.sum())
    return usual


def clean_part(part: Part, *, cleaning: Cleaning) -> Tally:
    """Clean one part; run twice, it leaves the same files."""
    if part.path.name.startswith("malformed-"):
        return _quarantine_lines(part, cleaning)
    device, every = cleaning.device, cleaning.rules(part.file)
    block = read_part(part.path, device)
    mask = broken(block, every, device)
    month = month_index(block["pickup_datetime"], device)
    kept = mask == 0
    for place, rows in partitions(select(block, kept, device), month[kept], device):
        write = partial(_write_trips, rows, device=device)
        write_whole(cleaning.trips / place / part.path.name, write)
    rejected = ~kept
    write_rejected(
        select(block, rejected, device),
        mask[rejected],
        reasons=reasons(every),
        origin=part.origin,
        device=device,
        quarantine=cleaning.quarantine,
        name=part.path.name,
    )
    pickup, dropoff = (
        _ids(column(f"{end}_location_id", block, device), cleaning.zones, device) for end in ("pickup", "dropoff")
    )
    return Tally(part.file, _count(block["service"], month, mask, device), pickup, dropoff)


def _keep_schema(trips: Path, quarantine: Path, device: Device) -> None:
    """Give a data set without rows one empty file, so that its readers find the columns."""
    place, name = directory(0, NULL_INTEGER), "part-empty.parquet"
    if not any(trips.iterdir()):
        nothing: Block = {"service": device.xp.zeros(0, device.xp.int8)}
        write_whole(trips / place / name, partial(_write_trips, nothing, device=device))
    if not any(quarantine.iterdir()):
        write_malformed([], service=0, origin="", quarantine=quarantine, name=name)


def _write_trips(block: Block, path: Path, *, device: Device) -> None:
    write_parquet(device, {name: column(name, block, device) for name in TRIP_KINDS}, path, TRIP_KINDS)


def read_part(path: Path, device: Device) -> Block:
    """Read a standardised part, which is one row group of at most ``standardise.block_rows`` rows."""
    import pyarrow.parquet as pq

    names = pq.read_schema(path).names
    kinds = {name: kind for name, kind in KINDS.items() if name in names}
    blocks = row_group_blocks(device, path, 0, {**kinds, "issues": "int32"}, block_rows=ALL_ROWS)
    return cast(Block, next(blocks))


def _quarantine_lines(part: Part, cleaning: Cleaning) -> Tally:
    import pyarrow.parquet as pq

    lines = pq.read_table(part.path)["raw_line"].to_pylist()
    write_malformed(
        lines, service=part.service, origin=part.origin, quarantine=cleaning.quarantine, name=part.path.name
    )
    return Tally(part.file, Counter({(part.service, NULL_INTEGER, 1): len(lines)}))


def _count(service: Array, month: Array, mask: Array, device: Device) -> Counter[tuple[int, int, int]]:
    """Count the rows of each service, month and mask; service and month may be -1."""
    xp = device.xp
    place = (service.astype(xp.int64) + 1) * (MONTHS + 1) + month + 1
    # CuPy counts no empty array, so rejected rows are counted, too: as 0.
    kept = device.to_host(xp.bincount(xp.where(mask == 0, place + 1, 0)))
    counts = [(int(at) - 1, 0, int(kept[at])) for at in np.flatnonzero(kept) if at]
    # Distinct faults are few, so the host sorts them out.
    rejected = xp.flatnonzero(mask)
    faults = np.stack([device.to_host(key[rejected]) for key in (place, mask)], axis=1)
    distinct, rows = np.unique(faults, axis=0, return_counts=True)
    counts += [(*fault, count) for fault, count in zip(distinct.tolist(), rows.tolist(), strict=True)]
    return Counter({(at // (MONTHS + 1) - 1, at % (MONTHS + 1) - 1, bits): count for at, bits, count in counts})


def _ids(locations: Array, zones: Zones, device: Device) -> Ids:
    missing = int((locations == NULL_INTEGER).sum())
    # Location -1, null, takes the last entry.
    lacking = device.to_device(np.append(zones.borough_codes == NULL_INTEGER, False))
    found, rows = np.unique(device.to_host(locations[lacking[locations]]), return_counts=True)
    unknown = Counter(dict(zip(found.tolist(), rows.tolist(), strict=True)))
    return Ids(len(locations) - missing, missing, unknown)


def _check_zones(tallies: Sequence[Tally], settings: Clean) -> None:
    """Say how many trips are of zones that the table lacks; refuse a table that lacks too many."""
    for end in ("pickup", "dropoff"):
        ids = sum((getattr(tally, end) for tally in tallies), Ids())
        if not ids.unknown:
            continue
        said = (
            f"the table of zones lacks the {end}_location_id of {ids.unknown.total()} of {ids.given} trips: "
            f"{shorten_list([*map(str, sorted(ids.unknown))])}"
        )
        if ids.unknown.total() > settings.max_unknown_zone_fraction * ids.given:
            raise InputError(f"{said}. taxi.clean.max_unknown_zone_fraction allows a share of "
                             f"{settings.max_unknown_zone_fraction:g}: name the whole table in taxi.fetch.files.zones, "
                             "such as TLC's taxi_zone_lookup.csv.")  # fmt: skip
        logger.warning("%s; their borough is null", said)


if __name__ == "__main__":
    main(clean)
