"""A fitted plan applied to the rows of a block or a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from whitewater import memory
from whitewater.errors import ConfigError, InputError
from whitewater.recsys.dataset import Dataset, Part
from whitewater.recsys.operator import Applying
from whitewater.recsys.plan import Learnt, Plan, Read, evaluated
from whitewater.recsys.rows import as_fitted, as_table, refuse_other_times, type_of
from whitewater.recsys.schema import Field, Schema, kind

if TYPE_CHECKING:
    from whitewater.devices.columns import Block
    from whitewater.step import Run
    from whitewater.workers import Workers

# Of a block, for each row and column: what is read, what is made of it, and what is written.
ROW_BYTES = 16


@dataclass(frozen=True)
class Transformation:
    """What makes results of rows: a fitted plan, and columns that go along unchanged where the data have them.

    ``seconds`` are columns of the data that are seconds since 1970: numbers of another unit are refused in them.
    """

    plan: Plan
    learnt: Learnt
    carried: tuple[str, ...] = ()
    seconds: tuple[str, ...] = ()

    def columns(self, *, training: bool) -> list[str]:
        """Return the columns that the data must have."""
        return self.plan.data_columns(self.plan.outputs, training=training)

    def fields(self, schema: Schema) -> tuple[Field, ...]:
        """Return the columns of the results for data of a schema."""
        made = self.plan.output_fields()
        return (*made, *(schema[name] for name in self._carried(schema)))

    def check(self, schema: Schema, *, training: bool) -> None:
        """Check that data have the columns that are needed, of the kind that was fitted on.

        Raises
        ------
        InputError
            Naming every column that is missing or of another kind.
        """
        faults = check_columns(self.plan.schema, schema, self.columns(training=training))
        if faults:
            raise InputError(
                f"the data do not suit the workflow: {'; '.join(faults)}. Give columns as those that it was fitted on."
            )

    def block(self, block: Block, applying: Applying) -> Block:
        """Return the results for a block, which has the columns needed, of the kind that was fitted on."""
        names = self.columns(training=applying.training)
        given = Schema(tuple(Field(name, type_of(column)) for name, column in block.items()))
        self.check(given, training=applying.training)
        types = {name: self.plan.schema[name].type for name in names}
        block = {**block, **self._given({name: block[name] for name in names}, types, applying)}
        return self._evaluated(lambda wanted: {name: block[name] for name in wanted}, self._carried(given), applying)

    def tables(self, dataset: Dataset, *, run: Run[Any], client: Workers, training: bool) -> Iterator[pa.Table]:
        """Yield the results part by part, in order; a few parts are in memory at a time."""
        shared = self.prepared(dataset, run=run, training=training)
        parts, at_once = dataset.parts(), 2 * run.threads
        for first in range(0, len(parts), at_once):
            some = parts[first : first + at_once]
            yield from run.map(_table, some, client=client, label="transform", ordered=True, shared=shared)

    def prepared(self, dataset: Dataset, *, run: Run[Any], training: bool) -> dict[str, Any]:
        """Check a dataset; return what `part_block` needs besides a part."""
        self.check(dataset.schema, training=training)
        self._forecast(dataset, run.threads)
        return {"transformation": self, "dataset": dataset, "applying": Applying(run.device, training)}

    def part_block(self, part: Part, dataset: Dataset, applying: Applying) -> Block:
        """Return the results for a part of a dataset."""
        carried = self._carried(dataset.schema)
        types = {name: dataset.schema[name].type for name in carried}
        types |= {name: self.plan.schema[name].type for name in self.columns(training=applying.training)}

        def read(names: Sequence[str]) -> Block:
            return self._given(dataset.read(part, names, applying.device), types, applying)

        return self._evaluated(read, carried, applying)

    def _given(self, block: Block, types: Mapping[str, pa.DataType], applying: Applying) -> Block:
        """Return columns as they were when the workflow was fitted. Raises InputError if they cannot be."""
        found = as_fitted(block, types, applying.device)
        for name in self.seconds:
            if name in found:
                refuse_other_times(name, found[name], applying.device)
        return found

    def _evaluated(self, read: Read, carried: Sequence[str], applying: Applying) -> Block:
        return evaluated(self.plan, self.learnt, read, {**self.plan.outputs, **dict.fromkeys(carried)}, applying)

    def _carried(self, schema: Schema) -> list[str]:
        return [name for name in self.carried if name in schema.names]

    def _forecast(self, dataset: Dataset, threads: int) -> None:
        parts = dataset.parts()
        rows = max((part.rows for part in parts), default=0)
        columns = max(len(self.columns(training=True)), len(self.plan.outputs))
        memory.forecast(
            min(threads, len(parts)) * rows * columns * ROW_BYTES,
            what=f"transforming parts of up to {rows:,} rows",
            remedy="Make smaller row groups (recsys.fetch.row_group_rows), or take fewer threads.",
        )


def _table(part: Part, *, transformation: Transformation, dataset: Dataset, applying: Applying) -> pa.Table:
    types = {each.name: each.type for each in transformation.fields(dataset.schema)}
    return as_table(transformation.part_block(part, dataset, applying), types, applying.device)


def check_columns(fitted: Schema, found: Schema, names: Sequence[str]) -> list[str]:
    """Return what is wrong with columns: those that are missing, or of another kind than what was fitted on."""
    known: Mapping[str, Field] = {each.name: each for each in found}
    faults = [_missing(name, found) for name in names if name not in known]
    for name in (name for name in names if name in known):
        wanted, given = kind(fitted[name].type), kind(known[name].type)
        if wanted != given and "nulls" not in (wanted, given):
            faults.append(f"column {name!r} is of {given}, but was of {wanted} when it was fitted")
    return faults


def _missing(name: str, found: Schema) -> str:
    return found.fault(name) if name in found.unusable else f"column {name!r} is missing"


def refuse_carried(plan: Plan, carried: Sequence[str]) -> None:
    """Raise ConfigError if columns cannot go along with the results."""
    if both := [name for name in carried if name in plan.outputs]:
        raise ConfigError(f"{', '.join(both)} would be there twice: as a result, and carried along. Rename the result.")
