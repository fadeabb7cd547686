"""Step `tips`: how people tip by hour, weekday, month, payment, passengers, borough and zone.

Statistics of tip fractions by every key are gathered in one pass over the trips, and summed up into the tables.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from whitewater.engines import Array, Device
from whitewater.errors import InputError
from whitewater.script import main
from whitewater.step import Outputs, Run
from whitewater.tables.blocks import NULL_INTEGER, Block, GroupStatistics, Kind, gathered, slices
from whitewater.tables.calendar import HOURS_OF_WEEK, MONTHS, hour_of_week, month_index, month_name, month_number
from whitewater.tables.elementwise import ratio
from whitewater.tables.group_statistics import group_accumulator, medians
from whitewater.tables.group_statistics_cpu import LIMIT
from whitewater_apps.taxi.blocks import blocks, column, tip_is_recorded
from whitewater_apps.taxi.config import Tips
from whitewater_apps.taxi.schema import PAYMENT_NAMES, SERVICES, Service
from whitewater_apps.taxi.trip_files import RowGroup, row_groups
from whitewater_apps.taxi.zones import LOCATIONS, Zones, read_zones

if TYPE_CHECKING:
    import pandas as pd


# Parts that one task reads: enough tasks to keep all workers busy to the end, few enough to merge cheaply.
TASKS_A_THREAD = 4
ALL = "all"
LARGEST_PASSENGER_COUNT = 9
ALL_MONTHS = range(MONTHS)
NEEDED: dict[str, Kind] = {
    "pickup_datetime": "timestamp",
    "payment_type": "int8",
    "passenger_count": "int16",
    "pickup_location_id": "int16",
    "fare_amount": "float64",
    "tip_amount": "float64",
}


@dataclass(frozen=True)
class TipStatistics:
    """Statistics of a service's trips by one key.

    ``all_trips`` int64 (groups,): counts of all trips. ``plain``: fractions of the trips with tip > 0 and fare > 0.
    ``recorded``: fractions of the trips with a recorded tip, with medians.
    """

    all_trips: Array
    plain: GroupStatistics
    recorded: GroupStatistics

    def __add__(self, other: "TipStatistics") -> "TipStatistics":
        return TipStatistics(self.all_trips + other.all_trips, self.plain + other.plain, self.recorded + other.recorded)

    def gathered(self, members: Array, groups: int) -> "TipStatistics":
        """Sum groups up into coarser ones, of which ``members`` tells the one of each group."""
        return TipStatistics(
            gathered(self.all_trips, members, groups),
            self.plain.gathered(members, groups),
            self.recorded.gathered(members, groups),
        )


def tips(run: Run[Tips], *, trips: Path, zones: Path, tables: Outputs) -> None:
    """Summarise tip / fare of the trips whose tip was recorded, by service and over all services."""
    statistics: dict[Service, dict[str, TipStatistics]] = {}
    months = _months_of(trips)
    with run.workers() as workers:
        work = partial(_read_share, device=run.device, months=months)
        for service, more in workers.map(work, _shares(trips, run.threads), label="tips"):
            known = statistics.get(service)
            statistics[service] = more if known is None else {name: known[name] + more[name] for name in more}
    made = tip_tables(statistics, read_zones(zones), confidence=run.settings.confidence, months=months)
    for name, path in tables.items():
        _write_table(made[Path(name).stem.removeprefix("tips_by_")], path)
    total = made["hour"][made["hour"]["service"] == ALL]
    run.note(all_trips=int(total["all_trips"].sum()), trips=int(total["trips"].sum()))


def _shares(trips: Path, threads: int) -> list[tuple[Service, list[RowGroup]]]:
    """Deal the row groups of each service out to tasks of about equal size."""
    groups: dict[Service, list[RowGroup]] = defaultdict(list)
    for group in sorted(row_groups(trips), key=lambda group: (-group.rows, str(group.path), group.index)):
        if group.service is not None:
            groups[group.service].append(group)
    tasks = max(1, TASKS_A_THREAD * threads)
    return [(service, each[first::tasks]) for service, each in groups.items() for first in range(min(tasks, len(each)))]


def _months_of(trips: Path) -> range:
    """Return the months from the first to the last partition, as indices."""
    found = [
        month_number(int(path.parent.name.removeprefix("year=")), int(path.name.removeprefix("month=")))
        for path in trips.glob("service=*/year=2*/month=*")
    ]
    return range(min(found), max(found) + 1) if found else range(0)


def _read_share(
    share: tuple[Service, list[RowGroup]], *, device: Device, months: range
) -> tuple[Service, dict[str, TipStatistics]]:
    """Gather the statistics of a task's row groups, one block at a time."""
    service, groups = share
    every = (block for group in groups for block in blocks(group, NEEDED, device))
    return service, tip_statistics(every, device, months=months)


def group_sizes(months: range = ALL_MONTHS) -> dict[str, int]:
    """Return the number of groups of each key; the last group of each is null.

    ``months`` are the indices (`whitewater.tables.calendar.month_index`) that get a group of their own; memory grows
    with them. More than nine passengers, which no taxi seats, count as null.
    """
    return {
        "hour_of_week": HOURS_OF_WEEK + 1,
        "month": len(months) + 1,
        "payment_type": 7 + 1,
        "passenger_count": LARGEST_PASSENGER_COUNT + 1 + 1,
        "location": 265 + 1 + 1,
    }


def tip_statistics(blocks: Iterable[Block], device: Device, *, months: range = ALL_MONTHS) -> dict[str, TipStatistics]:
    """Gather the statistics of tip / fare by each key of `group_sizes` over blocks of one service.

    The fraction of a trip counts when its tip was recorded (card or app) and its fare is above 0.

    Raises InputError if a tip is `LIMIT` times the fare or more.
    """
    sizes = group_sizes(months)
    recorded = group_accumulator(device, list(sizes.values()))
    plain = group_accumulator(device, list(sizes.values()), medians=False)
    all_trips: list[Array] = [np.zeros(size, np.int64) for size in sizes.values()]
    for block in blocks:
        for part in slices(block, device):
            keys = group_keys(part, device, months=months)
            fraction = _tip_fraction(part, device)
            recorded.add(keys, fraction, tip_is_recorded(part, device) & (fraction >= 0))
            plain.add(keys, fraction, fraction > 0)
            all_trips = [
                counts + device.to_host(device.xp.bincount(key, minlength=len(counts)))
                for counts, key in zip(all_trips, keys, strict=True)
            ]
    parts = zip(all_trips, plain.result(), recorded.result(), strict=True)
    return {name: TipStatistics(*each) for name, each in zip(sizes, parts, strict=True)}


def _tip_fraction(block: Block, device: Device) -> Array:
    fraction = ratio(block["tip_amount"], block["fare_amount"], device)
    absurd = int((fraction >= LIMIT).sum())
    if absurd:
        raise InputError(f"{absurd} trips have a tip_amount of {LIMIT:,.0f} times their fare_amount or more. Send such "
                         "trips to quarantine with an upper bound in taxi.clean.ranges.tip_fraction.")  # fmt: skip
    return fraction


def group_keys(block: Block, device: Device, *, months: range = ALL_MONTHS) -> list[Array]:
    """Return the group of each trip under each key, as int32 arrays; null is the last group."""
    xp = device.xp
    passengers = column("passenger_count", block, device)
    passengers = xp.where(passengers > LARGEST_PASSENGER_COUNT, NULL_INTEGER, passengers)
    month = month_index(block["pickup_datetime"], device)
    known = (month >= months.start) & (month < months.stop)
    keys = (
        hour_of_week(block["pickup_datetime"], device),
        xp.where(known, month - months.start, NULL_INTEGER),
        column("payment_type", block, device),
        passengers,
        column("pickup_location_id", block, device),
    )
    return [
        xp.where(key == NULL_INTEGER, size - 1, key).astype(xp.int32)
        for key, size in zip(keys, group_sizes(months).values(), strict=True)
    ]


def tip_tables(
    statistics: Mapping[Service, Mapping[str, TipStatistics]],
    zones: Zones,
    *,
    confidence: float,
    months: range = ALL_MONTHS,
) -> "dict[str, pd.DataFrame]":
    """Return the tables by name: hour, weekday_hour, month, payment_type, passenger_count, borough, zone.

    ``statistics`` are by service, then by key of `group_sizes`. Columns: ``service``, the key, ``all_trips``,
    ``trips``, ``mean``, ``mean_low``, ``mean_high``, ``median``, ``plain_trips``, ``plain_mean``. The interval is
    mean ± z s / sqrt(n) (normal approximation); the median is read from a histogram, within 0.2 %; a null key is a row
    with a null key. Groups without trips are left out.
    """
    import pandas as pd

    named = [service for service in SERVICES if service in statistics]

    def table(key: str, names: Mapping[str, object], members: Array | None = None) -> "pd.DataFrame":
        of_key: dict[str, TipStatistics] = {service: statistics[service][key] for service in named}
        of_key[ALL] = sum(of_key.values(), _nothing(group_sizes(months)[key]))
        groups = pd.DataFrame(names)
        return pd.concat([_rows(*each, groups, members, confidence) for each in of_key.items()], ignore_index=True)

    hours = np.arange(HOURS_OF_WEEK + 1)
    of_day = np.where(hours == HOURS_OF_WEEK, 24, hours % 24)
    codes = np.append(zones.borough_codes, NULL_INTEGER).astype(np.int64)
    borough = np.where(codes == NULL_INTEGER, len(zones.boroughs), codes)
    boroughs, locations = [*zones.boroughs, None], _nullable(np.arange(LOCATIONS + 1))
    payments = {"payment_type": _nullable(np.arange(7)), "payment_name": [*PAYMENT_NAMES.values(), None]}
    of_zone = {
        "location_id": locations,
        "zone": [*zones.names, None],
        "borough": [boroughs[place] for place in borough],
    }
    of_week = {"weekday": _nullable(hours[:-1] // 24), "hour": _nullable(hours[:-1] % 24)}
    return {
        "hour": table("hour_of_week", {"hour": _nullable(np.arange(24))}, of_day),
        "weekday_hour": table("hour_of_week", of_week),
        "month": table("month", {"month": [*map(month_name, months), None]}),
        "payment_type": table("payment_type", payments),
        "passenger_count": table("passenger_count", {"passenger_count": _nullable(np.arange(10))}),
        "borough": table("location", {"borough": boroughs}, borough),
        "zone": table("location", of_zone),
    }


def _nothing(groups: int) -> TipStatistics:
    """Return the statistics of no trips at all."""
    return TipStatistics(np.zeros(groups, np.int64), GroupStatistics.nothing(groups), GroupStatistics.nothing(groups))


def _rows(
    service: str, statistics: TipStatistics, groups: "pd.DataFrame", members: Array | None, confidence: float
) -> "pd.DataFrame":
    """Return the rows of one service: groups summed up by ``members``, the index of the table's row for each group."""
    gathered = statistics if members is None else statistics.gathered(members, len(groups))
    recorded, plain, count = gathered.recorded, gathered.plain, gathered.recorded.count
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = recorded.total / count
        spread = np.maximum(recorded.total_of_squares - count * mean**2, 0) / (count - 1)
        # One trip has no spread: its interval is unknown, not empty.
        margin = np.where(count > 1, NormalDist().inv_cdf(0.5 + confidence / 2) * np.sqrt(spread / count), np.nan)
        plain_mean = plain.total / plain.count
    rows = groups.assign(
        all_trips=gathered.all_trips,
        trips=count,
        mean=mean,
        mean_low=mean - margin,
        mean_high=mean + margin,
        median=medians(recorded),
        plain_trips=plain.count,
        plain_mean=plain_mean,
    )
    rows.insert(0, "service", service)
    # Kept in the Parquet file; the pictures say it.
    rows.attrs["confidence"] = confidence
    return rows[rows["all_trips"] > 0].reset_index(drop=True)


def _nullable(values: Array) -> "pd.api.extensions.ExtensionArray":
    """Return the values as nullable integers with a null at the end."""
    import pandas as pd

    return pd.array([*values.tolist(), None], dtype="Int16")


def _write_table(table: "pd.DataFrame", path: Path) -> None:
    """Write a table as Parquet or, by the suffix, as CSV with 10 significant digits."""
    if path.suffix == ".csv":
        table.to_csv(path, index=False, float_format="%.10g")
    else:
        table.to_parquet(path, index=False)


if __name__ == "__main__":
    main(tips)
