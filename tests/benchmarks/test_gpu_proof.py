"""The pieces that are shown on a GPU: tried out on the CPU, each in a process of its own; their records and page."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

from benchmarks.gpu_proof.__main__ import PIECES, main
from benchmarks.gpu_proof.proof import NOT_SEEN, PAGE, RECORDED, Found, Proof, page
from benchmarks.gpu_proof.same import Rule, compare
from benchmarks.process_tree import run
from tests.benchmarks.benchmark_results import MACHINE, REVISION
from whitewater.engines.gpu_check import missing_gpu

ROOT = Path(__file__).parents[2]
TABLE = pa.table({
    "count": [1, 2, None], "mean": [0.5, None, 2.0], "name": ["a", None, "b"], "reasons": [["x"], [], ["y", "z"]],
})  # fmt: skip


def shown(folder: Path, *arguments: str, scale: str = "0.0001") -> int:
    """Try pieces out on the CPU; records are written to a folder."""
    return main(["--device", "cpu", "--scale", scale, "--output", str(folder), "--commit", "0123456", *arguments])


def proof(**fields: object) -> Proof:
    given = {
        "piece": "rank", "state": "passed", "device": "gpu", "scale": 1.0,
        "started": "2026-01-01T00:00:00+00:00", "command": (), "seconds": 61.0, "limit": 480.0, "peak_memory_bytes": 1,
        "peak_device_bytes": 2 * 10**9, "machine": MACHINE.model_copy(update={"gpus": ("Abacus 9000, 1.2, 3 MiB",)}),
        "versions": {}, "revision": REVISION,
        "found": Found(checks={"ranks.parquet": ""}, figures={"device: seconds": 12.34}),
    }  # fmt: skip
    return Proof.model_validate({**given, **fields})


def test_without_a_gpu_one_message_says_so_before_anything_starts(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if missing_gpu() is None:
        pytest.skip("there is a GPU")
    with pytest.raises(SystemExit):
        main(["--output", str(tmp_path / "records")])
    assert capfd.readouterr().err.startswith("DeviceError: device=gpu, but no usable NVIDIA GPU was found.")
    assert not (tmp_path / "records").exists()


def test_a_piece_that_does_not_exist_is_refused_by_name(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["empty"])
    assert "there is no piece 'empty'" in capfd.readouterr().err


@pytest.mark.slow
def test_a_piece_that_passed_is_not_shown_again_unless_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(tmp_path, "empty_step") == 0
    found = Proof.read(tmp_path / "empty_step.json")
    assert (found.state, found.device, found.scale, found.revision.commit) == ("passed", "cpu", 0.0001, "0123456")
    assert found.found is not None
    assert {"ours: cpu: import", "ours: device: first tasks"} <= found.found.figures.keys()
    assert shown(tmp_path, "empty_step") == 0
    assert Proof.read(tmp_path / "empty_step.json") == found
    assert "empty_step: passed before" in capsys.readouterr().out


def test_only_what_passed_of_the_same_source_at_the_same_size_on_the_same_hardware_stands() -> None:
    assert proof().stands_for(proof(started="later", seconds=1))
    other = MACHINE.model_copy(update={"gpus": ("Another",)})
    changes = ({"machine": other}, {"scale": 0.5}, {"revision": REVISION.model_copy(update={"commit": "other"})})
    assert not any(proof().stands_for(proof(**each)) for each in changes)
    changed = REVISION.model_copy(update={"changed": True})
    assert not proof(revision=changed).stands_for(proof(revision=changed))
    assert not proof(state="failed").stands_for(proof())


@pytest.mark.slow
def test_a_piece_that_fails_or_runs_over_says_why_and_stops_no_other(tmp_path: Path) -> None:
    assert shown(tmp_path, "pca", "empty_step", scale="1e-9") == 1
    failed = Proof.read(tmp_path / "pca.json")
    assert failed.state == "failed"
    assert "InputError: 4 samples" in failed.said
    assert Proof.read(tmp_path / "empty_step.json").state == "passed"
    assert shown(tmp_path, "rank", "--seconds", "0.5") == 1
    stopped = Proof.read(tmp_path / "rank.json")
    assert stopped.state == "stopped"
    assert stopped.said.startswith("stopped after 0.5 s")


def test_what_runs_over_is_killed_with_the_sessions_that_it_began(tmp_path: Path) -> None:
    left = tmp_path / "left"
    command = f"setsid sh -c 'sleep 2; touch {left}' & wait"
    assert run(["sh", "-c", command], environment={}, timeout=0.5).exit_status == -9
    run(["sleep", "2"], environment={}, timeout=10)
    assert not left.exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pagerank-two-gpus", "pca", "rank", "recsys_features", "published-frame"])
def test_a_piece_can_be_tried_out_on_the_cpu(tmp_path: Path, name: str) -> None:
    assert shown(tmp_path, name) == 0
    found = Proof.read(tmp_path / f"{name}.json").found
    assert found is not None
    assert found.checks
    assert found.figures


@pytest.mark.parametrize(
    ("column", "fault"),
    [
        (("count", [1, 3, None]), "count: values or nulls differ"),
        (("name", ["a", "", "b"]), "name: values or nulls differ"),
        (("mean", [0.5, None, 2.1]), "mean: 1 of 3 differ, by up to 0.1"),
        (("mean", [0.5, 0.0, 2.0]), "mean: values or nulls differ"),
        (("reasons", [["x"], ["y"], ["z"]]), "reasons: values or nulls differ"),
        (("mean", [0.5, None, 2.0 + 1e-12]), ""),
    ],
)
def test_tables_are_compared_column_by_column(tmp_path: Path, column: tuple[str, list[object]], fault: str) -> None:
    name, values = column
    place = TABLE.column_names.index(name)
    for folder, table in (("cpu", TABLE), ("gpu", TABLE.set_column(place, name, pa.array(values)))):
        (tmp_path / folder / "rows").mkdir(parents=True)
        pq.write_table(table, tmp_path / folder / "table.parquet")
        # As rows in another order, too.
        pq.write_table(table if folder == "cpu" else table.take([2, 0, 1]), tmp_path / folder / "rows" / "a.parquet")
    rules = [Rule("rows", whole="table"), Rule("*", 1e-9)]
    assert compare(tmp_path / "gpu", tmp_path / "cpu", rules) == {"table.parquet": fault, "rows": fault}
    summed = compare(tmp_path / "gpu", tmp_path / "cpu", [Rule("*", 1e-9, summed=True)])
    assert bool(summed["table.parquet"]) == bool(fault)
    left_out = [Rule("rows*", compared=False), Rule("*", left_out=(name,))]
    assert set(compare(tmp_path / "gpu", tmp_path / "cpu", left_out).values()) == {""}


def test_other_files_are_compared_by_their_kind_and_none_may_be_missing(tmp_path: Path) -> None:
    for folder, value in (("cpu", 1.0), ("gpu", 1.001)):
        (tmp_path / folder / "plots").mkdir(parents=True)
        for name, text in (("a.json", f'{{"mean": {value}, "log": {value}}}'), ("b.csv", f"n,x\n1,{value}\n"),
                           ("c.npy", folder), ("plots/d.svg", folder)):  # fmt: skip
            (tmp_path / folder / name).write_text(text)
        zarr.open_group(tmp_path / folder / "e.zarr", mode="w").create_array("x", data=np.array([value, 2]))
    (tmp_path / "cpu" / "f.json").write_text("{}")
    rules = [Rule("a.json", 1e-9, left_out=("log",)), Rule("e.zarr", 1e-9, whole="group")]
    faults = compare(tmp_path / "gpu", tmp_path / "cpu", rules)
    assert faults == {
        "a.json": ".mean is 1.001 instead of 1.0",
        "b.csv": "x: 1 of 1 differ, by up to 0.001",
        "c.npy": "its bytes differ",
        "e.zarr": "x: 1 of 2 differ, by up to 0.001",
        "f.json": f"{tmp_path / 'gpu' / 'f.json'} is missing",
    }
    rules = [Rule("[abe].*", 1e-2, whole=None), Rule("*", compared=False)]
    within = compare(tmp_path / "gpu", tmp_path / "cpu", [Rule("e.zarr", 1e-2, whole="group"), *rules])
    assert [name for name, fault in within.items() if fault] == ["f.json"]


def text(recorded: Path) -> str:
    return page({name: piece.title for name, piece in PIECES.items()}, recorded)


def test_the_page_is_what_the_records_say() -> None:
    assert (ROOT / PAGE).read_text() == text(ROOT / RECORDED), "run `python -m benchmarks.gpu_proof --page`"


def test_the_page_tells_what_was_seen_and_what_was_not(tmp_path: Path) -> None:
    assert f"Seen: 0 of {len(PIECES)} pieces." in text(tmp_path)
    assert text(tmp_path).count(f"| {NOT_SEEN} |") == len(PIECES)
    proof().write(tmp_path / "rank.json")
    proof(piece="pca", state="stopped", said="stopped after 480 s").write(tmp_path / "pca.json")
    found = text(tmp_path)
    assert "| yes, 1 checks | 61.0 s | 2.00 GB | Abacus 9000, 1.2, 3 MiB; commit 012345678 |" in found
    assert "| **stopped** |" in found
    assert "- device: seconds: 12.34" in found
    assert "stopped after 480 s" in found
    assert f"Seen: 1 of {len(PIECES)} pieces." in found
