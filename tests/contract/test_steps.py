"""The steps keep to what CuPy, cuDF, cuML and cuGraph can do: on a device of no more they give the results of the CPU.

That components and the starts of ranks are the CPU's is in tests/gpu, which run on this device, too, at the end.
Each application's module tells of its steps on tiny data: how their outputs may differ (``RULES``), some of the calls
that they make (``CALLS``), the files that handle arrays or frames of a device (``CODE``, and by frames alone
``FRAMES``), and of these the functions of the CPU (``OF_CPU``) and the lines (``BESIDE``) that do not run here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sklearn.decomposition import PCA

from benchmarks.gpu_proof.same import compare
from tests.contract.device_array import recording
from tests.contract.executed import DEVICE_WORDS, FRAME_WORDS, ROOT, Line, executed_lines, never_run
from tests.contract.signatures import Call, faults
from tests.contract.site import Site
from tests.contract.strict_device import StrictDevice, cluster_of, stand_in_for_cupy
from tests.contract.traffic import WORKFLOWS, Traffic, crossing_faults, steps_with_gpu
from whitewater.engines import Device

# The branches of cuDF in `whitewater.tables.with_dask`, which the stand-in's frames, of pandas, do not take.
OF_CUDF = {
    "return backend_module(backend).DataFrame.from_arrow(table)",
    "return rows.to_arrow(preserve_index=False).cast(schema)",
    "groups = None if row_groups is None else list(row_groups)",
    "return backend_module(backend).read_parquet(",
    'path, columns=columns, row_groups=groups, use_pandas_metadata=False, dataset_kwargs={"partitioning": None}',
}
pytestmark = pytest.mark.slow  # it compiles, or runs steps twice
APPLICATIONS = [name for name in ("genomics", "minimal", "pagerank", "recsys", "taxi") if (WORKFLOWS / name).exists()]


@dataclass(frozen=True)
class Scenario:
    """What steps wrote on the CPU, and on the strict device in their process and on workers; what they did there."""

    application: Any
    gpu_steps: set[str]
    cpu: Path
    strict: Path
    on_workers: Path
    calls: Mapping[Call, Sequence[str]]
    lines: set[Line]
    traffic: Mapping[str, Traffic]
    traffic_on_workers: Mapping[str, Traffic]


@pytest.fixture(scope="module", params=APPLICATIONS)
def scenario(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Runs the steps of an application: on the strict device, watched, on workers that have it, on the CPU."""
    app: Any = import_module(f"tests.contract.{request.param}_steps")
    folder = tmp_path_factory.mktemp(request.param)
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
        run(Site(Device(partition_rows=StrictDevice.partition_rows)), results=cpu)
    gpu_steps = steps_with_gpu(request.param)
    return Scenario(app, gpu_steps, cpu, strict, on_workers, calls, lines, here.traffic, elsewhere.traffic)


def _forget_what_was_computed_before() -> None:
    """Empty the caches of our functions, so that their lines run."""
    for name, module in list(sys.modules.items()):
        if name.startswith("whitewater."):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def test_every_call_of_the_steps_is_one_that_rapids_accepts(scenario: Scenario) -> None:
    assert faults(scenario.calls) == []
    assert {call.name for call in scenario.calls} >= scenario.application.CALLS


def test_steps_that_ask_for_a_gpu_compute_there_and_no_other_does(scenario: Scenario) -> None:
    computing = {step.split()[0] for step, each in scenario.traffic.items() if each.operations}
    assert computing == scenario.gpu_steps


def test_each_byte_crosses_as_often_as_the_table_says(scenario: Scenario) -> None:
    table = scenario.application.CROSSINGS
    assert {step.split()[0] for step in table} == scenario.gpu_steps
    assert list(crossing_faults(table, scenario.traffic)) == []


def test_where_workers_have_gpus_steps_use_none_of_their_own(scenario: Scenario) -> None:
    assert {step for step, each in scenario.traffic_on_workers.items() if each.beside_tasks} == set()


def test_every_line_that_handles_arrays_or_frames_of_a_device_ran_on_the_strict_one(scenario: Scenario) -> None:
    app = scenario.application
    files = {**dict.fromkeys(app.CODE, DEVICE_WORDS), **dict.fromkeys(app.FRAMES, FRAME_WORDS)}
    assert files
    missed = [each for path, words in files.items()
              for each in never_run(path, scenario.lines, words=words, without=app.OF_CPU)]  # fmt: skip
    assert [each for each in missed if each.split(": ", 1)[1] not in app.BESIDE | OF_CUDF] == []


@pytest.mark.parametrize("place", ["strict", "on_workers"])
def test_the_outputs_are_those_of_the_cpu(scenario: Scenario, place: str) -> None:
    faults = compare(getattr(scenario, place), scenario.cpu, scenario.application.RULES)
    assert {name: fault for name, fault in faults.items() if fault} == {}
    assert faults


def test_the_data_have_all_that_the_steps_look_for(scenario: Scenario) -> None:
    scenario.application.check_data(scenario.cpu)


@pytest.mark.timeout(900)
def test_the_tests_for_a_gpu_pass_on_the_stand_in() -> None:
    """So a mistake in them is found where there is no GPU."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--stand-in", "tests/gpu"]
    # This test is slow, and so may they be: conftest.py's limit in CI is for what `make test` runs.
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT.parents[1], env=environment)
    assert ended.returncode == 0, ended.stdout[-4000:]
    assert " passed" in ended.stdout
