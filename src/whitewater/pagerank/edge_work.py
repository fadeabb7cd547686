"""What the parts of step `renumber` share: the run, its plan, its workers, and where edges wait on disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whitewater.pagerank.edge_plan import EdgePlan

if TYPE_CHECKING:
    from whitewater.config.pagerank import Renumber
    from whitewater.step import Run

# Edges below which workers take longer to start than the work.
SMALL = 2 << 20


@dataclass(frozen=True)
class Work:
    """The run, the plan, a function that maps tasks as `whitewater.step.Run.map` does, and a folder if edges spill."""

    run: Run[Renumber]
    plan: EdgePlan
    map: Callable[..., Iterable[Any]]
    spool: Path | None

    @property
    def weighted(self) -> bool:
        """Whether the graph has weights."""
        return self.plan.weighted or self.run.settings.duplicates == "sum"


@contextmanager
def opened(run: Run[Renumber], plan: EdgePlan, spool: Path) -> Iterator[Work]:
    """Open workers, where there is work for them, and a folder for edges that do not stay in memory."""
    with _spooled(spool if plan.spills else None) as folder:
        if plan.entries < SMALL:
            yield Work(run, plan, _in_this_thread, folder)
            return
        with run.cluster() as client:
            yield Work(run, plan, partial(run.map, client=client), folder)


@contextmanager
def _spooled(folder: Path | None) -> Iterator[Path | None]:
    if folder is None:
        yield None
        return
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _in_this_thread(
    function: Callable[..., Any], tasks: Iterable[Any], *, label: str, shared: dict[str, Any], ordered: bool = False
) -> Iterator[Any]:
    return (function(task, **shared) for task in tasks)
