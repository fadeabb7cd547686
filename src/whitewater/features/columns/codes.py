"""Integers as categories, and counts and sums of rows by their codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whitewater.engines import Array
from whitewater.errors import IntegrityError
from whitewater.features.columns.column import Categories
from whitewater.features.columns.kernels import fill_counts, fill_sums, number_values
from whitewater.tables.arrow_arrays import to_arrow

if TYPE_CHECKING:
    from whitewater.engines.device import Device


def factorize(values: Array, valid: Array | None, device: Device) -> Categories:
    """Return integers as categories.

    ``values`` are int64 (rows,); ``valid``, bool (rows,), is False where the row is null, or None where none is. The
    dictionary has each value that occurs, once, in the order of first sight (on a GPU: ascending).
    """
    if device.name == "gpu":
        return _factorize_by_sorting(values, valid, device)
    slots = np.zeros(1 << max(2 * len(values) - 1, 1).bit_length(), np.int32)
    distinct, codes = np.empty(len(values), np.int64), np.empty(len(values), np.int32)
    present = np.empty(0, np.bool_) if valid is None else valid
    size = number_values(_input(values), _input(present), slots, distinct, codes)
    return Categories(codes, to_arrow(distinct[:size].copy()))


def _factorize_by_sorting(values: Array, valid: Array | None, device: Device) -> Categories:
    xp = device.xp
    present = values if valid is None else values[valid]
    dictionary, found = xp.unique(present, return_inverse=True)
    if valid is None:
        codes = found.astype("int32")
    else:
        codes = xp.full(len(values), -1, "int32")
        codes[valid] = found
    return Categories(codes, to_arrow(device.to_host(dictionary)))


def count_codes(codes: Array, size: int, device: Device) -> Array:
    """Count the rows of each code below ``size``, int32 (rows,) -> int64 (size,); those of code -1 are not counted.

    Raises IntegrityError if there is another code.
    """
    if device.name == "gpu":
        return _bincount(codes, None, size, device)
    counts = np.zeros(size, np.int64)
    _check(fill_counts(_input(codes), counts), size)
    return counts


def sum_by_code(codes: Array, weights: Array, size: int, device: Device) -> Array:
    """Add up float64 (rows,) by code as `count_codes` counts: float64 (size,).

    On the CPU in the order of the rows; on a GPU the order, and so the last bits, may be another each time.
    """
    if device.name == "gpu":
        return _bincount(codes, weights, size, device)
    sums = np.zeros(size)
    _check(fill_sums(_input(codes), _input(weights), sums), size)
    return sums


def _bincount(codes: Array, weights: Array | None, size: int, device: Device) -> Array:
    if not len(codes):
        # CuPy's sums of nothing are refused, or integers.
        nothing: Array = device.xp.zeros(size, "int64" if weights is None else "float64")
        return nothing
    sums: Array = device.xp.bincount(codes + 1, weights, minlength=size + 1)[1:]
    _check(int((codes >= size).sum()) if len(sums) > size else 0, size)
    return sums


def _input(values: Array) -> Array:
    """Return an array as kernels take it, so that each is compiled once: contiguous, and read-only."""
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view


def _check(outside: int, size: int) -> None:
    if outside:
        raise IntegrityError(f"{outside} rows have a code that is not below {size}. This is an error of the program.")
