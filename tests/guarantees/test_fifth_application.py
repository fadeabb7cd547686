"""An application is added by files of its own and one edit, and is as good as those that were there before."""

import json
import os
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from tests.guarantees.running import ROOT, Clone, Ended, make_clone, own_source

pytestmark = pytest.mark.slow
ADDED = ROOT / "tests" / "workflows" / "fifth_application"
STEPS = {"bikes_simulate", "bikes_clean", "bikes_durations", "bikes_manifest"}
ENTRY_POINT = 'bikes = "whitewater_apps.bikes.application:BIKES"\n'


def edit(path: Path, old: str, new: str) -> None:
    """Put a text in the place of another, which is there once."""
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def install(clone: Clone) -> None:
    """Do what installing the checkout does for its entry points."""
    group = '[project.entry-points."whitewater.applications"]\n'
    edit(clone / "pyproject.toml", group, group + ENTRY_POINT)
    folder = clone / "installed/whitewater-0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: whitewater\nVersion: 0\n")
    declared = tomllib.loads((clone / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [f"{name} = {place}" for name, place in declared["whitewater.applications"].items()]
    (folder / "entry_points.txt").write_text("\n".join(["[whitewater.applications]", *lines, ""]))


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """A clone with the application, in which nothing ran yet."""
    clone = make_clone(tmp_path_factory.mktemp("fifth") / "clone")
    own_source(clone)
    shutil.copytree(ROOT / "docs", clone / "docs")
    shutil.copytree(ADDED, clone.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    install(clone)
    yield clone
    clone.end()


def snakemake(clone: Clone, *arguments: str) -> Ended:
    return clone.snakemake(*arguments, PYTHONPATH=str(clone / "installed"))


def whitewater(clone: Clone, *arguments: str) -> Ended:
    path = os.pathsep.join([str(clone / "installed"), str(clone / "src")])
    return clone.start(sys.executable, "-m", "whitewater", *arguments, PYTHONPATH=path).ended()


@pytest.fixture(scope="module")
def alone(five: Clone) -> Clone:
    """The clone after a run of the application alone."""
    planned = snakemake(five, "--dry-run")
    assert {*STEPS, "taxi_clean", "genomics_pca", "pagerank_rank", "recsys_train"} <= planned.jobs, planned.terminal
    ended = snakemake(five, "--snakefile", "workflows/bikes/Snakefile")
    assert ended.status == 0, ended.terminal
    return five


def test_it_takes_ten_files_of_250_lines_in_all() -> None:
    files = [path for path in ADDED.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert len(files) <= 10
    assert sum(len(path.read_text().splitlines()) for path in files) <= 250


def test_it_runs_alone_and_is_finished_for_all_applications_then(alone: Clone) -> None:
    folder = alone / "results/bikes/cpu"
    kept, rejected = (pd.read_parquet(folder / f"{name}.parquet") for name in ("kept", "quarantine"))
    assert len(kept) + len(rejected) == 5000
    assert set(rejected["reasons"]) == {"too_short;"}
    rides = pd.read_csv(alone / "data/bikes/rides.csv", parse_dates=["started_at", "ended_at"])
    minutes = (rides["ended_at"] - rides["started_at"]).dt.total_seconds() / 60
    oracle = minutes[minutes >= 1].groupby([rides["started_at"].dt.hour, rides["rider"]]).mean()
    table = pd.read_parquet(folder / "durations.parquet")
    assert table["mean_minutes"].to_numpy() == pytest.approx(oracle.to_numpy())
    assert not STEPS & snakemake(alone, "--dry-run").jobs


def test_its_results_are_shown_with_what_they_say(alone: Clone) -> None:
    ended = whitewater(alone, "results")
    assert ended.status == 0, ended.terminal
    assert "bikes on cpu" in ended.terminal
    assert "Rides are longest at " in ended.terminal
    assert {"clean", "durations", "simulate"} == alone.json("results/bikes/cpu/manifest.json")["steps"].keys()


def test_its_configuration_is_written_and_checked(five: Clone) -> None:
    assert whitewater(five, "config").status == 0
    assert (five / "config/bikes.yaml").read_text() == (ADDED / "config/bikes.yaml").read_text()
    assert "minimum_seconds" in (five / "docs/configuration.md").read_text()
    wrong = json.dumps({"bikes": {"clean": {"minimum_secnds": 5}}})
    (five / "wrong.yaml").write_text(wrong)
    ended = five.start(sys.executable, "-m", "snakemake", "--dry-run", "--configfile", "wrong.yaml",
                       PYTHONPATH=str(five / "installed")).ended()  # fmt: skip
    assert ended.message == (
        "ConfigError:\nwrong.yaml: bikes.clean.minimum_secnds = 5: no such key; did you mean 'minimum_seconds'?"
    )


def test_its_steps_run_by_hand(alone: Clone) -> None:
    paths = {"kept": "out/kept.parquet", "quarantine": "out/quarantine.parquet"}
    flags = [f"--{name}={path}" for name, path in paths.items()]
    ended = whitewater(alone, "bikes", "clean", "--rides=data/bikes/rides.csv", *flags)
    assert ended.status == 0, ended.terminal
    for path in paths.values():
        assert (alone / path).read_bytes() == (alone / f"results/bikes/cpu/{Path(path).name}").read_bytes()
    ended = whitewater(alone, "bikes", "clean", "--ride=data/bikes/rides.csv", *flags)
    assert ended.status == 2
    assert "--rides" in ended.terminal
