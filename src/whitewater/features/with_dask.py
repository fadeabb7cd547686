"""Features by Dask DataFrame, of pandas or cuDF: what operators learn of rows, and what they make of them.

The backend is the only switch: partitions are frames of `Device.frames`, and operators have one body for both. What is
learned of categories are sums of integers by keys, merged by a tree, so that no partition changes a bit of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import dask.dataframe as dd
import pyarrow as pa
from dask.delayed import delayed

from whitewater.engines.device import Device
from whitewater.errors import InputError
from whitewater.features.columns import arrow as arrow_columns
from whitewater.features.columns.column import Lists, Numbers
from whitewater.features.dataset import (
    Dataset,
    Part,
    Span,
    arrow_schema,
    as_fitted,
    as_table,
    refuse_other_times,
    spans,
    type_of,
)
from whitewater.features.frames import Text, column_of, frame_class, frame_of, is_list, series_of, sum_by_keys, table_of
from whitewater.features.operator import Applying, Fitted, Statistic
from whitewater.features.operators.by_category import CategoryStatistic, GroupStatistic
from whitewater.features.operators.by_column import is_number
from whitewater.features.plan import Learned, Lesson, Material, Origin, Plan, evaluate

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers
    from whitewater.features.columns.column import Block, Column
    from whitewater.features.frames import Frame, Series
    from whitewater.features.schema import Field, Schema

HOST = Device()
# Frames of sums that are merged at a time.
SPLIT_EVERY = 8
# The largest number that is summed has so many bits, see `halves`.
_BITS = 61
_LARGEST_EXPONENT = 1000


def rows_of(dataset: Dataset, types: Mapping[str, pa.DataType], device: Device) -> dd.DataFrame:
    """Return columns of a dataset, of these types; a partition has whole parts of it, in order."""
    rows: dd.DataFrame = dd.from_map(
        _read,
        list(spans(dataset.parts(), rows=device.partition_rows)),
        dataset=dataset, types=types, device=device, meta=_empty(types, HOST),
    )  # fmt: skip
    return rows


def _empty(types: Mapping[str, pa.DataType], device: Device) -> Frame:
    return _frame(arrow_schema(_plain(types)).empty_table(), device)


def _frame(table: pa.Table, device: Device) -> Frame:
    return frame_of(table, frame_class(device))


def _plain(types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """Return types as frames have them: of a column of nulls nothing is known, and text may be null."""
    return {name: pa.string() if pa.types.is_null(type_) else type_ for name, type_ in types.items()}


def _read(span: Span, *, dataset: Dataset, types: Mapping[str, pa.DataType], device: Device) -> Frame:
    if device.frames == "cudf" and span[0].groups:
        return _read_files(span, types, device)
    tables = [as_table(as_fitted(dataset.read(part, list(types)), types), _plain(types)) for part in span]
    return _frame(pa.concat_tables(tables), device)


def _read_files(span: Span, types: Mapping[str, pa.DataType], device: Device) -> Frame:
    """Return columns of row groups as cuDF reads them, without the host."""
    import cudf

    read = []
    for part in span:
        for group in part.groups:
            frame = cudf.read_parquet(
                group.path, columns=list(types), row_groups=[[group.number]],
                use_pandas_metadata=False, dataset_kwargs={"partitioning": None},
            )  # fmt: skip
            rows = frame if len(part.groups) > 1 else frame.iloc[part.start : part.start + part.rows]
            read.append(_as_declared(rows.reset_index(drop=True), types, device))
    return cudf.concat(read, ignore_index=True)


def _as_declared(frame: Frame, types: Mapping[str, pa.DataType], device: Device) -> Frame:
    """Return columns of a file in the types of the dataset: a file says nothing of a column that is null throughout."""
    made = {}
    for name, type_ in types.items():
        if bool(frame[name].isna().all()):
            made[name] = _nulls(type_, frame, device)
            continue
        column = column_of(frame[name])
        if not isinstance(column, Text):
            column = as_fitted({name: column}, {name: type_}, device.xp)[name]
        made[name] = series_of(column, frame)
    return type(frame)(made)


def _nulls(type_: pa.DataType, frame: Frame, device: Device) -> Series:
    """Return a column of a type that is null in each row of a frame."""
    rows, xp = len(frame), device.xp
    if not is_number(type_):
        nothing = pa.nulls(rows, pa.string() if pa.types.is_null(type_) else type_)
        return _frame(pa.table({"values": nothing}), device)["values"]
    values = xp.zeros(rows, type_.to_pandas_dtype())
    return series_of(Numbers(values, xp.zeros(rows, bool)), frame)


def learn(lessons: Sequence[Lesson], material: Material, workers: Workers) -> list[tuple[Lesson, Fitted | Statistic]]:
    """Return what was learned: of the sums by keys of all rows, or of arrays of numbers, part by part."""
    of_categories = [each for each in lessons if isinstance(each.statistic, CategoryStatistic)]
    of_cells = [each for each in of_categories if not _has_lists(each, material)]
    of_arrays = [each for each in lessons if each not in of_cells]
    of_cells = _scaled(of_cells, material, workers)
    # Dask computes frames and delayed parts one after the other: it optimizes only the former.
    sums, parts = workers.compute(*_sums(of_cells, material)), workers.compute(*_parts(of_arrays, material))
    learned = [
        (lesson, lesson.statistic.learn(table_of(cells)))  # type: ignore[attr-defined]
        for lesson, cells in zip(of_cells, sums, strict=True)
    ]
    return learned + [
        (lesson, lesson.statistic.combine(each, material.fitting))
        for lesson, each in zip(of_arrays, parts, strict=True)
    ]


def _has_lists(lesson: Lesson, material: Material) -> bool:
    wanted = material.observed_columns(lesson).items()
    return any(pa.types.is_list(material.plan.field_of(name, origin).type) for name, origin in wanted)


def _sums(lessons: Sequence[Lesson], material: Material) -> list[dd.DataFrame]:
    """Return the sums by keys of each lesson, merged by a tree, as frames of the host."""
    if not lessons:
        return []
    rows = _rows(lessons, material)
    # What comes is not asked of rows that are made up: a GPU may be the workers' only.
    meta = _empty({}, HOST)
    return [
        rows.reduction(
            _summed_cells,
            aggregate=_sums_on_host,
            combine=sum_by_keys,
            chunk_kwargs={"lesson": lesson, "material": material},
            split_every=SPLIT_EVERY,
            meta=meta,
        )
        for lesson in lessons
    ]


def _summed_cells(rows: Frame, *, lesson: Lesson, material: Material) -> Frame:
    observed = _make_columns(
        rows, material.plan, material.learned, material.observed_columns(lesson), material.applying
    )
    return sum_by_keys(lesson.statistic.cells(observed, material.fitting.device))  # type: ignore[attr-defined]


def _sums_on_host(cells: Frame) -> Frame:
    return _frame(table_of(sum_by_keys(cells)), HOST)


def _parts(lessons: Sequence[Lesson], material: Material) -> list[list[Any]]:
    """Return what each partition tells for each lesson."""
    partitions = _rows(lessons, material).to_delayed() if lessons else ()
    return [[delayed(_observe)(each, lesson, material) for each in partitions] for lesson in lessons]


def _observe(rows: Frame, lesson: Lesson, material: Material) -> Any:
    observed = _make_columns(
        rows, material.plan, material.learned, material.observed_columns(lesson), material.applying
    )
    fitting = material.fitting
    if _has_lists(lesson, material):
        observed = {name: _on_host(column, fitting.device) for name, column in observed.items()}
        fitting = replace(fitting, device=HOST)
    return lesson.statistic.observe(iter([observed]), fitting)


def _rows(lessons: Sequence[Lesson], material: Material) -> dd.DataFrame:
    names = dict.fromkeys(name for lesson in lessons for name in material.columns(lesson))
    types = {name: material.plan.schema[name].type for name in names}
    return rows_of(material.dataset, types, material.fitting.device)


def _scaled(lessons: Sequence[Lesson], material: Material, workers: Workers) -> list[Lesson]:
    """Return lessons that know by which powers of 2 floats become integers; others are so without."""
    schema = material.plan.schema
    groups = [lesson.statistic for lesson in lessons if isinstance(lesson.statistic, GroupStatistic)]
    names = dict.fromkeys(name for statistic in groups for name in statistic.operator.of_numbers)
    floats = {name: schema[name].type for name in names if pa.types.is_floating(schema[name].type)}
    exponents = dict.fromkeys(names, 0)
    if floats:
        partitions = rows_of(material.dataset, floats, material.fitting.device).to_delayed()
        largest = workers.compute(*(delayed(_largest)(partition) for partition in partitions))
        exponents |= {name: _exponent(name, max(each[name] for each in largest)) for name in largest[0]}
    scaled = []
    for lesson in lessons:
        statistic = lesson.statistic
        if isinstance(statistic, GroupStatistic):
            powers = tuple(exponents[name] for name in statistic.operator.of_numbers)
            statistic = replace(statistic, exponents=powers)
        scaled.append(replace(lesson, statistic=statistic))
    return scaled


def _exponent(name: str, largest: float) -> int:
    if math.isinf(largest):
        raise InputError(f"the column {name!r} has infinite values. Clip it before, or leave it out.")
    return min(_BITS - math.frexp(largest)[1], _LARGEST_EXPONENT)


def _largest(frame: Frame) -> dict[str, float]:
    """Return the largest size of the numbers of each column, 0 without any."""
    return {name: float(frame[name].abs().fillna(0.0).max()) if len(frame) else 0.0 for name in list(frame.columns)}


class FittedPlan(Protocol):
    """What frames are made by: of `whitewater.features.transform.Transformation`, which calls this module."""

    @property
    def plan(self) -> Plan: ...
    @property
    def learned(self) -> Learned: ...
    @property
    def seconds(self) -> tuple[str, ...]: ...
    def given(self, schema: Schema, *, training: bool) -> dict[str, pa.DataType]: ...
    def fields(self, schema: Schema) -> tuple[Field, ...]: ...


def frames(transformation: FittedPlan, dataset: Dataset, applying: Applying) -> dd.DataFrame:
    """Return what a fitted plan makes of a dataset; nothing is computed yet."""
    given = transformation.given(dataset.schema, training=applying.training)
    types = {field.name: field.type for field in transformation.fields(dataset.schema)}
    results: dd.DataFrame = rows_of(dataset, given, applying.device).map_partitions(
        _results, transformation, list(types), applying, meta=_empty(types, applying.device)
    )
    return results


def part_block(transformation: FittedPlan, part: Part, dataset: Dataset, applying: Applying) -> Block:
    """Return what a fitted plan makes of a part of a dataset, on the host."""
    given = transformation.given(dataset.schema, training=applying.training)
    names = [field.name for field in transformation.fields(dataset.schema)]
    rows = _read((part,), dataset=dataset, types=given, device=applying.device)
    made = _columns_of_results(rows, transformation, names, applying)
    return {name: _on_host(column, applying.device) for name, column in made.items()}


def _results(rows: Frame, transformation: FittedPlan, names: Sequence[str], applying: Applying) -> Frame:
    made = _columns_of_results(rows, transformation, names, applying)
    return type(rows)({name: _series(column, rows) for name, column in made.items()})


def _columns_of_results(
    rows: Frame, transformation: FittedPlan, names: Sequence[str], applying: Applying
) -> dict[str, Any]:
    for name in transformation.seconds:
        if name in list(rows.columns):
            refuse_other_times(name, column_of(rows[name]))
    plan = transformation.plan
    wanted = {name: plan.outputs.get(name) for name in names}
    return _make_columns(rows, plan, transformation.learned, wanted, applying)


def _make_columns(
    rows: Frame, plan: Plan, learned: Learned, wanted: Mapping[str, Origin], applying: Applying
) -> dict[str, Any]:
    """Return columns that the rows of a frame have or stages make of them: `Numbers` and `Text`; lists on the host."""

    def read(names: Sequence[str]) -> dict[str, Any]:
        return {name: _column(rows[name]) for name in names}

    made: dict[str, Any] = evaluate(plan, learned, read, wanted, applying)
    return made


def _column(series: Series) -> Any:
    return _arrow_column(series) if is_list(series) else column_of(series)


def _arrow_column(series: Series) -> Column:
    return arrow_columns.column_of(table_of(series.to_frame("values"))["values"])


def _on_host(column: Any, device: Device) -> Column:
    """Return a column of a frame as one of the host, where text has a dictionary."""
    if isinstance(column, Text):
        return _arrow_column(column.series)
    if isinstance(column, Numbers):
        return Numbers(device.to_host(column.values), None if column.valid is None else device.to_host(column.valid))
    made: Column = column
    return made


def _series(column: Any, rows: Frame) -> Series:
    """Return a column as one of frames such as this one."""
    if isinstance(column, Lists):
        return frame_of(as_table({"values": column}, {"values": type_of(column)}), type(rows))["values"]
    return series_of(column, rows)
