"""What crosses between host and device is counted, and a step that crosses more or less than the table says is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.contract.site import Site
from tests.contract.strict_device import StrictDevice, cluster_of
from tests.contract.traffic import (
    CROSSINGS,
    OF_FRAMES,
    Traffic,
    bytes_of_arrays,
    counted,
    crossing_faults,
    steps_with_gpu,
)
from tests.recsys_logs import clicks
from whitewater.config.base import Section
from whitewater.engines import Device
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


def test_bytes_that_cross_once_are_counted_once(numbers: Path) -> None:
    doubled = numbers.with_name("doubled.npy")
    with cluster_of(2) as cluster:
        sites = Site(StrictDevice(), threads=2), Site(StrictDevice(), cluster)
        for site in sites:
            site.run("example", double, settings=Section(), numbers=numbers, doubled=doubled)
            found = site.traffic["double"]
            assert (found.up_per_byte, found.down_per_byte, found.allocated) == (1, 1, 2 * 8 * ROWS)
            assert (found.operations > 0, found.beside_tasks) == (True, 0)
            np.testing.assert_array_equal(np.load(doubled), 2 * np.arange(ROWS))
            doubled.unlink()


def test_bytes_that_cross_again_are_counted_again_and_an_allocation_outside_tasks_is_seen(numbers: Path) -> None:
    site = Site(StrictDevice())
    site.run("example", double_here, settings=Section(), numbers=numbers, doubled=numbers.with_name("doubled.npy"))
    found = site.traffic["double_here"]
    # Two arrays go up, their sum is a third, and comes down.
    assert (found.up_per_byte, found.down_per_byte, found.beside_tasks) == (2, 1, 4 * 8 * ROWS)


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


@pytest.mark.parametrize(
    ("step", "times", "fault"),
    [
        ("pca gram", 1.1, "what crosses again"),
        ("pca gram", 1.0, None),
        ("pca gram", 0.8, "lower"),
        ("umap", 1.3, "what crosses again"),
        ("umap", 0.5, None),
    ],
)
def test_a_step_that_crosses_more_than_the_table_says_is_told_and_so_is_one_that_need_not(
    step: str, times: float, fault: str | None
) -> None:
    up, down = CROSSINGS["genomics"][step]
    found = {name: Traffic(round(each[0] * 1000), round(each[1] * 1000), input=1000, output=1000)
             for name, each in CROSSINGS["genomics"].items()}  # fmt: skip
    found[step] = Traffic(round(times * up * 1000), round(down * 1000), input=1000, output=1000)
    told = list(crossing_faults("genomics", found))
    assert (fault in told[0]) if fault else (told == [])


@pytest.mark.parametrize("application", CROSSINGS)
def test_the_table_has_all_steps_that_ask_for_a_gpu(application: str) -> None:
    steps = {step.split()[0] for step in CROSSINGS[application]}
    assert steps | OF_FRAMES[application] == steps_with_gpu(application)
