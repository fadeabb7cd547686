"""`make clean` removes what runs wrote and caches, and nothing else."""

import sys
from pathlib import Path

import pytest

from tests.guarantees.running import Clone, Ended
from tests.helpers.raw_files import TRIP, write_csv


def make(clone: Clone, target: str) -> Ended:
    ended = clone.start("make", target, f"PYTHON={sys.executable}").ended()
    assert ended.status == 0, ended.terminal
    return ended


def left(clone: Clone) -> set[str]:
    """Return all files that are left where runs write, Snakemake's own among them; links by their own names."""
    tops = (clone / top for top in ("data", "results", "logs", ".snakemake"))
    paths = (path for top in tops for path in top.rglob("*"))
    return {str(path.relative_to(clone.folder)) for path in paths if path.is_symlink() or not path.is_dir()}


def put(clone: Clone, *names: str) -> set[str]:
    for name in names:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_text("mine")
    return set(names)


def test_of_a_finished_run_all_goes_and_what_is_mine_stays(copied: Clone, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/zones.csv").write_text("mine")
    mine = put(copied, "data/mine/trips.csv", "data/taxi/notes.txt", "results/taxi/cpu/mine.csv", "logs/taxi/mine.log")
    (copied / "data/link").symlink_to(tmp_path / "elsewhere")
    quality = copied / "results/taxi/cpu/quality.json"
    quality.write_text(quality.read_text() + " ")
    inside = put(copied, "results/pagerank/cpu/graph/mine.csv")
    kept = put(copied, "data/recsys/downloads/0123456789ab-day_0.gz", "data/recsys/registry.json")
    graph = {path for path in left(copied) if path.startswith("results/pagerank/cpu/graph/")}
    put(copied, ".snakemake/conda/python", ".mypy_cache/x", "workflows/__pycache__/x.pyc")
    ended = make(copied, "clean")
    records = {"logs/taxi/cpu/clean.json", "logs/pagerank/cpu/renumber.json"}
    expected = (
        records
        | mine
        | inside
        | graph
        | kept
        | {"data/link", "results/taxi/cpu/quality.json", ".snakemake/conda/python"}
    )
    assert left(copied) == expected
    assert (tmp_path / "elsewhere/zones.csv").exists()
    assert not (copied / ".mypy_cache").exists()
    assert not (copied / "workflows/__pycache__").exists()
    assert not (copied / "data/genomics").exists()
    changed, others = ended.terminal.splitlines()
    assert changed.endswith(": results/pagerank/cpu/graph, results/taxi/cpu/quality.json.")
    assert "data/mine/trips.csv, " in others
    make(copied, "clean-downloads")
    assert left(copied) == expected - kept


def test_environments_go_only_after_a_yes(fresh: Clone) -> None:
    kept = put(fresh, ".venv-old/bin/python", "data/recsys/downloads/0123456789ab-day_0.gz")
    for answer, goes in (("", False), ("n", False), ("y", True)):
        ended = fresh.start("bash", "-c", f"echo {answer} | make distclean PYTHON={sys.executable}").ended()
        assert (ended.status == 0) == goes, ended.terminal
        assert all((fresh / name).exists() != goes for name in kept)


@pytest.mark.slow
def test_of_a_run_that_failed_all_goes_but_the_files_that_it_read(fresh: Clone) -> None:
    (fresh / "data/taxi").mkdir(parents=True)
    good = write_csv(fresh / "data/taxi/my trips.csv", [TRIP])
    bad = write_csv(fresh / "data/bad.csv", [TRIP], header="a")
    section = {"fetch": {"source": "files", "files": {"paths": ["data/taxi/my trips.csv", "data/bad.csv"]}}}
    assert fresh.run("taxi", section, "results/taxi/cpu/quality.json").status == 1
    put(fresh, "data/taxi/.zones.csv.0123456789abcdef.part.csv", "results/taxi/cpu/trips/part.parquet")
    make(fresh, "clean")
    assert left(fresh) == {str(path.relative_to(fresh.folder)) for path in (good, bad)}


def test_a_folder_that_is_a_link_is_not_cleaned(fresh: Clone, tmp_path: Path) -> None:
    (tmp_path / "disk/taxi").mkdir(parents=True)
    (tmp_path / "disk/taxi/zones.csv").write_text("mine")
    (fresh / "data").symlink_to(tmp_path / "disk")
    make(fresh, "clean")
    assert (fresh / "data/taxi/zones.csv").read_text() == "mine"
