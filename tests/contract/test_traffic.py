"""What crosses between host and device is counted, and a step that crosses more or less than the table says is told."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.contract.crossings import OF_FRAMES, ONCE, STEPS, crossing_faults, steps_with_gpu
from tests.contract.site import Site
from tests.contract.strict_device import StrictDevice
from tests.contract.traffic import Traffic, bytes_of_arrays, counted
from tests.recsys_logs import clicks
from whitewater.config.base import Section
from whitewater.engines import Device
from whitewater.engines.config import Cluster
from whitewater.step import Output, Run

ROWS = 1000


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
    """Double numbers, uploading them twice, in the process of the step."""
    array = np.load(numbers)
    np.save(doubled, run.device.to_host(run.device.to_device(array) + run.device.to_device(array)))


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    np.save(tmp_path / "numbers.npy", np.arange(float(ROWS)))
    return tmp_path / "numbers.npy"


@pytest.mark.parametrize("processes", [0, 2])
def test_bytes_that_cross_once_are_counted_once(numbers: Path, processes: int) -> None:
    site = Site(StrictDevice(processes), threads=2)
    site.run("example", double, settings=Section(), numbers=numbers, doubled=numbers.with_name("doubled.npy"))
    found = site.traffic["double"]
    assert (found.up_per_byte, found.down_per_byte, found.allocated) == (1, 1, 2 * 8 * ROWS)
    assert (found.operations > 0, found.beside_tasks > 0) == (True, not processes)
    np.testing.assert_array_equal(np.load(numbers.with_name("doubled.npy")), 2 * np.arange(ROWS))


def test_bytes_that_cross_again_are_counted_again_and_an_allocation_outside_tasks_is_seen(numbers: Path) -> None:
    site = Site(StrictDevice(processes=2), Cluster(address="tcp://127.0.0.1:1"))
    site.run("example", double_here, settings=Section(), numbers=numbers, doubled=numbers.with_name("doubled.npy"))
    found = site.traffic["double_here"]
    assert (found.up_per_byte, found.down_per_byte, found.beside_tasks) == (2, 1, 3 * 8 * ROWS)


def test_nothing_crosses_on_the_cpu(numbers: Path) -> None:
    site = Site(Device())
    site.run("example", double, settings=Section(), numbers=numbers, doubled=numbers.with_name("doubled.npy"))
    assert (site.traffic["double"].up, site.traffic["double"].allocated) == (0, 0)


def test_a_number_that_is_read_on_the_host_comes_down() -> None:
    traffic = Traffic()
    with counted(traffic):
        assert float(StrictDevice().to_device(np.arange(4.0)).sum()) == 6
    assert (traffic.up, traffic.down) == (32, 8)


def test_files_have_the_bytes_of_their_arrays_or_else_of_their_columns(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    table = clicks(ROWS).select(["I1", "C1"])
    pq.write_table(table, folder / "clicks.parquet")
    assert bytes_of_arrays(folder) == ROWS * (table["I1"].type.bit_width // 8 + 4)
    np.save(folder / "codes.npy", np.zeros(7, np.int32))
    assert bytes_of_arrays(folder) == 28


@pytest.mark.parametrize(("up", "fault"), [(1.3, "what crosses again"), (1.0, None), (0.5, None)])
def test_a_step_that_crosses_more_than_once_is_told(up: float, fault: str | None) -> None:
    found = dict.fromkeys(STEPS["recsys"], Traffic())
    found["train"] = Traffic(up=round(up * 1000), input=1000)
    told = [each for each in crossing_faults("recsys", found) if each.startswith("train")]
    assert (fault in told[0]) if fault else (told == [])


@pytest.mark.parametrize(("times", "fault"), [(1.1, "what crosses again"), (1.0, None), (0.8, "lower")])
def test_a_number_of_the_table_is_held_both_ways(times: float, fault: str | None) -> None:
    expected = STEPS["genomics"]["outliers"]
    found = dict.fromkeys(STEPS["genomics"], Traffic())
    found["outliers"] = Traffic(
        up=round(times * expected.up * 1000), down=round(expected.down * 1000), input=1000, output=1000
    )
    told = [each for each in crossing_faults("genomics", found) if each.startswith("outliers")]
    assert (fault in told[0]) if fault else (told == [])


@pytest.mark.parametrize("application", STEPS)
def test_the_table_has_all_steps_that_ask_for_a_gpu_and_says_why_bytes_cross_again(application: str) -> None:
    table = STEPS[application]
    assert {step.split()[0] for step in table} | OF_FRAMES.get(application, set()) == steps_with_gpu(application)
    for step, each in table.items():
        assert (max(each.up, each.down) > ONCE) == bool(re.match(r"1[678]: ", each.why)), step
