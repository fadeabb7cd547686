"""Categories as the mean of a target: out of fold in training, of all rows in serving."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field as Setting

from whitewater.errors import ConfigError, InputError
from whitewater.features.categories.groups import Grouping, columns_of
from whitewater.features.categories.hashing import row_hash
from whitewater.features.operators.by_category import (
    NULLS,
    ROWS,
    SUMS,
    ByCategory,
    LearnedByCategory,
    refuse_target,
    smoothed_means,
    spread,
)

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device
    from whitewater.features.columns.column import Block
    from whitewater.features.operator import Applying, Row, Value

# Of the hash that tells a row's fold.
FOLD_SEED = 42


class TargetEncoding(ByCategory):
    """The smoothed mean of a target over the rows of the same category.

    ``(sum + p_smooth * mean) / (count + p_smooth)``: sum and count over the rows of the category whose target is not
    null, mean over all rows whose target is not null; just the mean where count and ``p_smooth`` are 0.

    In serving, sum, count and mean are of all rows of fitting, whatever the data. In training, they are of the rows of
    the other folds, so that no row knows its own target. A row's fold is a hash of its key, whatever the order and the
    partitions of the rows. Training is for the rows of fitting: their keys tell which fold they were in.

    Null is a category of its own. An unseen category is the mean. Rows whose target is null count nowhere, and the
    statistics say how many there are. Sums of integers are exact.

    Output: ``TE_<column>_<target>``, float32, for each column or combination.

    Source: D. Micci-Barreca, "A preprocessing scheme for high-cardinality categorical attributes in classification and
    prediction problems", SIGKDD Explorations 3 (1), 2001.
    """

    target: str = Setting(min_length=1, description="Column whose mean is taken.")
    kfold: int = Setting(5, ge=1, le=100, description="Folds; with 1 the operator can serve, but not train.")
    p_smooth: float = Setting(20.0, ge=0, description="Rows of the mean that each category has in addition to its own.")
    row_key: str | tuple[str, ...] = Setting(
        "row_id", min_length=1, description="Column, or columns, that tell rows apart; rows of one key are in one fold."
    )

    output_type: ClassVar[pa.DataType] = pa.float32()

    @property
    def of_numbers(self) -> tuple[str, ...]:
        return (self.target,)

    def dependencies(self, *, fitting: bool, training: bool) -> tuple[str, ...]:
        key = columns_of(self.row_key) if self.kfold > 1 and (fitting or training) else ()
        return (*(self.of_numbers if fitting else ()), *key)

    def output_name(self, name: str) -> str:
        return f"TE_{name}_{self.target}"

    @property
    def stored(self) -> dict[str, list[str]]:
        rows, sums = ([f"{self.target}_{kind}_{fold}" for fold in range(self.kfold)] for kind in ("count", "sum"))
        return {ROWS: rows, SUMS: sums, NULLS: [f"{self.target}_null_0"]}

    def learned(self, grouping: Grouping, table: pa.Table) -> TargetMeans:
        return TargetMeans(self, grouping, table)

    def slots(self, block: Block, device: Device) -> Array | None:
        """Return the fold of each row, int32 (rows,), on the device."""
        if self.kfold == 1:
            return None
        hashes = row_hash([block[column] for column in columns_of(self.row_key)], FOLD_SEED, device)
        folds: Array = (hashes % np.uint64(self.kfold)).astype(np.int32)
        return folds

    def slots_to_apply(self, block: Block, applying: Applying) -> Array | None:
        if not applying.training:
            return None
        if self.kfold == 1:
            raise ConfigError(
                "TargetEncoding with kfold=1 has nothing to train with: each row would know its own target. Set kfold "
                "to 2 or more."
            )
        return self.slots(block, applying.device)


class TargetMeans(LearnedByCategory):
    """What a `TargetEncoding` learned of one column or combination.

    Raises InputError if the target is null in all rows, or infinite in one.
    """

    def __init__(self, operator: TargetEncoding, grouping: Grouping, table: pa.Table) -> None:
        super().__init__(operator, grouping, table)
        self._rows, self._sums = (self.totals[name].sum(axis=0) for name in (ROWS, SUMS))
        refuse_target("TargetEncoding", operator.target, self._rows, self._sums)

    def facts(self) -> dict[str, Any]:
        rows, nulls = self._rows.sum(), self.totals[NULLS].sum()
        facts = {"rows": rows.item(), "mean": (self._sums.sum() / rows).item(), "null_rows": nulls.item()}
        return super().facts() | {"targets": {self.operator.target: facts}}

    def numbers(self, groups: Array, slots: Array | None, applying: Applying) -> Array:
        if slots is None:
            return spread(self._serving, groups, applying.device)
        return spread(self._training, groups * self.operator.kfold + slots, applying.device)

    @cached_property
    def _serving(self) -> npt.NDArray[np.float32]:
        """The encoding of each group in serving, (groups,)."""
        rows, sums = (self.totals[name].sum(axis=1) for name in (ROWS, SUMS))
        return smoothed_means(rows, sums, self._sums.sum() / self._rows.sum(), self.operator.p_smooth)

    @cached_property
    def _training(self) -> npt.NDArray[np.float32]:
        """The encoding of each group and fold in training, (groups * folds,)."""
        of_others = _of_others(self._rows)
        if not of_others.all():
            raise InputError(
                "TargetEncoding: all rows of fitting whose target is not null are in one fold, so that there is no "
                "mean of others for it. Fit on more rows."
            )
        rows, sums = (_of_others(self.totals[name]) for name in (ROWS, SUMS))
        return smoothed_means(rows, sums, _of_others(self._sums) / of_others, self.operator.p_smooth).ravel()

    def number_of_row(self) -> Callable[[Row], Value]:
        group_of, encoded = self.lookup.group_of_row(), self._serving
        return lambda row: encoded[group_of(row)].item()


def _of_others(folded: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the sum over the other folds, from and to (..., folds).

    Those before and those after are added up: a fold taken from the sum of all leaves its trace in the last digits.
    """
    others = np.zeros_like(folded)
    others[..., 1:] += np.cumsum(folded, axis=-1)[..., :-1]
    others[..., :-1] += np.cumsum(folded[..., ::-1], axis=-1)[..., -2::-1]
    return others
