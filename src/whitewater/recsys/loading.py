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
- CuPy: ``device=whitewater.devices.resolve("gpu")``; or, of batches on the host, ``cupy.asarray(batch["continuous"])``.

The order: the rows of each row group are cut into blocks of 16,384. The blocks of all files are shuffled, and cut into
as many spans of rows as there are shards; a span is cut into windows, the rows of a window are shuffled, and the window
is cut into batches. So a shard gets other rows in each epoch, and all shards together get each row once. Rows that are
near to each other in a folder that is not shuffled are up to a window apart, of many places of the folder.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whitewater import memory
from whitewater.devices import resolve
from whitewater.devices.arrow_kinds import empty
from whitewater.devices.kernel import uint64
from whitewater.errors import ConfigError
from whitewater.recsys.hashing import mix_one
from whitewater.recsys.loading_kernels import BIT, OFFSET, STORED, STRIDE, permutation, place_rows
from whitewater.recsys.mapped_columns import FeatureFile, MappedFile, files_of

if TYPE_CHECKING:
    from whitewater.devices.protocol import Array, Device
    from whitewater.recsys.feature_folder import FeatureFolder
    from whitewater.recsys.schema import Field

CONTINUOUS, CATEGORICAL, LABEL, KEY = "continuous", "categorical", "label", "key"
# 64 KiB of a column, so that a disk is not asked for crumbs.
_BLOCK_ROWS = 16_384
# Files mapped at a time: each holds a descriptor, of which processes have about a thousand.
_MAPPED_FILES = 128

Batch = dict[str, "Array"]


@dataclass(frozen=True)
class _Matrix:
    """An array of a batch; ``length`` is that of each list, where the column is one of lists."""

    name: str
    dtype: np.dtype[Any]
    fields: tuple[Field, ...]
    length: int | None = None
    is_vector: bool = False

    @property
    def width(self) -> int:
        """Numbers of a row."""
        return len(self.fields) * (self.length or 1)

    @property
    def row_bytes(self) -> int:
        return self.width * self.dtype.itemsize


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

    Equal folders, seeds, epochs, shards and sizes give equal batches on every machine; ``prefetch`` and ``threads``
    change nothing. An object holds no open file, and may be sent to another process.

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
    drop_last
        Whether to leave out rows, fewer than a batch for each shard, so that all batches are full and all shards have
        equally many. Which rows those are differs from epoch to epoch.
    prefetch
        Windows to prepare ahead of the one in use, at least 1.
    threads
        Threads that prepare windows.
    window_rows
        Rows shuffled together, about: as many whole batches as reach it. Memory is needed for ``prefetch`` + 1 windows.
        A batch that is kept keeps its window in memory; copy what is to be kept.
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
        drop_last: bool = False,
        prefetch: int = 2,
        threads: int = 1,
        window_rows: int = 262_144,
        device: Device | None = None,
    ) -> None:
        _check(batch_rows=batch_rows, prefetch=prefetch, threads=threads, window_rows=window_rows, shards=shard[1])
        if not 0 <= shard[0] < shard[1] or seed < 0:
            raise ConfigError(f"there is no shard {shard[0]} of {shard[1]}, or the seed {seed} is below 0.")
        self._device = device or resolve("cpu")
        self._matrices = _matrices(_fields(folder, columns))
        self._files, groups = files_of(folder)
        self._groups = groups[:, :2]
        self._blocks = _blocks(groups[:, 2])
        self._seed, self._shuffle = seed, shuffle
        self._batch_rows, self._window_rows = batch_rows, -(-window_rows // batch_rows) * batch_rows
        self._prefetch, self._threads = prefetch, threads
        self._rows = _span(int(groups[:, 2].sum()), shard, batch_rows if drop_last else None)
        # Where the numbers of each row group are, once it was read; no file may change as long as this is used.
        self._tables: dict[int, list[Array]] = {}
        self._forecast()

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

        Raises
        ------
        InputError
            If a file is missing or damaged, or has a column with nulls or of another type than the folder says.
        IntegrityError
            If a file was changed since this was made.
        """
        key = mix_one(mix_one(self._seed) ^ number)
        pieces = _Order(self._blocks, key if self._shuffle else None)
        reader = _Reader(self._files, self._groups, self._matrices, self._tables, self._device)
        starts = range(self._rows.start, self._rows.stop, self._window_rows)
        spans = [range(start, min(start + self._window_rows, self._rows.stop)) for start in starts]
        for window in _ahead(partial(_window, pieces, reader), spans, prefetch=self._prefetch, threads=self._threads):
            rows = len(next(iter(window.values())))
            for start in range(0, rows, self._batch_rows):
                yield {name: array[start : start + self._batch_rows] for name, array in window.items()}

    def _forecast(self) -> None:
        rows = min(self.rows, (self._prefetch + 1) * self._window_rows)
        memory.forecast(
            rows * sum(matrix.row_bytes for matrix in self._matrices),
            what=f"loading batches of {self._batch_rows:,} rows",
            remedy="Lower window_rows, batch_rows or prefetch, or load fewer columns.",
        )


def _check(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise ConfigError(f"{name} is {value}; it must be at least 1.")


def _fields(folder: FeatureFolder, columns: Sequence[str] | None) -> list[Field]:
    if columns is None:
        return [field for field in folder.schema if KEY not in field.tags]
    if not columns or len(set(columns)) < len(columns):
        raise ConfigError(f"columns are {list(columns)}; name at least one, and none twice.")
    return [folder.schema[name] for name in columns]


def _matrices(fields: Sequence[Field]) -> list[_Matrix]:
    """Return the arrays that hold these columns.

    Raises
    ------
    ConfigError
        If a column cannot be in one, or two arrays would have one name.
    """
    groups: dict[str, list[Field]] = {}
    for field in fields:
        groups.setdefault(_array_of(field), []).append(field)
    if not groups:
        raise ConfigError("there is no column to load.")
    for name, each in groups.items():
        if len(each) > 1 and any(_is_alone(field) for field in each):
            names = ", ".join(field.name for field in each)
            raise ConfigError(f"{names} would all be the array {name!r} of a batch. Rename or leave out all but one.")
    return [_matrix(name, each) for name, each in groups.items()]


def _is_alone(field: Field) -> bool:
    """Return whether a column is an array of its own."""
    return pa.types.is_list(field.type) or not {LABEL, KEY}.isdisjoint(field.tags)


def _array_of(field: Field) -> str:
    """Return the name of the array of a batch where a column is."""
    if LABEL in field.tags:
        return LABEL
    if KEY in field.tags or pa.types.is_list(field.type):
        return field.name
    return CATEGORICAL if "cardinality" in field.properties else CONTINUOUS


def _matrix(name: str, fields: Sequence[Field]) -> _Matrix:
    first = fields[0]
    for field in fields:
        _check_type(field)
    if pa.types.is_list(first.type):
        length = int(first.properties["length"])
        return _Matrix(name, _dtype([first], is_ids="cardinality" in first.properties), (first,), length)
    if KEY in first.tags:
        return _Matrix(name, np.dtype(np.int64), (first,), is_vector=True)
    return _Matrix(name, _dtype(fields, is_ids=name == CATEGORICAL), tuple(fields), is_vector=name == LABEL)


def _dtype(fields: Sequence[Field], *, is_ids: bool) -> np.dtype[Any]:
    if not is_ids:
        return np.dtype(np.float32)
    return np.dtype(np.int64 if any(_plain(field.type) == pa.int64() for field in fields) else np.int32)


def _check_type(field: Field) -> None:
    """Refuse a column that is not of a type that can be loaded."""
    is_list = pa.types.is_list(field.type)
    if is_list and "length" not in field.properties:
        raise ConfigError(
            f"column {field.name!r} has lists of any length, which are no array. Give them one by ListSlice with pad, "
            "or leave the column out of columns."
        )
    types, type_ = pa.types, _plain(field.type)
    is_integer = types.is_signed_integer(type_)
    is_number = is_integer or type_ in (pa.float32(), pa.float64()) or (types.is_boolean(type_) and not is_list)
    if not is_number or (not is_integer and (KEY in field.tags or "cardinality" in field.properties)):
        raise ConfigError(
            f"column {field.name!r} is of type {field.type}, which is not loaded: numbers are, booleans, ids as signed "
            "integers, and lists of numbers. Leave it out of columns, or convert it."
        )


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_list(type_) else type_


def _blocks(group_rows: Array) -> Array:
    """Return the blocks of row groups: number of the row group, first row, and rows; int64 (blocks, 3)."""
    counts = -(-group_rows // _BLOCK_ROWS)
    group = np.repeat(np.arange(len(counts)), counts)
    first = (np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)) * _BLOCK_ROWS
    return np.stack([group, first, np.minimum(group_rows[group] - first, _BLOCK_ROWS)], axis=1)


def _span(rows: int, shard: tuple[int, int], full: int | None) -> range:
    """Return the places of a shard in the order of the rows; with ``full`` as many batches of it as all shards have."""
    index, shards = shard
    if full:
        each = rows // shards // full * full
        return range(index * each, (index + 1) * each)
    return range(rows * index // shards, rows * (index + 1) // shards)


class _Order:
    """The blocks of an epoch in order; that of the folder if there is no ``key``."""

    def __init__(self, blocks: Array, key: int | None) -> None:
        self.key = key
        self._blocks = blocks if key is None else blocks[permutation(len(blocks), uint64(key))]
        self._stops = np.cumsum(self._blocks[:, 2])

    def pieces(self, span: range) -> Iterator[tuple[int, int, int]]:
        """Yield row group, first row and rows of each piece of a span of places."""
        first = int(np.searchsorted(self._stops, span.start, side="right"))
        last = int(np.searchsorted(self._stops, span.stop, side="left"))
        stops = self._stops[first : last + 1].tolist()
        for (group, row, rows), stop in zip(self._blocks[first : last + 1].tolist(), stops, strict=True):
            begin, end = max(span.start, stop - rows), min(span.stop, stop)
            yield group, row + begin - (stop - rows), end - begin

    def places(self, span: range) -> Array:
        """Return where in its window each row of a span goes, int32 (rows,)."""
        if self.key is None:
            return np.arange(len(span), dtype=np.int32)
        order: Array = permutation(len(span), uint64(mix_one(self.key ^ mix_one(span.start + 1))))
        return order


class _Reader:
    """Reads pieces of row groups into matrices; several threads may use it."""

    def __init__(
        self,
        files: Sequence[FeatureFile],
        groups: Array,
        matrices: Sequence[_Matrix],
        tables: dict[int, list[Array]],
        device: Device,
    ) -> None:
        self._files, self._groups, self._tables = files, groups.tolist(), tables
        self.matrices, self.device = matrices, device
        self._mapped: Callable[[int], MappedFile] = lru_cache(_MAPPED_FILES)(lambda file: files[file].mapped())

    def read(self, piece: tuple[int, int, int], places: Array, targets: Sequence[Array]) -> None:
        """Write the rows of a piece to their places in each matrix."""
        group, first, _ = piece
        file = self._mapped(self._groups[group][0])
        if group not in self._tables:
            self._tables[group] = self._located(group, file)
        for table, target in zip(self._tables[group], targets, strict=True):
            columns = table.copy()
            columns[:, OFFSET] += first * columns[:, STRIDE]
            _read_ahead(file, columns, len(places))
            place_rows(file.data, columns, places, target.view(f"u{target.dtype.itemsize}"), target)

    def _located(self, group: int, file: MappedFile) -> list[Array]:
        number, row_group = self._groups[group]
        return [
            np.concatenate(
                [
                    self._files[number].places(file.data, row_group, field, matrix.dtype, matrix.length)
                    for field in matrix.fields
                ]
            )
            for matrix in self.matrices
        ]


def _read_ahead(file: MappedFile, columns: Array, rows: int) -> None:
    """Have the system read all columns of a piece at once, and not one after the other."""
    for offset, stride in columns[columns[:, STORED] != BIT, : STRIDE + 1].tolist():
        file.will_read(offset, offset + stride * rows)


def _window(order: _Order, reader: _Reader, span: range) -> Batch:
    """Return the rows of a window as arrays."""
    targets = [
        empty(len(span) * matrix.width, matrix.dtype).reshape(len(span), matrix.width) for matrix in reader.matrices
    ]
    places = order.places(span)
    done = 0
    for piece in order.pieces(span):
        reader.read(piece, places[done : done + piece[2]], targets)
        done += piece[2]
    on_device = [reader.device.from_host(target) for target in targets]
    return {
        matrix.name: array[:, 0] if matrix.is_vector else array
        for matrix, array in zip(reader.matrices, on_device, strict=True)
    }


def _ahead(make: Callable[[range], Batch], spans: Sequence[range], *, prefetch: int, threads: int) -> Iterator[Batch]:
    """Yield what is made of each span, in order, while ``prefetch`` more are being made."""
    pending: deque[Future[Batch]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="batches")
    try:
        for span in spans:
            pending.append(pool.submit(make, span))
            if len(pending) > prefetch:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
