"""Outputs are whole or absent, whatever happens to the run that writes them."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from whitewater.errors import InputError, IntegrityError, ResourceError
from whitewater.io.store import (
    digests,
    hold_lock,
    put_in_place,
    read_json,
    sha256,
    stage_outputs,
    write_bytes,
    write_json,
)

HANGING_RUN = """
import sys, time
from pathlib import Path
from whitewater.io.store import stage_outputs
folder = Path(sys.argv[1])
with stage_outputs({"table": folder / "table.csv", "parts": folder / "parts"}, owner=folder / ".step.owner") as paths:
    paths["table"].write_text("half")
    paths["parts"].mkdir()
    (paths["parts"] / "0.csv").write_text("half")
    print("written", flush=True)
    sys.stdin.readline()
print("committed", flush=True)
"""


def outputs(folder: Path) -> dict[str, Path]:
    return {"table": folder / "table.csv", "parts": folder / "parts"}


def run(folder: Path, text: str) -> None:
    with stage_outputs(outputs(folder), owner=folder / ".step.owner") as paths:
        paths["table"].write_text(text)
        paths["parts"].mkdir()
        (paths["parts"] / "0.csv").write_text(text)


def write_table(folder: Path, write: Callable[[Path], object]) -> None:
    with stage_outputs({"table": folder / "table.csv"}, owner=folder / ".step.owner") as paths:
        write(paths["table"])


def found(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def hanging_run(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has written its outputs and waits for a line before it commits them."""
    with subprocess.Popen(
        [sys.executable, "-c", HANGING_RUN, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        yield process
        process.kill()


def test_a_later_run_replaces_files_and_directories(tmp_path: Path) -> None:
    run(tmp_path, "first")
    (tmp_path / "parts" / "1.csv").write_text("of the first run")
    run(tmp_path, "second")
    assert found(tmp_path) == [".step.owner", "parts/0.csv", "table.csv"]
    assert (tmp_path / "parts" / "0.csv").read_text() == "second"


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt])
def test_a_run_that_fails_leaves_the_earlier_outputs(tmp_path: Path, fault: type[BaseException]) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise fault

    run(tmp_path, "first")
    with pytest.raises(fault):
        write_table(tmp_path, fail)
    assert found(tmp_path) == [".step.owner", "parts/0.csv", "table.csv"]
    assert (tmp_path / "table.csv").read_text() == "first"


def test_outputs_may_lie_in_several_directories(tmp_path: Path) -> None:
    finals = {"a": tmp_path / "a" / "a.json", "b": tmp_path / "b" / "deep" / "b.json"}
    with stage_outputs(finals, owner=tmp_path / "a" / ".step.owner") as paths:
        for path in paths.values():
            path.write_text("{}")
    assert found(tmp_path) == ["a/.step.owner", "a/a.json", "b/deep/b.json"]


def directory_with_a_timestamp(path: Path) -> None:
    path.mkdir()
    (path / ".snakemake_timestamp").write_text("now")


@pytest.mark.parametrize("write", [lambda path: None, Path.touch, Path.mkdir, directory_with_a_timestamp])
def test_an_output_that_is_missing_or_empty_is_refused_by_name(tmp_path: Path, write: Callable[[Path], None]) -> None:
    with pytest.raises(IntegrityError, match=r"table\.csv"):
        write_table(tmp_path, write)
    assert found(tmp_path) == [".step.owner"]


def test_an_orphan_cannot_overwrite_a_newer_run_and_is_not_disturbed_by_it(
    tmp_path: Path, hanging_run: subprocess.Popen[str]
) -> None:
    run(tmp_path, "newer")
    assert any(name.endswith(".part.csv") for name in found(tmp_path)), "the orphan is alive: its files are its own"
    stdout, stderr = hanging_run.communicate("go on\n")
    assert "newer run" in stderr
    assert "committed" not in stdout
    assert found(tmp_path) == [".step.owner", "parts/0.csv", "table.csv"]
    assert (tmp_path / "table.csv").read_text() == "newer"


@pytest.mark.parametrize("was_removed", [True, False])
def test_what_a_late_task_of_a_killed_run_wrote_is_removed_at_the_end(
    tmp_path: Path, hanging_run: subprocess.Popen[str], was_removed: bool
) -> None:
    (life,) = tmp_path.glob(".step.owner.*")
    late = tmp_path / f".parts.{life.name.rpartition('.')[2]}.part"
    hanging_run.kill()
    hanging_run.wait()
    with stage_outputs(outputs(tmp_path), owner=tmp_path / ".step.owner") as paths:
        assert not late.exists()
        assert not life.exists()
        if not was_removed:
            life.touch()  # as where its folder could not be removed, because the task was writing
        late.mkdir()
        (late / "1.csv").write_text("late")
        paths["table"].write_text("next")
        paths["parts"].mkdir()
        (paths["parts"] / "0.csv").write_text("next")
    assert found(tmp_path) == [".step.owner", "parts/0.csv", "table.csv"]
    assert not late.exists()


def test_a_directory_removed_while_the_step_runs_is_reported(tmp_path: Path) -> None:
    results = tmp_path / "results"

    def lose_the_owner(path: Path) -> None:
        shutil.rmtree(results)
        results.mkdir()
        path.write_text("done")

    with pytest.raises(IntegrityError, match="cannot be written"):
        write_table(results, lose_the_owner)
    assert found(tmp_path) == []


def test_errors_of_the_step_itself_pass_unchanged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"input\.csv"):
        write_table(tmp_path, lambda _: (tmp_path / "input.csv").read_text())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=False, capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_named_with_its_free_bytes_and_nothing_is_left(small_disk: Path) -> None:
    with pytest.raises(ResourceError, match=r"table\.csv.*disk is full.*bytes free"):
        write_table(small_disk, lambda path: path.write_bytes(bytes(2 << 20)))
    assert found(small_disk) == [".step.owner"]


def test_a_disk_too_full_for_a_small_file_leaves_the_earlier_one(small_disk: Path) -> None:
    write_json(small_disk / "state.json", {"run": 1})
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "filler").write_bytes(bytes(2 << 20))
    with pytest.raises(ResourceError, match=r"state\.json"):
        write_json(small_disk / "state.json", {"run": "x" * 10_000})
    assert read_json(small_disk / "state.json") == {"run": 1}


def test_a_quota_is_named(tmp_path: Path) -> None:
    def exceed(_: Path) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    with pytest.raises(ResourceError, match="quota"):
        write_table(tmp_path, exceed)


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    order: list[str] = []

    def wait_for_it() -> None:
        with hold_lock(tmp_path / ".lock"):
            order.append("second")

    second = threading.Thread(target=wait_for_it)
    with hold_lock(tmp_path / ".lock"):
        second.start()
        second.join(0.05)
        order.append("first")
    second.join()
    assert order == ["first", "second"]


def test_digests_are_those_of_the_tool_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "tree" / "b").mkdir(parents=True)
    for name in ("b/2.csv", "a-1.csv", "b.csv", "A.csv"):
        (tmp_path / "tree" / name).write_text(name * 1000)
    (tmp_path / "big").write_bytes(os.urandom(3 << 20))
    (tmp_path / "tree" / ".snakemake_timestamp").touch()

    def shell(command: str, folder: Path) -> str:
        return subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True, cwd=folder).stdout[:64]

    listing = "find . -type f ! -name .snakemake_timestamp | LC_ALL=C sort | xargs sha256sum | sha256sum"
    expected = {
        tmp_path / "big": shell("sha256sum big", tmp_path),
        tmp_path / "tree": shell(listing, tmp_path / "tree"),
    }
    assert digests(list(expected), threads=2) == expected
    assert {path: sha256(path) for path in expected} == expected


def test_a_file_put_in_place_replaces_the_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "new").write_text("new")
    write_bytes(tmp_path / "folder" / "final", b"old")
    put_in_place(tmp_path / "new", tmp_path / "folder" / "final")
    assert (tmp_path / "folder" / "final").read_text() == "new"
    assert found(tmp_path) == ["folder/final"]


def test_equal_values_give_equal_json_bytes(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"x": 1, "é": [1.5, None]})
    write_json(tmp_path / "b.json", {"é": [1.5, None], "x": 1})
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert read_json(tmp_path / "a.json") == {"x": 1, "é": [1.5, None]}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_refuses_what_is_not_a_number(tmp_path: Path, value: float) -> None:
    with pytest.raises(IntegrityError, match=r"quality\.json.*finite"):
        write_json(tmp_path / "quality.json", {"mean": value})
    assert found(tmp_path) == []


@pytest.mark.parametrize("text", [None, "{", "\xff"])
def test_json_that_cannot_be_read_is_named(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "inputs.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"inputs\.json"):
        read_json(tmp_path / "inputs.json")
