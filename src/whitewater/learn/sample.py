"""A sample of rows to learn from: those of the smallest hash, so that it is a property of the data.

The hash is made of a row's content alone, so the sample does not depend on files, partitions, row order, device or a
seed, and a larger sample contains a smaller one. Bottom-k sampling by hash: E. Cohen and H. Kaplan, "Summarizing data
using bottom-k sketches", PODC 2007.
"""

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array

logger = logging.getLogger(__name__)

# The first pass lets through this many times the rows that are wanted, as some rows cannot be learned from.
_MARGIN = 2.0


@dataclass(frozen=True)
class Sample:
    """Rows to learn from, on the host."""

    hashes: npt.NDArray[np.uint64]  # (rows,)
    time: npt.NDArray[np.int64]  # (rows,), microseconds
    target: npt.NDArray[np.float64]  # (rows,)
    features: npt.NDArray[np.float64]  # (rows, features)
    eligible: int  # the number of rows that they were drawn from

    def __len__(self) -> int:
        return len(self.hashes)

    def take(self, rows: Array) -> "Sample":
        """Return the given rows, by position or as a mask."""
        return Sample(self.hashes[rows], self.time[rows], self.target[rows], self.features[rows], self.eligible)

    def smallest(self, limit: int) -> "Sample":
        """Return the ``limit`` rows of the smallest hash, in the order of their hash; those of one hash by content."""
        order = np.argsort(self.hashes)
        if not np.diff(self.hashes[order]).all():
            # A tie then leaves only rows that are equal.
            order = np.lexsort((*self.features.T, self.target, self.time, self.hashes))
        return self.take(order[:limit])


def draw(read: Callable[[np.uint64], Iterable[Sample]], *, rows: int, limit: int, features: int, what: str) -> Sample:
    """Return the ``limit`` rows that have the smallest hash, or all when there are fewer.

    ``read`` returns samples of the eligible rows whose hash is at most the threshold that it is given, and ``rows`` is
    how many rows there are, eligible or not. Memory is bounded: about ``limit`` rows are below the threshold; where too
    few of them are eligible, a second pass has a higher one. The sample is in the order of the hash, a random one.
    """
    share = _MARGIN * limit / max(1, rows)
    while True:
        kept = together(read(np.uint64(min(2**64 - 1, int(share * 2.0**64)))), features, limit=limit)
        if len(kept) >= min(limit, kept.eligible):
            return kept.smallest(limit)
        share = max(2 * share, (limit + 6 * math.sqrt(limit)) / kept.eligible)
        logger.info("%s: few rows can be learned from, so they are read again with a wider threshold", what)


def split_by_time(sample: Sample, test_fraction: float) -> tuple[Sample, Sample]:
    """Return the rows to learn from, and the latest, to test on, by hash; rows of one moment stay together."""
    if not len(sample):
        return sample, sample
    position = min(int(len(sample) * (1 - test_fraction)), len(sample) - 1)
    is_late = sample.time >= np.sort(sample.time)[position]
    return sample.take(~is_late), sample.take(is_late)


def together(samples: Iterable[Sample], features: int, *, limit: int) -> Sample:
    """Join samples; when more than twice ``limit`` rows come together, those of the ``limit`` smallest hashes stay."""
    waiting = [Sample(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0), np.empty((0, features)), eligible=0)]
    for sample in samples:
        waiting.append(sample)
        if sum(map(len, waiting)) > 2 * limit:
            waiting = [_joined(waiting).smallest(limit)]
    return _joined(waiting)


def _joined(samples: Sequence[Sample]) -> Sample:
    arrays = zip(*((each.hashes, each.time, each.target, each.features) for each in samples), strict=True)
    hashes, time, target, features = map(np.concatenate, arrays)
    return Sample(hashes, time, target, features, sum(each.eligible for each in samples))
