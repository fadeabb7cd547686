"""The PageRank steps keep to what CuPy can do: on a device that can do no more they give the CPU's results."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.conftest import Scenario, scenario_of
from tests.contract.crossings import (
    OF_FRAMES,
    crossing_faults,
    steps_beside_tasks,
    steps_that_compute,
    steps_with_gpu,
)
from tests.contract.executed import handles_arrays, never_run, sources_of, split_by_place
from tests.contract.pagerank_steps import (
    GRAPHS,
    GROUPS,
    KNOWN,
    LIBRARY,
    RANKS,
    assert_ranks_within_tolerance,
    assert_same_components,
    assert_same_graph,
    assert_same_ranks,
    run_steps,
    spread_out,
    write_inputs,
)
from tests.contract.signatures import Describe, problems
from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from tests.graphs import random_graph, rank
from whitewater.errors import ResourceError
from whitewater.io.store import read_json

# Modules that see no array of a device, though their arrays have the same type: why not.
HOST = {
    **dict.fromkeys(("edge_files", "edges", "edges_of_files", "edges_folder"),
                    "makes the folder of edges, before any device is asked"),
    "components": "joins the ends of edges on the host",
    "index": "makes the index, of text",
    **dict.fromkeys(("build", "renumber"), "numbers edges by kernels of the CPU, or on frames: `test_graph_frames`"),
    "graph_folder": "reads files into the host's memory, and writes them from it",
}  # fmt: skip
# Lines in functions that handle arrays of a device which the strict one never comes to: why not.
ON_HOST = {
    "return None": "a folder whose vertices have names has a table of them",
    "return problem.edges": "those of the CPU",
    'logger.info("cuGraph would need about %.2f GB of GPU memory", library_bytes(edges) / 1e9)': "`test_graph_library`",
    **dict.fromkeys(
        (
            "from whitewater.graphs.library_dask import ranks_of_all_gpus",
            "from whitewater.graphs.library_gpu import library_fits",
            "if library_fits(problem.edges, workers.room_for_a_task(problem.device, tasks=1)):",
            "return ranks_of_all_gpus(",
            "problem.folder, problem.personalization, problem.settings, problem.device, weighted=problem.weighted",
            "start = ranks_beyond_one_gpu(problem, workers)",
            "from whitewater.graphs.library_dask import groups_beyond_one_gpu",
            'wanted = settings.model_dump(include={"method", "resolution", "seed"})',
            "if found := groups_beyond_one_gpu(folder, workers, device, **wanted):",
            "return _numbered(*found)",
        ),
        "several GPUs: `test_graph_library` has stand-ins for them",
    ),
}
DEVICE_CODE, HOST_CODE = split_by_place(
    (path for path in sources_of("graphs", "pagerank") if path.stem not in {"with_dask", "library_dask"}), host=HOST
)


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario[Path]:
    directory = tmp_path_factory.mktemp("pagerank")
    inputs = write_inputs(directory)
    with spread_out():
        return scenario_of(lambda site, results: run_steps(site, inputs=inputs, results=results), directory)


def test_every_call_of_the_steps_is_one_that_rapids_accepts(scenario: Scenario[Path], rapids: Describe) -> None:
    assert problems(scenario.calls, rapids) == []


def test_steps_that_ask_for_a_gpu_compute_there_and_no_other_does(scenario: Scenario[Path]) -> None:
    assert steps_that_compute(scenario.traffic) | OF_FRAMES["pagerank"] == steps_with_gpu("pagerank")


def test_each_byte_crosses_as_often_as_the_table_says(scenario: Scenario[Path]) -> None:
    assert list(crossing_faults("pagerank", scenario.traffic)) == []


def test_where_workers_have_gpus_steps_use_none_of_their_own(scenario: Scenario[Path]) -> None:
    assert steps_beside_tasks(scenario.traffic_on_workers) == set()


def test_the_steps_call_into_the_array_library_and_are_seen_to(scenario: Scenario[Path]) -> None:
    called = {call.name for call in scenario.calls}
    assert {"cupy.abs", "cupy.divide"} <= called


@pytest.mark.parametrize("path", DEVICE_CODE, ids=lambda path: path.name)
def test_every_line_that_handles_arrays_of_a_device_ran_on_the_strict_one(scenario: Scenario[Path], path: Path) -> None:
    missed = never_run(path, scenario.lines)
    assert [each for each in missed if each.split(": ", 1)[1] not in ON_HOST] == []


@pytest.mark.parametrize("path", HOST_CODE, ids=lambda path: path.name)
def test_modules_of_the_host_know_no_device(path: Path) -> None:
    assert not handles_arrays(path, words=frozenset({"device", "xp"}))


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_are_the_same_byte_by_byte(scenario: Scenario[Path], found: Path, name: str) -> None:
    assert_same_graph(found, scenario.cpu, name)


def test_the_data_have_all_that_the_steps_look_for(scenario: Scenario[Path]) -> None:
    for name, case in GRAPHS.items():
        counts = read_json(scenario.cpu / "graphs" / f"{name}.json")
        assert min(counts[each] for each in ("duplicates", "self_loops", "edges")) > 0
        assert (counts["reversed"] > 0) == case.edges.startswith("distant")
    web = read_json(scenario.cpu / "graphs" / "web.json")
    assert min(web["dangling"], web["isolated"]) > 2 * KNOWN - 1
    components = read_json(scenario.cpu / "groups" / "none.json")["components"]
    assert components["count"] > 1


@pytest.mark.parametrize("name", sorted(set(RANKS) - set(LIBRARY)))
def test_ranks_are_the_same(scenario: Scenario[Path], found: Path, name: str) -> None:
    assert_same_ranks(found, scenario.cpu, name)


@pytest.mark.parametrize("name", LIBRARY)
def test_ranks_that_begin_with_those_of_the_library_are_iterated_to_the_same(
    scenario: Scenario[Path], name: str
) -> None:
    assert_ranks_within_tolerance(scenario.strict, scenario.cpu, name)


@pytest.mark.parametrize("name", GROUPS)
def test_components_degrees_and_communities_are_the_same(scenario: Scenario[Path], found: Path, name: str) -> None:
    assert_same_components(found, scenario.cpu, name)


def test_a_graph_that_does_not_fit_into_the_memory_of_a_gpu_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StrictDevice, "free_memory", lambda _: 1000)
    graph = random_graph(300, 0.02).write(tmp_path / "graph")
    with stand_in_for_cupy(), pytest.raises(ResourceError, match=r"of GPU memory.*Use a GPU with more"):
        rank(graph, tmp_path, device=StrictDevice())
