"""Arrays of numbers between NumPy and Arrow, without a copy and without pandas.

Arrow's own functions, ``pyarrow.array`` and ``to_numpy``, import pandas to check their argument: a quarter of a second
in each process.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def to_arrow(numbers: npt.NDArray[Any]) -> pa.Array:
    """Convert a one-dimensional NumPy array of numbers to an Arrow array without nulls."""
    contiguous = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, pa.py_buffer(contiguous)])


def to_numpy(numbers: pa.ChunkedArray | pa.Array) -> npt.NDArray[Any]:
    """Convert an Arrow column of numbers without nulls to a NumPy array."""
    return np.from_dlpack(one_array(numbers))


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Combine the chunks of a column into one array with one dictionary."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        # `combine_chunks` would copy it.
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def empty(length: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Allocate an array with arbitrary content in Arrow's memory pool.

    The pool reuses freed memory. With malloc, page faults would take a third of the time of reading Parquet.
    """
    return np.frombuffer(pa.allocate_buffer(length * dtype.itemsize), dtype)
