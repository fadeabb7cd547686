"""The tutorials run in a folder of their own, leave nothing there, and still say what their committed outputs say."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode

from whitewater.application import applications, in_project
from whitewater.engines.gpu_check import missing_gpu

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
QUICK = "stack"  # runs in a few seconds; the others are for `make test-slow`
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# What differs from machine to machine or from run to run: paths of two parts and more, and memory addresses.
TELLTALE = re.compile(r"(?<![\w.<:/])/[\w.-]+/[\w.-]+|\b[A-Z]:\\\w|\b0x[0-9a-f]{6,}")
# Ports are whatever is free.
PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+")
NOTEBOOK: Any = nbformat  # its functions have no types
CELL_SECONDS = 120
# The one word that a reader with a GPU changes, and a stand-in for that GPU: its arrays refuse what CuPy's refuse. Its
# slices are larger than those of the contract tests, whose data is smaller.
ON_CPU = 'resolve("cpu")'
STAND_IN = """
import sys

sys.path.append({root!r})
from tests.contract.strict_device import StrictDevice, stand_in_for_cupy

cupy = stand_in_for_cupy()
cupy.__enter__()


class Gpu(StrictDevice):
    slice_rows = 20_000


{cell}
"""
# Where frames are the GPU's, not arrays, there is no such stand-in: why that is right all the same.
ON_FRAMES = {
    "taxi": "tests/contract/test_tutorial.py binds what its function asks of frames in cuDF",
    "recsys": "tests/contract/test_steps.py binds what its operators ask of frames in cuDF",
}
# On a GPU cuGraph finds communities: others, about as good.
BY_LIBRARY = {"communities"}
OURS = re.compile(r"^(?:from|import) whitewater", re.MULTILINE)
MOST_BYTES = 500_000
# Cells of this name say on a machine without a GPU that they did not run.
FOR_GPU = "gpu-"


@dataclass(frozen=True)
class Tutorial:
    """A notebook as it is committed, and as it comes out of a run in a folder of a clone, and what that left there."""

    path: Path
    committed: NotebookNode
    fresh: NotebookNode
    folder: Path
    left_behind: list[Path]
    written: Path

    @property
    def remedy(self) -> str:
        return f"If the change is meant: cp {self.written} {self.path.relative_to(ROOT)}"


TUTORIALS = [pytest.param(path, marks=[pytest.mark.slow] * (path.stem != QUICK), id=path.stem) for path in NOTEBOOKS]


@pytest.fixture(scope="module", params=TUTORIALS)
def tutorial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tutorial:
    path: Path = request.param
    folder = tmp_path_factory.mktemp(path.stem)
    clone = folder / "clone"
    here = clone / "notebooks"
    here.mkdir(parents=True)
    before = files(clone)
    committed = NOTEBOOK.read(path, as_version=4)
    fresh = run(committed, here=here, own=folder / "kernel")
    written = folder / path.name
    NOTEBOOK.write(fresh, written)
    return Tutorial(path, committed, fresh, here, sorted(files(clone) - before), written)


def files(clone: Path) -> set[Path]:
    return {*clone.glob("*"), *clone.glob("notebooks/**/*")}


def run(notebook: NotebookNode, *, here: Path, own: Path) -> NotebookNode:
    """Run all cells of a notebook in a folder; errors are kept as outputs, so that each test can say what it found."""
    own.mkdir()
    fresh: NotebookNode = NOTEBOOK.from_dict(notebook)
    # No installed kernel is asked for: without any, Jupyter takes the interpreter that runs this test.
    kernel = AsyncKernelManager(
        kernel_name="python3",
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
        connection_file=str(own / "connection.json"),
        transport_encryption="auto",
    )
    # Nor are the reader's settings of IPython. The package is this checkout's, whichever one the environment has.
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    NotebookClient(
        fresh,
        km=kernel,
        allow_errors=True,
        record_timing=False,
        timeout=CELL_SECONDS,
        resources={"metadata": {"path": str(here)}},
    ).execute(cleanup_kc=True, env={**environment, "IPYTHONDIR": str(own), "TMPDIR": str(own)})
    fresh.metadata = NOTEBOOK.from_dict(METADATA)
    return fresh


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell: NotebookNode) -> list[dict[str, Any]]:
    """Return what a cell printed and showed; of a picture only that there is one: its bytes depend on the machine."""
    shown: list[dict[str, Any]] = []
    for output in cell.outputs:
        if "data" in output:
            shown.append({
                kind: "picture" if kind.startswith("image/") else PORT.sub("PORT", text)
                for kind, text in output.data.items()
            })  # fmt: skip
        elif shown and "text" in output and shown[-1].get("name") == output.name:
            # Of which prints a message of the kernel consists depends on the load of the machine.
            shown[-1]["text"] += output.text
        else:
            shown.append({key: output[key] for key in ("name", "text", "ename", "evalue") if key in output})
    return shown


def errors(notebook: NotebookNode) -> list[str]:
    return [
        f"cell {cell.id!r}: {output.ename}: {output.evalue}\n{cell.source}"
        for cell in code_cells(notebook)
        for output in cell.outputs
        if output.output_type == "error"
    ]


def test_each_application_has_a_tutorial() -> None:
    assert {path.stem for path in NOTEBOOKS} >= {
        name for name, each in applications(in_project(ROOT)).items() if each.steps and not each.apart
    }


def test_the_kernel_is_the_interpreter_of_the_environment() -> None:
    assert KernelSpecManager(kernel_dirs=[]).get_kernel_spec("python3").argv[0] == sys.executable


def test_it_runs_from_its_own_folder_of_a_clone(tutorial: Tutorial) -> None:
    found = errors(tutorial.fresh)
    assert not found, found[0]


def test_it_imports_whitewater_as_installed(tutorial: Tutorial) -> None:
    assert not [cell.id for cell in code_cells(tutorial.committed) if "sys.path" in cell.source]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_cell_has_one_import_of_ours_at_most(path: Path) -> None:
    cells = {cell.id: len(OURS.findall(cell.source)) for cell in code_cells(NOTEBOOK.read(path, as_version=4))}
    assert [name for name, imports in cells.items() if imports > 1] == []


def test_it_leaves_nothing_behind_in_the_repository(tutorial: Tutorial) -> None:
    assert tutorial.left_behind == []


def test_it_warns_of_nothing(tutorial: Tutorial) -> None:
    said = [
        f"cell {cell.id!r}: {output.text}"
        for cell in code_cells(tutorial.fresh)
        for output in cell.outputs
        if output.get("name") == "stderr"
    ]
    assert said == []


def test_it_is_committed_as_run_from_top_to_bottom(tutorial: Tutorial) -> None:
    counts = [cell.execution_count for cell in code_cells(tutorial.committed)]
    assert counts == list(range(1, len(counts) + 1)), tutorial.remedy
    assert not errors(tutorial.committed)


def test_its_committed_outputs_are_those_of_a_run(tutorial: Tutorial) -> None:
    committed, fresh = (
        {cell.id: texts(cell) for cell in code_cells(notebook) if missing_gpu() or not cell.id.startswith(FOR_GPU)}
        for notebook in (tutorial.committed, tutorial.fresh)
    )
    assert committed == fresh, tutorial.remedy


def test_a_cell_for_a_gpu_shows_no_output_of_one(tutorial: Tutorial) -> None:
    for cell in code_cells(tutorial.committed):
        if cell.id.startswith(FOR_GPU):
            assert [output["text"] for output in cell.outputs] == ["not run: no GPU here, or no CuPy\n"]


@pytest.mark.slow
def test_one_word_makes_it_compute_the_same_with_the_arrays_of_a_gpu(tutorial: Tutorial, tmp_path: Path) -> None:
    if tutorial.path.stem in ON_FRAMES:
        pytest.skip(ON_FRAMES[tutorial.path.stem])
    changed: NotebookNode = NOTEBOOK.from_dict(tutorial.committed)
    (chooses,) = [cell for cell in code_cells(changed) if ON_CPU in cell.source]
    chooses.source = STAND_IN.format(root=str(ROOT), cell=chooses.source.replace(ON_CPU, "Gpu()"))
    on_stand_in = run(changed, here=tutorial.folder, own=tmp_path / "kernel")
    assert errors(on_stand_in) == []
    shown, expected = (
        {cell.id: texts(cell) for cell in code_cells(notebook) if cell.id not in {chooses.id, *BY_LIBRARY}}
        for notebook in (on_stand_in, tutorial.fresh)
    )
    assert shown == expected


def test_it_is_committed_without_traces_of_a_machine_or_a_run(tutorial: Tutorial) -> None:
    assert tutorial.committed.metadata == METADATA, tutorial.remedy
    assert [cell.id for cell in tutorial.committed.cells if cell.metadata] == [], tutorial.remedy
    traces = [trace for cell in code_cells(tutorial.committed) for trace in TELLTALE.findall(str(texts(cell)))]
    assert traces == []


def test_it_is_small_enough_to_be_read_in_a_browser(tutorial: Tutorial) -> None:
    assert tutorial.path.stat().st_size < MOST_BYTES
