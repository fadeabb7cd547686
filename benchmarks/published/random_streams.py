"""Streams of random numbers that fill arrays on a device, many of them side by side, none of them kept.

NumPy's generators take about 2.5 ns for a uniform and 9 ns for a normal float64 on one core. Here the CPU draws by
counter, so that no number waits for the one before it and the compiler makes vector instructions of the loop: 0.3 and
2 ns. The GPU draws with its array library.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from whitewater.devices import Device

# SplitMix64: Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014. Number i is a mixture
# of the bits of i times the golden ratio; it passes the tests of BigCrush, and no 64 bits come twice in 2**64 numbers.
GOLDEN, MULTIPLIER_1, MULTIPLIER_2 = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
BIT_0, BIT_1, BITS_11, BITS_13, BITS_27, BITS_30, BITS_31, BITS_52, BITS_62, BITS_63 = (
    np.uint64(bits) for bits in (1, 2, 11, 13, 27, 30, 31, 52, 62, 63)
)
# A float64 as bits: the fraction; 1; the square root of 1/2, where the range of the fraction of `_log` begins.
FRACTION, ONE, ROOT = np.uint64(0x000FFFFFFFFFFFFF), np.uint64(0x3FF0000000000000), np.uint64(0x3FE6A09E667F3BCD)
EXPONENT_OF_ONE = 1023
LOG_2, QUARTER_TURN = math.log(2), math.pi / 2
ULP_53, ULP_51 = 2.0**-53, 2.0**-51
# Taylor series in x**2, as long as float64 is precise for |x| <= pi / 4: sin(x) / x and cos(x), each without its 1.
S1, S2, S3, S4, S5, S6, S7, S8 = ((-1) ** k / math.factorial(2 * k + 1) for k in range(1, 9))
C1, C2, C3, C4, C5, C6, C7, C8, C9 = ((-1) ** k / math.factorial(2 * k) for k in range(1, 10))


class Stream(Protocol):
    """Fills one array after another."""

    def uniform(self, out: Any) -> None:
        """Fill a contiguous float64 array uniformly in [0, 1)."""

    def normal(self, out: Any) -> None:
        """Fill a contiguous float64 array with mean 0 and standard deviation 1."""


class CounterStream:
    """Numbers ``first``, ``first + 1``, ... of the sequence of a seed; an array takes an even count of them."""

    def __init__(self, device: Device, *, seed: int, first: int) -> None:
        begin = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
        self._state = (begin + first * int(GOLDEN)) % 2**64

    def uniform(self, out: Any) -> None:
        self._fill(fill_uniform, out)

    def normal(self, out: Any) -> None:
        self._fill(fill_normal, out)

    def _fill(self, kernel: Callable[[Any, Any], None], out: Any) -> None:
        kernel(out.reshape(-1), np.uint64(self._state))
        self._state = (self._state + (out.size + out.size % 2) * int(GOLDEN)) % 2**64


class LibraryStream:
    """A generator of the device's array library, which the seed and ``first`` name."""

    def __init__(self, device: Device, *, seed: int, first: int) -> None:
        own = int(np.random.SeedSequence([seed, first]).generate_state(1, np.uint32)[0])
        self._generator = device.xp.random.default_rng(own)

    def uniform(self, out: Any) -> None:
        # Without a size CuPy draws one number, for all of ``out``.
        self._generator.random(out.shape, out=out)

    def normal(self, out: Any) -> None:
        self._generator.standard_normal(out=out)


_STREAMS: dict[str, type[CounterStream | LibraryStream]] = {"cpu": CounterStream, "gpu": LibraryStream}


def stream(device: Device, *, seed: int, first: int) -> Stream:
    """Return the device's stream that begins with number ``first``, so that streams which are apart share no number."""
    return _STREAMS[device.name](device, seed=seed, first=first)


@intrinsic  # type: ignore[untyped-decorator]
def _double_of(context: Any, bits: Any) -> Any:
    """Take 64 bits for a float64."""
    return types.float64(types.uint64), lambda _, builder, __, given: builder.bitcast(given[0], ir.DoubleType())


@intrinsic  # type: ignore[untyped-decorator]
def _bits_of(context: Any, double: Any) -> Any:
    """Take a float64 for 64 bits."""
    return types.uint64(types.float64), lambda _, builder, __, given: builder.bitcast(given[0], ir.IntType(64))


@njit(inline="always")  # type: ignore[untyped-decorator]
def _mixed(state: Any) -> Any:
    state = (state ^ (state >> BITS_30)) * MULTIPLIER_1
    state = (state ^ (state >> BITS_27)) * MULTIPLIER_2
    return state ^ (state >> BITS_31)


@njit(inline="always")  # type: ignore[untyped-decorator]
def _log(x: Any) -> Any:
    """Return the logarithm of x = 2**e m, m from sqrt(1/2) to sqrt(2): e log(2) + 2 artanh((m - 1) / (m + 1))."""
    shifted = _bits_of(x) + (ONE - ROOT)
    exponent = np.float64(np.int64(shifted >> BITS_52) - EXPONENT_OF_ONE)
    m = _double_of((shifted & FRACTION) + ROOT)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = 1 / 21
    for odd in (19, 17, 15, 13, 11, 9, 7, 5, 3):
        series = series * z + 1.0 / odd
    return exponent * LOG_2 + 2.0 * (s + s * z * series)


@njit(inline="always")  # type: ignore[untyped-decorator]
def _sine(x: Any, z: Any) -> Any:
    return x + x * z * (S1 + z * (S2 + z * (S3 + z * (S4 + z * (S5 + z * (S6 + z * (S7 + z * S8)))))))


@njit(inline="always")  # type: ignore[untyped-decorator]
def _cosine(z: Any) -> Any:
    return 1.0 + z * (C1 + z * (C2 + z * (C3 + z * (C4 + z * (C5 + z * (C6 + z * (C7 + z * (C8 + z * C9))))))))


@njit(nogil=True, cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def fill_uniform(out: Any, state: Any) -> None:
    """Fill float64 (numbers,) uniformly in [0, 1), of the numbers of SplitMix64 from ``state``, uint64, on."""
    for i in range(out.size):
        bits = _mixed(state + np.uint64(i) * GOLDEN)
        out[i] = np.float64(np.int64(bits >> BITS_11)) * ULP_53


@njit(inline="always")  # type: ignore[untyped-decorator]
def _pair(state: Any) -> Any:
    """Return two independent normal numbers: Box and Muller, Annals of Mathematical Statistics 29, 1958.

    The angle is one within an eighth of a turn of 0, by the upper bits, turned by quarters, by the lowest two.
    """
    bits, angle = _mixed(state), _mixed(state + GOLDEN)
    radius = math.sqrt(-2.0 * _log(np.float64(np.int64(bits >> BITS_11) + 1) * ULP_53))
    x = (np.float64(np.int64(angle >> BITS_13)) * ULP_51 - 0.5) * QUARTER_TURN
    sine, cosine = radius * _sine(x, x * x), radius * _cosine(x * x)
    odd = (angle & BIT_0) == BIT_0
    minus = (angle & BIT_1) << BITS_62
    one, other = (sine, cosine) if odd else (cosine, sine)
    return _double_of(_bits_of(one) ^ minus ^ ((angle & BIT_0) << BITS_63)), _double_of(_bits_of(other) ^ minus)


# Products and sums may be fused, which is faster and no less precise.
@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})  # type: ignore[untyped-decorator]
def fill_normal(out: Any, state: Any) -> None:
    """Fill float64 (numbers,) normally, by pairs of the numbers of SplitMix64 from ``state``, uint64, on."""
    half = out.size // 2
    left, right = out[:half], out[half : 2 * half]
    for i in range(half):
        left[i], right[i] = _pair(state + np.uint64(2 * i) * GOLDEN)
    if out.size % 2:
        out[-1], _ = _pair(state + np.uint64(2 * half) * GOLDEN)
