"""The workflows run in another working directory, and as a module of a Snakefile that lies elsewhere or is cloned."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guarantees.running import ROOT, TINY, Clone, Ended

pytestmark = pytest.mark.slow
INPUTS = "data/taxi/inputs.json"
MODULE = """
module taxi:
    snakefile: "{snakefile}"
    config: config

use rule * from taxi as taxi_*
"""


# Of each application a rule that others wait for, and two in a row.
CHANGED = {"taxi": "clean", "genomics": "pca", "pagerank": "renumber, rank", "recsys": "fit"}


def run(clone: Clone, *arguments: str) -> Ended:
    """Run Snakemake on the smallest configuration, of taxi alone, which is beside the clone."""
    tiny = clone.folder.parent / "mine.json"
    tiny.write_text(json.dumps({"taxi": TINY["taxi"]}))
    command = (sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", str(tiny), *arguments)
    return clone.start(*command, PYTHONPATH=str(ROOT / "src")).ended()


def run_module(clone: Clone, snakefile: str, *arguments: str) -> Path:
    """Run a Snakefile of the user's in a folder of its own, which is returned."""
    folder = clone.folder.parent / "project"
    folder.mkdir()
    (folder / "Snakefile").write_text(MODULE.format(snakefile=snakefile))
    ended = run(clone, "--directory", str(folder), "--snakefile", str(folder / "Snakefile"), *arguments)
    assert ended.status == 0, ended.terminal
    return folder


def commit(folder: Path) -> None:
    """Put all files of a folder into a repository of git."""
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    commands = (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "--all"),
        (*identity, "commit", "--quiet", "--message", "all"),
    )
    for command in commands:
        subprocess.run(["git", *command], cwd=folder, check=True)


def test_another_working_directory_takes_the_configuration_of_the_repository(fresh: Clone) -> None:
    settings = fresh / "config/taxi.yaml"
    settings.write_text(settings.read_text().replace("  clean:\n", "  clean:\n    no_such_key: 1\n"))
    ended = run(fresh, "--directory", "there", "--", INPUTS)
    assert ended.message.startswith("ConfigError:\n../config/taxi.yaml: taxi.clean.no_such_key = 1: no such key")
    shutil.copy(ROOT / "config/taxi.yaml", settings)
    ended = run(fresh, "--directory", "there", "--", INPUTS)
    assert ended.status == 0, ended.terminal
    assert (fresh / "there" / INPUTS).exists()
    assert not (fresh / "data").exists()


def test_a_module_of_a_snakefile_elsewhere_needs_no_more_than_the_section_of_its_application(fresh: Clone) -> None:
    folder = run_module(fresh, f"{fresh.folder}/workflows/taxi/Snakefile", "--", "results/taxi/cpu/quality.json")
    assert (folder / "results/taxi/cpu/quality.json").exists()
    assert not (fresh / "data").exists()


def test_a_module_can_change_rules_of_every_application_and_the_others_still_find_their_outputs(fresh: Clone) -> None:
    changes = [
        MODULE.replace("taxi", name).format(snakefile=f"{fresh.folder}/workflows/{name}/Snakefile")
        + "".join(
            f"use rule {rule} from {name} as {name}_{rule} with:\n    threads: 2\n    resources: mem_mb=4321\n\n"
            for rule in rules.split(", ")
        )
        for name, rules in CHANGED.items()
    ]
    targets = ", ".join(f"rules.{name}_all.input" for name in CHANGED)
    mine = fresh.folder.parent / "mine.smk"
    mine.write_text("\n".join([*changes, f"rule all:\n    default_target: True\n    input: {targets}\n"]))
    ended = run(fresh, "--dry-run", "--snakefile", str(mine))
    assert ended.status == 0, ended.terminal
    assert {"taxi_tips", "genomics_umap", "pagerank_search", "recsys_train"} <= ended.jobs
    assert ended.terminal.count("mem_mb=4321") == 5


def test_a_changed_rule_runs_with_what_it_does_not_name_as_before(fresh: Clone) -> None:
    mine = fresh.folder.parent / "mine.smk"
    mine.write_text(
        MODULE.format(snakefile=f"{fresh.folder}/workflows/taxi/Snakefile")
        + "use rule clean from taxi as taxi_clean with:\n    threads: 1\n"
    )
    quality = "results/taxi/cpu/quality.json"
    ended = run(fresh, "--snakefile", str(mine), "--", quality)
    assert ended.status == 0, ended.terminal
    assert (fresh / quality).exists()


@pytest.fixture
def committed(fresh: Clone) -> Clone:
    """A clone that is a repository of git, with all that it needs."""
    for linked in ("src", "envs"):
        (fresh / linked).unlink()
        shutil.copytree(ROOT / linked, fresh / linked, ignore=shutil.ignore_patterns("__pycache__"))
    commit(fresh.folder)
    return fresh


def test_a_module_of_a_clone_of_git_runs_with_the_library_that_is_installed(committed: Clone) -> None:
    folder = run_module(committed, f"git+file://{committed.folder}/workflows/taxi/Snakefile@HEAD", "--", INPUTS)
    assert (folder / INPUTS).exists()


def test_a_module_of_github_has_the_applications_that_the_configuration_names(
    committed: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = committed.folder.parent
    (beside / "hosted/someone").mkdir(parents=True)
    (beside / "hosted/someone/whitewater").symlink_to(committed.folder)
    # Git looks for what is on github.com in that folder.
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{beside}/hosted/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/")
    monkeypatch.setenv("XDG_CACHE_HOME", str(beside / "cache"))
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    mine = beside / "mine.smk"
    hosted = 'github("someone/whitewater", path="Snakefile", branch="main")'
    mine.write_text(MODULE.format(snakefile="").replace('""', hosted).replace("taxi", "all_of_them"))
    ended = run(committed, "--directory", str(beside), "--snakefile", str(mine), "--dry-run")
    assert ended.status == 0, ended.terminal
    assert {"all_of_them_taxi_fetch", "all_of_them_taxi_manifest"} <= ended.jobs
    assert not any("genomics" in job for job in ended.jobs)
