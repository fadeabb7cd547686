"""The recsys application on a GPU, by frames of cuDF, gives what the kernels give on the CPU.

Ids, hashes and folds are equal, floats within rounding. The stand-in has frames of pandas with its own arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.gpu_proof.same import Rule, compare, table_faults
from benchmarks.measure import differences
from tests.contract.recsys_steps import (
    OF_FEATURES,
    RULES,
    WORKFLOWS,
    fit_features,
    frames_of,
    run_workflows,
    serve,
    spread_out,
    train_models,
    write_inputs,
)
from tests.contract.site import Site
from tests.gpu.conftest import THREADS, Both
from whitewater.engines import Device
from whitewater.io.store import read_json

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def inputs(gpu: Device, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_inputs(tmp_path_factory.mktemp("recsys"))


@pytest.fixture(scope="module")
def both(gpu: Device, inputs: Path) -> Both:
    """What steps and workflows made on either device, in a folder each."""
    made = Both(inputs.with_name("cpu"), inputs.with_name("gpu"))
    for device, folder in ((Device(), made.cpu), (gpu, made.gpu)):
        site = Site(device, threads=THREADS)
        with spread_out(), frames_of(device):
            fit_features(site, results=folder, log=inputs / "log")
            run_workflows(device, inputs=inputs, folder=folder / "workflows")
        with spread_out():
            train_models(site, inputs=folder, results=folder / "trained")
    return made


def assert_same(found: Path, expected: Path, rules: Sequence[Rule] = (OF_FEATURES,)) -> None:
    assert set(compare(found, expected, rules).values()) == {""}


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_features_are_the_same_in_the_same_order(both: Both, name: str) -> None:
    assert_same(both.gpu / name, both.cpu / name)


def test_what_was_learned_is_the_same(both: Both) -> None:
    found, expected = (read_json(each / "statistics.json") for each in (both.gpu, both.cpu))
    assert list(differences(found, expected, tolerance=OF_FEATURES.tolerance)) == []


def test_models_are_as_good(both: Both) -> None:
    gpu, cpu = (read_json(each / "trained" / "metrics.json")["models"] for each in (both.gpu, both.cpu))
    for key, expected in cpu["logistic_regression"].items():
        assert gpu["logistic_regression"][key]["log_loss"] == pytest.approx(expected["log_loss"], abs=1e-3)
    for key, expected in cpu["boosted_trees"].items():
        assert gpu["boosted_trees"][key]["auc"] == pytest.approx(expected["auc"], abs=0.1)


def test_batches_are_the_same(both: Both) -> None:
    # Models are the libraries': see above.
    assert_same(both.gpu / "trained", both.cpu / "trained", (Rule("metrics.json", compared=False), *RULES))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_make_the_same_of_all_that_can_be_data(both: Both, name: str) -> None:
    rules = (Rule("workflow/*", compared=False), OF_FEATURES)
    assert_same(both.gpu / "workflows" / name, both.cpu / "workflows" / name, rules)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_one_device_learned_the_other_serves(
    gpu: Device, both: Both, inputs: Path, tmp_path: Path, name: str
) -> None:
    for device, learned in ((Device(), both.gpu), (gpu, both.cpu)):
        folder = tmp_path / device.name
        with spread_out(), frames_of(device):
            serve(learned / "workflows" / name / "workflow", device, inputs=inputs, folder=folder)
        for path in sorted(folder.glob("*.parquet")):
            found, expected = (pq.read_table(each / path.name) for each in (folder, both.cpu / "workflows" / name))
            assert list(table_faults(found, expected, OF_FEATURES)) == []
