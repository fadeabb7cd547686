"""The genomics steps keep to what CuPy can do: on a device that can do no more they give the CPU's results."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

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
from tests.contract.executed import handles_arrays, never_run, sources_of, split_by_place
from tests.contract.genomics_steps import (
    CHILDREN,
    EXACT,
    EXHAUSTED,
    FILES,
    PLACED,
    REPRODUCED,
    SMALL,
    STRANGER,
    assert_same_components,
    assert_same_packed,
    assert_same_table,
    run_steps,
    small_blocks,
    write_inputs,
)
from tests.contract.signatures import Describe, problems
from whitewater.engines import Array
from whitewater.io.store import read_json

# Modules that see no array of a device, though their arrays have the same type: why not.
HOST = {
    "encode": "writes the codes of a folder, before any device is asked",
    "figures": "draws the tables of results, which are small and on the host",
    "folder": "reads files into the host's memory, and writes them from it",
    "hwe": "tests counts that ingest has made",
    "pack": "copies from file to file",
    "pruning": "chooses among linked pairs, which the primitive returns on the host",
    "synthetic": "makes the input files, before any device is asked",
    "sources": "reads the input files, before any device is asked",
}
DEVICE_CODE, HOST_CODE = split_by_place(sources_of("genotypes", "genomics"), host=HOST)


class FirstTwoComponents:
    """Stands for UMAP, which takes as long to compile as all else here: of it, too, the step makes two columns."""

    def fit_transform(self, X: Array) -> Array:
        return X[:, :2].copy()


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario[Path]:
    directory = tmp_path_factory.mktemp("genomics")
    inputs = write_inputs(directory)
    with small_blocks(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=lambda **_: FirstTwoComponents()))
        return scenario_of(lambda site, results: run_steps(site, inputs=inputs, results=results), directory)


def test_every_call_of_the_steps_is_one_that_rapids_accepts(scenario: Scenario[Path], rapids: Describe) -> None:
    assert problems(scenario.calls, rapids) == []


def test_steps_that_ask_for_a_gpu_compute_there_and_no_other_does(scenario: Scenario[Path]) -> None:
    assert steps_that_compute(scenario.traffic) == steps_with_gpu("genomics")


def test_each_byte_crosses_as_often_as_the_table_says(scenario: Scenario[Path]) -> None:
    assert list(crossing_faults("genomics", scenario.traffic)) == []


def test_where_workers_have_gpus_steps_use_none_of_their_own(scenario: Scenario[Path]) -> None:
    assert steps_beside_tasks(scenario.traffic_on_workers) == set()


def test_the_steps_call_into_both_libraries_and_are_seen_to(scenario: Scenario[Path]) -> None:
    called = {call.name for call in scenario.calls}
    assert {"cupy.linalg.eigh", "cupy.linalg.qr", "cupy.bincount", "cupy.matmul"} <= called
    assert "cuml.manifold.UMAP.fit_transform" in called


@pytest.mark.parametrize("path", DEVICE_CODE, ids=lambda path: path.name)
def test_every_line_that_handles_arrays_of_a_device_ran_on_the_strict_one(scenario: Scenario[Path], path: Path) -> None:
    assert never_run(path, scenario.lines) == []


@pytest.mark.parametrize("path", HOST_CODE, ids=lambda path: path.name)
def test_modules_of_the_host_know_no_device(path: Path) -> None:
    assert not handles_arrays(path, words=frozenset({"device", "xp"}))


@pytest.mark.parametrize("name", EXACT)
def test_the_same_variants_samples_and_relatives_are_found(scenario: Scenario[Path], found: Path, name: str) -> None:
    cpu, strict = (pd.read_parquet(each / name) for each in (scenario.cpu, found))
    pd.testing.assert_frame_equal(strict, cpu, check_exact=True)


def test_the_data_have_all_that_the_steps_look_for(scenario: Scenario[Path]) -> None:
    chosen = pd.read_parquet(scenario.cpu / "diploid" / "without_outliers.parquet")
    assert chosen.loc[chosen["reason"].str.startswith("outlier"), "sample"].tolist() == [STRANGER]
    assert chosen["reason"].str.startswith("relative").sum() == CHILDREN + 1
    assert len(pd.read_parquet(scenario.cpu / "diploid" / "kinship.parquet")) > 2 * CHILDREN
    for ploidy in ("diploid", "triploid"):
        variants = pd.read_parquet(scenario.cpu / ploidy / "variants.parquet")
        assert (variants["ld_partner"] >= 0).sum() > 300
    hurried = read_json(scenario.cpu / "diploid" / "hurried" / FILES["eigenvalues"])
    assert not all(hurried["converged"])


@pytest.mark.parametrize("ploidy", ["diploid", "triploid"])
def test_relatedness_and_packed_calls_are_the_same(scenario: Scenario[Path], found: Path, ploidy: str) -> None:
    cpu, strict = (each / ploidy for each in (scenario.cpu, found))
    assert read_json(strict / "relatedness.json") == read_json(cpu / "relatedness.json")
    assert_same_packed(strict / "packed", cpu / "packed")


@pytest.mark.parametrize("name", REPRODUCED)
def test_components_are_the_same(scenario: Scenario[Path], found: Path, name: str) -> None:
    assert_same_components(found / name, scenario.cpu / name)


def test_an_exhausted_space_has_all_eigenvalues(scenario: Scenario[Path]) -> None:
    for each in (scenario.cpu, scenario.strict):
        np.testing.assert_allclose(np.load(each / EXHAUSTED), np.linalg.eigvalsh(SMALL)[::-1], rtol=1e-12)


@pytest.mark.parametrize("name", [*PLACED, "diploid/umap.parquet"])
def test_outliers_and_places_of_samples_are_the_same(scenario: Scenario[Path], found: Path, name: str) -> None:
    assert_same_table(found / name, scenario.cpu / name)


def test_the_map_is_as_good(scenario: Scenario[Path]) -> None:
    cpu, strict = (read_json(each / "diploid" / "umap.json") for each in (scenario.cpu, scenario.strict))
    assert strict == pytest.approx(cpu, abs=1e-3)
