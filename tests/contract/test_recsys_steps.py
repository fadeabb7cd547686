"""Models are trained, and batches loaded, by what CuPy can do: on a device that can do no more, as on the CPU.

What the steps fit and features ask of frames is in `test_features_on_frames`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.conftest import Scenario, scenario_of
from tests.contract.crossings import OF_FRAMES, crossing_faults, steps_beside_tasks, steps_that_compute, steps_with_gpu
from tests.contract.executed import ROOT, never_run
from tests.contract.recsys_steps import (
    assert_same_batches,
    assert_same_values,
    fit_features,
    spread_out,
    train_models,
    write_inputs,
)
from tests.contract.signatures import Describe, problems
from tests.contract.site import Site
from whitewater.engines import Device
from whitewater.io.store import read_json

APPLICATION = ROOT.with_name("whitewater_apps") / "recsys"
# What handles arrays of a device there.
DEVICE_CODE = (ROOT / "features" / "loader.py", APPLICATION / "feature_matrix.py", APPLICATION / "steps" / "train.py")


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario[Path]:
    folder = tmp_path_factory.mktemp("recsys")
    with spread_out():
        log = write_inputs(folder) / "log"
        made = fit_features(Site(Device()), folder / "made", log=log)
        return scenario_of(lambda site, results: train_models(site, made=made, results=results), folder)


def test_every_call_is_one_that_rapids_accepts(scenario: Scenario[Path], rapids: Describe) -> None:
    assert problems(scenario.calls, rapids) == []


def test_the_step_that_asks_for_a_gpu_for_arrays_computes_there(scenario: Scenario[Path]) -> None:
    assert steps_that_compute(scenario.traffic) == steps_with_gpu("recsys") - OF_FRAMES["recsys"] == {"train"}


def test_each_byte_crosses_as_often_as_the_table_says(scenario: Scenario[Path]) -> None:
    assert list(crossing_faults("recsys", scenario.traffic)) == []


def test_where_workers_have_gpus_steps_use_none_of_their_own(scenario: Scenario[Path]) -> None:
    assert steps_beside_tasks(scenario.traffic_on_workers) == set()


def test_the_application_calls_into_the_libraries_and_is_seen_to(scenario: Scenario[Path]) -> None:
    called = {call.name for call in scenario.calls}
    assert "cupy.nanmean" in called
    assert {f"cuml.linear_model.LogisticRegression.{name}" for name in ("fit", "predict_proba")} <= called


@pytest.mark.parametrize("path", DEVICE_CODE, ids=lambda path: path.name)
def test_every_line_that_handles_arrays_of_a_device_ran_on_the_strict_one(scenario: Scenario[Path], path: Path) -> None:
    assert never_run(path, scenario.lines) == []


def test_what_is_told_of_the_models_is_the_same(scenario: Scenario[Path], found: Path) -> None:
    assert_same_values(*(read_json(each / "metrics.json") for each in (found, scenario.cpu)))


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_the_same(scenario: Scenario[Path], shuffle: bool) -> None:
    assert_same_batches(*(each / f"batches_{shuffle}.npz" for each in (scenario.strict, scenario.cpu)))
