"""What this machine can do at most, as the results are compared with it: `python -m benchmarks.limits`.

Memory is copied as STREAM copies it (J. D. McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance
Computers", 1995): an array much larger than the caches, of which the bytes that are read and those that are written
count. Matrices are multiplied by the device's own library. A file is read from the page cache and, where its pages can
be dropped from there, from below it.
"""

from __future__ import annotations

import argparse
import ctypes
import logging
import math
import mmap
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from benchmarks.config import Limits as Settings
from benchmarks.machine import Machine, Revision, describe_machine, installed_versions, revision
from benchmarks.process_tree import MeasurementError
from benchmarks.report import Record, Stored
from benchmarks.spread import Spread, spread
from whitewater import engines
from whitewater.engines import Device
from whitewater.log import log_output

logger = logging.getLogger("whitewater.benchmarks")
FILE = Path("data/benchmarks/limits/read.bin")
FILE_BYTES = 256 * 2**20
COPIED_BYTES = 256 * 2**20
# How much larger than the caches a copied array is at least; STREAM's rule.
CACHES = 4
# More of a file in memory would bend the time of its reading.
MOST_KEPT = 0.01
TRANSFERRED_BYTES = 256 * 2**20
# A core's own cache holds it, so that memory is read once.
READ_BYTES = 2**20
# A sample is as many repetitions as last so long, which the clock and the start of a kernel on a GPU do not bend.
SAMPLE_SECONDS = 0.04
# No further sample is begun that would end later, beyond the least number of them.
LIMIT_SECONDS = 1.5
LEAST_SAMPLES = 3
SMALLEST_EDGE, LARGEST_EDGE = 1024, 16_384
SEED = 2019

Name = Literal["memory_copy", "gemm_float64", "gemm_float32", "host_to_device", "file_read_cached", "file_read_disk"]


class Limit(Record):
    """One limit: ``amount`` of ``unit`` took so many seconds, sample by sample; ``rate`` is in units a second.

    ``how`` says what was done and what counts; ``missing`` why it could not be measured here.
    """

    how: str
    unit: Literal["bytes", "operations"]
    amount: float
    seconds: tuple[float, ...] = ()
    rate: Spread | None = None
    missing: str | None = None


class Limits(Stored):
    """All limits of a device, and what they were measured on."""

    format: Literal[1] = 1
    started: str
    device: Literal["cpu", "gpu"]
    threads: int
    machine: Machine
    versions: dict[str, str]
    revision: Revision
    limits: dict[Name, Limit]

    def rate(self, name: Name) -> float | None:
        """Return the median rate of a limit, in its units a second, or None where it was not measured."""
        limit = self.limits.get(name)
        return limit.rate.median if limit and limit.rate else None


def measure_limits(device: Device, *, threads: int, rounds: int, file: Path) -> Limits:
    """Measure what a device and the file system below ``file`` can do; the file is made unless it is there."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    machine, source = describe_machine(), revision(Path(__file__).parent)
    copied = max(COPIED_BYTES, CACHES * cache_bytes())
    limits: dict[Name, Limit] = {
        "memory_copy": copy_limit(device, threads=threads, rounds=rounds, size=copied),
        "gemm_float64": product_limit(device, "float64", threads=threads, rounds=rounds),
        "gemm_float32": product_limit(device, "float32", threads=threads, rounds=rounds),
    }
    if device.name == "gpu":
        limits["host_to_device"] = transfer_limit(device, rounds=rounds, size=TRANSFERRED_BYTES)
    make_file(file, FILE_BYTES)
    limits["file_read_cached"] = cached_read_limit(file, threads=threads, rounds=rounds)
    limits["file_read_disk"] = disk_read_limit(file, threads=threads, rounds=rounds)
    return Limits(
        started=started,
        device=device.name,
        threads=threads,
        machine=machine,
        versions=installed_versions(("numpy", "cupy-cuda13x", "threadpoolctl")),
        revision=source,
        limits=limits,
    )


def cache_bytes(cpus: Path = Path("/sys/devices/system/cpu")) -> int:
    """Return the size of all last-level caches of the host; those that are not told of count as none."""
    found: dict[str, int] = {}
    for cache in cpus.glob("cpu[0-9]*/cache/index3"):
        size = (cache / "size").read_text().strip()
        found[(cache / "shared_cpu_list").read_text()] = int(size.removesuffix("K")) * 1024
    return sum(found.values())


def copy_limit(device: Device, *, threads: int, rounds: int, size: int) -> Limit:
    """Measure how fast memory of the device is copied: on a CPU each thread copies its part of one array."""
    xp = device.xp
    source, target = xp.ones(size // 8), xp.zeros(size // 8)
    pieces = list(zip(xp.array_split(source, threads), xp.array_split(target, threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:

        def copy() -> None:
            list(pool.map(lambda pair: xp.copyto(pair[1], pair[0]), pieces))

        where = _where(device, threads)
        how = f"an array of {size >> 20} MiB copied to another {where}; bytes read and bytes written count"
        return _timed(copy, device, how=how, unit="bytes", amount=2 * size, rounds=rounds)


def product_limit(device: Device, dtype: Literal["float64", "float32"], *, threads: int, rounds: int) -> Limit:
    """Measure how fast square matrices are multiplied; they grow until one product lasts `SAMPLE_SECONDS`."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    xp, edge = device.xp, SMALLEST_EDGE
    with threadpool_limits(threads):
        while True:
            a, b = (device.to_device(values) for values in _matrices(edge, dtype))
            out = xp.empty_like(a)

            def multiply(a: Any = a, b: Any = b, out: Any = out) -> None:
                xp.matmul(a, b, out=out)

            _seconds(multiply, device, times=1)
            if _seconds(multiply, device, times=1) >= SAMPLE_SECONDS or edge == LARGEST_EDGE:
                break
            edge *= 2
        where = _where(device, threads)
        how = f"product of two {dtype} matrices of {edge} x {edge} {where}; 2 x {edge}^3 operations count"
        return _timed(multiply, device, how=how, unit="operations", amount=2 * edge**3, rounds=rounds)


def transfer_limit(device: Device, *, rounds: int, size: int) -> Limit:
    """Measure how fast an array goes from ordinary (pageable) memory of the host to the device."""
    import numpy as np

    host = np.ones(size // 8)
    how = f"an array of {size >> 20} MiB from pageable memory of the host to the device; its bytes count once"
    return _timed(lambda: device.to_device(host), device, how=how, unit="bytes", amount=size, rounds=rounds)


def make_file(path: Path, size: int) -> None:
    """Make a file of random bytes, which no file system compresses, unless it is there."""
    import numpy as np

    if path.exists() and path.stat().st_size == size:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    with staging.open("wb") as file:
        file.write(np.random.default_rng(SEED).bytes(size))
        file.flush()
        os.fsync(file.fileno())
    staging.replace(path)


def cached_read_limit(path: Path, *, threads: int, rounds: int) -> Limit:
    """Measure how fast a file is read whose pages are in memory; the first reading, which fetches them, is left out."""
    size = path.stat().st_size
    how = f"a file of {size >> 20} MiB read from the page cache on {_count(threads)}; its bytes count once"
    with _opened(path) as file:
        return _timed(
            lambda: _read(file, size, threads=threads), None, how=how, unit="bytes", amount=size, rounds=rounds
        )


def disk_read_limit(path: Path, *, threads: int, rounds: int) -> Limit:
    """Measure how fast a file is read whose pages were dropped from memory, or say why that cannot be told here."""
    size = path.stat().st_size
    how = (
        f"a file of {size >> 20} MiB read on {_count(threads)} after its pages were dropped by posix_fadvise; its "
        "bytes count once; where the disk is virtual, its host may keep them"
    )
    with _opened(path) as file:
        missing = _drop(file, size)
        if missing is not None:
            return Limit(how=how, unit="bytes", amount=size, missing=missing)
        samples = []
        for _ in _rounds(rounds):
            _drop(file, size)
            start = time.perf_counter()
            _read(file, size, threads=threads)
            samples.append(time.perf_counter() - start)
    return _limit(samples, how=how, unit="bytes", amount=size)


def _matrices(edge: int, dtype: str) -> Iterator[Any]:
    import numpy as np

    generator = np.random.default_rng(SEED)
    for _ in range(2):
        yield generator.random((edge, edge), dtype=np.dtype(dtype).type)


def _timed(
    call: Callable[[], Any],
    device: Device | None,
    *,
    how: str,
    unit: Literal["bytes", "operations"],
    amount: float,
    rounds: int,
) -> Limit:
    """Repeat a call after one that warms up; a sample is the mean of as many calls as last `SAMPLE_SECONDS`."""
    call()
    times = max(1, math.ceil(SAMPLE_SECONDS / _seconds(call, device, times=1)))
    return _limit([_seconds(call, device, times=times) for _ in _rounds(rounds)], how=how, unit=unit, amount=amount)


def _seconds(call: Callable[[], Any], device: Device | None, *, times: int) -> float:
    if device is not None:
        device.synchronize()
    start = time.perf_counter()
    for _ in range(times):
        call()
    if device is not None:
        device.synchronize()
    return (time.perf_counter() - start) / times


def _rounds(rounds: int) -> Iterator[int]:
    """Yield the rounds that fit into `LIMIT_SECONDS`, `LEAST_SAMPLES` in any case where so many are asked for."""
    start, longest = time.perf_counter(), 0.0
    for number in range(rounds):
        begin = time.perf_counter()
        if number >= LEAST_SAMPLES and begin - start + longest > LIMIT_SECONDS:
            return
        yield number
        longest = max(longest, time.perf_counter() - begin)


def _limit(samples: Sequence[float], *, how: str, unit: Literal["bytes", "operations"], amount: float) -> Limit:
    rate = spread([amount / seconds for seconds in samples])
    return Limit(how=how, unit=unit, amount=amount, seconds=tuple(samples), rate=rate)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDONLY)
    try:
        yield file
    finally:
        os.close(file)


def _read(file: int, size: int, *, threads: int) -> int:
    """Read a file, each thread a part of it into a buffer of its own; return the bytes that were read."""
    part = -(-size // threads)
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda start: _read_part(file, start, min(start + part, size)), range(0, size, part)))


def _read_part(file: int, start: int, stop: int) -> int:
    buffer, done = bytearray(READ_BYTES), 0
    while start + done < stop:
        read = os.preadv(file, [memoryview(buffer)[: stop - start - done]], start + done)
        if read == 0:
            raise MeasurementError("The file became shorter while it was read. Measure again.")
        done += read
    return done


def _drop(file: int, size: int) -> str | None:
    """Drop the pages of a file from memory; return why a reading would not tell of the disk, if so."""
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    try:
        kept = _share_in_memory(file, size)
    except OSError as error:
        return f"the system does not say which pages of a file are in memory: {error.strerror}"
    if kept <= MOST_KEPT:
        return None
    return f"the file system keeps pages in memory that it was asked to drop: {kept:.0%} of them"


def _share_in_memory(file: int, size: int) -> float:
    """Return how much of a file is in memory, by mincore(2), which reads none of it."""
    import numpy as np

    resident = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
    with mmap.mmap(file, size, prot=mmap.PROT_READ) as mapped:
        pages = np.frombuffer(mapped, np.uint8)
        failed = ctypes.CDLL(None, use_errno=True).mincore(
            ctypes.c_void_p(pages.ctypes.data), ctypes.c_size_t(size), ctypes.c_void_p(resident.ctypes.data)
        )
        # A mapping that an array refers to cannot be closed.
        del pages
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return float((resident & 1).mean())


def _where(device: Device, threads: int) -> str:
    """Return on what a device computes: a GPU does so on more than the host's threads."""
    return f"on {_count(threads)}" if device.name == "cpu" else "in the memory of the GPU"


def _count(threads: int) -> str:
    return f"{threads} thread{'s' if threads != 1 else ''}"


def lines(limits: Limits) -> list[str]:
    """Return the limits as lines of text."""
    return [f"{name:<18} {_line(limit)}" for name, limit in limits.limits.items()]


def _line(limit: Limit) -> str:
    if limit.rate is None:
        return f"not measured: {limit.missing}"
    rate, unit = limit.rate, {"bytes": "GB/s", "operations": "Gop/s"}[limit.unit]
    return (
        f"{rate.median / 1e9:8.2f} {unit} ({rate.low / 1e9:.2f} - {rate.high / 1e9:.2f}, {rate.coverage:.1%} of "
        f"{len(limit.seconds)} samples): {limit.how}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the limits, log them, and write them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=__doc__, allow_abbrev=False)
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"), help="whose limits (cpu)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads (all)")
    parser.add_argument("--settings", default="{}", help="JSON: the section of the configuration `benchmarks.limits`")
    parser.add_argument("--limits", type=Path, required=True, help="file for the limits, JSON")
    parser.add_argument("--log", type=Path, help="file for everything printed")
    given: Any = parser.parse_args(arguments)
    with log_output(given.log, name="benchmarks limits"):
        settings = Settings.from_option(given.settings, option="--settings")
        device = engines.resolve(given.device)
        limits = measure_limits(device, threads=given.threads, rounds=settings.rounds, file=FILE)
        for line in lines(limits):
            logger.info("%s", line)
        limits.write(given.limits)
    return 0


if __name__ == "__main__":
    sys.exit(main())
