"""Ranks on a device that demands what a GPU demands are those of the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from tests.graphs import Ranked, random_graph, rank
from whitewater.devices import Device
from whitewater.devices.cpu import CpuDevice
from whitewater.errors import ResourceError
from whitewater.pagerank import solving

CASES = {
    "networkx": {},
    "personalized": {"personalization": "chosen.csv"},
    "graphalytics": {"definition": "graphalytics"},
    "gap": {"definition": "gap"},
}


def ranked(device: Device, folder: Path, case: str) -> Ranked:
    """Rank a graph with weights and many dangling vertices."""
    (folder / "chosen.csv").write_text("vertex,weight\n3,1\n250,4\n")
    settings: dict[str, Any] = {
        name: str(folder / value) if name == "personalization" else value for name, value in CASES[case].items()
    }
    graph = random_graph(300, 0.02, dangling=0.75, weighted=True).write(folder / "graph")
    return rank(graph, folder, device=device, tolerance=1e-12, **settings)


@pytest.mark.parametrize("case", CASES)
def test_ranks_on_the_strict_device_are_those_of_the_cpu(tmp_path: Path, case: str) -> None:
    on_cpu = ranked(CpuDevice(), tmp_path, case)
    with stand_in_for_cupy():
        on_device = ranked(StrictDevice(), tmp_path, case)
    np.testing.assert_allclose(on_device.ranks, on_cpu.ranks, rtol=1e-12)
    assert on_device.convergence["iterations"] == on_cpu.convergence["iterations"]


@pytest.mark.parametrize("case", ["networkx", "personalized"])
def test_ranks_that_begin_with_those_of_the_library_are_iterated_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    on_cpu = ranked(CpuDevice(), tmp_path, case)
    monkeypatch.setattr(solving, "SMALL_EDGES", 0)
    with stand_in_for_cupy():
        on_device = ranked(StrictDevice(), tmp_path, case)
    assert on_device.convergence["start"] == "cugraph"
    assert np.abs(on_device.ranks - on_cpu.ranks).sum() <= 2e-12


def test_a_graph_that_does_not_fit_into_the_memory_of_a_gpu_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StrictDevice, "free_memory", lambda _: 1000)
    with stand_in_for_cupy(), pytest.raises(ResourceError, match=r"of GPU memory.*Use more GPUs"):
        ranked(StrictDevice(), tmp_path, "networkx")
