"""The frame that every step runs in: flags, outputs, records, workers, log."""

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.library.tiny_application import Clean
from whitewater.cli.main import main
from whitewater.engines import Device, cluster, memory, resolve
from whitewater.engines.config import Cluster, Engine
from whitewater.errors import IntegrityError, ResourceError
from whitewater.manifest import Configured, manifest
from whitewater.script import _parse_flags
from whitewater.step import Inputs, Output, Outputs, Run, _describe_run, execute

LAST_ENDED = threading.Event()
WORKERS = {"count", "threads", "hosts", "peak_memory_bytes", "peak_device_memory_bytes"}


def run_of(*, threads: int = 1, cluster: Cluster | None = None, engine: Engine = "local") -> Run[Clean]:
    return Run("tiny", "example", resolve("cpu"), Clean(), threads, cluster or Cluster(), engine=engine)


def doubled(run: Run[Clean], *, numbers: Path, double: Output, parts: Outputs) -> None:
    """Double numbers."""
    with run.workers() as workers:
        tasks = [int(text) for text in numbers.read_text().split()]
        found = sorted(workers.map(_double, tasks, label="doubled"))
    double.write_text(json.dumps(found))
    for path in parts.values():
        path.write_text(path.name)
    run.note(rows=len(found))


def _double(number: int) -> int:
    if number < 0:
        raise IntegrityError(f"{number} is negative")
    return 2 * number


def run_doubled(folder: Path, numbers: str) -> dict[str, Path]:
    (folder / "numbers").write_text(numbers)
    outputs = {"double": folder / "double.json", "a.txt": folder / "out" / "a.txt", "record": folder / "record.json"}
    execute(
        run_of(threads=2),
        doubled,
        inputs={"numbers": folder / "numbers"},
        outputs={"double": outputs["double"], "parts": {"a.txt": outputs["a.txt"]}},
        record=outputs["record"],
    )
    return outputs


def test_flags_come_from_the_types_of_the_parameters() -> None:
    def step(run: Run[Clean], *, trips: Path, tables: Inputs, model: Output, plots: Outputs) -> None: ...

    given = ["--trips=a", "--model=b", "--plots", "c", "d", "--settings", '{"largest": 3}']
    options = _parse_flags(given, "tiny", "example", step)
    found = {name: getattr(options, name) for name in ("trips", "tables", "model", "plots", "settings")}
    assert found == {
        "trips": [Path("a")], "tables": [], "model": [Path("b")], "plots": [Path("c"), Path("d")],
        "settings": Clean(largest=3),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--tripz=a"], "unknown argument --tripz; did you mean '--trips'?"),
        (["--tripz", "a", "--model", "b"], "unknown argument --tripz; did you mean '--trips'?"),
        (["--trips=a", "--xyz=1"], "unknown argument --xyz\n"),
        (["--trip=a"], "unknown argument --trip; did you mean '--trips'?"),
        (["--trips=a"], "the following arguments are required: --model"),
    ],
)
def test_a_wrong_flag_is_told_before_those_that_are_missing(
    capsys: pytest.CaptureFixture[str], flags: list[str], told: str
) -> None:
    def example(run: Run[Clean], *, trips: Path, model: Output) -> None: ...

    with pytest.raises(SystemExit, match="2"):
        _parse_flags(flags, "tiny", "example", example)
    assert f"whitewater tiny example: error: {told}" in capsys.readouterr().err


def test_a_step_leaves_its_outputs_and_a_record_with_their_checksums(tmp_path: Path) -> None:
    paths = run_doubled(tmp_path, "3 1 2")
    assert json.loads(paths["double"].read_text()) == [2, 4, 6]
    record = json.loads(paths["record"].read_text())
    assert record["facts"]["rows"] == 3
    assert record["facts"]["workers"]["threads"] == 2
    assert record["device"]["name"] == "cpu"
    assert record["engine"] == "local"
    assert record["peak_memory_bytes"] > 0
    for name, path in (("double", paths["double"]), ("parts/a.txt", paths["a.txt"])):
        assert record["outputs"][name]["path"] == str(path)
        assert record["outputs"][name]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("ordered", [False, True])
def test_results_come_as_they_complete_or_in_the_order_of_the_tasks(ordered: bool) -> None:
    run = run_of(threads=2)
    LAST_ENDED.clear()
    with run.workers() as workers:
        found = list(workers.map(_first_ends_last, range(3), label="", ordered=ordered))
    assert found == ([0, 1, 2] if ordered else [1, 2, 0])


def _first_ends_last(number: int) -> int:
    if number == 0:
        LAST_ENDED.wait(60)
    elif number == 2:
        LAST_ENDED.set()
    return number


@pytest.mark.slow
def test_results_are_the_same_bits_on_workers_of_every_kind() -> None:
    random = np.random.default_rng(0)
    block, tasks = random.normal(size=(50, 40)), list(random.normal(size=(9, 50, 50)))
    kinds: list[tuple[dict[str, Any], Engine]] = [
        ({}, "local"), ({"performance_report": True}, "local"), ({}, "dask"), ({"kind": "processes"}, "dask"),
    ]  # fmt: skip
    found = set()
    for kind, engine in kinds:
        run = run_of(threads=2, cluster=Cluster.model_validate(kind), engine=engine)
        with run.workers() as workers:
            products = workers.map(_product, tasks, label="", ordered=True, shared={"block": block})
            found.add(sum(products, np.zeros((50, 40))).tobytes())
        assert run.facts["workers"].keys() == WORKERS
        assert run.facts["workers"]["threads"] == 2
    assert len(found) == 1


def _product(matrix: npt.NDArray[np.float64], *, block: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    product: npt.NDArray[np.float64] = matrix @ block
    return product


def test_a_report_is_asked_of_dask_and_not_of_threads(tmp_path: Path) -> None:
    settings = Cluster(performance_report=True)
    run = replace(run_of(cluster=settings), report=tmp_path / "step.dask.html")
    with run.workers(small=True) as workers:
        assert workers.call_on_each(os.getpid) == [os.getpid()]
    assert "performance_report" not in run.facts
    with run.workers():
        pass
    assert run.facts["performance_report"] == str(tmp_path / "step.dask.html")
    assert (tmp_path / "step.dask.html").exists()


def test_the_dashboard_is_served_on_loopback_and_its_address_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    # Pytest's own reading of the log finds nothing once the dashboard is imported.
    monkeypatch.setattr(cluster.logger, "info", lambda form, *values: lines.append(form % values))
    with run_of(cluster=Cluster(dashboard=True)).workers():
        (address,) = re.findall(r"dashboard is at (http://127\.0\.0\.1:\d+/status)", lines[0])
        with urllib.request.urlopen(address) as page:  # noqa: S310, of ours
            assert b"Dask" in page.read()


class Elsewhere(Device):
    """A device that is at the workers."""

    def describe(self) -> dict[str, Any]:
        return {"name": "elsewhere"}


def test_the_record_of_an_attached_step_has_the_device_of_the_workers() -> None:
    from distributed import LocalCluster  # which the steps above do without

    with LocalCluster(
        n_workers=1, processes=False, host="127.0.0.1", protocol="tcp", dashboard_address="127.0.0.1:0"
    ) as own:
        run = replace(run_of(cluster=Cluster(address=own.scheduler_address), engine="dask"), device=Elsewhere())
        with run.workers() as workers:
            assert workers.call_on_each(os.getpid) == [os.getpid()]
    described = _describe_run(run, {})
    assert described["device"] == {"name": "elsewhere"}
    assert described["facts"].keys() == {"workers"}


def test_a_step_on_threads_does_without_dask(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom tests.library.test_step import run_doubled\n"
        f"run_doubled(Path({str(tmp_path)!r}), '1 2 3')\n"
        "assert not {'dask', 'distributed'} & {name.split('.')[0] for name in sys.modules}\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["facts"]["workers"]["threads"] == 2
    assert record["versions"]["dask"]


def test_secrets_in_addresses_do_not_reach_the_record(tmp_path: Path) -> None:
    from whitewater.errors import without_secrets

    settings = {"paths": ["https://ann:secret@x.org/t.csv?sig=abc"], "scale": 1.0}
    assert without_secrets(settings) == {"paths": ["https://x.org/t.csv?sig=..."], "scale": 1.0}


def test_work_that_does_not_fit_is_refused_before_it_starts() -> None:
    memory.forecast(1_000_000, what="a little", remedy="")
    with pytest.raises(ResourceError, match=r"too much needs about .* GB of memory, .* are available\. Buy some\."):
        memory.forecast(memory.available() * 10, what="too much", remedy="Buy some.")


def test_the_manifest_gathers_records_and_misses_lost_outputs(tmp_path: Path) -> None:
    paths = run_doubled(tmp_path, "1 2")
    (tmp_path / "inputs.json").write_text('{"source": "files", "files": []}')
    gathered = partial(
        manifest,
        Run("tiny", "manifest", resolve("cpu"), Configured()),
        records=Inputs({"record.json": paths["record"]}),
        inputs=tmp_path / "inputs.json",
    )
    gathered(manifest=Output(tmp_path / "manifest.json"))
    written = json.loads((tmp_path / "manifest.json").read_text())
    assert {entry["path"] for entry in written["outputs"]} == {str(paths["double"]), str(paths["a.txt"])}
    assert written["steps"]["example"]["facts"]["rows"] == 2
    paths["double"].unlink()
    with pytest.raises(IntegrityError, match=r"double\.json were written but no longer exist"):
        gathered(manifest=Output(tmp_path / "again.json"))


def test_an_unknown_command_shows_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["txai"]) == 2
    assert "doctor" in capsys.readouterr().err
    assert main(["--help"]) == 0
