"""The bins in which columns are compared, learned from the reference, and the counts of rows in them.

Rows are counted at *places*, of which each is in a bin. Those of numbers are intervals, ``(., e0], (e0, e1], ... (en,
.)``, then nulls. Categories have a place for each of the most frequent of the reference, then one for all others that
it has, one for those that it has not, and one for nulls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.features.categories.values import CategoryTable, as_categories, as_floats, order_by_frequency
from whitewater.features.columns.codes import count_codes
from whitewater.features.columns.column import Column, Lists
from whitewater.tables.arrow_arrays import to_arrow

Floats = npt.NDArray[np.float64]
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

    ``edges`` are float64, ascending to infinity; ``bins``, int64 (edges + 1,), is the bin of each place, ascending.
    """

    bins: Counts
    edges: Floats

    def count(self, column: Column) -> Counts:
        """Return the rows at each place; a null is NaN, which is sorted after infinity."""
        return np.bincount(np.searchsorted(self.edges, as_floats(column)), minlength=len(self.bins))


@dataclass(frozen=True)
class CategoryBins:
    """Bins of a column of categories: of frequent ones, of all others, and of nulls.

    ``known`` are all categories of the reference, and ``places``, int64 (known + 1,), the place of each; at its end
    that of the unknown. ``once`` is the number of those that the reference has once.
    """

    bins: Counts
    known: CategoryTable
    places: Counts
    once: int

    def count(self, column: Column) -> Counts:
        """Return the rows at each place; of lists the elements, and lists without any as nulls."""
        values, rows, nulls = value_counts(column)
        counts = np.zeros(len(self.bins), np.int64)
        np.add.at(counts, self.places[self.known.look_up(values)], rows)
        counts[-1] = nulls
        return counts


Bins = NumberBins | CategoryBins
LABELS = NumberBins(np.arange(3), np.array([0, np.inf]))


def value_counts(column: Column) -> tuple[pa.Array, Counts, int]:
    """Return the categories of a column or of its lists' elements, the rows of each, and the nulls or empty lists.

    A category of a dictionary may come twice.
    """
    if isinstance(column, Lists):
        values, rows, _ = value_counts(column.values)
        return values, rows, int((column.offsets[1:] == column.offsets[:-1]).sum())
    categories = as_categories(column)
    rows = count_codes(categories.codes, len(categories.dictionary))
    present = np.flatnonzero(rows)
    return categories.dictionary.take(to_arrow(present)), rows[present], len(categories) - int(rows.sum())


def number_bins(sample: Floats, *, bins: int) -> NumberBins:
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
    return NumberBins(np.append(np.searchsorted(cuts, edges), len(cuts) + 1), edges)


def _before(values: Floats) -> Floats:
    """Return the largest number below each: a place that begins there and ends with a value has no other."""
    return np.nextafter(values, -np.inf)


def _quantiles(sample: Floats, count: int) -> Floats:
    """Return the smallest values that a share of 1/count, 2/count, ..., all values do not exceed."""
    ranks = -(-np.arange(1, count + 1) * len(sample) // count) - 1
    return np.sort(sample)[ranks] if len(sample) else sample


def category_bins(values: pa.Array, rows: Counts, *, categories: int) -> CategoryBins:
    """Return the bins for the categories of the reference, given the rows of each, at least one.

    The ``categories`` most frequent have a place of their own if they have `LEAST_ROWS`; where several are equally
    frequent it is the first ones in ascending order that have.
    """
    frequent = np.flatnonzero(rows >= LEAST_ROWS)
    if len(frequent) > categories:
        frequent = frequent[order_by_frequency(rows[frequent], values.take(to_arrow(frequent)))[:categories]]
    others = len(frequent)
    places = np.full(len(rows) + 1, others)
    places[frequent] = np.arange(others)
    places[-1] = others + 1
    bins = np.array([*range(others), others, others, others + 1])
    return CategoryBins(bins, CategoryTable(values), places, int((rows == 1).sum()))
