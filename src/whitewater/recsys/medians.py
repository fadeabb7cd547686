"""Exact medians of data that is seen part by part.

Doubles are mapped to integers of 64 bits in the same order. A part is told as runs: the integers with equal leading
bits, with as many bits left out as makes the runs few; where there are few distinct values, none is left out, and the
median is found at once. Otherwise the run that it is in is known, with its bounds, and another pass over the data looks
at the values between them only: selection by radix (Knuth, The Art of Computer Programming, volume 3, section 5.2.5).

To be quick, the first pass over many distinct values counts their leading 20 bits, without sorting them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from whitewater.devices.protocol import Array, Device

RUNS = 2**14
"""Of one part at most, 32 bytes each."""
NARROW = 2**20
"""Integers are counted one by one, without sorting, if they span fewer values than this."""
COUNTED_BITS = 20
_SIGN = 2**63
Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Runs:
    """Values in ascending order, as runs of those whose keys agree but for the last ``shift`` bits; on the host.

    ``least`` and ``most``, uint64 (runs,), are the keys of the smallest and the largest value of each run, or, unless
    ``exact``, keys that these are between; ``count`` int64 (runs,).
    """

    shift: int
    least: Keys
    most: Keys
    count: npt.NDArray[np.int64]
    exact: bool = True

    @classmethod
    def none(cls) -> Runs:
        """Return no runs."""
        keys = np.empty(0, np.uint64)
        return cls(0, keys, keys, np.empty(0, np.int64))

    def coarser(self, shift: int) -> Runs:
        """Return longer runs."""
        starts = _starts(self.least, shift, np)
        ends = np.append(starts[1:], len(self.least)) - 1
        return Runs(shift, self.least[starts], self.most[ends], np.add.reduceat(self.count, starts), self.exact)

    def few(self) -> Runs:
        """Return as many runs as `RUNS` allows."""
        return self.coarser(_shift(self.least, self.shift, np)) if len(self.count) > RUNS else self


def merged(parts: list[Runs]) -> Runs:
    """Return the runs of all parts."""
    parts = [part for part in parts if len(part.count)]
    if not parts:
        return Runs.none()
    shift = max(part.shift for part in parts)
    least, most, count = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("least", "most", "count")
    )
    order = np.argsort(least, kind="stable")
    least, most, count = least[order], most[order], count[order]
    starts = _starts(least, shift, np)
    exact = all(part.exact for part in parts)
    return Runs(shift, least[starts], np.maximum.reduceat(most, starts), np.add.reduceat(count, starts), exact)


def runs_of(values: Array, device: Device) -> Runs:
    """Return the runs of float64 (values,), without NaN, on the device; `exact` but of many distinct values."""
    return _counted(values, device) if _many(values, device.xp) else exact_runs_of(values, device)


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
    first = found.astype(np.uint64) << np.uint64(shift)
    # Beyond the infinities there are only the keys of NaN.
    infinities = keys_of(np.array([-np.inf, np.inf]))
    least, most = np.maximum(first, infinities[0]), np.minimum(first | np.uint64(2**shift - 1), infinities[1])
    return Runs(shift, least, most, counts[found].astype(np.int64), exact=False).few()


def exact_runs_of(values: Array, device: Device) -> Runs:
    """Return the runs of float64 (values,), without NaN, on the device, with their smallest and largest values."""
    if not len(values):
        return Runs.none()
    xp = device.xp
    ordered = xp.sort(values)
    changes = xp.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    if len(changes) < RUNS:
        starts = xp.concatenate([xp.zeros(1, changes.dtype), changes])
        keys, shift = keys_of(device.to_host(ordered[starts])), 0
        return Runs(shift, keys, keys, _lengths(device.to_host(starts), len(values)))
    on_device = _keys(ordered, xp)
    shift = _shift(on_device, 0, xp)
    starts = _starts(on_device, shift, xp)
    ends = xp.concatenate([starts[1:], xp.full(1, len(values), starts.dtype)]) - 1
    least, most = device.to_host(on_device[starts]), device.to_host(on_device[ends])
    return Runs(shift, least, most, _lengths(device.to_host(starts), len(values)))


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
    keys = keys_of((found + least).astype(np.float64))
    return Runs(0, keys, keys, counts[found].astype(np.int64)).few()


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


def _starts(keys: Any, shift: int, xp: Any) -> Any:
    """Return where ascending keys differ from the one before in more than the last bits."""
    leading = keys >> xp.uint64(shift)
    first = xp.zeros(1, xp.int64)
    return xp.concatenate([first, xp.flatnonzero(leading[1:] != leading[:-1]) + 1])


def _shift(keys: Any, least: int, xp: Any) -> int:
    """Return the bits to leave out, at least ``least``, for at most `RUNS` runs of ascending keys."""
    # Neighbours are in one run if the highest bit in which they differ is left out. The exponent of a difference that
    # is rounded up to a power of 2 is one too large, which leaves out a bit too many at worst.
    differing = xp.frexp((keys[1:] ^ keys[:-1]).astype(xp.float64))[1]
    boundaries = xp.bincount(differing, minlength=66)
    left = [int(each) for each in xp.cumsum(boundaries[::-1])[::-1].tolist()]
    return next(shift for shift in range(least, 65) if left[shift + 1] < RUNS)


def _lengths(starts: npt.NDArray[np.int64], rows: int) -> npt.NDArray[np.int64]:
    return np.diff(starts, append=rows)
