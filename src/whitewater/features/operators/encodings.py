"""Counts of a category's rows, and means of a target: over all rows, out of fold, or in earlier periods.

For earlier periods the sums are kept by *cell*, a pair of category and period. There are far fewer cells than rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field as Setting

from whitewater.engines.device import Array, Device
from whitewater.engines.kernel import kernel
from whitewater.errors import ConfigError, InputError, IntegrityError
from whitewater.features.columns.categories import row_hash
from whitewater.features.columns.column import Block, Numbers
from whitewater.features.columns.groups import Input, columns_of
from whitewater.features.operator import Inputs, Mode, Row, Value
from whitewater.features.operators.by_category import NULLS, ROWS, SUMS, ByCategory, LearnedByCategory, Sums
from whitewater.features.schema import Field
from whitewater.tables.arrow_arrays import one_array, to_arrow, to_numpy

FOLD_SEED = 42  # of the hash that assigns rows to folds
PERIODS = "periods"


class TargetMeans(LearnedByCategory):
    """The result of a `TargetEncoding` for one column or combination."""

    def __init__(self, operator: TargetEncoding, *arguments: Any) -> None:
        super().__init__(operator, *arguments)
        self._rows, self._sums = (self.totals[name].sum(axis=0) for name in (ROWS, SUMS))

    def facts(self) -> dict[str, Any]:
        rows, nulls = self._rows.sum(), self.totals[NULLS].sum()
        facts = {"rows": rows.item(), "mean": (self._sums.sum() / rows).item(), "null_rows": nulls.item()}
        return super().facts() | {"targets": {self.operator.target: facts}}

    def numbers(self, groups: Array, block: Block, mode: Mode) -> Array:
        if not mode.training:
            return super().numbers(groups, block, mode)
        folds = self.operator.slots(block, mode.device)
        if folds is None:
            raise ConfigError(
                "TargetEncoding with kfold=1 cannot be used for training: rows would see their own target. Set kfold "
                "to 2 or more."
            )
        return mode.device.xp.take(mode.device.to_device(self._training), groups * self.operator.kfold + folds)

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
                "TargetEncoding: all rows with a target are in one fold, so the other folds have no mean. Fit on more "
                "rows."
            )
        rows, sums = (_sum_other_folds(self.totals[name]) for name in (ROWS, SUMS))
        return smoothed_means(rows, sums, _sum_other_folds(self._sums) / other_rows, self.operator.p_smooth).ravel()


class TargetEncoding(ByCategory):
    """The smoothed mean of a target over the rows of the same category.

    ``(sum + p_smooth * mean) / (count + p_smooth)``, with sum and count of the category and the mean of all rows. Rows
    whose target is null do not count; the statistics report them. If count and ``p_smooth`` are 0, it is the mean.

    In serving, sum, count and mean are those of all rows fitted on. In training, they are those of the other folds, so
    that no row sees its own target. A row's fold is a hash of its key, so train only on the rows fitted on.

    Null is a category of its own. Unseen categories get the mean. Sums of integers are exact.

    Output: ``TE_<column>_<target>``, float32, for each column or combination.

    Source: D. Micci-Barreca, "A preprocessing scheme for high-cardinality categorical attributes in classification and
    prediction problems", SIGKDD Explorations 3 (1), 2001.
    """

    target: str = Setting(min_length=1, description="Column to average.")
    kfold: int = Setting(5, ge=1, le=100, description="Number of folds; with 1 it can serve, but not train.")
    p_smooth: float = Setting(20.0, ge=0, description="Rows of the mean that each category has in addition to its own.")
    row_key: str | tuple[str, ...] = Setting(
        "row_id", min_length=1, description="Column or columns that identify a row; rows of one key are in one fold."
    )

    output_pattern: ClassVar[str] = "TE_{column}_{target}"
    learned: ClassVar[type[LearnedByCategory]] = TargetMeans

    def dependencies(self, *, fitting: bool, training: bool) -> tuple[str, ...]:
        key = columns_of(self.row_key) if self.kfold > 1 and (fitting or training) else ()
        return (*(self.target_columns if fitting else ()), *key)

    @property
    def table_columns(self) -> dict[str, list[str]]:
        rows, sums = ([f"{self.target}_{kind}_{fold}" for fold in range(self.kfold)] for kind in ("count", "sum"))
        return {ROWS: rows, SUMS: sums, NULLS: [f"{self.target}_null_0"]}

    def slots(self, block: Block, device: Device) -> Array | None:
        """Return the fold of each row, int32 (rows,), on the device."""
        if self.kfold == 1:
            return None
        hashes = row_hash([block[column] for column in columns_of(self.row_key)], FOLD_SEED, device)
        return (hashes % np.uint64(self.kfold)).astype(np.int32)


def _sum_other_folds(totals: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return for each fold the sum over all other folds, (..., folds).

    Subtracting a fold from the total would leave its trace in the last digits.
    """
    others = np.zeros_like(totals)
    others[..., 1:] += np.cumsum(totals, axis=-1)[..., :-1]
    others[..., :-1] += np.cumsum(totals[..., ::-1], axis=-1)[..., -2::-1]
    return others


def smoothed_means(rows: npt.NDArray[Any], sums: Array, prior: Any, smoothing: float) -> npt.NDArray[np.float32]:
    """Return ``(sums + smoothing * prior) / (rows + smoothing)``, or the prior where the divisor is 0."""
    weight, prior = rows + smoothing, np.broadcast_to(prior, rows.shape)
    return np.divide(sums + smoothing * prior, weight, out=prior.copy(), where=weight > 0).astype(np.float32)


class JoinGroupby(ByCategory):
    """The number of rows fitted on of the same category: NVTabular's statistic ``count``.

    It includes the row itself and later ones; `PastCount` counts earlier rows only. Null is a category of its own. An
    unseen category has count 0.

    Output: ``<column>_count``, int64, for each column or combination.
    """

    output_pattern: ClassVar[str] = "{column}_count"


class LearnedPast(LearnedByCategory):
    """Cells of categories, sorted by the key ``group * ends + rank``, where the rank is the number of earlier periods.

    The cells of each category, seen or not, end with one later than all periods. ``_before`` are the sums over the
    earlier cells of the same category; ``_means`` are those of all rows before a period.
    """

    def __init__(self, operator: Any, *arguments: Any) -> None:
        super().__init__(operator, *arguments)
        names = ROWS, *((SUMS,) if operator.target_columns else ())
        lists = {name: one_array(self.table[name]) for name in (PERIODS, *names)}
        lengths = lists[PERIODS].value_lengths()
        if not all(each.value_lengths().equals(lengths) for each in lists.values()):
            raise IntegrityError("a table of categories has lists of different lengths in a row. Fit again.")
        of_cells = {name: to_numpy(each.flatten()) for name, each in lists.items()}
        self.periods = np.unique(of_cells[PERIODS])
        ranks = np.searchsorted(self.periods, of_cells[PERIODS])
        self._ends = len(self.periods) + 1
        # One more category, without cells: the unseen ones.
        cells = np.append(to_numpy(lengths), 0)
        starts = np.append(0, np.cumsum(cells))
        keys = np.repeat(np.arange(len(cells)), cells) * self._ends + ranks
        self._keys = np.insert(keys, starts[1:], np.arange(1, len(starts)) * self._ends - 1)
        self._before = {name: np.empty(len(self._keys)) for name in names}
        for name, before in self._before.items():
            add_up_runs(of_cells[name].astype(np.float64), starts, before)
        if operator.target_columns:
            rows, sums = (np.cumsum(np.bincount(ranks, of_cells[name])) for name in names)
            self._means = np.append(operator.first_mean, sums / rows)

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"periods": len(self.periods), "null_rows": int(self.totals[NULLS].sum())}

    def numbers(self, groups: Array, block: Block, mode: Mode) -> Array:
        device = mode.device
        ranks = device.xp.searchsorted(device.to_device(self.periods), self.operator.slots(block, device))
        keys, of_row = device.xp.unique(groups * self._ends + ranks, return_inverse=True)
        return device.xp.take(device.to_device(self._number(device.to_host(keys))), of_row)

    def _number(self, keys: Array) -> npt.NDArray[Any]:
        """Return the outputs for keys, from the sums over the cells before them."""
        places = np.searchsorted(self._keys, keys)
        rows = self._before[ROWS][places]
        if not self.operator.target_columns:
            return rows.astype(np.int64)
        means = self._means[keys % self._ends]
        return smoothed_means(rows, self._before[SUMS][places], means, self.operator.p_smooth)

    def of_row(self, of: Input) -> Callable[[Row], Value]:
        group_of, period_of = self.groups.of_row(of), self.operator.period_of_row
        periods, ends = self.periods.tolist(), self._ends
        return lambda row: self._number(np.array([group_of(row) * ends + bisect_left(periods, period_of(row))])).item()


class _Past(ByCategory):
    """Counts or means of a category before the period of a row."""

    time: str = Setting("time", min_length=1, description="Column of the time, an integer.")
    period: int = Setting(86_400, ge=1, description="Length of a period in units of the time; one begins at 0.")
    learned: ClassVar[type[LearnedByCategory]] = LearnedPast

    def dependencies(self, *, fitting: bool, training: bool) -> tuple[str, ...]:
        return (self.time, *self.target_columns) if fitting else (self.time,)

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        if not pa.types.is_integer(fields[self.time].type):
            raise ConfigError(
                f"{type(self).__name__}: the time {self.time!r} is of type {fields[self.time].type}. Give an integer, "
                "such as seconds since 1970."
            )
        return super().output(inputs, fields)

    def slots(self, block: Block, device: Device) -> Array:
        """Return the period of each row, int64 (rows,); raises InputError if a time is null."""
        column = cast("Numbers", block[self.time])
        if column.valid is not None and (nulls := int((~column.valid).sum())):
            raise InputError(
                f"{type(self).__name__}: the time {self.time!r} is null in {nulls} of {len(column)} rows. Leave these "
                "rows out, or give them a time."
            )
        # Unsigned times may not fit int64, but their periods do.
        wide = np.uint64 if column.values.dtype == np.uint64 else np.int64
        return (column.values.astype(wide) // self.period).astype(np.int64)

    def period_of_row(self, row: Row) -> int:
        """Return the period of one row; raises InputError if the time is not an integer."""
        time = row[self.time]
        if not isinstance(time, int):
            raise InputError(f"{type(self).__name__}: the time {self.time!r} is {time!r}. Give an integer.")
        return time // self.period

    @property
    def table_columns(self) -> dict[str, tuple[str, ...]]:
        return {NULLS: (NULLS,)}

    def table(self, sums: Sums) -> pa.Table:
        """Return the sums: for each category lists of its periods, their rows, and their sums of a target."""
        groups, periods = sums.pairs()
        cells = np.flatnonzero(sums.totals[ROWS][: len(groups)])
        order = cells[np.lexsort((periods[cells], groups[cells]))]
        table = super().table(sums)
        offsets = to_arrow(np.searchsorted(groups[order], np.arange(len(table) + 1)))
        for name, each in {PERIODS: periods, **sums.totals}.items():
            if name != NULLS:
                table = table.append_column(name, pa.LargeListArray.from_arrays(offsets, to_arrow(each[order])))
        return table


class PastCount(_Past):
    """The number of rows of the same category in the periods before that of the row.

    A period is ``time // period``. The count is the same in training and in serving: it never includes the row itself,
    others in its period, or later ones. A row later than all rows fitted on counts all of them.

    Null is a category of its own; an unseen category has 0. A null time is refused.

    Output: ``<column>_past_count``, int64, for each column or combination.
    """

    output_pattern: ClassVar[str] = "{column}_past_count"


class PastMean(_Past):
    """The smoothed mean of a target over rows of the same category in the periods before that of the row.

    ``(sum + p_smooth * mean) / (count + p_smooth)``, with sum and count of the rows that `PastCount` counts, and the
    mean over all categories in these periods, or ``first_mean`` if they have no rows. Changing a target changes no
    output of its period or earlier, not even the last digit. Rows whose target is null do not count; the statistics
    report them. Null is a category of its own. An unseen category gets the mean, as does any category if count and
    ``p_smooth`` are 0. A null time is refused.

    Output: ``<column>_past_mean_<target>``, float32, for each column or combination.
    """

    target: str = Setting(min_length=1, description="Column to average.")
    p_smooth: float = Setting(20.0, ge=0, description="Rows of the mean that each category has in addition to its own.")
    first_mean: float = Setting(0.5, description="The mean where no row is earlier.")
    output_pattern: ClassVar[str] = "{column}_past_mean_{target}"


@kernel
def add_up_runs(values: Array, starts: Array, before: Array) -> None:
    """Fill ``before``, float64, for each run ``values[starts[i]:starts[i + 1]]`` with its running sums from 0 on."""
    for run in range(len(starts) - 1):
        total = 0.0
        for place in range(starts[run], starts[run + 1]):
            before[place + run] = total
            total += values[place]
        before[starts[run + 1] + run] = total
