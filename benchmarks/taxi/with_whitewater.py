"""The taxi benchmark with the functions of Whitewater's steps: one pass, row groups dealt out to the workers of a step.

It ends as Whitewater's command line does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from benchmarks.taxi.variant import CARD, MAXIMUM_FARE, MAXIMUM_HOURS, MAXIMUM_MILES, Answer, Work, answer, main
from whitewater.engines import Array, Device
from whitewater.process import leave
from whitewater.tables.arrow_kinds import from_arrow
from whitewater.tables.blocks import NULL_TIMESTAMP, Block, GroupStatistics, slices
from whitewater.tables.calendar import HOURS_OF_WEEK, hour_of_week
from whitewater.tables.config import Range
from whitewater.tables.elementwise import ratio
from whitewater.tables.group_accumulator import group_accumulator
from whitewater.tables.group_statistics_cpu import GroupAccumulator
from whitewater.tables.parquet.blocks import write_parquet
from whitewater.tables.raw_files import Unit, open_raw, units
from whitewater_apps.taxi.blocks import quantity
from whitewater_apps.taxi.config import Clean, Ranges, Tips
from whitewater_apps.taxi.rules import rules
from whitewater_apps.taxi.schema import KINDS, SOURCE
from whitewater_apps.taxi.with_polars import trips_of
from whitewater_apps.taxi.zones import LOCATIONS, Zones, read_zones

ZONES = LOCATIONS + 1
# Larger pieces of text are memory that the system hands out, and zeroes, anew each time.
BLOCK_ROWS, TEXT_ROWS = 2**19, 2**17
TASKS_A_THREAD = 2
NEEDED = (
    "pickup_datetime",
    "dropoff_datetime",
    "trip_distance",
    "pickup_location_id",
    "payment_type",
    "fare_amount",
    "tip_amount",
)
CLEAN = Clean(
    required=("pickup_datetime", "dropoff_datetime", "trip_distance", "fare_amount", "tip_amount"),
    ranges=Ranges(
        duration=Range(above=0, at_most=MAXIMUM_HOURS * 3600),
        trip_distance=Range(at_least=0, at_most=MAXIMUM_MILES),
        fare_amount=Range(above=0, at_most=MAXIMUM_FARE),
        tip_amount=Range(at_least=0),
        tip_fraction=None,
    ),
    minimum_month_share=0,
)
Key = TypeVar("Key")
Groups = tuple[GroupStatistics, ...]


@dataclass(frozen=True)
class Pass:
    """What every task needs; picklable, so rules are made where they are used."""

    device: Device
    zones: Zones
    output: Path | None


def compute(work: Work) -> Answer:
    """Aggregate, and write the cleaned trips where that is asked for."""
    if work.output is not None:
        work.output.mkdir(parents=True)
    every = [unit for file in work.files for unit in _units(file, projected=work.output is None)]
    tasks = TASKS_A_THREAD * work.threads
    shares = [list(enumerate(every))[first::tasks] for first in range(min(tasks, len(every)))]
    run = work.placement.run("taxi", "tips", Tips(), threads=work.threads)
    over = Pass(run.device, read_zones(work.zones), work.output)
    with run.workers() as workers:
        # In the order of the shares, so that sums do not depend on which worker was faster.
        made = list(workers.map(_aggregate, shares, label="tips", ordered=True, shared={"over": over}))
    return _answer([reduce(add, partial) for partial in zip(*made, strict=True)], over.zones)


def _units(path: Path, *, projected: bool) -> list[Unit]:
    [file] = open_raw(path, SOURCE)
    rows = BLOCK_ROWS if file.form == "parquet" else TEXT_ROWS
    return units(replace(file, era=file.era.project(NEEDED)) if projected else file, rows=rows)


def _aggregate(share: Sequence[tuple[int, Unit]], over: Pass) -> Groups:
    groups = group_accumulator(over.device, [HOURS_OF_WEEK * ZONES], medians=False)
    for number, unit in share:
        table = trips_of(unit).collect().to_arrow()
        kinds = {name: KINDS.get(name, "int32") for name in table.column_names}
        block = cast(Block, {name: from_arrow(table[name], kind) for name, kind in kinds.items()})
        kept = _kept(block, over)
        if over.output is not None:
            _write(block, kept, over.output / f"{number:04d}.parquet", over.device)
        for each in slices({**block, "kept": kept}, over.device):
            _count(groups, each, over.device)
    return groups.result()


def _kept(block: Block, over: Pass) -> Array:
    kept: Array = block["issues"] == 0
    for rule in rules(CLEAN, over.zones, []):
        if rule.test == "missing":
            value = block[rule.quantity]
            kept &= ~over.device.xp.isnan(value) & (value != NULL_TIMESTAMP)
        elif callable(rule.test):
            kept &= ~rule.test(quantity(rule.quantity, block, over.device), rule.operand)
    return kept


def _write(block: Block, kept: Array, path: Path, device: Device) -> None:
    rows = device.xp.flatnonzero(kept)
    cleaned = {name: values[rows] for name, values in block.items()}
    write_parquet(device, cleaned, path, {name: kind for name, kind in KINDS.items() if name in cleaned})


def _count(groups: GroupAccumulator, block: Block, device: Device) -> None:
    counted = block["kept"] & (block["payment_type"] == CARD)
    # One key of both; a location that is null counts as 0, which is none. Rolled up at the end.
    location = device.xp.maximum(block["pickup_location_id"], 0)
    keys = hour_of_week(block["pickup_datetime"], device) * ZONES + location
    groups.add([keys], ratio(block["tip_amount"], block["fare_amount"], device), counted)


def _answer(groups: Sequence[GroupStatistics], zones: Zones) -> Answer:
    hours, locations = np.divmod(np.arange(HOURS_OF_WEEK * ZONES), ZONES)
    boroughs = [*zones.boroughs, None]
    [found] = groups
    return answer(
        _means(found, hours % 24, list(range(24))),
        ((hour // 24, hour % 24, trips, mean) for hour, trips, mean in _means(found, hours, range(HOURS_OF_WEEK))),
        # Code -1, a location that the table lacks, is the last one.
        _means(found, zones.borough_codes.astype(np.int64)[locations] % len(boroughs), boroughs),
    )


def _means(groups: GroupStatistics, members: Array, keys: Sequence[Key]) -> Iterator[tuple[Key, int, float]]:
    """Yield key, trips and mean of the groups summed up by ``members``, the index of a key for each group."""
    count = np.bincount(members, weights=groups.count, minlength=len(keys))
    total = np.bincount(members, weights=groups.total, minlength=len(keys))
    for key, trips, sum_ in zip(keys, count.tolist(), total.tolist(), strict=True):
        if trips:
            yield key, int(trips), sum_ / trips


if __name__ == "__main__":
    main(compute, is_placed=True)
    leave(0)
