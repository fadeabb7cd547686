"""Shuffled batches of a folder of features, as the arrays that models take.

.. code-block:: python

    batches = Batches(open_features(path), batch_rows=65_536, seed=1)
    for epoch in range(3):
        for batch in batches.epoch(epoch):
            step(batch["continuous"], batch["categorical"], batch["label"])

The arrays are NumPy's, or CuPy's on the GPU, and support DLPack, by which frameworks take them without a copy:

- PyTorch: ``torch.from_dlpack(batch["continuous"])``. Where several processes train, each makes its own `Batches` with
  ``shard=(rank, processes)``; no ``DataLoader`` is needed. In one, an ``IterableDataset`` yields from an epoch, with
  ``batch_size=None`` and a shard for each of its workers.
- JAX: ``jax.dlpack.from_dlpack(batch["continuous"])``.
- CuPy: ``device=whitewater.engines.resolve("gpu")``; or, of batches on the host, ``cupy.asarray(batch["continuous"])``.

The order: the rows of each row group are cut into blocks of 16,384. The blocks of all files are shuffled, and cut into
as many spans of rows as there are shards; a span is cut into windows, the rows of a window are shuffled, and the window
is cut into batches. So a shard gets other rows in each epoch, and all shards together get each row once. Rows that are
near to each other in a folder that is not shuffled are up to a window apart, of many places of the folder.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whitewater.engines import Device, memory
from whitewater.errors import ConfigError
from whitewater.features.feature_folder import Values, files_of
from whitewater.tables.arrow_arrays import empty

if TYPE_CHECKING:
    from whitewater.engines.device import Array
    from whitewater.features.feature_folder import FeatureFolder
    from whitewater.features.schema import Field

CONTINUOUS, CATEGORICAL, LABEL, KEY = "continuous", "categorical", "label", "key"
# 64 KiB of a column, so that a disk is not asked for crumbs.
_BLOCK_ROWS = 16_384
# Files mapped at a time: each holds a descriptor, of which processes have about a thousand.
_MAPPED_FILES = 128

Batch = dict[str, "Array"]


@dataclass(frozen=True)
class _Matrix:
    """An array of a batch; ``width`` numbers of a row."""

    name: str
    dtype: np.dtype[Any]
    fields: tuple[Field, ...]
    width: int
    is_vector: bool


class Batches:
    """The batches of a folder of features, or of one shard of it; epoch after epoch, each in an order of its own.

    A batch is a dict of arrays, all with one row for each of its rows:

    - ``continuous``, float32 (rows, columns): the columns of numbers and booleans that are neither ids nor label;
    - ``categorical``, int32 (rows, columns), or int64 where one of them is: the columns of integers with the property
      ``cardinality``, which their ids are below;
    - ``label``, float32 (rows,): the column with the tag ``label``;
    - each column of lists that have one length (`ListSlice` with ``pad``), by its name, (rows, length): int32 or int64
      of ids, or else float32. Lists of many lengths are refused;
    - each key that is asked for by its name, as ``row_id``: int64 (rows,).

    Those that have no column are not there. Which column is where in a matrix, `columns` tells. A NaN is a null; nulls
    of other columns than floats are refused. What an integer of 64 bits, or a float64, loses as a float32 is lost.

    Equal folders, seeds, epochs, shards and sizes give equal batches on every machine; ``threads`` change nothing.
    An object holds no open file, and may be sent to another process.

    Parameters
    ----------
    folder
        The features. All shards need all of it.
    batch_rows
        Rows of a batch; the last one may have fewer.
    columns
        The columns to load; all but keys if None.
    seed
        Seed of the order, at least 0.
    shuffle
        Whether the order is random; else it is that of the folder.
    shard
        Which part of the rows, from 0, and of how many. The numbers of their rows differ by 1 at most.
    threads
        Threads, each of which prepares a window ahead of the one in use.
    window_rows
        Rows shuffled together, about: as many whole batches as reach it. Memory is needed for two windows for each
        thread, and the one in use. A batch that is kept keeps its window in memory; copy what is to be kept.
    device
        Where the arrays are to be; on the host if None.

    Raises
    ------
    ConfigError
        If a parameter is out of its range, or a column cannot be loaded.
    InputError
        If a column or file is missing, or a file is none of Parquet.
    IntegrityError
        If a file has other rows than it should have.
    ResourceError
        If the windows do not fit into memory.
    """

    def __init__(
        self,
        folder: FeatureFolder,
        *,
        batch_rows: int = 65_536,
        columns: Sequence[str] | None = None,
        seed: int = 0,
        shuffle: bool = True,
        shard: tuple[int, int] = (0, 1),
        threads: int = 1,
        window_rows: int = 262_144,
        device: Device | None = None,
    ) -> None:
        if min(batch_rows, threads, window_rows) < 1 or seed < 0:
            raise ConfigError("batch_rows, threads and window_rows must be at least 1, and the seed at least 0.")
        if not 0 <= shard[0] < shard[1]:
            raise ConfigError(f"there is no shard {shard[0]} of {shard[1]}.")
        self._device = device or Device()
        self._matrices = _matrices(_fields(folder, columns))
        self._files, self._groups = files_of(folder)
        self._blocks = _blocks(self._groups[:, 2])
        self._seed, self._shuffle, self._threads = seed, shuffle, threads
        self._batch_rows, self._window_rows = batch_rows, -(-window_rows // batch_rows) * batch_rows
        rows, (index, shards) = int(self._groups[:, 2].sum()), shard
        # The places of the shard in the order of all rows.
        self._rows = range(rows * index // shards, rows * (index + 1) // shards)
        # Where the numbers of each row group are, once it was read; no file may change as long as this is used.
        self._places: dict[int, list[list[Values]]] = {}
        self._forecast()

    def _forecast(self) -> None:
        row_bytes = sum(matrix.width * matrix.dtype.itemsize for matrix in self._matrices)
        # A thread reads a window and puts its rows in another order on the host; a device gets it then.
        windows = {self._device: self._threads + 1, Device(): 2 * self._threads + 1}
        for device, count in windows.items():
            memory.forecast(
                min(self.rows, count * self._window_rows) * row_bytes,
                what=f"loading batches of {self._batch_rows:,} rows",
                remedy="Lower window_rows, batch_rows or threads, or load fewer columns.",
                device=device,
            )

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of each array of a batch, in order."""
        return {matrix.name: tuple(field.name for field in matrix.fields) for matrix in self._matrices}

    @property
    def rows(self) -> int:
        """Rows of all batches of an epoch."""
        return len(self._rows)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return (self.rows + self._batch_rows - 1) // self._batch_rows

    def epoch(self, number: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch, prepared ahead by threads, which end with the iterator.

        Raises InputError if a file is missing or damaged, or has a column with nulls or of another type than the folder
        says, and IntegrityError if a file was changed since this was made.
        """
        blocks = self._blocks
        if self._shuffle:
            blocks = blocks[self._permutation(len(blocks), number, 0)]
        mapped = lru_cache(_MAPPED_FILES)(lambda file: self._files[file].mapped())
        starts = range(self._rows.start, self._rows.stop, self._window_rows)
        spans = [range(start, min(start + self._window_rows, self._rows.stop)) for start in starts]
        for window in _ahead(partial(self._window, number, blocks, mapped), spans, threads=self._threads):
            rows = len(next(iter(window.values())))
            for start in range(0, rows, self._batch_rows):
                yield {name: array[start : start + self._batch_rows] for name, array in window.items()}

    def _permutation(self, length: int, epoch: int, part: int) -> Array:
        """Return the numbers below ``length`` in an order that depends on the seed, the epoch and the part of it.

        `RandomState` is the generator that NumPy promises to leave as it is, on every machine and in every version.
        """
        bits = np.random.MT19937(np.random.SeedSequence([self._seed, epoch, part]))
        order: Array = np.random.RandomState(bits).permutation(length)
        return order

    def _window(self, epoch: int, blocks: Array, mapped: Callable[[int], mmap.mmap], span: range) -> Batch:
        """Return the rows of a window, a span of the places in the blocks' order, as arrays."""
        arrays, done = self._empty(len(span)), 0
        for group, first, rows in _pieces(blocks, span):
            self._read(mapped, group, first, [array[done : done + rows] for array in arrays])
            done += rows
        if self._shuffle:
            order, in_order = self._permutation(len(span), epoch, span.start + 1), arrays
            arrays = self._empty(len(span))
            for array, shuffled in zip(in_order, arrays, strict=True):
                array.take(order, axis=0, out=shuffled, mode="clip")  # with the mode "raise" NumPy copies once more
        on_device = map(self._device.to_device, arrays)
        return {
            matrix.name: array[:, 0] if matrix.is_vector else array
            for matrix, array in zip(self._matrices, on_device, strict=True)
        }

    def _empty(self, rows: int) -> list[Array]:
        return [empty(rows * each.width, each.dtype).reshape(rows, each.width) for each in self._matrices]

    def _read(self, mapped: Callable[[int], mmap.mmap], group: int, first: int, arrays: Sequence[Array]) -> None:
        """Fill the arrays with rows of a row group; what a float32 cannot hold is lost."""
        number, row_group, _ = self._groups[group].tolist()
        mapping = mapped(number)
        data = np.frombuffer(mapping, np.uint8)
        if group not in self._places:
            self._places[group] = [
                [self._files[number].values(data, row_group, field) for field in matrix.fields]
                for matrix in self._matrices
            ]
        for values in chain.from_iterable(self._places[group]):
            _read_ahead(mapping, values.place(first, len(arrays[0])))
        for columns, array in zip(self._places[group], arrays, strict=True):
            read = [values.read(data, first, len(array)) for values in columns]
            with np.errstate(over="ignore"):
                np.concatenate(read, axis=1, out=array, casting="unsafe")


def _fields(folder: FeatureFolder, columns: Sequence[str] | None) -> list[Field]:
    if columns is None:
        return [field for field in folder.schema if KEY not in field.tags]
    if not columns or len(set(columns)) < len(columns):
        raise ConfigError(f"columns are {list(columns)}; name at least one, and none twice.")
    return [folder.schema[name] for name in columns]


def _matrices(fields: Sequence[Field]) -> list[_Matrix]:
    """Return the arrays that hold these columns. Raises ConfigError if one cannot, or two would have one name."""
    groups: dict[str, list[Field]] = {}
    for field in fields:
        groups.setdefault(_array_of(field), []).append(field)
    if not groups:
        raise ConfigError("there is no column to load.")
    return [_matrix(name, each) for name, each in groups.items()]


def _array_of(field: Field) -> str:
    """Return the name of the array of a batch where a column is."""
    if LABEL in field.tags:
        return LABEL
    if KEY in field.tags or pa.types.is_list(field.type):
        return field.name
    return CATEGORICAL if "cardinality" in field.properties else CONTINUOUS


def _matrix(name: str, fields: Sequence[Field]) -> _Matrix:
    is_list = any(pa.types.is_list(field.type) for field in fields)
    is_vector = not is_list and any({LABEL, KEY} & {*field.tags} for field in fields)
    if len(fields) > 1 and (is_list or is_vector):
        names = ", ".join(field.name for field in fields)
        raise ConfigError(f"{names} would all be the array {name!r} of a batch. Rename or leave out all but one.")
    dtype = np.result_type(*map(_dtype, fields))
    width = int(fields[0].properties["length"]) if is_list else len(fields)
    return _Matrix(name, dtype, tuple(fields), width, is_vector)


def _dtype(field: Field) -> np.dtype[Any]:
    """Return the type that the numbers of a column get. Raises ConfigError if the column cannot be loaded."""
    types, is_list = pa.types, pa.types.is_list(field.type)
    if is_list and "length" not in field.properties:
        raise ConfigError(
            f"column {field.name!r} has lists of any length, which are no array. Give them one by ListSlice with pad, "
            "or leave the column out of columns."
        )
    type_ = field.type.value_type if is_list else field.type
    is_integer, is_id = types.is_signed_integer(type_), "cardinality" in field.properties
    is_number = is_integer or type_ in (pa.float32(), pa.float64()) or (types.is_boolean(type_) and not is_list)
    if not is_number or (not is_integer and (KEY in field.tags or is_id)):
        raise ConfigError(
            f"column {field.name!r} is of type {field.type}, which is not loaded: numbers are, booleans, ids as signed "
            "integers, and lists of numbers. Leave it out of columns, or convert it."
        )
    if KEY in field.tags:
        return np.dtype(np.int64)
    is_float = LABEL in field.tags or not is_id
    return np.dtype(np.float32 if is_float else np.int64 if type_ == pa.int64() else np.int32)


def _blocks(group_rows: Array) -> Array:
    """Return the blocks of row groups: number of the row group, first row, and rows; int64 (blocks, 3)."""
    counts = -(-group_rows // _BLOCK_ROWS)
    group = np.repeat(np.arange(len(counts)), counts)
    first = (np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)) * _BLOCK_ROWS
    return np.stack([group, first, np.minimum(group_rows[group] - first, _BLOCK_ROWS)], axis=1)


def _pieces(blocks: Array, span: range) -> Iterator[tuple[int, int, int]]:
    """Yield row group, first row and rows of each piece of a span of places in the blocks' order."""
    stops = np.cumsum(blocks[:, 2])
    which = slice(np.searchsorted(stops, span.start, side="right"), np.searchsorted(stops, span.stop) + 1)
    for (group, row, rows), stop in zip(blocks[which].tolist(), stops[which].tolist(), strict=True):
        begin, end = max(span.start, stop - rows), min(span.stop, stop)
        yield group, row + begin - (stop - rows), end - begin


def _read_ahead(mapping: mmap.mmap, place: slice) -> None:
    """Have the system read bytes while others are read: all columns of a piece at once, not one after the other."""
    start = place.start // mmap.PAGESIZE * mmap.PAGESIZE
    mapping.madvise(mmap.MADV_WILLNEED, start, place.stop - start)


def _ahead(make: Callable[[range], Batch], spans: Sequence[range], *, threads: int) -> Iterator[Batch]:
    """Yield what is made of each span, in order, while each thread makes another one."""
    pending: deque[Future[Batch]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="batches")
    try:
        for span in spans:
            pending.append(pool.submit(make, span))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
