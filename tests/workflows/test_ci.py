"""What continuous integration of a fork runs: the files are valid, and each of their commands runs here, too."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.guarantees.running import TINY, make_clone

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github/workflows/ci.yml"
PAGES = ROOT / ".github/workflows/pages.yml"
GITLAB = ROOT / ".gitlab-ci.yml"
CLASSIFIERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
# YAML 1.1 takes the key `on` for a truth value; no other key of the file is one.
WORKFLOW = yaml.safe_load(GITHUB.read_text())
JOB = WORKFLOW["jobs"]["make"]


def filled_in(text: str, values: dict[str, str]) -> str:
    """Return a line of a workflow with the values of one run of its matrix."""
    return re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda match: values[match[1]], text)


def github_commands() -> list[tuple[str, str]]:
    """Return the commands of GitHub's workflow, each with the Python that it runs on."""
    matrix = dict(JOB["strategy"]["matrix"])
    more = matrix.pop("include")
    runs = [{"target": target, "python": python} for target in matrix["target"] for python in matrix["python"]]
    lines = [step["run"] for step in JOB["steps"] if "run" in step]
    return [(filled_in(line, values), values["python"]) for values in [*runs, *more] for line in lines]


def gitlab_commands() -> list[tuple[str, str]]:
    """Return the commands of GitLab's pipeline, each with the Python that it runs on."""
    pipeline: dict[str, Any] = yaml.safe_load(GITLAB.read_text())
    default = re.sub(r"python:(.*)-bookworm", r"\1", pipeline["default"]["image"])
    return [
        (job["script"], python)
        for job in pipeline.values()
        if "script" in job
        for python in job.get("parallel", {"matrix": [{"PYTHON_VERSION": [default]}]})["matrix"][0]["PYTHON_VERSION"]
    ]


COMMANDS = sorted({command for command, _ in [*github_commands(), *gitlab_commands()]})


@pytest.mark.parametrize(
    "arguments",
    [
        ("vendor.github-workflows", GITHUB),
        ("vendor.github-workflows", PAGES),
        ("vendor.gitlab-ci", "--data-transform", "gitlab-ci", GITLAB),
    ],
    ids=["GitHub", "GitHub Pages", "GitLab"],
)
def test_the_file_is_valid(arguments: tuple[str | Path, ...]) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", *map(str, arguments)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_both_run_the_same_but_for_what_needs_docker_or_conda() -> None:
    assert set(github_commands()) - set(gitlab_commands()) == {
        ("make test-image", "3.11"),
        ("make test-conda", "3.11"),
    }
    assert set(gitlab_commands()) < set(github_commands())


def test_the_tests_run_on_every_python_that_is_declared() -> None:
    declared = {each.rpartition(" ")[2] for each in CLASSIFIERS if re.search(r":: 3\.\d+$", each)}
    assert {python for command, python in github_commands() if command == "make test"} == declared


@pytest.mark.parametrize("file", [GITHUB, PAGES], ids=lambda file: file.name)
def test_actions_are_pinned_by_hash_and_may_only_read(file: Path) -> None:
    uses = re.findall(r"uses: (.*)", file.read_text())
    assert uses
    for line in uses:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line
    workflow = yaml.safe_load(file.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    first, *others = workflow["jobs"].values()
    assert "permissions" not in first
    assert first["steps"][0]["with"] == {"persist-credentials": False}
    # What publishes the site runs no code of ours.
    assert [(job["permissions"], len(job["steps"])) for job in others] in (
        [], [({"pages": "write", "id-token": "write"}, 1)],
    )  # fmt: skip


def test_the_site_that_is_published_is_that_of_make_docs() -> None:
    build = yaml.safe_load(PAGES.read_text())["jobs"]["build"]["steps"]
    assert [step["run"] for step in build if "run" in step] == ["make docs"]
    (made,) = [step["with"]["path"] for step in build if "upload-pages-artifact" in step.get("uses", "")]
    assert f"/{made}/" in (ROOT / ".gitignore").read_text().splitlines()


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_a_listed_target(command: str) -> None:
    target = command.removeprefix("make ")
    targets = "".join((ROOT / name).read_text() for name in ("Makefile", "repository.mk"))
    assert re.search(rf"(?m)^{re.escape(target)}:.* ## ", targets), command


def test_the_commands_for_tests_and_lint_are_those_of_our_own_integration() -> None:
    (line,) = re.findall(r"(?m)^make (.*)$", (ROOT / ".ci/run").read_text())
    here = {"make lint", *(f"make {target}" for target in line.split())}  # `make test` starts with `make lint`
    assert set(COMMANDS) - here == {"make docs", "make run", "make test-conda", "make test-image"}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_make_run_runs(tmp_path: Path) -> None:
    assert "make run" in COMMANDS
    clone = make_clone(tmp_path / "clone")
    for application, settings in TINY.items():
        clone.write(f"config/{application}.yaml", {application: settings})
    running = clone.start("make", "-o", ".venv/.cpu", "run")
    assert running.process.wait(1500) == 0, running.terminal.read_text()
    assert (clone / "results/report.html").exists()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("command", "needed"), [("make test-image", "docker info"), ("make test-conda", "conda info")])
def test_the_command_runs_where_what_it_needs_is_there(command: str, needed: str) -> None:
    assert command in COMMANDS
    program, *arguments = needed.split()
    if not shutil.which(program) or subprocess.run([program, *arguments], capture_output=True, check=False).returncode:
        pytest.skip(f"`{needed}` fails: {command} was not run")
    subprocess.run(command.split(), cwd=ROOT, check=True)
