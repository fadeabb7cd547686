"""The variants of the published rows that are written for GPUs give the oracle's answer on a device that is as strict.

What they ask of CuPy and cuDF themselves, and of Dask's DataFrame by the names of dask_cudf, binds to what those accept
as recorded. Dask's own code runs on arrays that stand for CuPy's and on frames of pandas. Not proved: what dask_cudf
and dask_cuda do inside (that cuDF has all that Dask's merge, sum and mean of partitions ask of it), that libraries may
be called from several threads, that memory suffices or is spilled, and how fast anything is. Rows that are measured by
commands run the steps of the applications, which have contracts of their own; that their commands name the GPU is in
`tests.benchmarks.test_published_applications`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import dask
import dask.dataframe as dd
import pytest
from dask.dataframe.backends import PandasBackendEntrypoint, dataframe_creation_dispatch
from distributed import Client
from pydantic import JsonValue

from benchmarks.published import dask_cluster, measuring, room
from benchmarks.published.row import NAMES, CallCase, load
from benchmarks.published.work import read_work
from tests.contract import frame_calls
from tests.contract.device_array import differing, record
from tests.contract.executed import Line, device_code, executed_lines, never_run
from tests.contract.frame_calls import Backend, frames_as_cudf
from tests.contract.published_rows import (
    ZARR,
    Answers,
    Name,
    answers_on,
    check_groups_far_apart,
    faults_of,
    kernel_of_random_numbers,
    on_gpus,
    oracles,
    prepare,
    tiny,
    work_of,
)
from tests.contract.signatures import Call, faults
from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from whitewater.engines import resolve
from whitewater.engines.config import Cluster
from whitewater.engines.gpu import DASK_SETTINGS

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parents[2] / "benchmarks" / "published"
VARIANTS = [*on_gpus(), ZARR]
CALL_CASES = [(row, case.name) for row in NAMES for case in load(row).cases if isinstance(case, CallCase)]
# Functions that name a device, and see no array of a GPU: why not.
OF_THE_CPU = {
    "features": "names commands",
    **dict.fromkeys(("fused", "futures_of_threads", "projected", "serial"), "are variants for the CPU alone"),
    **dict.fromkeys(("plain", "blosc", "multiply_bytes"), "are forms in which peers keep genotypes"),
}
ROWS = {FOLDER / f"{row}.py" for row, _, _ in on_gpus()}
DEVICE_CODE = sorted(ROWS.union(device_code(FOLDER, words=frozenset({"xp"}))))


@dataclass(frozen=True)
class Scenario:
    """What the variants answered on the strict device and what they did there, and what is right."""

    answers: Answers
    right: Mapping[tuple[str, str], JsonValue]
    calls: Mapping[Call, list[str]]
    lines: set[Line]


class RecordedBackend(PandasBackendEntrypoint):
    """Stands for the backend of dask_cudf, which gives cuDF's `read_csv` all but the size of a block."""

    @staticmethod
    def read_csv(urlpath: Any, **options: Any) -> Any:
        record("cudf.read_csv", 1, tuple(options.keys() - {"blocksize"}))
        return dataframe_creation_dispatch.dispatch("pandas").read_csv(urlpath, **options)


@contextmanager
def on_open_client() -> Iterator[Mapping[Call, list[str]]]:
    """Let Dask's collections be of pandas' frames, watched, and stand-ins for CuPy's arrays, on the open Dask client.

    Yields the calls made meanwhile.
    """

    @contextmanager
    def client(*_: object, **__: object) -> Iterator[Client]:
        with pytest.MonkeyPatch.context() as patch, dask.config.set(DASK_SETTINGS | dask_cluster.COLLECTIONS):
            patch.setitem(dataframe_creation_dispatch._lookup, "cudf", RecordedBackend())
            yield Client.current()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_cluster, "gpu_frames", lambda: Backend("pandas"))
        patch.setattr(dask_cluster, "gpu_dask_client", client)
        patch.setattr(frame_calls, "is_ours", lambda file: Path(file).parent == FOLDER)
        patch.setitem(frame_calls.CLASSES, dd.DataFrame, "dask_cudf.DataFrame")
        patch.setitem(frame_calls.CLASSES, dd.Series, "dask_cudf.Series")
        with frames_as_cudf(arrays=True) as calls:
            yield calls


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    folder = tmp_path_factory.mktemp("published")
    here: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": ":0"}
    device = StrictDevice()
    with tiny():
        prepare(folder)
        with (
            stand_in_for_cupy(),
            on_open_client() as calls,
            executed_lines(FOLDER) as lines,
            differing(),
            Client(**here),
        ):
            vars(sys.modules["cupy"])["RawKernel"] = kernel_of_random_numbers
            answers = answers_on(device, folder)
            check_groups_far_apart(device)
        with Client(**here) as client:
            cluster = Cluster(kind="attach", address=client.scheduler_info()["address"])
            right = oracles(folder, cluster)
    return Scenario(answers, right, calls, lines)


@pytest.mark.parametrize("name", VARIANTS, ids=lambda name: "-".join(filter(None, name)))
def test_the_answer_on_the_strict_device_is_the_oracles(scenario: Scenario, name: Name) -> None:
    assert faults_of(name, scenario.answers, scenario.right) == []


def test_every_call_is_one_that_rapids_accepts(scenario: Scenario) -> None:
    # Groups in no order, and types that are guessed, do not change the answers, which the oracles judge.
    assert [fault for fault in faults(scenario.calls) if ": without " not in fault] == []


def test_the_rows_call_into_all_libraries_and_are_seen_to(scenario: Scenario) -> None:
    called = {call.name for call in scenario.calls}
    assert {"cupy.argsort", "cupy.linalg.cholesky", "cupy.random.Generator.random", "cupy.tensordot"} <= called
    assert {"cudf.read_csv", "cudf.to_datetime", "cudf.DataFrame.merge", "cudf.DataFrame.groupby.mean"} <= called
    assert {"dask_cudf.DataFrame.groupby", "dask_cudf.DataFrame.merge", "dask_cudf.Series.sum"} <= called
    assert {f"cuml.{name}" for name in ("linear_model.Ridge.fit", "manifold.UMAP.fit_transform")} <= called


@pytest.mark.parametrize("path", DEVICE_CODE, ids=lambda path: path.name)
def test_every_line_that_handles_arrays_of_a_device_ran_on_the_strict_one(scenario: Scenario, path: Path) -> None:
    assert never_run(path, scenario.lines, without=OF_THE_CPU) == []


@pytest.mark.parametrize(("row", "name"), CALL_CASES)
def test_on_a_gpu_variants_that_are_written_for_it_run_there_and_the_oracle_runs_on_the_cpu(
    row: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "too_large", lambda *_: None)
    case = load(row).case(name)
    assert isinstance(case, CallCase)
    gpu = replace(work_of("frame", resolve("cpu"), tmp_path), device=cast(Any, SimpleNamespace(name="gpu")))
    found = {each.name: each.command for each in measuring.commands(load(row), case, gpu)}
    asked = {name: command[command.index("--work") + 1] for name, command in found.items()}
    on_gpu = {name for name, work in asked.items() if '"device": "gpu"' in work}
    assert on_gpu == {each.name for each in case.variants if "gpu" in each.devices}
    assert set(asked) - on_gpu <= {case.oracle} <= set(asked)
    if case.oracle not in on_gpu:
        assert read_work(asked[case.oracle]).device == resolve("cpu")


def test_what_fails_is_told(scenario: Scenario) -> None:
    name = VARIANTS[0]
    assert "why" in faults_of(name, {name: ValueError("why")}, scenario.right)[-1]
    assert faults_of(name, {name: "another answer"}, scenario.right)
