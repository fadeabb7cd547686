"""Step `tips`: how people tip by hour, weekday, month, payment, passengers, borough and zone."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from whitewater.devices import Device
from whitewater.taxi.calendar import month_number
from whitewater.taxi.row_groups import RowGroup, blocks, row_groups
from whitewater.taxi.schema import Service
from whitewater.taxi.tip_groups import NEEDED, TipStatistics, tip_statistics
from whitewater.taxi.tip_tables import ALL, tip_tables
from whitewater.taxi.zones import read_zones

if TYPE_CHECKING:
    import pandas as pd

    from whitewater.config.taxi import Tips
    from whitewater.step import Outputs, Run

# Parts that one task reads: enough tasks to keep all workers busy to the end, few enough to merge cheaply.
TASKS_A_THREAD = 4


# A service, and the row groups of its trips that one task reads.
Share = tuple[Service, tuple[RowGroup, ...]]


def tips(run: Run[Tips], *, trips: Path, zones: Path, tables: Outputs) -> None:
    """Summarise tip / fare of the trips whose tip was recorded, by service and over all services."""
    statistics: dict[Service, dict[str, TipStatistics]] = {}
    months = months_of(trips)
    with run.cluster() as client:
        work = partial(read_share, device=run.device, months=months)
        for service, more in run.map(work, shares(trips, run.threads), client=client, label="tips"):
            known = statistics.get(service)
            statistics[service] = more if known is None else {name: known[name] + more[name] for name in more}
    made = tip_tables(statistics, read_zones(zones), confidence=run.settings.confidence, months=months)
    for name, path in tables.items():
        write_table(made[Path(name).stem.removeprefix("tips_by_")], path)
    total = made["hour"][made["hour"]["service"] == ALL]
    run.note(all_trips=int(total["all_trips"].sum()), trips=int(total["trips"].sum()))


def shares(trips: Path, threads: int) -> list[Share]:
    """Deal the row groups of each service out to tasks of about equal size."""
    groups: dict[Service, list[RowGroup]] = defaultdict(list)
    for group in sorted(row_groups(trips), key=lambda group: (-group.rows, str(group.path), group.index)):
        if group.service is not None:
            groups[group.service].append(group)
    tasks = max(1, TASKS_A_THREAD * threads)
    return [
        (service, tuple(each[first::tasks]))
        for service, each in groups.items()
        for first in range(min(tasks, len(each)))
    ]


def months_of(trips: Path) -> range:
    """Return the months from the first to the last partition, as indices."""
    found = [
        month_number(int(path.parent.name.removeprefix("year=")), int(path.name.removeprefix("month=")))
        for path in trips.glob("service=*/year=2*/month=*")
    ]
    return range(min(found), max(found) + 1) if found else range(0)


def read_share(share: Share, *, device: Device, months: range) -> tuple[Service, dict[str, TipStatistics]]:
    """Gather the statistics of a task's row groups, one block at a time."""
    service, groups = share
    every = (block for group in groups for block in blocks(group, NEEDED, device))
    return service, tip_statistics(every, device, months=months)


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table as Parquet or, by the suffix, as CSV with 10 significant digits."""
    if path.suffix == ".csv":
        table.to_csv(path, index=False, float_format="%.10g")
    else:
        table.to_parquet(path, index=False)
