"""Bottom-k samples: the rows with the smallest hash of their content.

The sample does not depend on files, partitions, row order, device or a seed, and a larger sample contains a smaller
one. E. Cohen and H. Kaplan, "Summarizing data using bottom-k sketches", PODC 2007.
"""

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array

logger = logging.getLogger(__name__)

_MARGIN = 2.0  # rows that the first pass reads per row of the sample, because some are not eligible


@dataclass(frozen=True)
class Sample:
    """Rows for training and testing, on the host."""

    hashes: npt.NDArray[np.uint64]  # (rows,)
    time: npt.NDArray[np.int64]  # (rows,), microseconds
    target: npt.NDArray[np.float64]  # (rows,)
    features: npt.NDArray[np.float64]  # (rows, features)
    eligible: int  # number of rows that they were drawn from

    def __len__(self) -> int:
        return len(self.hashes)

    def take(self, rows: Array) -> "Sample":
        """Return rows by position or by a mask."""
        return Sample(self.hashes[rows], self.time[rows], self.target[rows], self.features[rows], self.eligible)

    def smallest(self, limit: int) -> "Sample":
        """Return the ``limit`` rows with the smallest hash, sorted by hash; equal hashes by content."""
        order = np.argsort(self.hashes)
        if not np.diff(self.hashes[order]).all():
            order = np.lexsort((*self.features.T, self.target, self.time, self.hashes))
        return self.take(order[:limit])


def draw(read: Callable[[np.uint64], Iterable[Sample]], *, rows: int, limit: int, features: int, what: str) -> Sample:
    """Return the ``limit`` rows with the smallest hash, or all if there are fewer, sorted by hash: a random order.

    ``read`` returns samples of the eligible rows whose hash is at most a threshold; ``rows`` is the number of rows,
    eligible or not. The threshold bounds memory. If too few rows are below it, a second pass has a higher one.
    """
    share = _MARGIN * limit / max(1, rows)
    while True:
        kept = merge_samples(read(np.uint64(min(2**64 - 1, int(share * 2.0**64)))), features, limit=limit)
        if len(kept) >= min(limit, kept.eligible):
            return kept.smallest(limit)
        share = max(2 * share, (limit + 6 * math.sqrt(limit)) / kept.eligible)
        logger.info("%s: few rows are eligible, so they are read again with a higher threshold", what)


def split_by_time(sample: Sample, test_fraction: float) -> tuple[Sample, Sample]:
    """Return training rows and test rows, which are the latest; rows of the same time stay together."""
    position = min(int(len(sample) * (1 - test_fraction)), len(sample) - 1)
    is_late = sample.time >= np.sort(sample.time)[position] if len(sample) else np.empty(0, bool)
    return sample.take(~is_late), sample.take(is_late)


def merge_samples(samples: Iterable[Sample], features: int, *, limit: int) -> Sample:
    """Concatenate samples; of more than twice ``limit`` rows, keep the ``limit`` rows with the smallest hash."""
    buffer = [Sample(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0), np.empty((0, features)), eligible=0)]
    for sample in samples:
        buffer.append(sample)
        if sum(map(len, buffer)) > 2 * limit:
            buffer = [_concatenate(buffer).smallest(limit)]
    return _concatenate(buffer)


def _concatenate(samples: Sequence[Sample]) -> Sample:
    arrays = zip(*((each.hashes, each.time, each.target, each.features) for each in samples), strict=True)
    hashes, time, target, features = map(np.concatenate, arrays)
    return Sample(hashes, time, target, features, sum(each.eligible for each in samples))
