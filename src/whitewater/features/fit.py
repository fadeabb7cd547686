"""Fitting: the operators of a graph learn their statistics from a dataset.

Operators that do not wait for another operator's statistics learn together, in a *phase*. Each statistic is observed in
*spans* of the data, which are combined in order. Spans depend on the data only, so that neither the number of threads
nor their speed changes a result.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from whitewater.engines import Device
from whitewater.errors import ConfigError, InputError
from whitewater.features.dataset import Dataset, Span, spans
from whitewater.features.operator import Applying, Fitted, Fitting, Node, Statistic
from whitewater.features.plan import Lesson, Material, Plan, bind, evaluate
from whitewater.features.transform import Transformation

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers
    from whitewater.features.columns.column import Block
    from whitewater.features.config import Fit
    from whitewater.step import Run

logger = logging.getLogger(__name__)
# Rows of a span: enough for a statistic to be worth its combination with the next one's.
SPAN_ROWS = 1 << 22
# Bytes of a block for each row and column: as read, and as transformed on the way.
ROW_BYTES = 24


def fit_workflow(
    features: Node,
    dataset: Dataset,
    *,
    carry: Sequence[str] = (),
    run: Run[Fit],
    workers: Workers,
) -> Transformation:
    """Fit all operators of a graph; ``carry`` names columns of the data to copy to the results.

    Statistics may take a share of the available memory, by the settings. Raises ConfigError if the features cannot be
    made of these columns; InputError if there are no rows, or a file is damaged; ResourceError if blocks or statistics
    do not fit into memory.
    """
    plan = bind(features, dataset.schema)
    if both := [name for name in carry if name in plan.outputs]:
        raise ConfigError(f"{', '.join(both)} would be there twice: as a result, and carried along. Rename the result.")
    if not dataset.rows:
        raise InputError("there are no rows to learn from. Check the source of the data.")
    forecast(plan, dataset, run.device, workers)
    learned: list[dict[str, Fitted] | None] = [None] * len(plan.stages)
    applying = Applying(run.device, training=True, engine=run.engine)
    while lessons := _next_phase(plan, learned):
        # Statistics are on the host, whatever the device.
        memory = run.settings.memory_share * workers.room_for_a_task(Device(), tasks=len(lessons))
        material = Material(plan, tuple(learned), dataset, Fitting(run.device, int(memory)), applying)
        for lesson, fitted in _learn_phase(lessons, material, workers):
            learned[lesson.stage] = {**(learned[lesson.stage] or {}), lesson.statistic.name: fitted}
        plan = plan.describe(learned)
    return Transformation(plan, tuple(each or {} for each in learned), tuple(carry), dataset.seconds)


def _learn_phase(lessons: Sequence[Lesson], material: Material, workers: Workers) -> Iterator[tuple[Lesson, Fitted]]:
    """Learn the statistics of a phase, in as many passes over the data as it takes."""
    while lessons:
        logger.info("a pass over the data learns %d statistics", len(lessons))
        results = _learn(_longest_first(lessons, material), material, workers)
        yield from ((lesson, result) for lesson, result in results if isinstance(result, Fitted))
        lessons = [replace(lesson, statistic=result) for lesson, result in results if isinstance(result, Statistic)]


def _next_phase(plan: Plan, learned: list[dict[str, Fitted] | None]) -> list[Lesson]:
    """Return the statistics that can be learned now; mark stages without any as fitted."""
    lessons: list[Lesson] = []
    for number, stage in enumerate(plan.stages):
        if learned[number] is None and all(learned[parent] is not None for parent in stage.parents()):
            statistics = stage.operator.statistics(stage.inputs, stage.fields)
            lessons += [Lesson(number, statistic) for statistic in statistics]
            if not statistics:
                learned[number] = {}
    return lessons


def _learn(
    lessons: Sequence[Lesson], material: Material, workers: Workers
) -> Sequence[tuple[Lesson, Fitted | Statistic]]:
    """Return the result of each lesson. A task is a statistic if there are many, or else one span of a statistic."""
    if material.applying.engine == "dask":
        from whitewater.features import with_dask

        return with_dask.learn(lessons, material, workers)
    cut = list(spans(material.dataset.parts(), rows=SPAN_ROWS))
    mapped = partial(workers.map, _observe, label="fit", ordered=True, shared={"material": material})
    if len(lessons) >= sum(workers.threads) or len(cut) == 1:
        return list(zip(lessons, mapped([(lesson, cut, True) for lesson in lessons]), strict=True))
    parts = mapped([(lesson, [span], False) for lesson in lessons for span in cut])
    return [(lesson, lesson.statistic.combine(islice(parts, len(cut)), material.fitting)) for lesson in lessons]


def _observe(task: tuple[Lesson, Sequence[Span], bool], *, material: Material) -> Any:
    """Return the result of all spans of the data, or the summary of one."""
    (lesson, cut, is_all), fitting = task, material.fitting

    def blocks(span: Span) -> Iterator[Block]:
        for part in span:
            read = partial(material.dataset.read, part)
            yield evaluate(material.plan, material.learned, read, material.observed_columns(lesson), material.applying)

    parts = (lesson.statistic.observe(blocks(span), fitting) for span in cut)
    return lesson.statistic.combine(parts, fitting) if is_all else next(parts)


def _longest_first(lessons: Sequence[Lesson], material: Material) -> list[Lesson]:
    """Sort statistics by the bytes that they read, so that a long one does not start last."""
    names = {name for lesson in lessons for name in material.columns(lesson)}
    sizes = material.dataset.stored_bytes(sorted(names))
    return sorted(lessons, key=lambda lesson: -sum(sizes[name] for name in material.columns(lesson)))


def forecast(plan: Plan, dataset: Dataset, device: Device, workers: Workers) -> None:
    """Raise ResourceError if row groups do not fit into the memory of the device."""
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
