"""What the operators of a graph learn from a dataset.

Operators that need no other learner's results learn together, in a *phase*; each statistic of a phase is observed in
*spans* of the data and combined in their order. Spans depend on the data only, so neither threads nor their speed
change a result.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from whitewater.engines import Device
from whitewater.errors import ConfigError, InputError
from whitewater.features.dataset import Dataset, Span, spans
from whitewater.features.lessons import Lesson, Material
from whitewater.features.operator import Fitted, Fitting, Node, Statistic
from whitewater.features.plan import Plan, bind, evaluate
from whitewater.features.transform import Transformation

if TYPE_CHECKING:
    from whitewater.engines.choose import Engine
    from whitewater.engines.workers import Workers
    from whitewater.features.columns.column import Block
    from whitewater.features.config import Fit
    from whitewater.step import Run

logger = logging.getLogger(__name__)
# Rows of a span: enough for a statistic to be worth its combination with the next one's.
SPAN_ROWS = 1 << 22
# Of a block, for each row and column: what is read, and what is made of it on the way.
ROW_BYTES = 24
Learn = Callable[[Sequence[Lesson], Material, "Workers"], Iterable[tuple[Lesson, Fitted | Statistic]]]


def fit_workflow(
    features: Node,
    dataset: Dataset,
    *,
    carry: Sequence[str] = (),
    run: Run[Fit],
    workers: Workers,
) -> Transformation:
    """Fit all operators of a graph; columns of the data to ``carry`` go along with what it makes.

    What is learned at a time may take a share of the available memory, by the settings. Raises ConfigError if the
    features cannot be made of these columns, or by the engine; InputError if there are no rows, or a file is damaged;
    ResourceError if blocks, or what is learned, do not fit into memory.
    """
    plan = bind(features, dataset.schema)
    if both := [name for name in carry if name in plan.outputs]:
        raise ConfigError(f"{', '.join(both)} would be there twice: as a result, and carried along. Rename the result.")
    if not dataset.rows:
        raise InputError("there are no rows to learn from. Check the source of the data.")
    learn = _body(run.engine, plan)
    forecast(plan, dataset, run.device, workers)
    learned: list[dict[str, Fitted] | None] = [None] * len(plan.stages)
    while lessons := _next_phase(plan, learned):
        found: dict[int, dict[str, Fitted]] = {lesson.stage: {} for lesson in lessons}
        while lessons:
            logger.info("a pass over the data learns %d statistics", len(lessons))
            # What is learned is on the host, whatever the device.
            share = run.settings.memory_share * workers.room_for_a_task(Device(), tasks=len(lessons))
            material = Material(plan, learned, dataset, Fitting(run.device, int(share)))
            again = []
            for lesson, each in learn(_longest_first(lessons, material), material, workers):
                if isinstance(each, Fitted):
                    found[lesson.stage][lesson.statistic.name] = each
                else:
                    again.append(replace(lesson, statistic=each))
            lessons = again
        for stage, of_stage in found.items():
            learned[stage] = of_stage
        plan = plan.describe(learned)
    return Transformation(plan, tuple(each or {} for each in learned), tuple(carry), dataset.seconds)


def _body(engine: Engine, plan: Plan) -> Learn:
    """Return what learns by the engine, which refuses operators that it has no bodies of."""
    if engine == "local":
        return _learn
    from whitewater.features import with_dask

    with_dask.refuse(plan)
    return with_dask.learn


def _next_phase(plan: Plan, learned: list[dict[str, Fitted] | None]) -> list[Lesson]:
    """Return what can be learned now; stages that learn nothing are done on the way."""
    lessons: list[Lesson] = []
    for number, stage in enumerate(plan.stages):
        if learned[number] is None and all(learned[parent] is not None for parent in stage.parents()):
            found = [Lesson(number, each) for each in stage.operator.statistics(stage.inputs, stage.fields)]
            lessons += found
            if not found:
                learned[number] = {}
    return lessons


def _learn(
    lessons: Sequence[Lesson], material: Material, workers: Workers
) -> Iterator[tuple[Lesson, Fitted | Statistic]]:
    """Yield what was learned by kernels: a task is a statistic where they are many, or else a span of one."""
    cut = list(spans(material.dataset.parts(), rows=SPAN_ROWS))
    mapped = partial(workers.map, _observe, label="fit", ordered=True, shared={"material": material})
    if len(lessons) >= sum(workers.threads) or len(cut) == 1:
        yield from zip(lessons, mapped([(lesson, cut, True) for lesson in lessons]), strict=True)
        return
    parts = mapped([(lesson, [span], False) for lesson in lessons for span in cut])
    for lesson in lessons:
        yield lesson, lesson.statistic.combine(islice(parts, len(cut)), material.fitting)


def _observe(task: tuple[Lesson, Sequence[Span], bool], *, material: Material) -> Any:
    """Return what was learned from all spans of the data, or what one of them tells."""
    (lesson, cut, is_all), fitting = task, material.fitting

    def blocks(span: Span) -> Iterator[Block]:
        for part in span:
            read = partial(material.dataset.read, part)
            yield evaluate(material.plan, material.learned, read, material.observed_columns(lesson), material.applying)

    parts = (lesson.statistic.observe(blocks(span), fitting) for span in cut)
    return lesson.statistic.combine(parts, fitting) if is_all else next(parts)


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
