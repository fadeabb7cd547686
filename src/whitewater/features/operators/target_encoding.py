"""Target encoding: the mean of a target per category, out of fold in training and over all rows in serving."""

from __future__ import annotations

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
    take_numbers,
)

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device
    from whitewater.features.columns.column import Block
    from whitewater.features.operator import ApplyMode

# Seed of the hash that assigns rows to folds.
FOLD_SEED = 42


class TargetMeans(LearnedByCategory):
    """What a `TargetEncoding` learned for one column or combination.

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

    def numbers(self, groups: Array, slots: Array | None, mode: ApplyMode) -> Array:
        if slots is None:
            return super().numbers(groups, slots, mode)
        return take_numbers(self._training, groups * self.operator.kfold + slots, mode.device)

    @cached_property
    def serving(self) -> npt.NDArray[np.float32]:
        rows, sums = (self.totals[name].sum(axis=1) for name in (ROWS, SUMS))
        return smoothed_means(rows, sums, self._sums.sum() / self._rows.sum(), self.operator.p_smooth)

    @cached_property
    def _training(self) -> npt.NDArray[np.float32]:
        """The encoding of each group and fold in training, (groups * folds,)."""
        other_rows = _sum_other_folds(self._rows)
        if not other_rows.all():
            raise InputError(
                "TargetEncoding: all rows fitted on whose target is not null are in one fold, so that there is no mean "
                "of the other folds. Fit on more rows."
            )
        rows, sums = (_sum_other_folds(self.totals[name]) for name in (ROWS, SUMS))
        return smoothed_means(rows, sums, _sum_other_folds(self._sums) / other_rows, self.operator.p_smooth).ravel()


class TargetEncoding(ByCategory):
    """The smoothed mean of a target over the rows of the same category.

    ``(sum + p_smooth * mean) / (count + p_smooth)``: sum and count over the rows of the category whose target is not
    null, mean over all rows whose target is not null; just the mean if count and ``p_smooth`` are 0.

    In serving, sum, count and mean are those of all rows fitted on. In training, they are those of the other folds, so
    that no row sees its own target. A row's fold is a hash of its key, independent of the order and the partitions of
    the rows. Only the rows fitted on can be used for training: their keys tell which fold they were in.

    Null is a category of its own. Unseen categories get the mean. Rows whose target is null are not counted; the
    statistics report how many there are. Sums of integers are exact.

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
    learned: ClassVar[type[LearnedByCategory]] = TargetMeans

    @property
    def target_columns(self) -> tuple[str, ...]:
        return (self.target,)

    def dependencies(self, *, fitting: bool, training: bool) -> tuple[str, ...]:
        key = columns_of(self.row_key) if self.kfold > 1 and (fitting or training) else ()
        return (*(self.target_columns if fitting else ()), *key)

    def output_name(self, name: str) -> str:
        return f"TE_{name}_{self.target}"

    @property
    def table_columns(self) -> dict[str, list[str]]:
        rows, sums = ([f"{self.target}_{kind}_{fold}" for fold in range(self.kfold)] for kind in ("count", "sum"))
        return {ROWS: rows, SUMS: sums, NULLS: [f"{self.target}_null_0"]}

    def slots(self, block: Block, device: Device) -> Array | None:
        """Return the fold of each row, int32 (rows,), on the device."""
        if self.kfold == 1:
            return None
        hashes = row_hash([block[column] for column in columns_of(self.row_key)], FOLD_SEED, device)
        folds: Array = (hashes % np.uint64(self.kfold)).astype(np.int32)
        return folds

    def slots_to_apply(self, block: Block, mode: ApplyMode) -> Array | None:
        if not mode.training:
            return None
        if self.kfold == 1:
            raise ConfigError(
                "TargetEncoding with kfold=1 cannot be used for training: rows would see their own target. Set kfold "
                "to 2 or more."
            )
        return self.slots(block, mode.device)


def _sum_other_folds(totals: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return for each fold the sum over all other folds, from and to (..., folds).

    It adds up the folds before and after: subtracting a fold from the total would leave its trace in the last digits.
    """
    others = np.zeros_like(totals)
    others[..., 1:] += np.cumsum(totals, axis=-1)[..., :-1]
    others[..., :-1] += np.cumsum(totals[..., ::-1], axis=-1)[..., -2::-1]
    return others
