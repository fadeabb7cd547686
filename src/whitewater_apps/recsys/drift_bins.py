"""The bins in which columns are compared, learned from the reference, and the counts of rows in them.

Rows are counted at *places*, of which each is in a bin. Those of numbers are intervals, ``(., e0], (e0, e1], ... (en,
.)``, then nulls. Categories have a place for each of the most frequent of the reference, then one for all others that
it has, one for those that it has not, and one for nulls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whitewater.features.categories.values import (
    CategoryCounter,
    CategoryTable,
    as_categories,
    as_floats,
    order_by_frequency,
)
from whitewater.features.columns.codes import count_codes
from whitewater.features.columns.column import Categories, Column, Lists
from whitewater.tables.arrow_arrays import to_arrow

Counts = npt.NDArray[np.int64]
EDGES = 1024
"""Values of a column of numbers, about, at most, before and at which its distribution is known."""
LEAST_ROWS = 10
"""Of the reference in the place of a single category; of rarer ones, chance makes too much for the shares to tell."""
SAMPLE = 1 << 18
"""Rows of the reference, at most, from which the edges are taken: each second, third, ... of them if it has more."""


@dataclass(frozen=True)
class NumberBins:
    """Bins of a column of numbers.

    ``edges`` are float64, ascending; ``bins``, int64 (edges + 2,), is the bin of each place, ascending.
    """

    edges: npt.NDArray[np.float64]
    bins: npt.NDArray[np.int64]

    def count(self, column: Column) -> Counts:
        """Return the rows at each place."""
        values = as_floats(column)
        places = np.searchsorted(self.edges, values)
        places = np.where(np.isnan(values), len(self.edges) + 1, places)
        return count_codes(places.astype(np.int32), len(self.bins))

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

    def count(self, column: Column) -> Counts:
        """Return the rows at each place; of lists the elements, and lists without any as nulls."""
        categories, nulls = elements(column)
        rows = count_codes(categories.codes, len(categories.dictionary))
        places = self.places[self.known.look_up(categories.dictionary)]
        counts = np.zeros(self.unknown + 2, np.int64)
        np.add.at(counts, places, rows)
        counts[-1] = nulls
        return counts

    def binned(self, places: Counts) -> Counts:
        """Return the rows in each bin: of frequent categories, of all others, and of nulls."""
        return np.concatenate([places[:-3], [places[-3] + places[-2]], places[-1:]])


Bins = NumberBins | CategoryBins


def elements(column: Column) -> tuple[Categories, int]:
    """Return a column, or the elements of its lists, as categories, and the number of nulls or of empty lists."""
    if isinstance(column, Lists):
        inside, _ = elements(column.values)
        return inside, int((column.offsets[1:] == column.offsets[:-1]).sum())
    categories = as_categories(column)
    return categories, int((categories.codes < 0).sum())


def number_bins(sample: npt.NDArray[np.float64], *, bins: int) -> NumberBins:
    """Return the bins for a sample of the reference, float64 (values,), without NaN.

    Bins end at the quantiles 1 / ``bins``, 2 / ``bins``, ... of the sample: (., q1], (q1, q2], ..., (qn, .). A value
    that has a share of at least 1 / ``bins`` is a bin of its own. So a column of one value has three bins, of which two
    are empty until it changes. Places end before and at each value, or the quantiles 1 / `EDGES`, 2 / `EDGES`, ...
    """
    values, rows = np.unique(sample, return_counts=True)
    heavy = values[rows * bins >= len(sample)]
    cuts = np.unique(np.concatenate([_quantiles(sample, bins)[:-1], _before(heavy), heavy]))
    fine = values if len(values) <= EDGES else np.append(values[0], _quantiles(sample, EDGES))
    edges = np.unique(np.concatenate([_before(fine), fine, cuts, [np.inf]]))
    bin_of_places = np.searchsorted(cuts, edges)
    return NumberBins(edges, np.append(bin_of_places, [len(cuts), len(cuts) + 1]))


def _before(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the largest number below each: a place that begins there and ends with a value has no other."""
    return np.nextafter(values, -np.inf)


def _quantiles(sample: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """Return the smallest values that a share of 1/count, 2/count, ..., all values do not exceed."""
    ranks = -(-np.arange(1, count + 1) * len(sample) // count) - 1
    return np.sort(sample)[ranks] if len(sample) else sample


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
