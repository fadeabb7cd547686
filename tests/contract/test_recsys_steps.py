"""The recsys application keeps to what CuPy can do: on a device that can do no more it gives the CPU's results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.contract.conftest import Scenario, scenario_of
from tests.contract.crossings import (
    crossing_faults,
    steps_beside_tasks,
    steps_that_compute,
    steps_with_gpu,
)
from tests.contract.executed import handles_arrays, never_run, sources_of, split_by_place
from tests.contract.recsys_steps import (
    TABLES,
    WORKFLOWS,
    assert_same_batches,
    assert_same_features,
    assert_same_table,
    assert_same_values,
    run_steps,
    serve,
    spread_out,
    write_inputs,
)
from tests.contract.signatures import Describe, problems
from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from whitewater.engines import Device, resolve
from whitewater.features.operators import OPERATORS
from whitewater.io.store import read_json

# Modules, and packages, that see no array of a device, though their arrays have the same type: why not.
HOST = {
    "sources": "read logs, before any device is asked",
    "synthetic": "makes logs, before any device is asked",
    "figures": "draw pictures",
    **dict.fromkeys(("byte_strings", "kernels", "vocabulary"), "are about dictionaries"),
    "feature_folder": "reads files into the host's memory, for batches",
    **dict.fromkeys(
        ("arrow", "chunk", "column_chunk", "opening", "pages", "parquet_cpu"), "read and write on the host"
    ),
    "parquet_gpu": "reads by cuDF, for which a stand-in reads here: see test_gpu_parquet",
}
# Lines in functions that handle arrays of a device which the strict one never comes to: why not.
ELSEWHERE = {
    'kind = "lists" if isinstance(column, Lists) else "text"': "what an error says",
    'kind = column.values.dtype.name if isinstance(column, Numbers) else "lists or text"': "what an error says",
    **dict.fromkeys(
        (
            "of_rows = column.hashes(seed, int(null), device)",
            "return lambda start, stop: of_rows[start:stop]",
            "self._by_frames(dataset, applying)  # which refuses operators without bodies",
            "return self._by_frames(dataset, applying).of_part(part, dataset)",
        ),
        "of frames",
    ),
    "self._grow(int(strings.offsets[done + 1] - strings.offsets[done]))": "grows a table of the host",
}
# What handles frames, which tests/contract/test_features_on_frames.py watches.
FRAMES = ("frames", "with_dask")
ON_FRAMES = frozenset((
    "transform_frame", "cells", "learn", "groups_of_frame", "places", "categories_of_keys", "frames", "_by_frames",
    "_ids_of_keys", "_hashes_of_keys", "split", "counted_cells", "add_cells", "add_sums", "_moments_of_cells",
))  # fmt: skip
DEVICE_CODE, HOST_CODE = split_by_place(
    [path for path in sources_of("features", "recsys") if path.stem not in FRAMES], host=HOST
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_inputs(tmp_path_factory.mktemp("recsys"))


@pytest.fixture(scope="module")
def scenario(inputs: Path) -> Scenario[Path]:
    with spread_out():
        return scenario_of(
            lambda site, results: run_steps(site, inputs=inputs, results=results),
            inputs.parent,
        )


def test_every_call_of_the_application_is_one_that_rapids_accepts(scenario: Scenario[Path], rapids: Describe) -> None:
    assert problems(scenario.calls, rapids) == []


def test_steps_that_ask_for_a_gpu_compute_there_and_no_other_does(scenario: Scenario[Path]) -> None:
    assert steps_that_compute(scenario.traffic) == steps_with_gpu("recsys")


def test_each_byte_crosses_as_often_as_the_table_says(scenario: Scenario[Path]) -> None:
    assert list(crossing_faults("recsys", scenario.traffic)) == []


def test_where_workers_have_gpus_steps_use_none_of_their_own(scenario: Scenario[Path]) -> None:
    assert steps_beside_tasks(scenario.traffic_on_workers) == set()


def test_the_application_calls_into_the_array_library_and_is_seen_to(scenario: Scenario[Path]) -> None:
    called = {call.name for call in scenario.calls}
    assert {"cupy.unique", "cupy.bincount", "cupy.searchsorted", "cupy.ufunc.at", "cupy.nanmean"} <= called
    assert {f"cuml.linear_model.LogisticRegression.{name}" for name in ("fit", "predict_proba")} <= called


@pytest.mark.parametrize("path", DEVICE_CODE, ids=lambda path: path.name)
def test_every_line_that_handles_arrays_of_a_device_ran_on_the_strict_one(scenario: Scenario[Path], path: Path) -> None:
    missed = never_run(path, scenario.lines, without=ON_FRAMES)
    assert [each for each in missed if each.split(": ", 1)[1] not in ELSEWHERE] == []


@pytest.mark.parametrize("path", HOST_CODE, ids=lambda path: path.name)
def test_modules_of_the_host_know_no_device(path: Path) -> None:
    assert not handles_arrays(path, words=frozenset({"device", "xp"}))


def test_every_operator_is_among_those_that_ran(scenario: Scenario[Path]) -> None:
    folders = [scenario.strict, *(scenario.strict / name for name in WORKFLOWS)]
    workflows = [read_json(folder / "workflow" / "workflow.json") for folder in folders]
    assert {node["operator"] for each in workflows for node in each["nodes"]} == set(OPERATORS)


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_features_are_the_same_in_the_same_order(scenario: Scenario[Path], found: Path, name: str) -> None:
    assert_same_features(found / name, scenario.cpu / name)


@pytest.mark.parametrize("name", ["statistics", "drift", "metrics"])
def test_what_the_steps_tell_is_the_same(scenario: Scenario[Path], found: Path, name: str) -> None:
    assert_same_values(*(read_json(each / f"{name}.json") for each in (found, scenario.cpu)))


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_the_same(scenario: Scenario[Path], shuffle: bool) -> None:
    assert_same_batches(*(each / f"batches_{shuffle}.npz" for each in (scenario.strict, scenario.cpu)))


def test_integers_that_are_categories_are_the_same_numbers(scenario: Scenario[Path]) -> None:
    for each in (scenario.strict, scenario.cpu):
        np.testing.assert_array_equal(np.load(each / "integers.npy"), [2.0**40, np.nan, -3, 2.0**40])


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_make_the_same_of_all_that_can_be_data(scenario: Scenario[Path], found: Path, name: str) -> None:
    for table in TABLES:
        assert_same_table(*(each / name / f"{table}.parquet" for each in (found, scenario.cpu)))
    assert_same_features(*(each / name / "features" for each in (found, scenario.cpu)))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_one_device_learned_the_other_serves(
    scenario: Scenario[Path], inputs: Path, tmp_path: Path, name: str
) -> None:
    def served(device: Device, learned: Path) -> Path:
        folder = tmp_path / f"{device.name}"
        serve(learned / name / "workflow", device, WORKFLOWS[name], inputs=inputs, folder=folder)
        return folder

    with spread_out():
        found = [served(resolve("cpu"), scenario.strict)]
        with stand_in_for_cupy():
            found.append(served(StrictDevice(), scenario.cpu))
    for folder in found:
        for path in sorted(folder.glob("*.parquet")):
            assert_same_table(path, scenario.cpu / name / path.name)
