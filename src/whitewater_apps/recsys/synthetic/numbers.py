"""Columns of numbers: long-tailed counts with nulls, some of them awkward.

A value is the quantile, at one of 2^16 equally probable places, of a log-logistic distribution: exp(center + spread x
logit(u)), plus an offset. Its tail is a power law, and it is drawn by one look-up. The thirteen kinds follow Criteo's
columns in their shares of nulls and their ranges, but three that are there for what goes wrong with them: amounts with
cents, Unix times, and values of unit spread at 1e12, whose variance is lost by sums of squares.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

PLACES = 1 << 16
LOGISTIC_DEVIATION = np.pi / np.sqrt(3)
LONGEST = 10_000 * 86_400  # seconds that a Unix time is before its day, at most
EFFECT_OF_NULL = -0.7


class Kind(NamedTuple):
    """What a column of numbers is like.

    ``center`` and ``spread`` are of the logarithm (of the value itself where ``form`` is ``shifted``). ``nulls`` is the
    share of nulls on the first day, which grows by ``more_nulls`` a day, and ``moves`` what is added to the center each
    day, in spreads; both for a drift of 1. ``effect`` is the standard deviation of what the value adds to the logit.
    """

    center: float
    spread: float
    nulls: float
    form: Literal["count", "amount", "time", "shifted"] = "count"
    lowest: int = 0
    effect: float = 0.0
    moves: float = 0.0
    more_nulls: float = 0.0


# In order; columns beyond them repeat them. The tenth is nearly constant.
KINDS = (
    Kind(0.3, 0.9, 0.45, effect=0.3),
    Kind(1.5, 1.2, 0.0, lowest=-2, effect=0.2),
    Kind(1.8, 1.0, 0.21, moves=0.08),
    Kind(1.5, 0.6, 0.22, effect=-0.3),
    Kind(7.8, 0.9, 0.03, moves=0.04),
    Kind(3.4, 0.8, 0.22, effect=0.3, moves=0.05),
    Kind(1.0, 0.9, 0.04, effect=0.25),
    Kind(2.1, 0.8, 0.001),
    Kind(3.5, 0.7, 0.04, form="amount"),
    Kind(-3.0, 0.5, 0.45),
    Kind(0.6, 0.7, 0.04, more_nulls=0.02),
    Kind(15.0, 0.8, 0.05, form="time"),
    Kind(1e12, 1.0, 0.02, form="shifted", effect=0.35),
)
DTYPES = {"count": "int32", "amount": "float64", "time": "int64", "shifted": "float64"}


class Quantiles(NamedTuple):
    """A column on one day: ``values`` and what they add to the logit, float32, at each place; the share of nulls."""

    values: npt.NDArray[Any]
    effects: npt.NDArray[np.float32] | None
    null_effect: np.float32
    nulls: float


def kind(column: int) -> Kind:
    """Return the kind of a column, counted from 0."""
    return KINDS[column % len(KINDS)]


def quantiles(column: int, *, day: int, midnight: int, drift: float) -> Quantiles:
    """Return what is drawn from on a day, which begins at the Unix time ``midnight``."""
    what = kind(column)
    share = (np.arange(PLACES) + 0.5) / PLACES
    moved = np.log(share) - np.log1p(-share) + drift * what.moves * day
    # By the value and not by its place in the day's distribution, so that what is learned of a value stays true.
    effects = (what.effect / LOGISTIC_DEVIATION * moved).astype(np.float32) if what.effect else None
    values = _values(what, moved, midnight=midnight).astype(DTYPES[what.form])
    nulls = min(what.nulls + drift * what.more_nulls * day, 0.9)
    return Quantiles(values, effects, np.float32(EFFECT_OF_NULL * abs(what.effect)), nulls)


def _values(what: Kind, standard: npt.NDArray[np.float64], *, midnight: int) -> npt.NDArray[np.float64]:
    if what.form == "shifted":
        return np.asarray(what.center + what.spread / LOGISTIC_DEVIATION * standard)
    positive: npt.NDArray[np.float64] = np.exp(what.center + what.spread * standard)
    if what.form == "amount":
        return np.round(positive, 2)
    if what.form == "time":
        return np.asarray(midnight - np.floor(np.minimum(positive, LONGEST)))
    return np.asarray(np.minimum(np.floor(positive), np.iinfo(np.int32).max // 2) + what.lowest)
