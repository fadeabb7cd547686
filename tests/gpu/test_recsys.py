"""The recsys application on a GPU, by frames of cuDF, gives what the kernels give on the CPU.

Ids, hashes and folds are equal, floats within rounding. The stand-in has frames of pandas with its own arrays.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.recsys_steps import (
    TABLES,
    WORKFLOWS,
    assert_same_batches,
    assert_same_features,
    assert_same_table,
    assert_same_values,
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
def both(gpu: Device, inputs: Path) -> Both[Path]:
    """What steps and workflows made on either device, in a folder each."""
    cpu, on_gpu = (inputs.parent / name for name in ("cpu", "gpu"))
    with spread_out():
        fit_features(Site(Device(), threads=THREADS), cpu, log=inputs / "log")
        run_workflows(Device(), inputs=inputs, folder=cpu / "workflows")
        train_models(Site(Device(), threads=THREADS), made=cpu, results=cpu / "trained")
    with spread_out(), frames_of(gpu):
        fit_features(Site(gpu, threads=THREADS), on_gpu, log=inputs / "log")
        run_workflows(gpu, inputs=inputs, folder=on_gpu / "workflows")
    with spread_out():
        train_models(Site(gpu, threads=THREADS), made=on_gpu, results=on_gpu / "trained")
    return Both(cpu, on_gpu)


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_features_are_the_same_in_the_same_order(both: Both[Path], name: str) -> None:
    assert_same_features(both.gpu / name, both.cpu / name)


def test_what_was_learned_is_the_same(both: Both[Path]) -> None:
    assert_same_values(*(read_json(each / "statistics.json") for each in (both.gpu, both.cpu)))


def test_models_are_as_good(both: Both[Path]) -> None:
    gpu, cpu = (read_json(each / "trained" / "metrics.json")["models"] for each in (both.gpu, both.cpu))
    for key, expected in cpu["logistic_regression"].items():
        assert gpu["logistic_regression"][key]["log_loss"] == pytest.approx(expected["log_loss"], abs=1e-3)
    for key, expected in cpu["boosted_trees"].items():
        assert gpu["boosted_trees"][key]["auc"] == pytest.approx(expected["auc"], abs=0.1)


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_the_same(both: Both[Path], shuffle: bool) -> None:
    assert_same_batches(*(each / "trained" / f"batches_{shuffle}.npz" for each in (both.gpu, both.cpu)))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_make_the_same_of_all_that_can_be_data(both: Both[Path], name: str) -> None:
    found, expected = (each / "workflows" / name for each in (both.gpu, both.cpu))
    for table in TABLES:
        assert_same_table(found / f"{table}.parquet", expected / f"{table}.parquet")
    assert_same_features(found / "features", expected / "features")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_one_device_learned_the_other_serves(
    gpu: Device, both: Both[Path], inputs: Path, tmp_path: Path, name: str
) -> None:
    for device, learned in ((Device(), both.gpu), (gpu, both.cpu)):
        folder = tmp_path / device.name
        with spread_out(), frames_of(device):
            serve(learned / "workflows" / name / "workflow", device, inputs=inputs, folder=folder)
        for path in sorted(folder.glob("*.parquet")):
            assert_same_table(path, both.cpu / "workflows" / name / path.name)
