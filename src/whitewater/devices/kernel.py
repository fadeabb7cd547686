"""Loops over array elements, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function of arrays and numbers with Numba: without the interpreter's lock, and kept on disk."""
    from numba import njit

    return cast(Function, njit(nogil=True, cache=True)(function))
