"""Shuffled batches of a folder of features, as the arrays that models take.

The arrays are NumPy's, or CuPy's with ``device``, and support DLPack, by which frameworks take them without a copy:
``torch.from_dlpack(batch["continuous"])``. Each of several processes that train makes its own `Batches` with
``shard=(rank, processes)``; no ``DataLoader`` is needed.

The order: blocks of 16,384 rows of all files are shuffled, and divided among the shards. Each shard is cut into
windows, the rows of a window are shuffled, and the window is cut into batches. The values do not affect the order.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import islice, product
from pathlib import Path

import numpy as np

from whitewater.engines import Device, memory
from whitewater.engines.device import Array
from whitewater.errors import ConfigError, IntegrityError
from whitewater.features.feature_folder import FORMAT, KEY, FeatureFolder, matrices, number_type
from whitewater.features.schema import Field, Schema
from whitewater.tables.arrow_arrays import empty

_BLOCK_ROWS = 16_384

Batch = dict[str, Array]


class Batches:
    """The batches of a folder of features, or of a shard of it, in a new order each epoch.

    A batch is a dict of arrays; those without columns are omitted:

    - ``continuous``, float32 (rows, columns): numbers and booleans except ids and label; null is NaN;
    - ``categorical``, int32 (rows, columns), or int64 if a column is: ids, below the property ``cardinality``;
    - ``label``, float32 (rows,): the column with the tag ``label``;
    - each column of lists of one length (`ListSlice` with ``pad``), by its name, (rows, length): ids, or float32;
    - each key in ``columns``, such as ``row_id``, by its name: int64 (rows,).

    Conversion to float32 may lose digits. Equal folders, seeds, epochs, shards and sizes give equal batches on every
    machine, for any number of threads.

    Parameters
    ----------
    folder
        The features. Every shard needs the complete folder.
    batch_rows
        Rows of a batch; the last one may have fewer.
    columns
        The columns to load; all except keys if None.
    seed
        Seed of the order, at least 0.
    shuffle
        Whether to shuffle; otherwise, rows are in the order of the folder.
    shard
        Number of the shard, from 0, and number of shards, whose sizes differ by at most one row.
    threads
        Threads; each prepares one window ahead of the one in use.
    window_rows
        Rows to shuffle together, rounded up to complete batches. Memory holds a window per thread, and the one in use.
        A batch is a view of its window: copy a batch that you keep.
    device
        Device of the arrays; the host if None.

    Raises
    ------
    ConfigError, InputError, IntegrityError, ResourceError
        If a parameter is out of range or a column cannot be loaded; a column or file is missing or damaged, or has
        nulls; a file has the wrong number of rows; the windows do not fit into memory.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from whitewater.features import Batches, Workflow, open_features
    >>> from whitewater.features.operators import FillMissing
    >>> workflow = Workflow(["x"] >> FillMissing(fill_val=0)).fit({"x": [1.0, None]})
    >>> scratch = TemporaryDirectory()
    >>> folder = Path(scratch.name, "features")
    >>> workflow.transform_to(folder, {"x": [None, 4.0, 5.0]})
    3
    >>> batches = Batches(open_features(folder), batch_rows=2, shuffle=False, seed=0)
    >>> [batch["continuous"].tolist() for batch in batches.epoch()]
    [[[0.0], [4.0]], [[5.0]]]
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
        if min(batch_rows, threads, window_rows) < 1 or seed < 0 or not 0 <= shard[0] < shard[1]:
            raise ConfigError(
                f"batch_rows, threads and window_rows must be at least 1, the seed at least 0, and the shard from 0 to "
                f"one less than the number of shards: it is {shard[0]} of {shard[1]}."
            )
        self._folder, self._device = folder, device or Device()
        self._seed, self._shuffle, self._threads = seed, shuffle, threads
        self._batch_rows, self._window_rows = batch_rows, -(-window_rows // batch_rows) * batch_rows
        self._arrays = matrices(Schema(tuple(_fields(folder, columns))))
        names = [array.name for array in self._arrays]
        if duplicates := [array for array in self._arrays if names.count(array.name) > 1]:
            raise ConfigError(
                f"{', '.join(name for array in duplicates for name in array.columns)} would all be the array "
                f"{duplicates[0].name!r} of a batch. Rename or leave out all but one."
            )
        # The number of the matrix in the folder that has the columns of each array
        self._matrices = [
            next(number for number, matrix in enumerate(folder.matrices) if array.columns[0] in matrix.columns)
            for array in self._arrays
        ]
        index, shards = shard
        self._rows = range(folder.rows * index // shards, folder.rows * (index + 1) // shards)
        row_bytes = sum(math.prod(array.row) * array.dtype.itemsize for array in self._arrays)
        for place in {self._device, Device()}:
            memory.forecast(
                min(self.rows, (threads + 1) * self._window_rows) * row_bytes,
                what=f"loading batches of {batch_rows:,} rows",
                remedy="Lower window_rows, batch_rows or threads, or load fewer columns.",
                device=place,
            )
        # Each mapped array has a file descriptor, and processes may have about a thousand.
        self._map_array = lru_cache(256)(folder.array)
        # Files must not change while this is in use.
        self._states = self._file_states()

    def _file_states(self) -> dict[Path, tuple[int, int]]:
        """Return size and modification time of each file. Raises as `FeatureFolder.array`."""
        states = {}
        for file, matrix in product(range(len(self._folder.files)), self._matrices):
            path = self._folder.array_path(file, matrix)
            with FORMAT.explain_errors(path):
                status = path.stat()
            states[path] = status.st_size, status.st_mtime_ns
            self._map_array(file, matrix)
        return states

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of each array of a batch, in order."""
        return {array.name: array.columns for array in self._arrays}

    @property
    def rows(self) -> int:
        """Rows of all batches of an epoch."""
        return len(self._rows)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return math.ceil(self.rows / self._batch_rows)

    def epoch(self, number: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch, prepared ahead by threads.

        Raises InputError if a file is missing or damaged, and IntegrityError if one has changed since construction.
        """
        for path, state in self._file_states().items():
            if state != self._states[path]:
                raise IntegrityError(f"{path} was changed while it was loaded. Open the folder again.")
        blocks = _blocks([file.rows for file in self._folder.files])
        if self._shuffle:
            blocks = blocks[self._permutation(len(blocks), number, 0)]
        with ThreadPoolExecutor(self._threads, thread_name_prefix="batches") as pool:
            starts = range(self._rows.start, self._rows.stop, self._window_rows)
            windows = (pool.submit(self._window, number, blocks, start) for start in starts)
            pending = deque(islice(windows, self._threads))
            while pending:
                window = pending.popleft().result()
                pending.extend(islice(windows, 1))
                for first in range(0, len(next(iter(window.values()))), self._batch_rows):
                    yield {name: array[first : first + self._batch_rows] for name, array in window.items()}

    def _permutation(self, length: int, epoch: int, part: int) -> Array:
        """Return a permutation for the seed, the epoch and a part of it."""
        # NumPy guarantees the same numbers from `RandomState` on every machine and in every version.
        bits = np.random.MT19937(np.random.SeedSequence([self._seed, epoch, part]))
        return np.random.RandomState(bits).permutation(length)

    def _window(self, epoch: int, blocks: Array, start: int) -> Batch:
        """Return the window that starts at row ``start`` of the shuffled blocks."""
        span = range(start, min(start + self._window_rows, self._rows.stop))
        pieces = list(_pieces(blocks, span))
        # The target of each row of the pieces
        order = self._permutation(len(span), epoch, start + 1) if self._shuffle else np.arange(len(span))
        window = {}
        for array, matrix in zip(self._arrays, self._matrices, strict=True):
            rows = empty(len(span) * math.prod(array.row), array.dtype).reshape(len(span), *array.row)
            items, done, names = _rows_as_items(rows), 0, self._folder.matrices[matrix].columns
            for file, first, count in pieces:
                values = self._map_array(file, matrix)[first : first + count]
                if array.columns != names:
                    indices = [names.index(name) for name in array.columns]
                    values = np.ascontiguousarray(values[:, indices], array.dtype)
                items[order[done : done + count]] = _rows_as_items(values)
                done += count
            window[array.name] = self._device.to_device(rows)
        return window


def _rows_as_items(rows: Array) -> Array:
    """View each row as one item, which NumPy moves four times as fast as a row of numbers."""
    return rows.view(f"V{rows.itemsize * rows.shape[1]}")[:, 0] if rows.ndim > 1 else rows


def _fields(folder: FeatureFolder, columns: Sequence[str] | None) -> list[Field]:
    """Return the columns to load; raises ConfigError or InputError if one cannot be loaded, or is repeated."""
    names = [field.name for field in folder.schema if KEY not in field.tags] if columns is None else columns
    fields = [folder.schema[name] for name in names]
    if not fields or len({field.name for field in fields}) < len(fields):
        raise ConfigError(f"columns are {[field.name for field in fields]}. Name at least one, and each once.")
    for field in fields:
        number_type(field)
    folder.refuse_nulls(field.name for field in fields)
    return fields


def _blocks(file_rows: Sequence[int]) -> Array:
    """Return the blocks of files: number of the file, first row, and number of rows; int64 (blocks, 3)."""
    blocks = [
        (file, first, min(_BLOCK_ROWS, rows - first))
        for file, rows in enumerate(file_rows)
        for first in range(0, rows, _BLOCK_ROWS)
    ]
    return np.array(blocks, np.int64).reshape(-1, 3)


def _pieces(blocks: Array, span: range) -> Iterator[tuple[int, int, int]]:
    """Yield file, first row and number of rows of each piece of a span of rows in the order of the blocks."""
    stops = np.cumsum(blocks[:, 2])
    overlap = slice(np.searchsorted(stops, span.start, side="right"), np.searchsorted(stops, span.stop) + 1)
    for (file, row, rows), stop in zip(blocks[overlap].tolist(), stops[overlap].tolist(), strict=True):
        begin, end = max(span.start, stop - rows), min(span.stop, stop)
        yield file, row + begin - (stop - rows), end - begin
