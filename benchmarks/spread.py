"""Medians and how sure they are, without an assumption about the distribution."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict


class Spread(BaseModel):
    """Order statistics of repeated measurements of one quantity.

    ``low`` and ``high`` are the interval of the median, ``coverage`` the probability that it holds the true one.
    """

    model_config = ConfigDict(frozen=True)

    median: float
    low: float
    high: float
    coverage: float
    minimum: float
    lower_quartile: float
    upper_quartile: float
    maximum: float


def spread(values: Sequence[float], *, level: float = 0.95) -> Spread:
    """Summarize repeated measurements.

    The interval of the median is the narrowest pair of order statistics x(k), x(n+1-k) that holds the true median with
    at least ``level``: by the binomial distribution with p = 1/2 (Thompson 1936). Below six values no pair reaches
    95 %: then it is the whole range, and ``coverage`` says what that is worth.

    Raises
    ------
    ValueError
        If there are no values.
    """
    if not values:
        raise ValueError("no values to summarize")
    ordered = sorted(values)
    rank, coverage = _interval_rank(len(ordered), level)
    if len(ordered) > 1:
        lower, _, upper = statistics.quantiles(ordered, n=4, method="inclusive")
    else:
        lower = upper = ordered[0]
    return Spread(
        median=statistics.median(ordered),
        low=ordered[rank - 1],
        high=ordered[-rank],
        coverage=coverage,
        minimum=ordered[0],
        lower_quartile=lower,
        upper_quartile=upper,
        maximum=ordered[-1],
    )


def _interval_rank(count: int, level: float) -> tuple[int, float]:
    """Return the largest rank k whose interval x(k), x(n+1-k) reaches the level, at least 1, and its coverage."""
    rank = 1
    while 2 * (rank + 1) <= count and _coverage(count, rank + 1) >= level:
        rank += 1
    return rank, _coverage(count, rank)


def _coverage(count: int, rank: int) -> float:
    return 1.0 - math.ldexp(sum(math.comb(count, below) for below in range(rank)), 1 - count)
