"""Greedy choice among linked variants: in windows, as PLINK's --indep-pairwise does, or by distance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from whitewater.engines.device import Array
from whitewater.engines.kernel import kernel

NONE = -1


@dataclass(frozen=True)
class Windows:
    """Windows in order, none across contigs: variants from ``starts`` to before ``stops``, int64 (windows,)."""

    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]

    def last_partners(self, variants: int) -> npt.NDArray[np.int32]:
        """Return, for each variant, the end of the last window that it is in, int32 (variants,)."""
        last = np.searchsorted(self.starts, np.arange(variants), side="right") - 1
        return self.stops[last].astype(np.int32)


def windows(contigs: Array, *, size: int, step: int) -> Windows:
    """Lay windows of ``size`` variants over each contig, ``step`` apart, up to the first that reaches its end.

    ``contigs`` are the contigs of the variants, as codes; those of a contig stand together.
    """
    bounds = np.flatnonzero(np.diff(contigs, prepend=NONE, append=NONE)).tolist()
    counts = [1 + max(0, -(-(stop - start - size) // step)) for start, stop in pairwise(bounds)]
    contig = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(contig)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.asarray(bounds)[contig] + step * number
    return Windows(starts, np.minimum(starts + size, np.asarray(bounds)[contig + 1]))


class Pruning:
    """The greedy choice, which is given the linked pairs block by block and keeps those of a few windows only.

    In each window all variants left are gone through in order, again and again until no linked pair is left. In each
    round a variant meets the first linked one behind it that is left and that it has not met yet, and the one whose
    rarer allele has the lower frequency is removed; of equal ones the later. This is what PLINK 1.9 and 2.0 do, as
    experiments with v1.90b6.26 and v2.00a3.5 show, with and without ties. They differ in this: they use founders only,
    treat sex chromosomes by sex, and drop variants whose calls are all heterozygous, which here are linked with none.

    Parameters
    ----------
    rarer, called
        int64 (variants,): copies of the rarer allele, and called alleles; frequencies are compared as exact fractions.
    """

    def __init__(self, windows: Windows, *, rarer: npt.NDArray[np.int64], called: npt.NDArray[np.int64]) -> None:
        self._windows, self._rarer, self._called = windows, rarer, called
        self._last = windows.last_partners(len(rarer))
        self._lost_to = np.full(len(rarer), NONE, np.int32)
        self._first_kept = np.full(len(rarer), NONE, np.int32)
        self._met = np.zeros(len(rarer), np.int64)
        self._window = self._low = 0
        self._seconds = np.empty(0, np.int32)
        self._counts = np.empty(0, np.int64)

    def add(self, pairs: npt.NDArray[np.int32], *, stop: int) -> None:
        """Take the ordered linked pairs, int32 (pairs, 2), of the next variants, up to before ``stop``."""
        known = self._low + len(self._counts)
        counts = np.bincount(pairs[:, 0] - known, minlength=stop - known)
        self._seconds = np.concatenate([self._seconds, pairs[:, 1]])
        self._counts = np.concatenate([self._counts, counts])
        self._prune(int(np.searchsorted(self._windows.stops, stop, side="right")))
        self._forget()

    def partners(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int32]]:
        """Return which variants are left, bool (variants,), and a kept variant that each other one is linked with.

        That is the one that it lost to, if that is kept; else the first kept one that it is linked with in any window;
        else -1, as that of a kept one.
        """
        kept = self._lost_to == NONE
        direct = ~kept & kept[self._lost_to]
        return kept, np.where(direct, self._lost_to, self._first_kept)

    def _prune(self, window: int) -> None:
        """Prune in all windows up to before ``window``."""
        ahead = slice(self._window, window)
        _prune_windows(
            (self._windows.starts[ahead], self._windows.stops[ahead]),
            (self._seconds, self._offsets(), self._low),
            (self._rarer, self._called),
            self._met,
            self._lost_to,
        )
        self._window = window

    def _forget(self) -> None:
        """Drop the pairs of variants whose partners no later window can change, after looking for kept ones there."""
        starts = self._windows.starts
        bound = starts[self._window] if self._window < len(starts) else len(self._last)
        low = int(np.searchsorted(self._last, bound, side="right"))
        offsets = self._offsets()
        _find_kept((self._seconds, offsets[: low - self._low + 1], self._low), self._lost_to, self._first_kept)
        self._seconds = self._seconds[offsets[low - self._low] :]
        self._counts = self._counts[low - self._low :]
        self._low = low

    def _offsets(self) -> npt.NDArray[np.int64]:
        return np.concatenate([[0], self._counts.cumsum()])


def thin(contigs: Array, positions: npt.NDArray[np.int64], *, minimum_distance: int) -> npt.NDArray[np.int32]:
    """Keep each variant that is so many bases behind the last kept one of its contig, or the first there.

    Returns, int32 (variants,), the kept one that each other variant is too close to; -1 for those that are kept.
    """
    too_close_to = np.full(len(positions), NONE, np.int32)
    _thin(contigs, positions, minimum_distance, too_close_to)
    return too_close_to


@kernel
def _prune_windows(
    windows: tuple[Array, Array],
    links: tuple[Array, Array, int],
    alleles: tuple[Array, Array],
    met: Array,
    lost_to: Array,
) -> None:
    """Fill ``lost_to``; variant ``i`` is linked with ``seconds[offsets[i - low] : offsets[i - low + 1]]``."""
    starts, stops = windows
    seconds, offsets, low = links
    rarer, called = alleles
    for window in range(len(starts)):
        found = True
        while found:
            found = False
            for first in range(starts[window], stops[window]):
                if lost_to[first] >= 0:
                    continue
                begin, end = offsets[first - low], offsets[first - low + 1]
                at = begin + met[first]
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
                met[first] = at - begin


@kernel
def _find_kept(links: tuple[Array, Array, int], lost_to: Array, first_kept: Array) -> None:
    """Fill ``first_kept`` of variants that are removed."""
    seconds, offsets, low = links
    for row in range(len(offsets) - 1):
        first = low + row
        for at in range(offsets[row], offsets[row + 1]):
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
