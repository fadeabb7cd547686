"""Fitting and applying operators with Dask DataFrame, on pandas or cuDF.

Both backends run the same code; `Device.frames` names the library of the partitions. Statistics of categories are sums
of integers by keys, merged in a tree, so that they do not depend on the partitions.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dask.dataframe as dd
import pyarrow as pa
from dask.delayed import delayed

from whitewater.engines.device import Device
from whitewater.engines.workers import Workers
from whitewater.errors import InputError
from whitewater.features.columns.column import (
    Block,
    Column,
    Frame,
    Numbers,
    Text,
    as_floats,
    column_of,
    column_of_series,
    frame_of,
    series_of,
    table_of,
)
from whitewater.features.dataset import Dataset, Span, arrow_schema, as_table, cast_columns, spans
from whitewater.features.operator import Fitted, Mode, Statistic
from whitewater.features.operators.by_category import CategoryStatistic
from whitewater.features.plan import Lesson, PassState, Read

HOST = Device()
# Floats are scaled to integers of up to this many bits.
_BITS = 61
_LARGEST_EXPONENT = 1000


def _empty(types: Mapping[str, pa.DataType]) -> Frame:
    return frame_of(arrow_schema(_plain(types)).empty_table(), HOST)


def _plain(types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """Return the types of columns in frames; all-null columns become text."""
    return {name: pa.string() if pa.types.is_null(type_) else type_ for name, type_ in types.items()}


def read_span(span: Span, *, dataset: Dataset, types: Mapping[str, pa.DataType], device: Device) -> Frame:
    """Return columns of consecutive parts as a frame, with the columns in ``types``."""
    if device.frames == "cudf" and span[0].groups:
        return _read_files(span, types, device)
    tables = [as_table(cast_columns(dataset.read(part, list(types)), types), _plain(types)) for part in span]
    return frame_of(pa.concat_tables(tables), device)


def _read_files(span: Span, types: Mapping[str, pa.DataType], device: Device) -> Frame:
    """Return columns of row groups, read by cuDF straight to the GPU."""
    import cudf

    frames = []
    for part in span:
        for group in part.groups:
            frame = cudf.read_parquet(
                group.path, columns=list(types), row_groups=[[group.number]],
                use_pandas_metadata=False, dataset_kwargs={"partitioning": None},
            )  # fmt: skip
            rows = frame if len(part.groups) > 1 else frame.iloc[part.start : part.start + part.rows]
            frames.append(_cast_frame(rows.reset_index(drop=True), types, device))
    return cudf.concat(frames, ignore_index=True)


def _cast_frame(frame: Frame, types: Mapping[str, pa.DataType], device: Device) -> Frame:
    """Cast columns of a file to the types of the dataset; columns that are all null in the file have no type."""
    columns = {}
    for name, type_ in _plain(types).items():
        series = frame[name]
        if bool(series.isna().all()):
            series = frame_of(pa.table({name: pa.nulls(len(frame), type_)}), device)[name]
        column = column_of_series(series)
        if not isinstance(column, Text):
            column = cast_columns({name: column}, {name: type_}, device.xp)[name]
        columns[name] = series_of(column, frame)
    return type(frame)(columns)


def learn(lessons: Sequence[Lesson], state: PassState, workers: Workers) -> list[tuple[Lesson, Fitted | Statistic]]:
    """Return the result of each lesson, from sums by keys over all rows, or from summaries of the partitions."""
    lessons = [replace(lesson, statistic=_first(lesson.statistic)) for lesson in lessons]
    by_category = [lesson for lesson in lessons if isinstance(lesson.statistic, CategoryStatistic)]
    sum_lessons = [lesson for lesson in by_category if not _has_lists(lesson, state)]
    summary_lessons = [lesson for lesson in lessons if lesson not in sum_lessons]
    # Computed separately, because Dask optimizes frames, but not delayed summaries.
    sums = workers.compute(*_key_sums(sum_lessons, state))
    partitions = _rows(summary_lessons, state).to_delayed() if summary_lessons else ()
    tasks = [[delayed(_observe)(rows, lesson, state) for rows in partitions] for lesson in summary_lessons]
    learned = [lesson.statistic.learn(table_of(cells)) for lesson, cells in zip(sum_lessons, sums, strict=True)]  # type: ignore[attr-defined]
    for lesson, summaries in zip(summary_lessons, workers.compute(*tasks), strict=True):
        learned.append(lesson.statistic.combine(summaries, state.mode))
    return list(zip([*sum_lessons, *summary_lessons], learned, strict=True))


def _first(statistic: Statistic) -> Statistic:
    """Return the statistic for the first pass: the largest target, if a statistic needs it to scale floats."""
    if isinstance(statistic, CategoryStatistic) and statistic.exponent is None:
        return _LargestTarget(statistic.name, statistic.operator.target_columns, statistic)
    return statistic


def _has_lists(lesson: Lesson, state: PassState) -> bool:
    return any(pa.types.is_list(state.plan.field_of(*column).type) for column in lesson.columns.items())


def _key_sums(lessons: Sequence[Lesson], state: PassState) -> list[dd.DataFrame]:
    """Return the sums by keys of each lesson, merged eight at a time in a tree, as frames on the host."""
    if not lessons:
        return []
    # The meta spares Dask a trial run on made-up rows in this process, which may have no GPU.
    reduction = partial(
        _rows(lessons, state).reduction, _sum_partition,
        aggregate=_sums_on_host, combine=_sum_by_keys, split_every=8, meta=_empty({}),
    )  # fmt: skip
    return [reduction(chunk_kwargs={"lesson": lesson, "state": state}) for lesson in lessons]


def _sum_partition(rows: Frame, *, lesson: Lesson, state: PassState) -> Frame:
    observed = state.plan.evaluate(reader(rows), lesson.columns, state.mode)
    return _sum_by_keys(lesson.statistic.cells(observed, state.mode.device))  # type: ignore[attr-defined]


def _sum_by_keys(cells: Frame) -> Frame:
    """Return the sums of other columns by the columns ``key_...``, including null keys, in any order."""
    keys = [name for name in list(cells.columns) if name.startswith("key_")]
    return cells.groupby(keys, sort=False, dropna=False).sum().reset_index()


def _sums_on_host(cells: Frame) -> Frame:
    return frame_of(table_of(_sum_by_keys(cells)), HOST)


def _observe(rows: Frame, lesson: Lesson, state: PassState) -> Any:
    observed, mode = state.plan.evaluate(reader(rows), lesson.columns, state.mode), state.mode
    if _has_lists(lesson, state):
        observed, mode = on_host(observed, mode.device), replace(mode, device=HOST)
    return lesson.statistic.observe(iter([observed]), mode)


def _rows(lessons: Sequence[Lesson], state: PassState) -> dd.DataFrame:
    """Return the columns that lessons need; partitions are spans of the dataset."""
    columns = [state.plan.data_columns(lesson.columns, training=True) for lesson in lessons]
    types = {name: state.plan.schema[name].type for names in columns for name in names}
    dataset, device = state.dataset, state.mode.device
    return dd.from_map(
        read_span,
        list(spans(dataset.parts, rows=device.partition_rows)),
        dataset=dataset, types=types, device=device, meta=_empty(types),
    )  # fmt: skip


@dataclass(frozen=True)
class _LargestTarget(Statistic):
    """Learns the power of 2 that scales the floats of a target to integers, for the following statistic."""

    following: CategoryStatistic

    def observe(self, blocks: Iterator[Block], mode: Mode) -> float:
        xp, (block,) = mode.device.xp, blocks
        sizes = xp.abs(as_floats(block[self.columns[0]], xp))
        return float(xp.where(xp.isnan(sizes), 0.0, sizes).max()) if len(sizes) else 0.0

    def combine(self, summaries: Iterable[float], mode: Mode) -> CategoryStatistic:
        largest = max(summaries)
        if math.isinf(largest):
            raise InputError(f"the column {self.columns[0]!r} has infinite values. Clip it first, or leave it out.")
        return replace(self.following, exponent=min(_BITS - math.frexp(largest)[1], _LARGEST_EXPONENT))


def reader(rows: Frame) -> Read:
    """Return a function that reads columns of a frame as `Numbers` and `Text`, and lists on the host."""
    lists = [name for name in list(rows.columns) if str(rows[name].dtype).lower().startswith("list")]
    return lambda names: {
        name: column_of(table_of(rows[[name]])[name]) if name in lists else column_of_series(rows[name])
        for name in names
    }


def on_host(block: Mapping[str, Any], device: Device) -> Block:
    """Move columns of a frame to the host; text becomes `Categories`."""
    columns: dict[str, Column] = dict(block)
    for name, column in block.items():
        if isinstance(column, Text):
            columns[name] = column.on_host()
        elif isinstance(column, Numbers):
            valid = None if column.valid is None else device.to_host(column.valid)
            columns[name] = Numbers(device.to_host(column.values), valid)
    return columns
