"""Shuffled batches of a folder of features, as the arrays that models take.

.. code-block:: python

    batches = Batches(open_features(path), batch_rows=65_536, seed=1)
    for epoch in range(3):
        for batch in batches.epoch(epoch):
            step(batch["continuous"], batch["categorical"], batch["label"])

The arrays are NumPy's, or CuPy's with ``device``, and support DLPack, by which frameworks take them without a copy:
``torch.from_dlpack(batch["continuous"])``. Each of several processes that train makes its own `Batches` with
``shard=(rank, processes)``; no ``DataLoader`` is needed.

The order: the rows of each file are cut into blocks of 16,384. The blocks of all files are shuffled, and cut into as
many spans of rows as there are shards; a span is cut into windows, the rows of a window are shuffled, and the window is
cut into batches. What the rows hold changes nothing.
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
# Arrays mapped at a time: each holds a descriptor, of which processes have about a thousand.
_MAPPED_ARRAYS = 256

Batch = dict[str, "Array"]


class Batches:
    """The batches of a folder of features, or of one shard of it; epoch after epoch, each in an order of its own.

    A batch is a dict of arrays with one row for each of its rows; those that would have no column are left out:

    - ``continuous``, float32 (rows, columns): numbers and booleans that are neither ids nor label; null is NaN;
    - ``categorical``, int32 (rows, columns), or int64 if one is: ids, below the property ``cardinality``;
    - ``label``, float32 (rows,): the column with the tag ``label``;
    - each column of lists of one length (`ListSlice` with ``pad``), by its name, (rows, length): ids, or float32;
    - each key that is asked for by its name, as ``row_id``: int64 (rows,).

    What an integer of 64 bits, or a float64, loses as a float32 is lost. Equal folders, seeds, epochs, shards and sizes
    give equal batches on every machine, whatever ``threads`` are.

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
        Which part of the rows, from 0, and of how many; their numbers of rows differ by 1 at most.
    threads
        Threads, each of which prepares a window ahead of the one in use.
    window_rows
        Rows shuffled together, about: as many whole batches as reach it. Memory is needed for a window for each
        thread, and the one in use. A batch that is kept keeps its window in memory; copy what is to be kept.
    device
        Where the arrays are to be; on the host if None.

    Raises
    ------
    ConfigError, InputError, IntegrityError, ResourceError
        If a parameter is out of its range or a column cannot be loaded; a column or file is missing, damaged or has
        nulls; a file has other rows than it should have; the windows do not fit into memory.

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
                f"batch_rows, threads and window_rows must be at least 1, the seed at least 0, and a shard one of its "
                f"number, counted from 0: {shard[0]} of {shard[1]} is given."
            )
        self._folder, self._device = folder, device or Device()
        self._seed, self._shuffle, self._threads = seed, shuffle, threads
        self._batch_rows, self._window_rows = batch_rows, -(-window_rows // batch_rows) * batch_rows
        self._arrays = matrices(Schema(tuple(_fields(folder, columns))))
        names = [array.name for array in self._arrays]
        if alike := [array for array in self._arrays if names.count(array.name) > 1]:
            raise ConfigError(
                f"{', '.join(name for array in alike for name in array.columns)} would all be the array "
                f"{alike[0].name!r} of a batch. Rename or leave out all but one."
            )
        # Of each array, which one of a file has its columns
        self._stored = [
            next(number for number, each in enumerate(folder.matrices) if array.columns[0] in each.columns)
            for array in self._arrays
        ]
        index, shards = shard
        # The places of the shard in the order of all rows.
        self._rows = range(folder.rows * index // shards, folder.rows * (index + 1) // shards)
        row_bytes = sum(math.prod(each.row) * each.dtype.itemsize for each in self._arrays)
        for place in {self._device, Device()}:
            memory.forecast(
                min(self.rows, (threads + 1) * self._window_rows) * row_bytes,
                what=f"loading batches of {batch_rows:,} rows",
                remedy="Lower window_rows, batch_rows or threads, or load fewer columns.",
                device=place,
            )
        self._mapped = lru_cache(_MAPPED_ARRAYS)(folder.array)
        # No file may change as long as this is used.
        self._states = self._file_states()

    def _file_states(self) -> dict[Path, tuple[int, int]]:
        """Return the size and the time of the last change of each file. Raises as `FeatureFolder.array`."""
        states = {}
        for each in product(range(len(self._folder.files)), self._stored):
            path = self._folder.array_path(*each)
            with FORMAT.explained(path):
                status = path.stat()
            states[path] = status.st_size, status.st_mtime_ns
            self._mapped(*each)
        return states

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of each array of a batch, in order."""
        return {each.name: each.columns for each in self._arrays}

    @property
    def rows(self) -> int:
        """Rows of all batches of an epoch."""
        return len(self._rows)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return math.ceil(self.rows / self._batch_rows)

    def epoch(self, number: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch, prepared ahead by threads, which end with the iterator.

        Raises InputError if a file is missing or damaged, and IntegrityError if one was changed since this was made.
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
        """Return the numbers below ``length`` in an order that depends on the seed, the epoch and the part of it.

        `RandomState` is the generator that NumPy promises to leave as it is, on every machine and in every version.
        """
        bits = np.random.MT19937(np.random.SeedSequence([self._seed, epoch, part]))
        return np.random.RandomState(bits).permutation(length)

    def _window(self, epoch: int, blocks: Array, start: int) -> Batch:
        """Return the rows of the window that starts at a place in the blocks' order."""
        span = range(start, min(start + self._window_rows, self._rows.stop))
        pieces = list(_pieces(blocks, span))
        # Where each row of the pieces comes to be.
        order = self._permutation(len(span), epoch, start + 1) if self._shuffle else np.arange(len(span))
        window = {}
        for array, number in zip(self._arrays, self._stored, strict=True):
            rows = empty(len(span) * math.prod(array.row), array.dtype).reshape(len(span), *array.row)
            whole, done, stored = _whole_rows(rows), 0, self._folder.matrices[number].columns
            for file, first, count in pieces:
                values = self._mapped(file, number)[first : first + count]
                if array.columns != stored:
                    places = [stored.index(name) for name in array.columns]
                    values = np.ascontiguousarray(values[:, places], array.dtype)
                whole[order[done : done + count]] = _whole_rows(values)
                done += count
            window[array.name] = self._device.to_device(rows)
        return window


def _whole_rows(rows: Array) -> Array:
    """Return rows as one value each, which NumPy moves four times as fast as rows of numbers."""
    return rows.view(f"V{rows.itemsize * rows.shape[1]}")[:, 0] if rows.ndim > 1 else rows


def _fields(folder: FeatureFolder, columns: Sequence[str] | None) -> list[Field]:
    """Return the columns to load; raises ConfigError or InputError if one cannot be loaded, or is there twice."""
    if columns is None:
        fields = [field for field in folder.schema if KEY not in field.tags]
    else:
        fields = [folder.schema[name] for name in columns]
    if not fields or len({field.name for field in fields}) < len(fields):
        raise ConfigError(f"columns are {[field.name for field in fields]}; name at least one, and none twice.")
    for field in fields:
        number_type(field)
    folder.refuse_nulls(field.name for field in fields)
    return fields


def _blocks(file_rows: Sequence[int]) -> Array:
    """Return the blocks of files: number of the file, first row, and rows; int64 (blocks, 3)."""
    blocks = [
        (file, first, min(_BLOCK_ROWS, rows - first))
        for file, rows in enumerate(file_rows)
        for first in range(0, rows, _BLOCK_ROWS)
    ]
    return np.array(blocks, np.int64).reshape(-1, 3)


def _pieces(blocks: Array, span: range) -> Iterator[tuple[int, int, int]]:
    """Yield file, first row and rows of each piece of a span of places in the blocks' order."""
    stops = np.cumsum(blocks[:, 2])
    which = slice(np.searchsorted(stops, span.start, side="right"), np.searchsorted(stops, span.stop) + 1)
    for (file, row, rows), stop in zip(blocks[which].tolist(), stops[which].tolist(), strict=True):
        begin, end = max(span.start, stop - rows), min(span.stop, stop)
        yield file, row + begin - (stop - rows), end - begin
