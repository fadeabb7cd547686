"""The taxi steps keep to what CuPy and cuML can do: on a device that can do no more they give the CPU's results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.contract.conftest import Scenario, scenario_of
from tests.contract.crossings import (
    crossing_faults,
    steps_beside_tasks,
    steps_that_compute,
    steps_with_gpu,
)
from tests.contract.executed import ROOT, handles_arrays, never_run, split_by_place
from tests.contract.raw_trips import write_inputs
from tests.contract.signatures import Describe, problems
from tests.contract.taxi_steps import TABLES, Results, read, run_steps

# Forests are fitted on float32 and, as cuML's, predict float32.
RTOL, ATOL = 1e-5, 1e-6
# Modules that see no array of a device, though their arrays have the same type: why not.
HOST = {
    "figures": "draws the tables of results, which are small and on the host",
    "synthetic": "makes the input files, before any device is asked",
}
TABLES_OF_TRIPS = [ROOT / "tables" / name for name in ("calendar.py", "hashing.py")]
DEVICE_CODE, HOST_CODE = split_by_place(
    [*ROOT.with_name("whitewater_apps").glob("taxi/**/*.py"), *TABLES_OF_TRIPS], host=HOST
)
# Parts of kernels, which are compiled for the CPU, and what only `tests/apps/taxi` runs.
COMPILED = {"xxh64", "_stripes", "eight_bytes", "_four_bytes", "_codes"}


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario[Results]:
    directory = tmp_path_factory.mktemp("taxi")
    inputs, zones = write_inputs(directory)
    return scenario_of(
        lambda site, results: run_steps(site, inputs=inputs, zones=zones, results=results),
        directory,
    )


def test_every_call_of_the_steps_is_one_that_rapids_accepts(scenario: Scenario[Results], rapids: Describe) -> None:
    assert problems(scenario.calls, rapids) == []


def test_steps_that_ask_for_a_gpu_compute_there_and_no_other_does(scenario: Scenario[Results]) -> None:
    assert steps_that_compute(scenario.traffic) == steps_with_gpu("taxi")


def test_each_byte_crosses_as_often_as_the_table_says(scenario: Scenario[Results]) -> None:
    assert list(crossing_faults("taxi", scenario.traffic)) == []


def test_where_workers_have_gpus_steps_use_none_of_their_own(
    scenario: Scenario[Results],
) -> None:
    assert steps_beside_tasks(scenario.traffic_on_workers) == set()


def test_the_steps_call_into_both_libraries_and_are_seen_to(scenario: Scenario[Results]) -> None:
    called = {call.name for call in scenario.calls}
    assert {"cupy.where", "cupy.ndarray.astype", "cupy.ndarray.__rshift__", "cuml.linear_model.Ridge.fit"} <= called


@pytest.mark.parametrize("path", [path for path in DEVICE_CODE if path.stem != "with_dask"], ids=lambda path: path.name)
def test_every_line_that_handles_arrays_of_a_device_ran_on_the_strict_one(
    scenario: Scenario[Results], path: Path
) -> None:
    assert never_run(path, scenario.lines, without=COMPILED) == []


@pytest.mark.parametrize("path", HOST_CODE, ids=lambda path: path.name)
def test_modules_of_the_host_know_no_device(path: Path) -> None:
    assert not handles_arrays(path, words=frozenset({"device", "xp"}))


@pytest.mark.parametrize("name", ["trips", "quarantine", "nothing_kept", "all_kept"])
def test_the_same_trips_are_kept_and_rejected(scenario: Scenario[Results], found: Results, name: str) -> None:
    cpu, strict = read(getattr(scenario.cpu, name)), read(getattr(found, name))
    assert len(cpu) > 500
    pd.testing.assert_frame_equal(strict, cpu)


def test_quality_is_the_same(scenario: Scenario[Results], found: Results) -> None:
    assert json.loads(found.quality.read_text()) == json.loads(scenario.cpu.quality.read_text())


@pytest.mark.parametrize("name", TABLES)
def test_tips_are_the_same(scenario: Scenario[Results], found: Results, name: str) -> None:
    cpu, strict = (pd.read_csv(each.tables / f"{name}.csv") for each in (scenario.cpu, found))
    pd.testing.assert_frame_equal(strict, cpu, rtol=1e-12)


@pytest.mark.parametrize("name", ["predictions", "predictions_of_one_file"])
def test_predictions_are_the_same(scenario: Scenario[Results], found: Results, name: str) -> None:
    cpu, strict = (pd.read_parquet(getattr(each, name)) for each in (scenario.cpu, found))
    assert len(cpu) > 500
    pd.testing.assert_frame_equal(strict, cpu, rtol=RTOL, atol=ATOL)


def test_the_models_score_the_same(scenario: Scenario[Results]) -> None:
    cpu, strict = (
        json.loads((each.model / "metrics.json").read_text())["services"] for each in (scenario.cpu, scenario.strict)
    )
    assert {service for service, each in cpu.items() if each["status"] == "fitted"} == {"yellow", "green", "fhvhv"}
    for service in cpu:
        for model, scores in cpu[service]["held_out"].items():
            for score, interval in scores.items():
                found = strict[service]["held_out"][model][score]
                np.testing.assert_allclose(list(found.values()), list(interval.values()), rtol=RTOL, atol=ATOL)
