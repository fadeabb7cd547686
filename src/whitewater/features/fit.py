"""Fitting: the operators of a graph learn their statistics from a dataset.

Operators whose inputs are fitted learn together, in one *phase*. A statistic observes the data in *spans*, and combines
their summaries in order. Spans depend only on the data, so the number and speed of threads do not change results.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from whitewater.engines import Device
from whitewater.engines.workers import Workers
from whitewater.errors import ConfigError, InputError
from whitewater.features.columns.column import Block
from whitewater.features.config import Fit
from whitewater.features.dataset import SMALLER_PARTS, Dataset, Span, spans
from whitewater.features.operator import Fitted, Inputs, Mode, Node, Statistic
from whitewater.features.plan import Lesson, PassState, Plan, bind
from whitewater.step import Run

logger = logging.getLogger(__name__)
# Rows of a span: enough that observing them takes far longer than combining their summary with the next one.
SPAN_ROWS = 1 << 22
# Bytes per row and column of a block: as read, and as transformed by the operators before.
ROW_BYTES = 24


def fit_workflow(
    features: Node, dataset: Dataset, *, carry: Sequence[str] = (), run: Run[Fit], workers: Workers
) -> Plan:
    """Return the fitted plan of a graph; ``carry`` and errors are those of `whitewater.features.workflow.Workflow`."""
    plan = bind(features, dataset.schema)
    if duplicates := [name for name in carry if name in plan.outputs]:
        raise ConfigError(
            f"{', '.join(duplicates)} would be there twice: as a feature, and as a carried column. Rename the feature."
        )
    if not dataset.rows:
        raise InputError("there are no rows to learn from. Check the source of the data.")
    forecast(plan, dataset, run.device, workers)
    learned: list[dict[str, Fitted] | None] = [None] * len(plan.stages)
    while lessons := _next_phase(plan, learned):
        # Statistics are kept on the host, whatever the device.
        memory = run.settings.memory_share * workers.room_for_a_task(Device(), tasks=len(lessons))
        state = PassState(plan, dataset, Mode(run.device, training=True, engine=run.engine, memory=int(memory)))
        while lessons:
            logger.info("learning %d statistics in a pass over the data", len(lessons))
            results, lessons = _learn(lessons, state, workers), []
            for lesson, result in results:
                if isinstance(result, Statistic):
                    lessons.append(replace(lesson, statistic=result))
                else:
                    learned[lesson.stage] = {**(learned[lesson.stage] or {}), lesson.statistic.name: result}
        plan = plan.learn(learned)
    return replace(plan.learn(learned), carried=tuple(carry), seconds=dataset.seconds)


def _next_phase(plan: Plan, learned: list[dict[str, Fitted] | None]) -> list[Lesson]:
    """Return the statistics that can be learned now; mark stages without statistics as fitted."""
    lessons: list[Lesson] = []
    for number, stage in enumerate(plan.stages):
        parents = [learned[origin] for origin in stage.origins.values() if origin is not None]
        if learned[number] is None and None not in parents:
            statistics = stage.operator.statistics(stage.inputs, stage.fields)
            lessons += [Lesson(number, stage.origins, statistic) for statistic in statistics]
            if not statistics:
                learned[number] = {}
    return lessons


def _learn(
    lessons: Sequence[Lesson], state: PassState, workers: Workers
) -> Sequence[tuple[Lesson, Fitted | Statistic]]:
    """Return the result of each lesson. A task is a lesson if there are many, else one span of a lesson."""
    if state.mode.engine == "dask":
        from whitewater.features import with_dask

        return with_dask.learn(lessons, state, workers)
    all_spans = list(spans(state.dataset.parts, rows=SPAN_ROWS))
    observe = partial(workers.map, _observe, label="fit", ordered=True, shared={"state": state})
    if len(lessons) >= sum(workers.threads) or len(all_spans) == 1:
        return list(zip(lessons, observe([(lesson, all_spans, True) for lesson in lessons]), strict=True))
    summaries = observe([(lesson, [span], False) for lesson in lessons for span in all_spans])
    return [(lesson, lesson.statistic.combine(islice(summaries, len(all_spans)), state.mode)) for lesson in lessons]


def _observe(task: tuple[Lesson, Sequence[Span], bool], *, state: PassState) -> Any:
    """Return the result of a lesson from all spans, or if not ``is_complete`` its summary of one span."""
    lesson, task_spans, is_complete = task

    def blocks(span: Span) -> Iterator[Block]:
        for part in span:
            yield state.plan.evaluate(partial(state.dataset.read, part), lesson.columns, state.mode)

    summaries = (lesson.statistic.observe(blocks(span), state.mode) for span in task_spans)
    return lesson.statistic.combine(summaries, state.mode) if is_complete else next(summaries)


def forecast(plan: Plan, dataset: Dataset, device: Device, workers: Workers) -> None:
    """Raise ResourceError if row groups do not fit into the memory of the device."""
    rows = max(part.rows for part in dataset.parts)
    columns: dict[tuple[int, Inputs], int] = {}  # read for each stage and inputs of it
    for number, stage in enumerate(plan.stages):
        dependencies = stage.operator.dependencies(fitting=True, training=True)
        for name, inputs in stage.inputs_of.items():
            columns[number, inputs] = len({*plan.data_columns({name: number}, training=True), *dependencies})
    needed = rows * max(columns.values(), default=0) * ROW_BYTES
    what = f"fitting on row groups of up to {rows:,} rows"
    workers.forecast(device, a_task=needed, tasks=len(columns), what=what, remedy=SMALLER_PARTS)
