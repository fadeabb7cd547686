"""How often each byte crosses between host and device while a step runs, and what the step does there.

``CROSSINGS`` of an application's module has, of each step, or case of it, the bytes that go up for each byte in the
arrays or columns that it reads, and that come down for each in those that it writes; where it writes none, for each
that it reads. That is once where nothing else is said, and elsewhere what was measured. The data are tiny, so that
arrays of a fixed size weigh more here than they do at work.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr

WORKFLOWS = Path(__file__).parents[2] / "workflows"
ONCE = 1.02
# How much better than the table a step may be before the table has to follow.
BETTER = 0.9


@dataclass
class Traffic:
    """Bytes that a step sent to the device, got back and allocated there, and the number of its operations there."""

    up: int = 0
    down: int = 0
    allocated: int = 0
    operations: int = 0
    # Bytes of the arrays in the files that it read and wrote.
    input: int = 0
    output: int = 0
    # Bytes that the step itself allocated or got back, rather than its tasks on other threads.
    beside_tasks: int = 0


_COUNTING: list[Traffic] = []
_LOCK = threading.Lock()


@contextmanager
def counted(traffic: Traffic) -> Iterator[None]:
    """Add what crosses meanwhile, on any thread."""
    _COUNTING.append(traffic)
    try:
        yield
    finally:
        _COUNTING.pop()


def count(*, up: int = 0, down: int = 0, allocated: int = 0, operations: int = 0) -> None:
    """Add to what is counted."""
    here = threading.current_thread() is threading.main_thread()
    with _LOCK:
        for each in _COUNTING:
            each.up += up
            each.down += down
            each.allocated += allocated
            each.operations += operations
            each.beside_tasks += (down + allocated) * here


def crossing_faults(table: Mapping[str, tuple[float, float]], traffic: Mapping[str, Traffic]) -> Iterator[str]:
    """Yield what differs between the table and what was counted."""
    for step, (up, down) in table.items():
        found = traffic[step]
        # Where results are not arrays, of the input, and where that is not, either, of a byte.
        given = found.input or 1
        results = found.output or given
        for way, measured, allowed in (("up", found.up / given, up), ("down", found.down / results, down)):
            if measured > ONCE * allowed:
                yield f"{step}: {measured:.2f} bytes go {way} for each byte, not {allowed}: what crosses again?"
            elif allowed > ONCE and measured < BETTER * allowed:
                yield f"{step}: only {measured:.2f} bytes go {way} for each byte: lower {allowed} in CROSSINGS"


def steps_with_gpu(application: str) -> set[str]:
    """Return the rules of a workflow that ask for a GPU."""
    rules = re.split(r"^ *rule (\w+):", (WORKFLOWS / application / "Snakefile").read_text(), flags=re.MULTILINE)
    return {name for name, body in zip(rules[1::2], rules[2::2], strict=True) if "gpu=" in body}


def bytes_of_arrays(path: Path) -> int:
    """Return the bytes of the arrays in a file or folder; where there are none, of the columns of tables.

    Columns have the width that they have on a device: text is 4 bytes a row.
    """
    if path.suffix == ".zarr":
        return sum(array.nbytes for _, array in zarr.open_group(path, mode="r").arrays())
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    arrays = sum(np.load(file, mmap_mode="r").nbytes for file in files if file.suffix == ".npy")
    tables = (pq.read_table(file, partitioning=None) for file in files if file.suffix == ".parquet")
    return arrays or sum(_width(column.type) * len(column) for table in tables for column in table.columns)


def _width(type_: pa.DataType) -> int:
    try:
        return max(1, int(type_.bit_width) // 8)
    except ValueError:
        return 4
