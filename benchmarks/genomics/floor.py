"""The floor of the work on this machine: decode every chunk once, and multiply as often as the passes do.

What any tool has to do that reads these chunks and multiplies each genotype by ``--columns`` numbers twice in each of
``--passes`` passes; both with nothing else around them, on all threads. Prints the seconds of each as JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numcodecs import Blosc, blosc

_SLAB = 256


def decode_seconds(store: Path, *, threads: int) -> float:
    """Return the seconds that it takes to read and decompress all chunks into memory that is used again."""
    metadata = json.loads((store / "call_genotype" / ".zarray").read_text())
    size = int(np.prod(metadata["chunks"]))
    chunks = [each for each in (store / "call_genotype").iterdir() if each.name[0] != "."]
    blosc.use_threads = False
    codec = Blosc.from_config({key: value for key, value in metadata["compressor"].items() if key != "id"})

    def decode(share: list[Path]) -> None:
        buffer = np.empty(size, np.int8)
        for chunk in share:
            codec.decode(chunk.read_bytes(), out=buffer)

    return _on_threads(decode, [chunks[at::threads] for at in range(threads)])


def multiply_seconds(*, samples: int, variants: int, columns: int, passes: int, threads: int) -> float:
    """Return the seconds that two products of each slab of 256 variants with ``columns`` columns take, in float32."""
    slabs = -(-variants // _SLAB) * passes

    def multiply(count: int) -> None:
        slab = np.ones((_SLAB, samples), np.float32)
        block = np.ones((samples, columns), np.float32)
        half = np.empty((_SLAB, columns), np.float32)
        result = np.empty((samples, columns), np.float32)
        for _ in range(count):
            np.matmul(slab, block, out=half)
            np.matmul(slab.T, half, out=result)

    return _on_threads(multiply, [slabs // threads] * threads)


def _on_threads(work: Callable[[Any], None], shares: list[Any]) -> float:
    started = time.perf_counter()
    with ThreadPoolExecutor(len(shares)) as pool:
        list(pool.map(work, shares))
    return time.perf_counter() - started


def main() -> None:
    """Read the command line, measure, and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", type=Path, required=True)
    for name in ("samples", "variants", "columns", "passes", "threads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    given: Any = parser.parse_args()
    decode = decode_seconds(given.store, threads=given.threads)
    multiply = multiply_seconds(
        samples=given.samples,
        variants=given.variants,
        columns=given.columns,
        passes=given.passes,
        threads=given.threads,
    )
    print(json.dumps({"decode_seconds": decode, "multiply_seconds": multiply}))


if __name__ == "__main__":
    main()
