"""How far two histograms over the same bins are apart, and how far chance alone drives them apart.

A histogram is an array of counts, int64 (bins,), on the host. Its shares are its counts over their sum. A histogram
without counts has no shares, and no distance to another one: None.

Few rows in many bins are apart although nothing has changed. So each measure has a limit that it exceeds
in about one of a thousand comparisons of samples of one distribution, somewhat more often where bins hold few rows.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, kolmogi, ndtri, rel_entr

Counts = npt.NDArray[np.int64]

VERDICTS = ("drift", "chance", "stable")
"""From the worst on."""
# An empty bin counts as half a row, so that it is neither infinitely far from a full one, nor nearer in more rows.
EMPTY = 0.5
# How often a measure is above its limit by chance alone.
_CHANCE = 0.001


def psi(reference: Counts, counts: Counts) -> float | None:
    """Return the population stability index: the sum of (q - p) log(q / p) over the bins.

    p and q are the shares in the reference and now. A bin that is empty in one of them counts as `EMPTY` rows there,
    one that is empty in both does not count. By convention a change is small below 0.1, and large above 0.25 (Siddiqi,
    Credit Risk Scorecards, 2006).
    """
    if not reference.sum() or not counts.sum():
        return None
    some = (reference > 0) | (counts > 0)
    before = np.maximum(reference[some], EMPTY) / reference.sum()
    now = np.maximum(counts[some], EMPTY) / counts.sum()
    return float((rel_entr(now, before) + rel_entr(before, now)).sum())


def jensen_shannon(reference: Counts, counts: Counts) -> float | None:
    """Return the Jensen-Shannon distance: the root of the divergence to the base 2, from 0 to 1.

    The divergence is the mean of those of Kullback and Leibler of both from their mean (Lin 1991); its root is a metric
    (Endres and Schindelin 2003).
    """
    if not reference.sum() or not counts.sum():
        return None
    before, now = reference / reference.sum(), counts / counts.sum()
    mean = (before + now) / 2
    divergence = (rel_entr(before, mean) + rel_entr(now, mean)).sum() / log(4)
    return sqrt(min(max(divergence, 0.0), 1.0))


def kolmogorov_smirnov(reference: Counts, counts: Counts) -> float | None:
    """Return the Kolmogorov-Smirnov distance at the ends of ascending bins.

    The true one is larger by the share of the reference in a bin, at most; and not, if each of its values is a bin.
    """
    if not reference.sum() or not counts.sum():
        return None
    return float(np.abs(np.cumsum(reference) / reference.sum() - np.cumsum(counts) / counts.sum()).max())


def chance(reference: Counts, counts: Counts) -> dict[str, float]:
    """Return the limits of `psi` and `jensen_shannon` for so many rows in so many bins.

    Both grow with the chi-square statistic of the histograms: the index is about (1/n + 1/m) times it (Yurdakul and
    Naranjo 2020), the squared distance 1 / (8 log 2) of that. Where bins expect less than a row this is rough.
    """
    freedom = int(((reference > 0) | (counts > 0)).sum()) - 1
    if freedom < 1 or not reference.sum() or not counts.sum():
        return {"psi": 0.0, "jensen_shannon": 0.0}
    expected = chdtri(freedom, _CHANCE) * (1 / int(reference.sum()) + 1 / int(counts.sum()))
    return {"psi": float(expected), "jensen_shannon": min(sqrt(expected / (8 * log(2))), 1.0)}


def chance_of_ks(reference: int, rows: int) -> float:
    """Return the limit of `kolmogorov_smirnov` for so many values (Smirnov 1948)."""
    if not reference or not rows:
        return 1.0
    return float(min(kolmogi(_CHANCE) * sqrt(1 / reference + 1 / rows), 1.0))


def chance_of_new_categories(once: int, *, reference: int, rows: int) -> float:
    """Return the limit of the share of rows with a category that the reference lacks.

    Of ``reference`` rows with a category ``once`` have one that no other has: by about their share the next row has a
    category not seen yet (Good 1953). Three more are what may be seen where there were none (the rule of three).
    """
    if not reference or not rows:
        return 1.0
    share = (once + 3) / reference
    return float(min(share + ndtri(1 - _CHANCE) * sqrt(share * (1 / reference + 1 / rows)), 1.0))
