"""Memory that is available is what the system, the control groups and the limits of the process leave."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from whitewater.engines import memory

GB = 10**9


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the files of a system of 8 GB are: `proc`, those of the process, and `groups`."""
    for name in ("proc", "groups/batch/job", "groups/memory/batch/job"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(memory, "PROCESS", tmp_path / "proc")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=8 * GB))
    return tmp_path


@pytest.mark.parametrize(("entry", "group", "name", "used"), [
    ("0::/batch/job", "groups/batch/job", "memory.max", "anon"),
    ("0::/batch/job", "groups/batch", "memory.max", "anon"),
    ("0::/elsewhere", "groups", "memory.max", "anon"),
    ("5:cpu:/\n4:memory:/batch/job", "groups/memory/batch/job", "memory.limit_in_bytes", "total_rss"),
])  # fmt: skip
def test_a_control_group_leaves_its_limit_less_what_is_used(
    system: Path, entry: str, group: str, name: str, used: str
) -> None:
    (system / "proc/cgroup").write_text(f"{entry}\n")
    (system / group / name).write_text(f"{3 * GB}\n")
    assert memory.available() == 3 * GB
    # Pages of files are given back on demand.
    (system / group / "memory.stat").write_text(f"file {2 * GB}\n{used} {GB}\n")
    assert memory.available() == 2 * GB
    (system / group / "memory.stat").write_text(f"{used} {4 * GB}\n")
    assert memory.available() == 0


def test_groups_without_a_limit_leave_what_the_system_has(system: Path) -> None:
    (system / "proc/cgroup").write_text("0::/batch/job\n")
    (system / "groups/batch/job/memory.max").write_text("max\n")
    assert memory.available() == 8 * GB


@pytest.mark.parametrize(("limit", "entry"), [(resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")])
def test_a_limit_of_the_process_leaves_what_is_not_taken(
    system: Path, monkeypatch: pytest.MonkeyPatch, limit: int, entry: str
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda asked: (3 * GB if asked == limit else resource.RLIM_INFINITY, GB))
    (system / "proc/status").write_text(f"Name:\tpython\n{entry}:\t  1000000 kB\n")
    assert memory.available() == 3 * GB - 1_024_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process what it has allocated")
def test_a_process_that_is_limited_knows_it() -> None:
    program = (
        "import resource; from whitewater.engines import memory; "
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); after = memory.available(); "
        "assert 0 < after < 1 << 30, after"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
