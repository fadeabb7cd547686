"""What crosses between host and device is counted, and a step that crosses more or less than the table says is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.contract.site import Site
from tests.contract.strict_device import StrictDevice, cluster_of
from tests.contract.traffic import Traffic, bytes_of_arrays, crossing_faults
from tests.helpers.recsys_logs import clicks
from whitewater.config.base import Section
from whitewater.engines import Device
from whitewater.step import Output, Run

ROWS = 1000
# Twice the numbers: those that go up and their sum, which comes down.
BYTES = 2 * 8 * ROWS


def double(run: Run[Section], *, numbers: Path, doubled: Output) -> None:
    """Double numbers on a device, those of each half on a worker."""
    halves = np.split(np.load(numbers), 2)
    with run.workers() as workers:
        found = list(workers.map(_double, halves, label="doubling", ordered=True, shared={"device": run.device}))
    np.save(doubled, np.concatenate(found))


def _double(half: np.ndarray, *, device: Device) -> np.ndarray:
    array = device.to_device(half)
    return device.to_host(array + array)


def double_here(run: Run[Section], *, numbers: Path, doubled: Output) -> None:
    """Double numbers, uploading them twice, in the process of the step, and read one of them."""
    array = np.load(numbers)
    found = run.device.to_device(array) + run.device.to_device(array)
    np.save(doubled, run.device.to_host(found) + 0 * float(found[0]))


@pytest.mark.parametrize(
    ("device", "step", "expected"),
    [
        (StrictDevice(), double, Traffic(8 * ROWS, 8 * ROWS, BYTES, beside_tasks=0)),
        (StrictDevice(), double_here, Traffic(16 * ROWS, 8 * ROWS + 8, 24 * ROWS + 8, beside_tasks=32 * ROWS + 16)),
        (Device(), double_here, Traffic()),
    ],
)
def test_bytes_that_cross_and_those_that_the_steps_own_process_handles_are_counted(
    tmp_path: Path, device: Device, step: object, expected: Traffic
) -> None:
    np.save(numbers := tmp_path / "numbers.npy", np.arange(float(ROWS)))
    with cluster_of(2) as cluster:
        for name, site in {"threads": Site(device, threads=2), "workers": Site(device, cluster)}.items():
            doubled = tmp_path / f"{name}.npy"
            site.run("example", step, settings=Section(), numbers=numbers, doubled=Output(doubled))  # type: ignore[arg-type]
            (found,) = site.traffic.values()
            np.testing.assert_array_equal(np.load(doubled), 2 * np.arange(ROWS))
            assert (found.operations > 0) == (expected.allocated > 0)
            assert (found.input, found.output) == (8 * ROWS, 8 * ROWS)
            for each in ("up", "down", "allocated", "beside_tasks"):
                assert getattr(found, each) == getattr(expected, each), each


def test_files_have_the_bytes_of_their_arrays_or_else_of_their_columns(tmp_path: Path) -> None:
    table = clicks(ROWS).select(["I1", "C1"])
    pq.write_table(table, tmp_path / "clicks.parquet")
    assert bytes_of_arrays(tmp_path) == ROWS * (table["I1"].type.bit_width // 8 + 4)
    np.save(tmp_path / "codes.npy", np.zeros(7, np.int32))
    assert bytes_of_arrays(tmp_path) == 28


@pytest.mark.parametrize(
    ("step", "times", "fault"),
    [
        ("twice", 1.1, "what crosses again"),
        ("twice", 0.8, "lower"),
        ("once", 1.3, "what crosses again"),
        ("once", 0.5, None),
    ],
)
def test_a_step_that_crosses_more_than_the_table_says_is_told_and_so_is_one_that_need_not(
    step: str, times: float, fault: str | None
) -> None:
    table = {"once": (1.0, 1.0), "twice": (2.0, 1.0)}
    found = {name: Traffic(round(up * 1000), 1000, input=1000, output=1000) for name, (up, _) in table.items()}
    assert list(crossing_faults(table, found)) == []
    found[step].up = round(times * found[step].up)
    told = list(crossing_faults(table, found))
    assert (fault in told[0]) if fault else (told == [])
