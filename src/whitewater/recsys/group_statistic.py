"""Statistics that are tables of categories.

Each part of the data is gathered as a table of its categories, and the tables are merged. Those that are not small wait
on disk until then, and a part that has more categories than memory becomes several tables: learning takes no more than
the merged table, which applying needs anyway.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from whitewater.errors import ResourceError
from whitewater.recsys.category_groups import Groups
from whitewater.recsys.operators.operator import Fitted, Fitting, Statistic

if TYPE_CHECKING:
    from whitewater.devices.columns import Block
    from whitewater.devices.protocol import Device
    from whitewater.recsys.category_groups import Grouping
    from whitewater.recsys.operators.by_category import ByCategory

logger = logging.getLogger(__name__)
# Tables up to this size wait in memory: those of a thousand parts of the data are 4 GB.
WAITING_BYTES = 1 << 22
# The memory by this is for the table of a part while it is gathered: tables grow by doubling, and are then copied.
GATHERING_SHARE = 4


class Gathering(ABC):
    """A table of groups that grows with blocks, or with tables of other parts."""

    groups: Groups

    @abstractmethod
    def add(self, block: Block, device: Device) -> None:
        """Add the rows of a block."""

    @abstractmethod
    def merge(self, table: pa.Table) -> None:
        """Add what another table tells, which may lie on disk."""

    @abstractmethod
    def table(self) -> pa.Table:
        """Return what was gathered."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes that it takes."""


@dataclass(frozen=True)
class GroupStatistic(Statistic):
    """What an operator learns of the categories of a grouping, from its columns and others."""

    name: str
    columns: tuple[str, ...]
    grouping: Grouping
    operator: ByCategory

    def observe(self, blocks: Iterator[Block], fitting: Fitting) -> list[pa.Table | Path]:
        """Return the tables of one part of the data: those that are not small as files in the scratch folder."""
        tables: list[pa.Table | Path] = []
        gathering = self.operator.gathering(self.grouping)
        for block in blocks:
            gathering.add(block, fitting.device)
            if gathering.nbytes > fitting.memory // GATHERING_SHARE:
                logger.info(
                    "%s: %d categories take %.1f MB and wait on disk for others.",
                    self.name, len(gathering.groups), gathering.nbytes / 1e6,
                )  # fmt: skip
                tables.append(_stored(gathering.table(), fitting))
                gathering = self.operator.gathering(self.grouping)
        last = gathering.table()
        return [*tables, last if last.nbytes <= WAITING_BYTES else _stored(last, fitting)]

    def combine(self, parts: Sequence[list[pa.Table | Path]], fitting: Fitting) -> Fitted:
        """Return what was learnt.

        Raises
        ------
        ResourceError
            If the merged table does not fit into the memory.
        """
        waiting = [each for part in parts for each in part]
        if len(waiting) == 1:
            return self.operator.learnt(self.grouping, _taken(waiting[0]))
        gathering = self.operator.gathering(self.grouping)
        for number, each in enumerate(waiting, start=1):
            gathering.merge(_mapped(each) if isinstance(each, Path) else each)
            if gathering.nbytes > fitting.memory:
                raise self._too_large(gathering, fitting, merged=number / len(waiting))
            if isinstance(each, Path):
                each.unlink()
        table = gathering.table()
        del gathering  # which is as large again as what is made of it
        return self.operator.learnt(self.grouping, table)

    def _too_large(self, gathering: Gathering, fitting: Fitting, *, merged: float) -> ResourceError:
        return ResourceError(
            f"{self.grouping.name}: the table of its categories takes {gathering.nbytes / 1e6:,.1f} MB for "
            f"{len(gathering.groups):,} categories, after {merged:.0%} of the data, but {fitting.memory / 1e6:,.1f} MB "
            "are there for it, in fitting as in applying. Give it more memory (recsys.fit.memory_share, or fewer "
            "threads), fewer folds or statistics, or the buckets of a HashBucket instead of the categories."
        )


def _stored(table: pa.Table, fitting: Fitting) -> Path:
    path = fitting.scratch / f"categories-{uuid4().hex}.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return path


def _taken(waiting: pa.Table | Path) -> pa.Table:
    """Return a table that waited, in memory."""
    if isinstance(waiting, pa.Table):
        return waiting
    with pa.OSFile(str(waiting)) as source:
        table = pa.ipc.open_file(source).read_all()
    waiting.unlink()
    return table


def _mapped(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()
