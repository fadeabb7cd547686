"""Numbers as arrays of NumPy and of Arrow without a copy, and without pandas; arrays in memory of Arrow's pool.

Arrow's own ways, ``pyarrow.array`` and ``to_numpy``, import pandas to see whether they were given any of it: a quarter
of a second in each process.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def to_arrow(numbers: npt.NDArray[Any]) -> pa.Array:
    """Return a one-dimensional array of numbers as Arrow's, without nulls."""
    contiguous = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, pa.py_buffer(contiguous)])


def to_numpy(numbers: pa.ChunkedArray | pa.Array) -> npt.NDArray[Any]:
    """Return numbers without nulls as NumPy's."""
    return np.from_dlpack(one_array(numbers))


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece, with one dictionary."""
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
    """Return an array whose content is arbitrary, in memory of Arrow's pool.

    The pool keeps what is freed for the next block; malloc returns it to the system, and its page faults would take a
    third of the time of reading Parquet.
    """
    return np.frombuffer(pa.allocate_buffer(length * dtype.itemsize), dtype)
