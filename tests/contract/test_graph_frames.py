"""Edges numbered by Dask ask of frames what cuDF has, and of arrays what CuPy has; the graphs are the kernels'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.gpu_proof.same import compare
from tests.contract.executed import ROOT, Line, executed_lines, never_run
from tests.contract.frame_calls import frames_as_cudf
from tests.contract.gaps import faults
from tests.contract.pagerank_steps import number_edges, spread_out, write_inputs
from tests.contract.signatures import Call
from tests.contract.site import Site
from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from whitewater.engines import Device

pytestmark = pytest.mark.slow  # it compiles, or runs steps twice


@dataclass(frozen=True)
class FewRows(StrictDevice):
    """A strict device with partitions of few edges."""

    partition_rows = 300


@dataclass(frozen=True)
class Watched:
    """The graphs by the kernels and on frames that do as cuDF's, what was asked of these, and the lines that ran."""

    local: Path
    frames: Path
    calls: Mapping[Call, Sequence[str]]
    lines: set[Line]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    folder = tmp_path_factory.mktemp("graphs")
    inputs = write_inputs(folder)
    with spread_out():
        number_edges(Site(Device()), inputs=inputs, results=folder / "local")
    with stand_in_for_cupy(), frames_as_cudf(arrays=True) as calls, executed_lines() as lines:
        number_edges(Site(FewRows()), inputs=inputs, results=folder / "frames")
    return Watched(folder / "local", folder / "frames", calls, lines)


def test_every_call_of_a_frame_binds_in_cudf_and_runs_into_no_gap(watched: Watched) -> None:
    assert faults(watched.calls) == []
    called = {call.name for call in watched.calls}
    assert {"cudf.DataFrame.sort_values", "cudf.DataFrame.rename", "cupy.flatnonzero"} <= called


def test_graphs_are_the_kernels_byte_by_byte(watched: Watched) -> None:
    faults = compare(watched.frames, watched.local, ())
    assert set(faults.values()) == {""}


def test_every_line_ran(watched: Watched) -> None:
    path, words = ROOT / "graphs" / "build" / "with_dask.py", frozenset({"device", "edges", "xp"})
    missed = never_run(path, watched.lines, words=words)
    assert [each for each in missed if "iter(())" not in each] == []
