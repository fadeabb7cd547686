"""What every variant's process has in common: its arguments, the rules of the work, and the line that it prints.

The work: of the biallelic variants of a store, keep those with a call rate of at least 95 % and a minor allele
frequency of at least 1 %; center the dosages by their mean, a missing call being the mean; divide by
sqrt(2 p (1 - p)); write the ten leading principal components of the samples.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

CALL_RATE = 0.95
MINOR_ALLELE_FREQUENCY = 0.01
COMPONENTS = 10
# Calls decoded at once by the variants that read Zarr chunk by chunk.
BLOCK = 10_000


@dataclass(frozen=True)
class Work:
    """What a variant is to do: read the store (or the PLINK files), and write the components to ``output``, .npy.

    ``store`` is a path or a URL. ``device`` and ``cluster``, JSON of that section, are for those that can use them.
    ``phases`` are the seconds of parts of the work, by name.
    """

    store: str
    plink: Path
    threads: int
    output: Path
    device: str = "cpu"
    cluster: str = "{}"
    phases: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure a part of the work."""
        start = time.perf_counter()
        yield
        self.phases[name] = time.perf_counter() - start


def main(compute: Callable[[Work], int]) -> None:
    """Read the command line, compute, and print how long that took and how many variants were kept."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--plink", type=Path, default=Path())
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cluster", default="{}")
    work = Work(**vars(parser.parse_args()))
    work.output.parent.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    kept = compute(work)
    seconds = time.perf_counter() - start
    print(json.dumps({"compute_seconds": seconds, "answer": {"variants": kept}, "phases": work.phases}))


def dosages_of(calls: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Return the dosages, int8 (variants, samples), of calls, int8 (variants, samples, 2); -1 where missing."""
    dosages = calls[:, :, 0] + calls[:, :, 1]
    np.maximum(dosages, -1, out=dosages)
    return dosages


def passing(dosages: npt.NDArray[np.int8], *, xp: ModuleType = np) -> npt.NDArray[np.bool_]:
    """Return which variants are kept: bool (variants,). ``xp`` is the library of the array."""
    called = (dosages >= 0).sum(axis=1)
    alternate = dosages.sum(axis=1, dtype=np.int64) + (dosages.shape[1] - called)
    with np.errstate(invalid="ignore", divide="ignore"):
        frequency = alternate / (2 * called)
        kept: npt.NDArray[np.bool_] = (called >= CALL_RATE * dosages.shape[1]) & (
            xp.minimum(frequency, 1 - frequency) >= MINOR_ALLELE_FREQUENCY
        )
    return kept


def scaled(dosages: npt.NDArray[np.int8], *, xp: ModuleType = np) -> npt.NDArray[np.float32]:
    """Return dosages centered and scaled, missing ones 0: float32 (variants, samples)."""
    missing = dosages < 0
    called = dosages.shape[1] - missing.sum(axis=1)
    mean = (dosages.sum(axis=1, dtype=np.int64) + missing.sum(axis=1)) / called
    deviation = xp.sqrt(mean * (1 - mean / 2))
    values: npt.NDArray[np.float32] = dosages - mean.astype(np.float32)[:, None]
    values /= deviation.astype(np.float32)[:, None]
    values[missing] = 0
    return values


def load_dosages(work: Work) -> npt.NDArray[np.int8]:
    """Read the store with zarr on several threads, block by block, and return the dosages of the variants kept."""
    from concurrent.futures import ThreadPoolExecutor

    import zarr

    calls: Any = zarr.open_group(work.store, mode="r")["call_genotype"]

    def block(start: int) -> npt.NDArray[np.int8]:
        found = dosages_of(calls[start : start + BLOCK])
        return found[passing(found)]

    with ThreadPoolExecutor(work.threads) as pool:
        return np.concatenate(list(pool.map(block, range(0, calls.shape[0], BLOCK))))
