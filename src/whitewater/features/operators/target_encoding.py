"""Categories as the mean of a target: out of fold in training, of all rows in serving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field as Setting

from whitewater.engines.device import Device
from whitewater.errors import ConfigError, InputError
from whitewater.features.categories.groups import Grouped, Grouping, columns_of, read_numbers
from whitewater.features.categories.hashing import row_hash
from whitewater.features.categories.values import as_floats
from whitewater.features.columns.codes import count_codes, sum_by_code
from whitewater.features.frames import halves, whole
from whitewater.features.operators.by_category import ByCategory, GatheringOfRows, LearnedByCategory, spread
from whitewater.tables.arrow_arrays import to_numpy

if TYPE_CHECKING:
    from whitewater.engines.device import Array
    from whitewater.features.columns.column import Block
    from whitewater.features.operator import Applying, Row, Value

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
KINDS = ("count", "sum", "null")
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

    @property
    def of_numbers(self) -> tuple[str, ...]:
        return (self.target,)

    def dependencies(self, *, fitting: bool, training: bool) -> tuple[str, ...]:
        key = columns_of(self.row_key) if self.kfold > 1 and (fitting or training) else ()
        return (*(self.of_numbers if fitting else ()), *key)

    def columns_of(self, name: str) -> dict[str, pa.DataType]:
        return {f"TE_{name}_{self.target}": pa.float32()}

    def gathering(self, grouping: Grouping) -> TargetSums:
        return TargetSums(self, grouping)

    def learned(self, grouping: Grouping, table: pa.Table) -> TargetMeans:
        return TargetMeans(self, grouping, table)

    def of_rows(self, block: Block, applying: Applying) -> Array | None:
        if not applying.training:
            return None
        if self.kfold == 1:
            raise ConfigError(
                "TargetEncoding with kfold=1 has nothing to train with: each row would know its own target. Set kfold "
                "to 2 or more."
            )
        return self.folds(block, applying.device)

    def folds(self, block: Block, device: Device) -> Array:
        """Return the fold of each row, int32 (rows,), on the device."""
        hashes = row_hash([block[column] for column in columns_of(self.row_key)], FOLD_SEED, device)
        folds: Array = (hashes % np.uint64(self.kfold)).astype(np.int32)
        return folds

    def cells(self, block: Block, exponents: Sequence[int], device: Device) -> dict[str, Any]:
        xp, (exponent,) = device.xp, exponents
        values = as_floats(block[self.target], xp)
        null = xp.isnan(values)
        first, second = halves(values, exponent, device)
        folds = self.folds(block, device) if self.kfold > 1 else xp.zeros(len(values), xp.int32)
        counts = {"count": (~null).astype(xp.int64), "null": null.astype(xp.int64)}
        return {"key_fold": folds, **counts, "first": first, "second": second}

    def names(self, kind: str) -> list[str]:
        """Return the columns of a table of categories that tell one kind of total, of each fold."""
        return [f"{self.target}_{kind}_{fold}" for fold in range(1 if kind == "null" else self.kfold)]

    def totals(self, table: pa.Table, kind: str) -> npt.NDArray[Any]:
        """Return one kind of total of a table of categories, (groups, folds); the last group has no rows."""
        columns = read_numbers(table, self.names(kind))
        totals = np.zeros((len(table) + 1, len(columns)), np.float64 if kind == "sum" else np.int64)
        for place, numbers in enumerate(columns.values()):
            totals[:-1, place] = numbers
        return totals


class TargetSums(GatheringOfRows):
    """Counts and sums of the target by category and fold, and the rows whose target is null, which do not count."""

    def __init__(self, operator: TargetEncoding, grouping: Grouping) -> None:
        names = {name: np.float64 if kind == "sum" else np.int64 for kind in KINDS for name in operator.names(kind)}
        super().__init__(grouping, {name: np.zeros(1, dtype) for name, dtype in names.items()})
        self._operator, self._target = operator, operator.target

    def add_rows(self, here: Grouped, block: Block) -> None:
        folds, size = self._operator.kfold, len(here.groups)
        known = here.codes * folds + self._operator.folds(block, Device()) if folds > 1 else here.codes
        values = as_floats(block[self._target])
        null = np.isnan(values)
        if bool(null.any()):
            values, known = np.where(null, 0.0, values), np.where(null, -1, known)
            missing = count_codes(np.where(null, here.codes, -1), size)
            self.totals[f"{self._target}_null_0"][here.groups] += missing
        counts = count_codes(known, size * folds).reshape(size, folds)
        sums = sum_by_code(known, values, size * folds).reshape(size, folds)
        for fold in range(folds):
            self.totals[f"{self._target}_count_{fold}"][here.groups] += counts[:, fold]
            self.totals[f"{self._target}_sum_{fold}"][here.groups] += sums[:, fold]

    def add_sums(self, groups: Counts, cells: pa.Table, exponents: Sequence[int]) -> None:
        folds, (exponent,) = to_numpy(cells["key_fold"]), exponents
        sums = {name: to_numpy(cells[name]) for name in ("count", "null", "first", "second")}
        total = whole(sums["first"], sums["second"], exponent)
        np.add.at(self.totals[f"{self._target}_null_0"], groups, sums["null"])
        for fold in range(self._operator.kfold):
            here = folds == fold
            np.add.at(self.totals[f"{self._target}_count_{fold}"], groups[here], sums["count"][here])
            np.add.at(self.totals[f"{self._target}_sum_{fold}"], groups[here], total[here])


class TargetMeans(LearnedByCategory):
    """What a `TargetEncoding` learned of one column or combination.

    Raises InputError if the target is null in all rows, or infinite in one.
    """

    def __init__(self, operator: TargetEncoding, grouping: Grouping, table: pa.Table) -> None:
        super().__init__(grouping, table)
        self._operator = operator
        # The last group is of categories that were not seen.
        self._of_groups = [operator.totals(table, kind) for kind in ("count", "sum")]
        self._nulls = operator.totals(table, "null").sum()
        self._counts, self._sums = (totals.sum(axis=0) for totals in self._of_groups)
        about = f"TargetEncoding: the target {operator.target!r}"
        if not self._counts.any():
            raise InputError(f"{about} is null in all rows of fitting. Give another.")
        if not np.isfinite(self._sums).all():
            raise InputError(f"{about} has infinite values. Clip it, or give another.")

    def facts(self) -> dict[str, Any]:
        rows, mean = self._counts.sum(), self._sums.sum() / self._counts.sum()
        facts = {"rows": rows.item(), "mean": mean.item(), "null_rows": self._nulls.item()}
        return super().facts() | {"targets": {self._operator.target: facts}}

    def numbers(self, groups: Array, of_rows: Array | None, applying: Applying) -> list[Array]:
        if of_rows is None:
            return [spread(self._serving, groups, applying.device)]
        return [spread(self._training, groups * self._operator.kfold + of_rows, applying.device)]

    @cached_property
    def _serving(self) -> npt.NDArray[np.float32]:
        """What serves, (groups,)."""
        counts, sums = (totals.sum(axis=1) for totals in self._of_groups)
        return self._smoothed(counts, sums, self._sums.sum() / self._counts.sum())

    @cached_property
    def _training(self) -> npt.NDArray[np.float32]:
        """What trains, (groups * folds,)."""
        rows = _of_others(self._counts)
        if not rows.all():
            raise InputError(
                "TargetEncoding: all rows of fitting whose target is not null are in one fold, so that there is no "
                "mean of others for it. Fit on more rows."
            )
        counts, sums = (_of_others(totals) for totals in self._of_groups)
        return self._smoothed(counts, sums, _of_others(self._sums) / rows)

    def _smoothed(self, counts: Counts, sums: Floats, mean: Floats) -> npt.NDArray[np.float32]:
        """Return the encodings of counts and sums (groups, ...), whose mean is (...)."""
        smoothing, prior = self._operator.p_smooth, np.broadcast_to(mean, counts.shape)
        weight = counts + smoothing
        encoded: Floats = np.divide(sums + smoothing * prior, weight, out=prior.copy(), where=weight > 0)
        return encoded.astype(np.float32).ravel()

    def numbers_of_row(self) -> Callable[[Row], Sequence[Value]]:
        group_of, encoded = self.lookup.group_of_row(), self._serving
        return lambda row: [encoded[group_of(row)].item()]


def _of_others(folded: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the sum over the other folds, from and to (..., folds).

    Those before and those after are added up: a fold taken from the sum of all leaves its trace in the last digits.
    """
    others = np.zeros_like(folded)
    others[..., 1:] += np.cumsum(folded, axis=-1)[..., :-1]
    others[..., :-1] += np.cumsum(folded[..., ::-1], axis=-1)[..., -2::-1]
    return others
