"""Edges numbered by Dask ask of frames what cuDF has, and of arrays what CuPy has; the graphs are the kernels'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gpu_proof.same import compare
from tests.contract.device_array import recording
from tests.contract.executed import ROOT, Line, executed_lines, never_run
from tests.contract.frame_calls import frames_as_cudf
from tests.contract.gaps import known_gaps
from tests.contract.pagerank_steps import number_edges, spread_out, write_inputs
from tests.contract.signatures import Call, Describe, problems
from tests.contract.site import Site
from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from whitewater.engines import Device
from whitewater.graphs.build.keys import Rule
from whitewater.graphs.build.with_dask import VERTEX_BITS, merge_sorted

pytestmark = pytest.mark.slow  # it compiles, or runs steps twice


@dataclass(frozen=True)
class FewRows(Device):
    """The CPU, with partitions of few edges."""

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
    with frames_as_cudf() as calls, executed_lines() as lines:
        number_edges(Site(FewRows()), inputs=inputs, results=folder / "frames")
    return Watched(folder / "local", folder / "frames", calls, lines)


def test_every_call_of_a_frame_binds_in_cudf_and_runs_into_no_gap(watched: Watched, rapids: Describe) -> None:
    assert problems(watched.calls, rapids) == []
    assert known_gaps(watched.calls) == []
    assert {"cudf.DataFrame.sort_values", "cudf.DataFrame.rename"} <= {call.name for call in watched.calls}


def test_graphs_are_the_kernels_byte_by_byte(watched: Watched) -> None:
    faults = compare(watched.frames, watched.local, ())
    assert set(faults.values()) == {""}


def test_every_line_ran(watched: Watched) -> None:
    missed = never_run(ROOT / "graphs" / "build" / "with_dask.py", watched.lines, words=frozenset({"device", "edges"}))
    assert [each for each in missed if "iter(())" not in each] == []


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rule", ["drop", "sum", "maximum"])
def test_arrays_are_merged_on_a_strict_device_as_numpy_does(rapids: Describe, rule: Rule, weighted: bool) -> None:
    random = np.random.default_rng(6)
    target, source = np.sort(random.integers(10, 30, 6000)), random.integers(0, 40, 6000)
    weights = random.choice([0.1, 0.2, 0.7, 1e-12, 1e12], 6000)
    keys = target << VERTEX_BITS | source
    order = np.lexsort([weights, keys])
    keys, weights = keys[order], weights[order]
    with stand_in_for_cupy(), recording() as calls:
        device = StrictDevice()
        merged = merge_sorted(
            device.to_device(keys),
            device.to_device(weights) if weighted else None,
            vertices=range(10, 30),
            rule=rule,
            index="int32",
            device=device,
        )
    dense = np.zeros((40, 40))
    if rule == "sum":
        np.add.at(dense, (keys >> VERTEX_BITS, keys & 2**VERTEX_BITS - 1), weights if weighted else 1.0)
    else:
        np.maximum.at(dense, (keys >> VERTEX_BITS, keys & 2**VERTEX_BITS - 1), weights if weighted else 1.0)
    expected_target, expected_source = np.nonzero(dense)
    assert np.array_equal(merged.counts, np.bincount(expected_target, minlength=30)[10:])
    assert merged.sources.dtype == np.int32
    assert np.array_equal(merged.sources, expected_source)
    assert merged.loops == np.count_nonzero(np.diagonal(dense))
    assert merged.repeated == (int(source[target == 10].min()), 10)
    assert (merged.weights is not None) == (weighted or rule == "sum")
    if merged.weights is not None:
        assert np.array_equal(merged.weights, dense[expected_target, expected_source])
    assert problems(calls, rapids) == []
