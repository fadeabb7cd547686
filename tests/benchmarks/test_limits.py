"""The limits of the machine: what is counted, and what is not invented."""

import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks import limits
from benchmarks.limits import Limits, cache_bytes, copy_limit, disk_read_limit, main, make_file, product_limit
from whitewater import engines
from whitewater.engines import Device

MEBIBYTE = 2**20


@pytest.fixture
def cpu() -> Device:
    return engines.resolve("cpu")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Limits of little work; returns the folder of their file."""
    for name, size in (("COPIED_BYTES", MEBIBYTE), ("FILE_BYTES", 2 * MEBIBYTE + 1)):
        monkeypatch.setattr(limits, name, size)
    monkeypatch.setattr(limits, "CACHES", 0)
    monkeypatch.setattr(limits, "SAMPLE_SECONDS", 1e-4)
    monkeypatch.setattr(limits, "SMALLEST_EDGE", 64)
    monkeypatch.setattr(limits, "FILE", tmp_path / "read.bin")
    return tmp_path


def test_all_limits_of_a_cpu_are_measured_and_come_back_from_their_file(small: Path) -> None:
    assert main(["--settings", '{"rounds": 2}', "--threads", "2", "--limits", str(small / "limits.json")]) == 0
    found = Limits.read(small / "limits.json")
    assert list(found.limits) == ["memory_copy", "gemm_float64", "gemm_float32", "file_read_cached", "file_read_disk"]
    for name, limit in found.limits.items():
        assert (limit.rate is None) == (limit.missing is not None), name
        assert len(limit.seconds) == (2 if limit.rate else 0)
    assert found.rate("host_to_device") is None


def test_rates_are_amounts_by_seconds(cpu: Device) -> None:
    copied = copy_limit(cpu, threads=3, rounds=3, size=MEBIBYTE)
    assert copied.amount == 2 * MEBIBYTE
    assert copied.rate is not None
    assert copied.rate.median == pytest.approx(2 * MEBIBYTE / sorted(copied.seconds)[1])


def test_a_product_counts_two_operations_for_each_of_its_cubed_edge(
    cpu: Device, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LARGEST_EDGE", 64)
    assert product_limit(cpu, "float32", threads=1, rounds=1).amount == 2 * 64**3


def test_a_copy_moves_every_byte(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = cpu.xp.arange(MEBIBYTE // 8, dtype=float), cpu.xp.zeros(MEBIBYTE // 8)
    monkeypatch.setattr(cpu.xp, "ones", lambda _: source)
    monkeypatch.setattr(cpu.xp, "zeros", lambda _: target)
    copy_limit(cpu, threads=3, rounds=1, size=MEBIBYTE)
    assert target.tolist() == source.tolist()


def test_each_cache_counts_once_however_many_cores_share_it(tmp_path: Path) -> None:
    for cpu, shared in (("cpu0", "0-1"), ("cpu1", "0-1"), ("cpu2", "2")):
        cache = tmp_path / cpu / "cache/index3"
        cache.mkdir(parents=True)
        (cache / "size").write_text("32768K\n")
        (cache / "shared_cpu_list").write_text(f"{shared}\n")
    assert cache_bytes(tmp_path) == 64 * MEBIBYTE
    assert cache_bytes(tmp_path / "none") == 0


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_reading_reads_each_byte_once(tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[int, int]] = []

    def recorded(file: int, buffers: list[memoryview], offset: int, *, of: Any = os.preadv) -> int:
        done: int = of(file, buffers, offset)
        read.append((offset, offset + done))
        return done

    size = 2 * MEBIBYTE + 7
    make_file(tmp_path / "file", size)
    monkeypatch.setattr(os, "preadv", recorded)
    with (tmp_path / "file").open("rb") as file:
        assert limits._read(file.fileno(), size, threads=threads) == size
    edges = [edge for part in sorted(read) for edge in part]
    assert (edges[0], edges[-1]) == (0, size)
    assert edges[1:-1:2] == edges[2:-1:2]


def test_a_file_that_stays_in_memory_gives_no_rate_of_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_file(tmp_path / "file", MEBIBYTE)
    monkeypatch.setattr(os, "posix_fadvise", lambda *_: None)  # as on a file system in memory
    limit = disk_read_limit(tmp_path / "file", threads=1, rounds=2)
    assert limit.rate is None
    assert "keeps pages in memory that it was asked to drop: 100%" in str(limit.missing)
