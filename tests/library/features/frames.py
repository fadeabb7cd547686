"""Operators on pandas' frames: fitted on parts of the rows, as workers do it, and applied to others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa

from tests.library.features.operator_cases import CPU, fields_of, fitted_on, type_of
from whitewater.features.columns.column import Block, Categories, Column, Numbers
from whitewater.features.operator import Fitted, Inputs, Mode, Operator
from whitewater.features.schema import Field

MEMORY = 1 << 26


def block_of(frame: pd.DataFrame) -> Block:
    """Return a frame as a block: text, Int64 as integers with nulls, others are as they are."""
    return {str(name): _column(frame[name]) for name in frame}


def _column(series: pd.Series) -> Column:
    if not pd.api.types.is_numeric_dtype(series):
        known = [None if null else value for value, null in zip(series, series.isna(), strict=True)]
        # As dictionaries of files may, it has what no row has, is in no order, and has each entry twice.
        entries = [*dict.fromkeys(value for value in known if value is not None), "of another row"][::-1]
        places = {value: place for place, value in enumerate(entries)}
        codes = [-1 if value is None else places[value] + row % 2 * len(entries) for row, value in enumerate(known)]
        return Categories(np.array(codes, np.int32), pa.array(entries * 2, pa.string()))
    if series.dtype == "Int64":
        return Numbers(series.fillna(-7).to_numpy(np.int64), series.notna().to_numpy())
    return Numbers(series.to_numpy())


@dataclass(frozen=True)
class Learned:
    """An operator with what it learned of its inputs."""

    operator: Operator
    inputs: Inputs
    fitted: Mapping[str, Fitted]
    output: Sequence[Field]

    def applied(self, frame: pd.DataFrame, *, training: bool = False) -> pd.DataFrame:
        """Return the columns that come out; those that are not needed do not go in."""
        needed = self.operator.dependencies(fitting=False, training=training)
        block = block_of(frame[[*dict.fromkeys([*_columns(self.inputs), *needed])]])
        made = self.operator.transform(self.inputs, block, self.fitted, Mode(CPU, training))
        assert {field.name: field.type for field in self.output} == {
            name: type_of(column) for name, column in made.items()
        }
        columns = {name: column.values for name, column in made.items() if isinstance(column, Numbers)}  # noqa: PD011
        return pd.DataFrame(columns, index=frame.index)

    def applied_by_row(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return `applied` of one row after the other, in the types of the columns."""
        needed = self.operator.dependencies(fitting=False, training=False)
        names = [*dict.fromkeys([*_columns(self.inputs), *needed])]
        values = frame[names].astype(object).where(frame[names].notna(), None).to_numpy()
        compute = self.operator.row(self.inputs, self.fitted)
        rows = [compute(dict(zip(names, row, strict=True))) for row in values]
        types = {field.name: field.type.to_pandas_dtype() for field in self.output}
        return pd.DataFrame({name: np.array([row[name] for row in rows], types[name]) for name in types}, frame.index)


def learned(
    operator: Operator,
    frame: pd.DataFrame,
    inputs: Sequence[str | tuple[str, ...]],
    *,
    parts: int = 1,
    blocks: int = 1,
    memory: int = MEMORY,
) -> Learned:
    """Return what an operator learns of a frame in parts of the rows, each of some blocks; by way of an artifact."""
    given = tuple(inputs)
    spans: list[Block | list[Block]] = [list(map(block_of, _split(part, blocks))) for part in _split(frame, parts)]
    output = operator.output(given, fields_of(block_of(frame)))
    return Learned(operator, given, fitted_on(operator, spans, given, memory=memory), output)


def _split(frame: pd.DataFrame, parts: int) -> list[pd.DataFrame]:
    bounds = np.linspace(0, len(frame), parts + 1).astype(int)
    return [frame.iloc[start:stop] for start, stop in pairwise(bounds)]


def _columns(inputs: Inputs) -> list[str]:
    return [name for each in inputs for name in ((each,) if isinstance(each, str) else each)]
