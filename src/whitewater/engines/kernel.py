"""Loops over array elements, compiled by Numba."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar, cast

import numpy as np
from numba import config, njit

# Numba imports SciPy's linear algebra only to check that it exists, which takes a fifth of a second. A kernel that
# multiplies matrices imports it when it is compiled.
_BLAS = "scipy.linalg.cython_blas"
if _BLAS not in sys.modules:
    sys.modules[_BLAS] = ModuleType(_BLAS)
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        del sys.modules[_BLAS]

Function = TypeVar("Function", bound=Callable[..., Any])
# In a kernel, the width of an integer matters; to a type checker it is an int.
int64 = cast(Callable[[Any], int], np.int64)
uint64 = cast(Callable[[Any], int], np.uint64)


def kernel(function: Function, *, inline: bool = False) -> Function:
    """Compile a function of arrays and numbers with Numba; it releases the interpreter lock and is cached on disk.

    Kernels of `numba.cuda` may call it, too. For Numba's GPU simulator it stays Python. ``inline`` compiles it into
    each kernel that calls it.
    """
    if config.ENABLE_CUDASIM:
        return function
    return cast(Function, njit(nogil=True, cache=True, error_model="numpy", forceinline=inline)(function))


def part(function: Function) -> Function:
    """Compile a part of a kernel into each caller: a call would pass arrays word by word."""
    return kernel(function, inline=True)


@part
def ones(word: int) -> int:
    """Return the number of set bits of a uint64, in a form that LLVM compiles to one instruction."""
    pairs = word - ((word >> uint64(1)) & uint64(0x5555555555555555))
    nibbles = (pairs & uint64(0x3333333333333333)) + ((pairs >> uint64(2)) & uint64(0x3333333333333333))
    octets = (nibbles + (nibbles >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return int64((octets * uint64(0x0101010101010101)) >> uint64(56))
