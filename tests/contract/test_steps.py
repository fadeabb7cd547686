"""The steps keep to what CuPy, cuML and cuGraph can do: on a device that can do no more they give the CPU's results.

That components and the starts of ranks are the CPU's is in tests/gpu, which run on this device, too (`test_gpu_tests`);
what is asked of frames where trips are cleaned, features made and edges numbered is in `test_taxi_frames`,
`test_features_on_frames` and `test_graph_frames`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from sklearn.decomposition import PCA

from benchmarks.gpu_proof.same import Rule, compare
from tests.contract import genomics_steps, pagerank_steps, recsys_steps, taxi_steps
from tests.contract.device_array import recording
from tests.contract.executed import (
    ROOT,
    Line,
    executed_lines,
    handles_arrays,
    never_run,
    sources_of,
    split_by_place,
)
from tests.contract.gaps import faults
from tests.contract.genomics_steps import CHILDREN, FILES, STRANGER
from tests.contract.pagerank_steps import GRAPHS, KNOWN
from tests.contract.signatures import Call
from tests.contract.site import Site
from tests.contract.strict_device import StrictDevice, cluster_of, stand_in_for_cupy
from tests.contract.traffic import OF_FRAMES, Traffic, crossing_faults, steps_with_gpu
from tests.helpers.graphs import random_graph, rank
from whitewater.engines import Device
from whitewater.errors import ResourceError
from whitewater.io.store import read_json

pytestmark = pytest.mark.slow  # it compiles, or runs steps twice

# Modules that see no array of a device, though their arrays have the same type: why not.
OF_GENOTYPES = {
    "encode": "writes the codes of a folder, before any device is asked",
    "figures": "draws the tables of results, which are small and on the host",
    "folder": "reads files into the host's memory, and writes them from it",
    "hwe": "tests counts that ingest has made",
    "pack": "copies from file to file",
    "pruning": "chooses among linked pairs, which the primitive returns on the host",
    "synthetic": "makes the input files, before any device is asked",
    "sources": "reads the input files, before any device is asked",
}
OF_GRAPHS = {
    **dict.fromkeys(("edge_files", "edges", "edges_folder"),
                    "makes the folder of edges, before any device is asked"),
    "components": "joins the ends of edges on the host",
    "index": "makes the index, of text",
    **dict.fromkeys(("build", "renumber"), "numbers edges by kernels of the CPU, or on frames: `test_graph_frames`"),
    "graph_folder": "reads files into the host's memory, and writes them from it",
}  # fmt: skip
# Lines in functions that handle arrays of a device which the strict one never comes to: why not.
BESIDE_GENOTYPES = dict.fromkeys(
    (
        'logger.warning("no map is made: %d samples are not more than genomics.umap.neighbors, %d", len(table),',
        "settings.neighbors)  # fmt: skip",
    ),
    "a map of too few samples is not made",
)
BESIDE_GRAPHS = {
    "return None": "a folder whose vertices have names has a table of them",
    "return problem.edges": "those of the CPU",
    'logger.info("cuGraph would need about %.2f GB of GPU memory", cugraph_bytes(edges) / 1e9)': "`test_graph_library`",
    **dict.fromkeys(
        (
            "from whitewater.graphs.library_dask import ranks_of_all_gpus",
            "return ranks_of_all_gpus(",
            "problem.folder, problem.personalization, problem.settings, problem.device, weighted=problem.weighted",
            "return _groups_by_size(*groups)",
        ),
        "several GPUs: `test_graph_library` has stand-ins for them",
    ),
}
TAXI, RECSYS = (ROOT.with_name("whitewater_apps") / name for name in ("taxi", "recsys"))


@dataclass(frozen=True)
class Application:
    """The steps of an application on tiny data, how their outputs may differ, and some of what they ask."""

    write_inputs: Callable[[Path], Any]
    run_steps: Callable[..., None]
    spread_out: Callable[[], AbstractContextManager[None]]
    rules: Sequence[Rule]
    calls: set[str]
    # Files that handle arrays of a device, those that do not, and lines of the former which no scenario comes to.
    code: tuple[list[Path], list[Path]]
    beside: Collection[str] = ()
    # Functions of the former that are compiled for the CPU.
    compiled: Collection[str] = ()


APPLICATIONS = {
    "genomics": Application(
        genomics_steps.write_inputs,
        genomics_steps.run_steps,
        genomics_steps.spread_out,
        genomics_steps.RULES,
        {"cupy.linalg.eigh", "cupy.linalg.qr", "cupy.bincount", "cupy.matmul", "cupyx.empty_pinned",
         "cuml.manifold.UMAP.fit_transform"},
        split_by_place(sources_of("genotypes", "genomics"), host=OF_GENOTYPES),
        BESIDE_GENOTYPES,
    ),
    "pagerank": Application(
        pagerank_steps.write_graphs,
        pagerank_steps.run_steps,
        pagerank_steps.spread_out,
        pagerank_steps.RULES,
        {"cupy.abs", "cupy.divide"},
        # Communities on a GPU are cuGraph's.
        split_by_place({*sources_of("graphs", "pagerank")} - {ROOT / "graphs" / "communities.py"}, host=OF_GRAPHS),
        BESIDE_GRAPHS,
    ),
    "recsys": Application(
        recsys_steps.write_features,
        recsys_steps.train_models,
        recsys_steps.spread_out,
        recsys_steps.RULES,
        {"cupy.nanmean", *(f"cuml.linear_model.LogisticRegression.{name}" for name in ("fit", "predict_proba"))},
        ([ROOT / "features" / "loader.py", RECSYS / "steps" / "train.py"], []),
    ),
    "taxi": Application(
        taxi_steps.write_trips,
        taxi_steps.run_steps,
        nullcontext,
        taxi_steps.RULES,
        {"cupy.where", "cupy.ndarray.astype", "cupy.right_shift", "cuml.linear_model.Ridge",
         "cuml.linear_model.Ridge.fit", "cuml.ensemble.RandomForestRegressor", "nvforest.load_from_treelite_model"},
        ([*(TAXI / f"{name}.py" for name in ("features", "sample", "steps/predict")), ROOT / "learn" / "trained.py",
          ROOT / "tables" / "hashing.py"], []),
        compiled={"_codes"},
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=APPLICATIONS)
def application(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@dataclass(frozen=True)
class Scenario:
    """What steps wrote on the CPU, and on the strict device in their process and on workers; what they did there."""

    cpu: Path
    strict: Path
    on_workers: Path
    calls: Mapping[Call, Sequence[str]]
    lines: set[Line]
    traffic: Mapping[str, Traffic]
    traffic_on_workers: Mapping[str, Traffic]


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Scenario]:
    """Runs the steps of an application, once: on the strict device, watched, on workers that have it, on the CPU."""

    @cache
    def scenario_of(name: str) -> Scenario:
        app, folder = APPLICATIONS[name], tmp_path_factory.mktemp(name)
        here, cpu, strict, on_workers = Site(StrictDevice()), *(folder / each for each in ("cpu", "strict", "workers"))
        with app.spread_out(), pytest.MonkeyPatch.context() as patch:
            # UMAP takes as long to compile as all else here: of principal components, too, the step makes two.
            patch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=lambda **_: PCA(2)))
            run = partial(app.run_steps, inputs=app.write_inputs(folder))
            _forget_what_was_computed_before()
            with stand_in_for_cupy(), cluster_of(2) as cluster:
                elsewhere = Site(StrictDevice(), cluster)
                with recording() as calls, executed_lines() as lines:
                    run(here, results=strict)
                    run(elsewhere, results=on_workers)
            run(Site(Device()), results=cpu)
        return Scenario(cpu, strict, on_workers, calls, lines, here.traffic, elsewhere.traffic)

    return scenario_of


def _forget_what_was_computed_before() -> None:
    """Empty the caches of our functions, so that their lines run."""
    for name, module in list(sys.modules.items()):
        if name.startswith("whitewater."):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


@pytest.fixture(scope="module")
def scenario(application: str, scenarios: Callable[[str], Scenario]) -> Scenario:
    return scenarios(application)


def test_every_call_of_the_steps_is_one_that_rapids_accepts(scenario: Scenario, application: str) -> None:
    assert faults(scenario.calls) == []
    assert APPLICATIONS[application].calls <= {call.name for call in scenario.calls}


def test_steps_that_ask_for_a_gpu_compute_there_and_no_other_does(scenario: Scenario, application: str) -> None:
    computing = {step.split()[0] for step, each in scenario.traffic.items() if each.allocated and each.operations}
    assert computing == steps_with_gpu(application) - OF_FRAMES[application]


def test_each_byte_crosses_as_often_as_the_table_says(scenario: Scenario, application: str) -> None:
    assert list(crossing_faults(application, scenario.traffic)) == []


def test_where_workers_have_gpus_steps_use_none_of_their_own(scenario: Scenario) -> None:
    assert {step for step, each in scenario.traffic_on_workers.items() if each.beside_tasks} == set()


def test_every_line_that_handles_arrays_of_a_device_ran_on_the_strict_one(scenario: Scenario, application: str) -> None:
    app = APPLICATIONS[application]
    missed = [each for path in app.code[0] for each in never_run(path, scenario.lines, without=app.compiled)]
    assert [each for each in missed if each.split(": ", 1)[1] not in app.beside] == []


def test_modules_of_the_host_know_no_device(application: str) -> None:
    words = frozenset({"device", "xp"})
    assert [path for path in APPLICATIONS[application].code[1] if handles_arrays(path, words=words)] == []


@pytest.mark.parametrize("place", ["strict", "on_workers"])
def test_the_outputs_are_those_of_the_cpu(scenario: Scenario, application: str, place: str) -> None:
    faults = compare(getattr(scenario, place), scenario.cpu, APPLICATIONS[application].rules)
    assert {name: fault for name, fault in faults.items() if fault} == {}
    assert faults


def test_genomics_data_have_all_that_the_steps_look_for(scenarios: Callable[[str], Scenario]) -> None:
    folder = scenarios("genomics").cpu
    chosen = pd.read_parquet(folder / "diploid" / "without_outliers.parquet")
    assert chosen.loc[chosen["reason"].str.startswith("outlier"), "sample"].tolist() == [STRANGER]
    assert chosen["reason"].str.startswith("relative").sum() == CHILDREN + 1
    assert len(pd.read_parquet(folder / "diploid" / "kinship.parquet")) > 2 * CHILDREN
    for ploidy in ("diploid", "triploid"):
        variants = pd.read_parquet(folder / ploidy / "variants.parquet")
        assert (variants["ld_partner"] >= 0).sum() > 300
        assert len(pd.read_parquet(folder / ploidy / "packed" / "variants.parquet")) > 500
    hurried = read_json(folder / "diploid" / "hurried" / FILES["eigenvalues"])
    assert not all(hurried["converged"])


def test_pagerank_data_have_all_that_the_steps_look_for(scenarios: Callable[[str], Scenario]) -> None:
    folder = scenarios("pagerank").cpu
    graphs = folder.with_name("inputs") / "graphs"
    for name, (edges, _) in GRAPHS.items():
        counts = read_json(graphs / f"{name}.json")
        assert min(counts[each] for each in ("duplicates", "self_loops", "edges")) > 0
        assert (counts["reversed"] > 0) == edges.startswith("distant")
    web = read_json(graphs / "web.json")
    assert min(web["dangling"], web["isolated"]) > 2 * KNOWN - 1
    components = read_json(folder / "groups" / "none.json")["components"]
    assert components["count"] > 1


def test_a_graph_that_does_not_fit_into_the_memory_of_a_gpu_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StrictDevice, "free_memory", lambda _: 1000)
    graph = random_graph(300, 0.02).write(tmp_path / "graph")
    with stand_in_for_cupy(), pytest.raises(ResourceError, match=r"of GPU memory.*Use a GPU with more"):
        rank(graph, tmp_path, device=StrictDevice())


def test_taxi_data_have_models_of_all_services(scenarios: Callable[[str], Scenario]) -> None:
    folder = scenarios("taxi").cpu
    services = read_json(folder / "model" / "metrics.json")["services"]
    assert {name for name, each in services.items() if each["status"] == "fitted"} == {"yellow", "green", "fhvhv"}
    assert len(pd.read_parquet(folder / "predictions")) > 500
