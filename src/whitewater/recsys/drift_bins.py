"""The bins in which columns are compared, learnt from the reference, and the counts of rows in them.

Numbers have *places*, int64 (2 x edges + 2,): by turns an open interval and the single value at its end, ``(-inf,
e0), e0, (e0, e1), e1, ... (en, inf)``, then nulls. Categories have a place for each of the most frequent of the
reference, then one for all others that it has, one for those that it has not, and one for nulls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from whitewater.arrow_arrays import to_arrow
from whitewater.devices.columns import Categories, Column, Lists
from whitewater.recsys.categories import CategoryCounter, CategoryTable, as_categories, as_floats, order_by_frequency

if TYPE_CHECKING:
    from whitewater.devices import Array, Device
    from whitewater.recsys.drift_measures import Counts

EDGES = 1024
"""Of a column of numbers, about, at most; if the reference has no more values, each of them is an edge."""
LEAST_ROWS = 10
"""Of the reference in the place of a single category; of rarer ones, chance makes too much for the shares to tell."""
SAMPLE = 1 << 18
"""Rows of the reference, at most, from which the edges are taken: each second, third, ... of them if it has more."""


@dataclass(frozen=True)
class NumberBins:
    """Bins of a column of numbers.

    ``edges`` are float64, ascending; ``bins``, int64 (2 x edges + 2,), is the bin of each place, ascending.
    """

    edges: npt.NDArray[np.float64]
    bins: npt.NDArray[np.int64]

    def count(self, column: Column, device: Device) -> Counts:
        """Return the rows at each place."""
        values, edges = as_floats(column, device), device.from_host(self.edges)
        null = 2 * len(self.edges) + 1
        counts = np.zeros(null + 1, np.int64)
        for start in range(0, len(values), device.slice_rows):
            places = _places(values[start : start + device.slice_rows], edges, null=null, device=device)
            counts += device.to_host(device.count_codes(places, null + 1))
        return counts

    def binned(self, places: Counts) -> Counts:
        """Return the rows in each bin; nulls are a bin, the last one."""
        return np.bincount(self.bins, places).astype(np.int64)


@dataclass(frozen=True)
class CategoryBins:
    """Bins of a column of categories.

    ``known`` are all categories of the reference, and ``places``, int32 (known + 1,), the place of each; at its end
    that of the unknown. ``once`` is the number of those that the reference has once.
    """

    known: CategoryTable
    places: npt.NDArray[np.int32]
    once: int

    @property
    def unknown(self) -> int:
        """The place of categories that the reference lacks; after it comes that of nulls."""
        return int(self.places[-1])

    def count(self, column: Column, device: Device) -> Counts:
        """Return the rows at each place; of lists the elements, and lists without any as nulls."""
        categories, nulls = elements(column, device)
        rows = device.to_host(device.count_codes(categories.codes, len(categories.dictionary)))
        places = self.places[self.known.look_up(categories.dictionary)]
        counts = np.zeros(self.unknown + 2, np.int64)
        np.add.at(counts, places, rows)
        counts[-1] = nulls
        return counts

    def binned(self, places: Counts) -> Counts:
        """Return the rows in each bin: of frequent categories, of all others, and of nulls."""
        return np.concatenate([places[:-3], [places[-3] + places[-2]], places[-1:]])


Bins = NumberBins | CategoryBins


def elements(column: Column, device: Device) -> tuple[Categories, int]:
    """Return a column, or the elements of its lists, as categories, and the number of nulls or of empty lists."""
    if isinstance(column, Lists):
        inside, _ = elements(column.values, device)
        return inside, int((column.offsets[1:] == column.offsets[:-1]).sum())
    categories = as_categories(column, device)
    return categories, int((categories.codes < 0).sum())


def number_bins(sample: npt.NDArray[np.float64], *, bins: int) -> NumberBins:
    """Return the bins for a sample of the reference, float64 (values,), without NaN.

    Bins end at the quantiles 1 / ``bins``, 2 / ``bins``, ... of the sample: (., q1], (q1, q2], ..., (qn, .). A value
    that has a share of at least 1 / ``bins`` is a bin of its own. So a column of one value has three bins, of which two
    are empty until it changes.
    """
    ascending = np.sort(sample)
    count = len(ascending)
    if not count:
        return NumberBins(ascending, np.arange(2))
    values, rows = _distinct(ascending)
    cuts = np.unique(_quantiles(ascending, bins)[:-1])
    heavy = values[rows * bins >= count]
    fine = values if len(values) <= EDGES else np.append(values[0], _quantiles(ascending, EDGES))
    edges = np.unique(np.concatenate([fine, cuts, heavy]))
    return NumberBins(edges, _bins_of_places(edges, cuts=cuts, heavy=heavy))


def category_bins(counter: CategoryCounter, rows: Counts, *, categories: int) -> CategoryBins:
    """Return the bins for the categories of the reference, given the rows of each, at least one, in their order.

    The ``categories`` most frequent have a place of their own if they have `LEAST_ROWS`; where several are equally
    frequent it is the first ones in ascending order that have.
    """
    values = counter.values()
    frequent = np.flatnonzero(rows >= LEAST_ROWS)
    if len(frequent) > categories:
        frequent = frequent[order_by_frequency(rows[frequent], values.take(to_arrow(frequent)))[:categories]]
    places = np.full(len(rows) + 1, len(frequent), np.int32)
    places[frequent] = np.arange(len(frequent))
    places[-1] = len(frequent) + 1
    return CategoryBins(CategoryTable(values), places, int((rows == 1).sum()))


def _places(values: Array, edges: Array, *, null: int, device: Device) -> Array:
    """Return the place of each value among the edges, int32."""
    xp = device.xp
    if not len(edges):
        places = xp.zeros(len(values), xp.int32)
    else:
        interval = xp.searchsorted(edges, values)
        places = 2 * interval + (edges[xp.minimum(interval, len(edges) - 1)] == values)
    return cast("Array", xp.where(xp.isnan(values), null, places).astype(xp.int32))


def _distinct(ascending: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return each value once, and how often it occurs."""
    firsts = np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1]))
    return ascending[firsts], np.diff(firsts, append=len(ascending))


def _quantiles(ascending: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """Return the smallest values that a share of 1/count, 2/count, ..., all values do not exceed."""
    ranks = -(-np.arange(1, count + 1) * len(ascending) // count) - 1
    return ascending[ranks]


def _bins_of_places(
    edges: npt.NDArray[np.float64], *, cuts: npt.NDArray[np.float64], heavy: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    starts = np.zeros(2 * len(edges) + 2, np.int64)
    values_at = 2 * np.arange(len(edges)) + 1
    alone = np.isin(edges, heavy)
    starts[values_at[alone]] = 1
    starts[values_at[alone | np.isin(edges, cuts)] + 1] = 1
    starts[-1] = 1
    return np.cumsum(starts)
