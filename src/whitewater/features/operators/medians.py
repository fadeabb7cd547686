"""Exact medians of data that is seen part by part.

Doubles are mapped to integers of 64 bits in the same order. A part is told as runs: the integers with equal leading
bits, with as many bits left out as makes the runs few; where there are few distinct values, none is left out, and the
median is found at once. Otherwise the runs that it is in are known, and another pass over the data looks at their
values only: selection by radix (Knuth, The Art of Computer Programming, volume 3, section 5.2.5).

To be quick, the first pass over many distinct values counts their leading 20 bits, without sorting them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device

RUNS = 2**14
"""Of one part at most, 16 bytes each; four at least, or no pass would be closer than the one before."""
NARROW = 2**20
"""Integers are counted one by one, without sorting, if they span fewer values than this."""
COUNTED_BITS = 20
_SIGN = 2**63
Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Runs:
    """Values in ascending order, as runs of those whose keys agree but for the last ``shift`` bits; on the host.

    ``leading``, uint64 (runs,), are the other bits of the keys of each run, ascending; ``count`` int64 (runs,).
    """

    shift: int
    leading: Keys
    count: npt.NDArray[np.int64]

    @classmethod
    def none(cls) -> Runs:
        """Return no runs."""
        return cls(0, np.empty(0, np.uint64), np.empty(0, np.int64))

    def coarser(self, shift: int) -> Runs:
        """Return longer runs; those with the same leading bits may have been apart."""
        leading = self.leading >> np.uint64(shift - self.shift)
        starts = np.flatnonzero(np.append(True, leading[1:] != leading[:-1]))
        return Runs(shift, leading[starts], np.add.reduceat(self.count, starts))

    def few(self) -> Runs:
        """Return as many runs as `RUNS` allows."""
        runs = self
        while len(runs.count) > RUNS:
            runs = runs.coarser(runs.shift + 1)
        return runs

    def bounds(self, run: int) -> tuple[float, float]:
        """Return the smallest and the largest value that a run may have."""
        least, most = keys_of(np.array([-np.inf, np.inf])).tolist()
        first = int(self.leading[run]) << self.shift
        last = first + (1 << self.shift) - 1
        # Beyond the infinities there are only the keys of NaN, and 0.0 has the key of -0.0, too.
        return value_of(max(first, least)), value_of(min(last - (last == _SIGN - 1), most))


def merged(parts: Sequence[Runs]) -> Runs:
    """Return the runs of all parts."""
    parts = [part for part in parts if len(part.count)]
    if not parts:
        return Runs.none()
    shift = max(part.shift for part in parts)
    leading = np.concatenate([part.leading >> np.uint64(shift - part.shift) for part in parts])
    order = np.argsort(leading, kind="stable")
    return Runs(shift, leading[order], np.concatenate([part.count for part in parts])[order]).coarser(shift)


def runs_of(values: Array, device: Device) -> Runs:
    """Return the runs of float64 (values,), without NaN, on the device."""
    return _counted(values, device) if _many(values, device.xp) else sorted_runs_of(values, device)


def _many(values: Array, xp: Any) -> bool:
    """Tell whether the first values are enough to expect more distinct ones than there may be runs."""
    if len(values) <= 4 * RUNS:
        return False
    ordered = xp.sort(values[:RUNS])
    return int((ordered[1:] != ordered[:-1]).sum()) >= RUNS // 4


def _counted(values: Array, device: Device) -> Runs:
    """Return the runs of values with the same leading bits."""
    xp = device.xp
    shift = 64 - COUNTED_BITS
    leading = xp.empty(len(values), xp.int64)
    for start in range(0, len(values), device.slice_rows):
        rows = slice(start, start + device.slice_rows)
        leading[rows] = (_keys(values[rows], xp) >> xp.uint64(shift)).astype(xp.int64)
    counts = device.to_host(xp.bincount(leading))
    found = np.flatnonzero(counts)
    return Runs(shift, found.astype(np.uint64), counts[found].astype(np.int64)).few()


def sorted_runs_of(values: Array, device: Device) -> Runs:
    """Return `runs_of` values, with no bit left out but of many distinct ones."""
    if not len(values):
        return Runs.none()
    xp = device.xp
    keys = xp.sort(_keys(values, xp))
    starts = xp.flatnonzero(xp.concatenate([xp.ones(1, bool), keys[1:] != keys[:-1]]))
    count = np.diff(device.to_host(starts), append=len(values))
    return Runs(0, device.to_host(keys[starts]), count).few()


def runs_of_integers(values: Array, device: Device) -> Runs:
    """Return the runs of integers (values,) on the device."""
    if not len(values):
        return Runs.none()
    xp = device.xp
    least, most = int(values.min()), int(values.max())
    if most - least >= NARROW:
        return runs_of(values.astype(np.float64), device)
    counts = device.to_host(xp.bincount(values.astype(np.int64) - least))
    found = np.flatnonzero(counts)
    return Runs(0, keys_of((found + least).astype(np.float64)), counts[found].astype(np.int64)).few()


def keys_of(values: npt.NDArray[np.float64]) -> Keys:
    """Return integers, uint64, in the order of doubles; those of 0.0 and -0.0 are the same."""
    keys: Keys = _keys(values, np)
    return keys


def value_of(key: int) -> float:
    """Return the double of a key."""
    bits = key ^ _SIGN if key & _SIGN else ~key & (2**64 - 1)
    return float(np.array([bits], np.uint64).view(np.float64)[0])


def _keys(values: Any, xp: Any) -> Any:
    bits = (values + 0.0).view(xp.uint64)
    return xp.where(bits >= xp.uint64(_SIGN), ~bits, bits | xp.uint64(_SIGN))
