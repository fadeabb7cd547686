"""What the operators of a plan learn from a dataset.

Operators that need no other learner's results learn together, in a *phase*; each statistic of a phase is observed in
*spans* of the data and combined in their order. Spans depend on the data only, so neither threads nor their speed
change a result.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whitewater.engines import Device
from whitewater.errors import InputError
from whitewater.features.dataset import Dataset, Span, spans
from whitewater.features.lessons import Lesson, Material
from whitewater.features.operator import Fitted, Fitting, Statistic
from whitewater.features.plan import Plan

if TYPE_CHECKING:
    from whitewater.engines.choose import Engine
    from whitewater.engines.workers import Workers
    from whitewater.step import Run

Results = Callable[["Sequence[Lesson]", "Material", "Workers"], "Iterable[tuple[Lesson, Fitted | Statistic]]"]
logger = logging.getLogger(__name__)
# Rows of a span: enough for a statistic to be worth its combination with the next one's.
SPAN_ROWS = 1 << 22
# Of a block, for each row and column: what is read, and what is made of it on the way.
ROW_BYTES = 24


def learn(
    plan: Plan,
    dataset: Dataset,
    *,
    run: Run[Any],
    workers: Workers,
    scratch: Path,
    memory_share: float,
) -> tuple[Plan, tuple[Mapping[str, Fitted], ...]]:
    """Fit all stages; return the plan with what is known of its columns now, and what each stage learnt.

    What is learnt at a time may take ``memory_share`` of the available memory; for more there is the folder
    ``scratch``. Raises InputError if there are no rows, ResourceError if blocks do not fit into memory, and ConfigError
    if an operator has no body for the engine.
    """
    if not dataset.rows:
        raise InputError("there are no rows to learn from. Check the source of the data.")
    observed = _bodies(run.engine, plan)
    forecast(plan, dataset, run.device, workers)
    learnt: list[dict[str, Fitted] | None] = [None] * len(plan.stages)
    while phase := _next_phase(plan, learnt):
        found: dict[tuple[int, str], Fitted] = {}
        lessons = phase
        while lessons:
            logger.info("a pass over the data learns %d statistics", len(lessons))
            # What is learnt is on the host, whatever the device.
            share = memory_share * workers.room_for_a_task(Device(), tasks=len(lessons))
            material = Material(plan, learnt, dataset, Fitting(run.device, int(share), scratch))
            results = list(observed(_longest_first(lessons, material), material, workers))
            found |= {
                (lesson.stage, lesson.statistic.name): each for lesson, each in results if isinstance(each, Fitted)
            }
            # Some need another pass.
            lessons = [replace(lesson, statistic=each) for lesson, each in results if isinstance(each, Statistic)]
        for stage in dict.fromkeys(lesson.stage for lesson in phase):
            names = [lesson.statistic.name for lesson in phase if lesson.stage == stage]
            learnt[stage] = {name: found[stage, name] for name in names}
        plan = plan.described(learnt)
    return plan, tuple(each or {} for each in learnt)


def _bodies(engine: Engine, plan: Plan) -> Results:
    """Return what learns by the engine, which refuses operators that it has no bodies of."""
    if engine == "local":
        return _results
    from whitewater.features import with_dask

    with_dask.refuse(plan)
    return with_dask.learn


def _next_phase(plan: Plan, learnt: list[dict[str, Fitted] | None]) -> list[Lesson]:
    """Return what can be learnt now; stages that learn nothing are done on the way."""
    lessons: list[Lesson] = []
    for number, stage in enumerate(plan.stages):
        if learnt[number] is None and all(learnt[parent] is not None for parent in stage.parents()):
            found = [Lesson(number, each) for each in stage.operator.statistics(stage.inputs, stage.fields)]
            lessons += found
            if not found:
                learnt[number] = {}
    return lessons


def _results(
    lessons: Sequence[Lesson], material: Material, workers: Workers
) -> Iterator[tuple[Lesson, Fitted | Statistic]]:
    """Yield what was learnt: a task is a statistic where they are many, or else a span of one."""
    cut = list(spans(material.dataset.parts(), rows=SPAN_ROWS))
    mapped = partial(workers.map, label="fit", ordered=True, shared={"material": material})
    if len(lessons) >= sum(workers.threads) or len(cut) == 1:
        results = mapped(_observe_and_combine, [(lesson, cut) for lesson in lessons])
        yield from zip(lessons, results, strict=True)
        return
    parts = mapped(_observe, [(lesson, span) for lesson in lessons for span in cut])
    for lesson in lessons:
        yield lesson, lesson.statistic.combine([next(parts) for _ in cut], material.fitting)


def _observe_and_combine(task: tuple[Lesson, Sequence[Span]], *, material: Material) -> Fitted | Statistic:
    lesson, cut = task
    parts = [_observe((lesson, span), material=material) for span in cut]
    return lesson.statistic.combine(parts, material.fitting)


def _observe(task: tuple[Lesson, Span], *, material: Material) -> Any:
    lesson, span = task
    return lesson.statistic.observe(material.blocks(lesson, span), material.fitting)


def _longest_first(lessons: Sequence[Lesson], material: Material) -> list[Lesson]:
    """Order statistics by the bytes that they read, so that no long one begins when the others end."""
    names = {name for lesson in lessons for name in material.columns(lesson)}
    sizes = material.dataset.stored_bytes(sorted(names))
    return sorted(lessons, key=lambda lesson: -sum(sizes[name] for name in material.columns(lesson)))


def forecast(plan: Plan, dataset: Dataset, device: Device, workers: Workers) -> None:
    """Refuse row groups that do not fit into the memory of the device."""
    rows = max(part.rows for part in dataset.parts())
    read = [
        {
            *plan.data_columns(dict.fromkeys(share.outputs, number), training=True),
            *stage.operator.dependencies(fitting=True, training=True),
        }
        for number, stage in enumerate(plan.stages)
        for share in stage.shares
    ]
    workers.forecast(
        device,
        a_task=rows * max(map(len, read), default=0) * ROW_BYTES,
        tasks=len(read),
        what=f"fitting on row groups of up to {rows:,} rows",
        remedy="Make smaller row groups (recsys.fetch.row_group_rows), or take fewer threads.",
    )
