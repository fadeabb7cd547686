"""Greedy choice among linked variants: in windows, as PLINK's --indep-pairwise does, or by distance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from whitewater.engines.device import Array
from whitewater.engines.kernel import kernel

NONE = -1


class Windows(NamedTuple):
    """Windows over a contig, in order, from ``starts`` to before ``stops``, int64 (windows,).

    ``reach``, int32 (variants,), is the end of the last window that a variant is in.
    """

    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]
    reach: npt.NDArray[np.int32]


def windows(variants: int, *, size: int, step: int) -> Windows:
    """Lay windows of ``size`` variants over a contig, ``step`` apart, up to the first that reaches its end."""
    starts = step * np.arange(1 + max(0, -(-(variants - size) // step)))
    stops = np.minimum(starts + size, variants)
    last = np.minimum(np.arange(variants) // step, len(starts) - 1)
    return Windows(starts, stops, stops[last].astype(np.int32))


def prune(
    pairs: npt.NDArray[np.int32], windows: Windows, *, rarer: Array, called: Array
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int32]]:
    """Choose among the variants of a contig.

    In each window all variants left are gone through in order, again and again until no linked pair is left. In each
    round a variant meets the first linked one behind it that is left and that it has not met yet, and the one whose
    rarer allele has the lower frequency is removed; of equal ones the later. This is what PLINK 1.9 and 2.0 do, as
    experiments with v1.90b6.26 and v2.00a3.5 show, with and without ties. They differ in this: they use founders only,
    treat sex chromosomes by sex, and drop variants whose calls are all heterozygous, which here are linked with none.

    Parameters
    ----------
    pairs
        int32 (pairs, 2), ordered: the linked ones.
    rarer, called
        int64 (variants,): copies of the rarer allele, and called alleles; frequencies are compared as exact fractions.

    Returns
    -------
    tuple
        Which variants are left, bool (variants,), and a kept variant that each other one is linked with, int32
        (variants,). That is the one that it lost to, if that is kept; else the first kept one that it is linked with in
        any window; else -1, as that of a kept one.
    """
    lost_to, first_kept = np.full((2, len(rarer)), NONE, np.int32)
    links = pairs[:, 1].copy(), np.searchsorted(pairs[:, 0], np.arange(len(rarer) + 1, dtype=np.int32))
    _prune_windows((windows.starts, windows.stops), links, (rarer, called), lost_to)
    _find_kept(links, lost_to, first_kept)
    kept = lost_to == NONE
    direct = ~kept & kept[lost_to]
    return kept, np.where(direct, lost_to, first_kept)


def thin(contigs: Array, positions: npt.NDArray[np.int64], *, minimum_distance: int) -> npt.NDArray[np.int32]:
    """Keep each variant that is so many bases behind the last kept one of its contig, or the first there.

    Returns, int32 (variants,), the kept one that each other variant is too close to; -1 for those that are kept.
    """
    too_close_to = np.full(len(positions), NONE, np.int32)
    _thin(contigs, positions, minimum_distance, too_close_to)
    return too_close_to


@kernel
def _prune_windows(
    windows: tuple[Array, Array], links: tuple[Array, Array], alleles: tuple[Array, Array], lost_to: Array
) -> None:
    """Fill ``lost_to``; variant ``i`` is linked with ``seconds[offsets[i] : offsets[i + 1]]``."""
    starts, stops = windows
    seconds, offsets = links
    rarer, called = alleles
    met = offsets[:-1].copy()
    for window in range(len(starts)):
        found = True
        while found:
            found = False
            for first in range(starts[window], stops[window]):
                if lost_to[first] >= 0:
                    continue
                at, end = met[first], offsets[first + 1]
                while at < end and seconds[at] < stops[window] and lost_to[seconds[at]] >= 0:
                    at += 1
                if at < end and seconds[at] < stops[window]:
                    found = True
                    second = seconds[at]
                    if rarer[first] * called[second] < rarer[second] * called[first]:
                        lost_to[first] = second
                    else:
                        lost_to[second] = first
                    at += 1
                met[first] = at


@kernel
def _find_kept(links: tuple[Array, Array], lost_to: Array, first_kept: Array) -> None:
    """Fill ``first_kept`` of variants that are removed."""
    seconds, offsets = links
    for first in range(len(lost_to)):
        for at in range(offsets[first], offsets[first + 1]):
            second = seconds[at]
            if lost_to[first] >= 0 and lost_to[second] < 0 and first_kept[first] < 0:
                first_kept[first] = second
            if lost_to[second] >= 0 and lost_to[first] < 0 and first_kept[second] < 0:
                first_kept[second] = first


@kernel
def _thin(contigs: Array, positions: Array, minimum_distance: int, too_close_to: Array) -> None:
    last = 0
    for variant in range(1, len(positions)):
        if contigs[variant] == contigs[last] and positions[variant] - positions[last] < minimum_distance:
            too_close_to[variant] = last
        else:
            last = variant
