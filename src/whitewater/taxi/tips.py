"""Step `tips`: how people tip by hour, weekday, month, payment, passengers, borough and zone."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from whitewater.devices import Block, Device
from whitewater.taxi.schema import SERVICES
from whitewater.taxi.tip_groups import NEEDED, TipStatistics, tip_statistics
from whitewater.taxi.tip_tables import ALL, tip_tables
from whitewater.taxi.zones import read_zones

if TYPE_CHECKING:
    import pandas as pd

    from whitewater.config.taxi import Tips
    from whitewater.step import Outputs, Run

logger = logging.getLogger(__name__)
BLOCK_ROWS = 1_000_000
# Parts that one task reads: enough tasks to keep all workers busy to the end, few enough to merge cheaply.
TASKS_A_THREAD = 4


@dataclass(frozen=True)
class Share:
    """Parts of one service that one task reads."""

    service: str
    paths: tuple[Path, ...]


def tips(run: Run[Tips], *, trips: Path, zones: Path, tables: Outputs) -> None:
    """Summarise tip / fare of the trips whose tip was recorded, by service and over all services."""
    statistics: dict[str, dict[str, TipStatistics]] = {}
    with run.cluster() as client:
        work = partial(read_share, device=run.device)
        for service, more in run.map(work, shares(trips, run.threads), client=client, label="tips"):
            known = statistics.get(service)
            statistics[service] = more if known is None else {name: known[name] + more[name] for name in more}
    made = tip_tables(statistics, read_zones(zones), confidence=run.settings.confidence)
    for name, path in tables.items():
        write_table(made[Path(name).stem.removeprefix("tips_by_")], path)
    total = made["hour"][made["hour"]["service"] == ALL]
    run.note(all_trips=int(total["all_trips"].sum()), trips=int(total["trips"].sum()))


def shares(trips: Path, threads: int) -> list[Share]:
    """Deal the files of each service out to tasks of about equal size."""
    files: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(trips.glob("service=*/**/*.parquet"), key=lambda path: (-path.stat().st_size, str(path))):
        files[path.relative_to(trips).parts[0].removeprefix("service=")].append(path)
    tasks = max(1, TASKS_A_THREAD * threads)
    return [
        Share(service, tuple(paths[first::tasks]))
        for service, paths in files.items()
        for first in range(min(tasks, len(paths)))
    ]


def read_share(share: Share, *, device: Device) -> tuple[str, dict[str, TipStatistics]]:
    """Gather the statistics of a task's files, one block at a time."""
    return share.service, tip_statistics(_blocks(share, device), device)


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table as Parquet or, by the suffix, as CSV with 10 significant digits."""
    if path.suffix == ".csv":
        table.to_csv(path, index=False, float_format="%.10g")
    else:
        table.to_parquet(path, index=False)


def _blocks(share: Share, device: Device) -> Iterator[Block]:
    import pyarrow.parquet as pq

    code = list(SERVICES).index(share.service)
    for path in share.paths:
        for group in range(pq.read_metadata(path).num_row_groups):
            for raw in device.row_group_blocks(path, group, NEEDED, block_rows=BLOCK_ROWS):
                block = cast(Block, raw)
                rows = len(block["fare_amount"])
                yield {**block, "service": device.xp.full(rows, code, device.xp.int8)}

