"""A log with torn lines: what is whole is kept, whatever is learned depends on no thread, and damage is refused."""

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.guarantees.running import MINE, Clone, contents, leftovers, make_clone

RESULTS = "results/recsys/cpu"
WORKFLOW = f"{RESULTS}/workflow"
FEATURES = [f"{RESULTS}/{part}" for part in ("train", "valid", "test")]
PARTS = [f"data/recsys/{part}" for part in ("train", "valid", "test")]
EVENTS = "data/recsys/events"
DAYS, LINES = 4, 1000
TORN = {(0, 7): "1,u1", (1, 500): "0,u2,3.5,extra", (3, 999): "1,u3,not a number"}
COLUMNS = [
    {"name": "clicked", "role": "label"},
    {"name": "user", "role": "categorical"},
    {"name": "price", "role": "continuous"},
]
GROUPS = [
    {"name": "prices", "columns": ["price"], "operators": ["FillMedian", "Normalize"]},
    {"name": "users", "columns": ["user"], "operators": ["Categorify"]},
    {"name": "encoded", "columns": ["user"], "operators": [{"TargetEncoding": {"target": "label"}}]},
]


def fetched(*files: str) -> dict[str, object]:
    return {"source": "files", "files": {"files": files, "columns": COLUMNS}, "row_group_rows": 1000}


def write_days(folder: Path) -> pd.DataFrame:
    """Write a file a day, with torn lines; return the rows of the whole ones."""
    random = np.random.default_rng(7)
    rows = []
    for day in range(DAYS):
        lines = []
        for number in range(LINES):
            row = (int(random.integers(0, 2)), f"u{random.zipf(1.5) % 50}", round(random.exponential(20), 3))
            if (day, number) in TORN:
                lines.append(TORN[day, number])
            else:
                rows.append(row)
                lines.append(",".join(map(str, row)))
        (folder / f"day-{day}.csv").write_text("\n".join(["clicked,user,price", *lines]) + "\n")
    return pd.DataFrame(rows, columns=["label", "user", "price"])


def table(folder: Path) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))], ignore_index=True)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Clone, pd.DataFrame]]:
    """A clone in which two threads made features of a log with torn lines, and the rows of its whole lines."""
    clone = make_clone(tmp_path_factory.mktemp("learned") / "clone")
    whole = write_days(clone.folder)
    ended = clone.run("recsys", {"fetch": fetched("day-*.csv"), "fit": {"features": GROUPS}}, FEATURES[0])
    assert ended.status == 0, ended.terminal
    yield clone, whole
    clone.end()


def test_every_whole_line_is_an_event_in_its_order_and_in_one_part(learned: tuple[Clone, pd.DataFrame]) -> None:
    clone, whole = learned
    events = table(clone / EVENTS)
    assert events["label"].tolist() == whole["label"].tolist()
    assert events["user"].astype(str).tolist() == whole["user"].tolist()
    np.testing.assert_allclose(events["price"], whole["price"], rtol=1e-6)
    log = (clone / "logs/recsys/fetch.log").read_text()
    for day, line in TORN:
        assert f"day-{day}.csv: 1 of 1,000 lines are malformed: line {line + 2:,}" in log
    rows = events["row_id"].sort_values().tolist()
    for parts in (PARTS, FEATURES):
        assert sorted(row for part in parts for row in table(clone / part)["row_id"]) == rows


def test_one_core_learns_and_makes_the_same_bytes_as_two(learned: tuple[Clone, pd.DataFrame], tmp_path: Path) -> None:
    clone, _ = learned
    alone = clone.copy(tmp_path / "clone")
    forced = ("--forcerun", "recsys_split", "recsys_fit", "recsys_features")
    ended = alone.snakemake("--cores", "1", *forced, "--", FEATURES[0], files=MINE)
    assert ended.status == 0, ended.terminal
    assert {"recsys_split", "recsys_fit", "recsys_features"} <= ended.jobs
    for place in (WORKFLOW, *PARTS, *FEATURES):
        assert contents(alone / place) == contents(clone / place), place


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_stored_workflow_that_is_damaged_serves_nothing(
    learned: tuple[Clone, pd.DataFrame], tmp_path: Path, damage: str
) -> None:
    clone, _ = learned
    for name, data in contents(clone / WORKFLOW).items():
        stored = tmp_path / name
        shutil.copytree(clone / WORKFLOW, stored)
        spoil(stored / name, data, damage)
        (source,) = sorted((clone / PARTS[2]).glob("*.parquet"))[:1]
        command = ("python", "-m", "whitewater", "recsys", "transform", "--workflow", str(stored))
        ended = clone.start(*command, str(source), str(tmp_path / "served.parquet"), PYTHONPATH="src").ended()
        assert ended.message.split(":")[0] in {"IntegrityError", "InputError"}
        assert not (tmp_path / "served.parquet").exists()


def spoil(path: Path, data: bytes, damage: str) -> None:
    middle = len(data) // 2
    if damage == "remove":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[:middle])
    else:
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])


def test_files_that_are_cut_are_refused_with_their_name(fresh: Clone) -> None:
    write_days(fresh.folder)
    data = gzip.compress((fresh / "day-1.csv").read_bytes())
    (fresh / "day-1.csv.gz").write_bytes(data[: len(data) // 2])
    ended = fresh.run("recsys", {"fetch": fetched("day-0.csv", "day-1.csv.gz")}, EVENTS)
    assert ended.message.startswith("InputError: ")
    assert "day-1.csv.gz" in ended.message
    assert "day-0.csv" not in ended.message
    assert not (fresh / EVENTS).exists()
    assert leftovers(fresh) == []
