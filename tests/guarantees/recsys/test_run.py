"""The recsys workflow on a tiny simulated log and on Criteo's format: its files, what a change runs again, faults."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.guarantees.running import Clone, Ended, contents, leftovers, sha256, staging

RESULTS = "results/recsys/cpu"
ON_HOST = ("simulate", "fetch", "split")
STEPS = ("fit", "features", "drift", "train", "plot")
PICTURES = ("auc", "calibration", "drift", "categories", "numbers")
PARTS = ("train", "valid", "test")
# Worker processes start in seconds, so a step is caught in the middle for sure.
SLOW_START = "cluster={kind: processes}"


def recsys(*steps: str) -> set[str]:
    return {f"recsys_{step}" for step in steps}


def table(folder: Path) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))], ignore_index=True)


def transform(clone: Clone, *arguments: str) -> Ended:
    command = ("python", "-m", "whitewater", "recsys", "transform", "--workflow", f"{RESULTS}/workflow")
    return clone.start(*command, *arguments, PYTHONPATH="src").ended()


# ---- a complete run


def test_the_first_run_runs_every_step_once(first_run: tuple[Clone, Ended]) -> None:
    _, ended = first_run
    assert ended.status == 0, ended.terminal
    assert {job for job in ended.jobs if job.startswith("recsys_")} == recsys(*ON_HOST, *STEPS, "manifest")


@pytest.mark.slow
def test_the_application_alone_finds_the_same_results_done(finished: Clone) -> None:
    ended = finished.snakemake("--snakefile", "workflows/recsys/Snakefile")
    assert ended.status == 0, ended.terminal
    assert "Nothing to be done" in ended.terminal


def test_results_and_data_are_exactly_the_documented_files(finished: Clone) -> None:
    found = {path.name for path in (finished / RESULTS).iterdir() if not path.name.startswith(".")}
    assert found == {
        "workflow", "train", "valid", "test", "statistics.json", "drift.json", "metrics.json", "plots", "manifest.json",
    }  # fmt: skip
    drawn = {path.name for path in (finished / RESULTS / "plots").iterdir() if not path.name.startswith(".")}
    assert drawn == {f"{picture}.{form}" for picture in PICTURES for form in ("png", "svg")}
    data = {path.name for path in (finished / "data/recsys").iterdir() if not path.name.startswith(".")}
    assert data == {"simulated", "events", "inputs.json", "train", "valid", "test", "split.json"}


def test_the_manifest_has_the_checksum_of_every_output_and_input(finished: Clone) -> None:
    manifest = finished.json(f"{RESULTS}/manifest.json")
    assert set(manifest["steps"]) == {*ON_HOST, *STEPS}
    outputs = {each["path"]: each["sha256"] for each in manifest["outputs"]}
    assert {f"{RESULTS}/workflow", f"{RESULTS}/train", "data/recsys/events"} <= outputs.keys()
    assert outputs == {path: sha256(finished / path) for path in outputs}
    inputs = manifest["inputs"]["files"]
    assert [each["sha256"] for each in inputs] == [sha256(finished / each["path"]) for each in inputs]


def test_every_row_is_in_exactly_one_part_and_earlier_parts_end_first(finished: Clone) -> None:
    events = table(finished / "data/recsys/events")
    parts = [table(finished / f"data/recsys/{part}") for part in PARTS]
    assert len(events) == finished.json("logs/recsys/simulate.json")["settings"]["rows"]
    assert sorted(pd.concat(parts)["row_id"]) == sorted(events["row_id"])
    assert parts[0]["time"].max() <= parts[1]["time"].min()
    assert parts[1]["time"].max() <= parts[2]["time"].min()


def test_features_have_the_rows_of_their_part_and_training_rows_are_shuffled(finished: Clone) -> None:
    for part in PARTS:
        raw = table(finished / f"data/recsys/{part}").set_index("row_id")
        made = table(finished / f"{RESULTS}/{part}").set_index("row_id")
        assert sorted(made.index) == sorted(raw.index)
        assert (made["label"] == raw["label"].loc[made.index]).all()
        assert list(made.index) == sorted(made.index) or part == "train"
    shuffled = table(finished / f"{RESULTS}/train")["row_id"]
    assert abs(np.corrcoef(shuffled, np.arange(len(shuffled)))[0, 1]) < 0.2


def test_the_arrays_beside_a_table_hold_its_rows_for_models(finished: Clone) -> None:
    for part in PARTS:
        folder = finished / RESULTS / part
        described = finished.json(f"{RESULTS}/{part}/features.json")["columns"]
        features = [each for each in described if not {"label", "key"} & {*each["tags"]} and "list" not in each["type"]]
        ids = [each["name"] for each in features if "cardinality" in each["properties"]]
        numbers = [each["name"] for each in features if each["name"] not in ids]
        for path in folder.glob("*.parquet"):
            rows = pd.read_parquet(path)
            expected = [rows[numbers], rows[ids], rows["label"], rows["row_id"]]
            for number, (columns, kind) in enumerate(zip(expected, ("f4", "i4", "f4", "i8"), strict=True)):
                array = np.load(folder / f"{path.stem}-{number:02d}.npy", mmap_mode="r", allow_pickle=False)
                assert array.dtype == kind
                np.testing.assert_array_equal(array, np.asarray(columns, kind))


def test_the_stored_workflow_transforms_a_file_as_the_run_did(finished: Clone) -> None:
    (source,) = sorted((finished / "data/recsys/test").glob("*.parquet"))[:1]
    ended = transform(finished, str(source), "mine.parquet")
    assert ended.status == 0, ended.terminal
    mine = pd.read_parquet(finished / "mine.parquet").set_index("row_id").sort_index()
    made = table(finished / f"{RESULTS}/test").set_index("row_id").loc[mine.index]
    pd.testing.assert_frame_equal(mine, made[list(mine)])


def test_a_column_that_is_missing_at_serving_time_is_named(finished: Clone) -> None:
    (source,) = sorted((finished / "data/recsys/test").glob("*.parquet"))[:1]
    pd.read_parquet(source).drop(columns="C2").to_parquet(finished / "less.parquet")
    ended = transform(finished, "less.parquet", "none.parquet")
    assert ended.message.startswith("InputError: ")
    assert "C2" in ended.message
    assert not (finished / "none.parquet").exists()


def test_a_run_leaves_nothing_unfinished(finished: Clone) -> None:
    assert [path for path in leftovers(finished) if "recsys" in path] == []


def test_the_table_of_results_tells_what_was_found(finished: Clone) -> None:
    ended = finished.start("python", "-m", "whitewater", "results", PYTHONPATH="src").ended()
    assert ended.status == 0, ended.terminal
    for said in (f"{RESULTS}/workflow/", f"{RESULTS}/plots/  10 files", "AUC"):
        assert said in ended.terminal


# ---- what a change runs again


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "steps"),
    [
        ({"simulate": {"seed": 3}}, {*ON_HOST, *STEPS}),
        ({"split": {"test_share": 0.3}}, {"split", *STEPS} - {"drift"}),
        ({"fit": {"features": [{"name": "a", "columns": ["I*"], "operators": ["LogOp"]}]}}, {*STEPS} - {"drift"}),
        ({"features": {"seed": 3}}, {"features", "train", "plot"}),
        ({"drift": {"bins": 5}}, {"drift", "plot"}),
        ({"train": {"trees": 3}}, {"train", "plot"}),
        ({"plot": {"formats": ["svg"]}}, {"plot"}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_changed_key_runs_its_step_again_and_what_follows_from_it(
    finished: Clone, overrides: Mapping[str, Any], steps: set[str]
) -> None:
    assert finished.dry_run({"recsys": overrides}).jobs == {*recsys(*steps, "manifest"), "all"}


# ---- other sources


def criteo_lines(rows: int) -> str:
    generator = np.random.default_rng(1)
    numbers = generator.integers(-1, 50, (rows, 13))
    words = generator.integers(0, 9, (rows, 26))
    labels = (numbers[:, 0] + generator.integers(0, 30, rows) > 35).astype(int)
    lines = zip(labels.tolist(), numbers.tolist(), words.tolist(), strict=True)
    return "".join(
        "\t".join([str(label), *map(str, many), *(f"{word:08x}" if word else "" for word in few)]) + "\n"
        for label, many, few in lines
    )


@pytest.fixture
def of_criteo(fresh: Clone) -> Clone:
    """A clone whose source is two days in Criteo's format."""
    (fresh / "my data").mkdir()
    for day in range(3):
        (fresh / f"my data/day_{day}").write_text(criteo_lines(400))
    section = {
        "fetch": {"source": "criteo", "criteo": {"files": ["my data/day_*"]}},
        "train": {"trees": 3, "depth": 2, "without_each_group": False},
    }
    fresh.write("tiny.yaml", {"recsys": section})
    return fresh


@pytest.mark.slow
def test_clicks_of_criteo_are_learned_from_and_again_when_a_day_changes(of_criteo: Clone) -> None:
    ended = of_criteo.snakemake("--", "recsys")
    assert ended.status == 0, ended.terminal
    assert ended.jobs == {*recsys("fetch", "split", *STEPS, "manifest"), "recsys"}
    assert len(table(of_criteo / "data/recsys/events")) == 1200
    assert "Nothing to be done" in of_criteo.snakemake("--dry-run", "--", "recsys").terminal
    (of_criteo / "my data/day_1").write_text(criteo_lines(401))
    assert recsys("fetch", "split", *STEPS) <= of_criteo.snakemake("--dry-run", "--", "recsys").jobs


def test_a_missing_file_and_wrong_keys_are_told(of_criteo: Clone) -> None:
    for path in (of_criteo / "my data").iterdir():
        path.unlink()
    ended = of_criteo.snakemake("--", "recsys")
    assert ended.status == 1
    assert [message.partition(":")[0] for message in ended.messages] == ["InputError"]
    wrong = {"recsys": {"fit": {"features": [{"name": "a", "columns": ["I1"], "operatrs": []}]}}}
    ended = of_criteo.snakemake(files=("tiny.yaml", of_criteo.write("wrong.yaml", wrong)))
    assert ended.message.startswith("ConfigError:\n")
    assert "did you mean 'operators'?" in ended.message


@pytest.mark.slow
def test_an_unknown_operator_is_told_before_anything_is_read(of_criteo: Clone) -> None:
    wrong = {"recsys": {"fit": {"features": [{"name": "a", "columns": ["I1"], "operators": ["LogOpp"]}]}}}
    ended = of_criteo.snakemake("--", "recsys", files=("tiny.yaml", of_criteo.write("wrong.yaml", wrong)))
    assert ended.status == 1
    (message,) = ended.messages
    assert message.startswith("ConfigError: ")
    assert "LogOpp" in message
    assert "LogOp" in message
    assert not (of_criteo / RESULTS / "workflow").exists()


# ---- what was killed


@pytest.mark.parametrize("step", ["fit", "features"])
def test_a_killed_step_leaves_nothing_visible_and_the_next_run_makes_the_right_result(
    copied: Clone, finished: Clone, step: str
) -> None:
    output = f"{RESULTS}/{'workflow' if step == 'fit' else 'train'}"
    run = copied.start_snakemake("--config", SLOW_START, "--forcerun", f"recsys_{step}", "--", output)
    begun = staging(copied, output)
    run.step(step).kill()
    assert run.ended().status == 1
    assert begun.exists()
    assert not (copied / output).exists()
    again = copied.snakemake("--", output)
    assert again.status == 0, again.terminal
    assert contents(copied / output) == contents(finished / output)
    assert leftovers(copied) == []


def test_an_interrupted_step_ends_cleanly(copied: Clone) -> None:
    output = f"{RESULTS}/workflow"
    run = copied.start_snakemake("--config", SLOW_START, "--forcerun", "recsys_fit", "--", output)
    staging(copied, output)
    os.killpg(run.process.pid, signal.SIGINT)
    ended = run.ended()
    assert ended.status == 1
    assert "recsys fit was interrupted and left nothing unfinished." in ended.terminal
    assert leftovers(copied) == []
