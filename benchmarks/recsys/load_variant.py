"""What every variant that loads batches has in common: its arguments, the rules of the work, its line of output.

The work: each epoch, every row once, in batches of `BATCH_ROWS` in a random order that differs from epoch to epoch:
``continuous`` float32 (rows, 13), ``categorical`` int32 (rows, 26), ``label`` float32 and ``row_id`` int64 (rows,).

After some epochs that are timed, and in which nothing is done with the batches, comes one that is not timed, in which
sums are taken: they depend on every value and on the row that it is in, and not on the order of the rows. A slow
variant may time fewer epochs. ``compute_seconds`` are those of one epoch, their mean; what is done once for all epochs
is the phase ``open``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from benchmarks.placement import ON_CPU, Placement, add_options, placement_of
from benchmarks.recsys.features_variant import CATEGORICAL, CONTINUOUS

if TYPE_CHECKING:
    from whitewater.engines import Device

BATCH_ROWS = 65_536
# Rows that are shuffled together by variants that do not have all of them in memory.
WINDOW_ROWS = 4 * BATCH_ROWS
EPOCHS = 5

Batch = Mapping[str, npt.NDArray[Any]]
Epoch = Callable[[int], Iterator[Batch]]


@dataclass(frozen=True)
class Work:
    """What a variant is to do: load the Parquet files of a folder of features, with so many threads."""

    folder: Path
    threads: int
    placement: Placement = ON_CPU

    @property
    def files(self) -> list[Path]:
        """The Parquet files."""
        return sorted(self.folder.glob("*.parquet"))


def main(open_batches: Callable[[Work], Epoch], *, epochs: int = EPOCHS, is_placed: bool = False) -> None:
    """Read the command line, load the batches of some epochs, and print how long one took, and the sums.

    Only a variant that ``is_placed`` has the options of `benchmarks.placement`; its batches are on its device.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    if is_placed:
        add_options(parser)
    arguments: Any = parser.parse_args()
    work = Work(arguments.features, arguments.threads, placement_of(arguments))
    device = work.placement.resolve() if is_placed else None
    start = time.perf_counter()
    epoch = open_batches(work)
    opened = time.perf_counter()
    for number in range(epochs):
        for _ in epoch(number):
            pass
    if device:
        device.synchronize()
    seconds = (time.perf_counter() - opened) / epochs
    answer = sums(on_host(epoch, device) if device else epoch, epochs)
    print(json.dumps({"compute_seconds": seconds, "phases": {"open": opened - start}, "answer": answer}))


def on_host(epoch: Epoch, device: Device) -> Epoch:
    """Return epochs of the same batches in the memory of the host."""
    return lambda number: ({name: device.to_host(each) for name, each in batch.items()} for batch in epoch(number))


def sums(epoch: Epoch, number: int) -> JsonValue:
    """Return the rows of an epoch, sums over them, and whether the next epoch begins with other rows."""
    rows = 0
    ids = np.zeros(len(CATEGORICAL) + 2, np.int64)
    numbers = np.zeros(len(CONTINUOUS))
    first = next(epoch(number + 1))["row_id"].copy()
    shuffled = True
    for batch in epoch(number):
        weights = batch["row_id"] % 1009 + 1
        if rows == 0:
            shuffled = not np.array_equal(first, batch["row_id"]) and not (np.diff(first) > 0).all()
        rows += len(weights)
        numbers += weights.astype(np.float64) @ batch["continuous"].astype(np.float64)
        ids[:-2] += weights @ batch["categorical"].astype(np.int64)
        ids[-2:] += [weights @ batch["label"].astype(np.int64), (batch["row_id"] * weights).sum()]
    # Numbers are about 0 on average, so that their sum says nothing of its precision: the mean does.
    return {"rows": rows, "shuffled": shuffled, "ids": ids.tolist(), "numbers": (numbers / max(rows, 1)).tolist()}
