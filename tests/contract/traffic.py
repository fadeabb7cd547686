"""How often each byte crosses between host and device while a step runs, and what the step does there.

An input byte goes up once, and an output byte comes down once, where `CROSSINGS` says so; elsewhere it has what was
measured and why. The data are tiny, so that arrays of a fixed size weigh more here than they do at work.
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
# Steps that ask for a GPU for frames, which cuDF reads there; see `test_graph_frames` and its like.
OF_FRAMES: dict[str, set[str]] = {
    "genomics": set(),
    "pagerank": {"renumber"},
    "recsys": {"fit", "features"},
    "taxi": {"standardize", "clean", "tips"},
}
# Of each step, or case of it, the bytes that go up for each byte in the arrays or columns that it reads, and that come
# down for each in those that it writes; where it writes none, for each that it reads.
CROSSINGS: dict[str, dict[str, tuple[float, float]]] = {
    "genomics": {
        "ld_prune": (1, 1),
        # Of each pair of tiles a histogram comes down.
        "relatedness": (1, 1.82),
        # The table of scaled dosages has 16 bytes a variant, and so have the codes of 64 samples; counts, matrices of a
        # block's columns, and sums for least squares come down.
        "outliers": (2.81, 54.02),
        "pca gram": (1.95, 1),
        "pca randomized": (2.58, 1),
        "project": (1, 1.83),
        "umap": (1, 1),
    },
    # Two numbers come down in each iteration.
    "pagerank": {"rank networkx": (1, 1.64), "rank of_library": (0.9, 1), "communities": (1, 1)},
    "recsys": {"train": (1, 1)},
    # The sample goes up again for models of all its trips; predictions come down to be scored, and models are small.
    "taxi": {"model": (1.4, 35.36), "predict predictions": (1, 1)},
}


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
        _COUNTING.remove(traffic)


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


def crossing_faults(application: str, traffic: Mapping[str, Traffic]) -> Iterator[str]:
    """Yield what differs between the table and what was counted."""
    for step, (up, down) in CROSSINGS[application].items():
        found = traffic[step]
        # Where results are not arrays, of the input.
        results = found.output or found.input
        for way, measured, allowed in (("up", found.up / found.input, up), ("down", found.down / results, down)):
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
    return arrays or sum(_bytes_of_table(file) for file in files if file.suffix == ".parquet")


def _bytes_of_table(path: Path) -> int:
    table = pq.read_table(path, partitioning=None)
    return sum(_width(column.type) * len(column) for column in table.columns)


def _width(type_: pa.DataType) -> int:
    try:
        return max(1, int(type_.bit_width) // 8)
    except ValueError:
        return 4
