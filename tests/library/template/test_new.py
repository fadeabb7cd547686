"""A project is written whole, under its name, or not at all."""

import re
import subprocess
import tomllib
from hashlib import sha256
from pathlib import Path

import whitewater
from tests.library.template.conftest import Installed
from whitewater.template.render import Project, render
from whitewater.template.source import templates

ROOT = Path(__file__).parents[3]


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def listed(folder: Path) -> list[str]:
    return git(folder, "ls-files").splitlines()


def test_a_project_has_the_shape_of_this_repository(project: Path) -> None:
    files = set(listed(project))
    assert {
        "Snakefile", "workflows/common.smk", "workflows/bikes/Snakefile", "src/bikes/application.py",
        "src/bikes/steps/aggregate.py", "config/config.yaml", "config/bikes.yaml", "envs/cpu.lock", "envs/dev.lock",
        "envs/gpu.lock", "envs/library.lock", "envs/bikes-cpu.yaml", "profiles/default/config.yaml",
        ".pre-commit-config.yaml", ".github/workflows/ci.yml", ".gitlab-ci.yml", "Dockerfile", "Makefile", "README.md",
        "pyproject.toml", "tests/conftest.py",
    } <= files  # fmt: skip
    assert [name for name in files if "whitewater_apps" in name or "minimal" in name] == []


def test_the_links_of_every_template_lead_somewhere(tmp_path: Path) -> None:
    for template in templates():
        folder = tmp_path / template
        folder.mkdir()
        render(Project("own", "own", template), folder)
        pages = [*folder.rglob("*.md"), *folder.rglob("*.ipynb")]
        links = [(page, link) for page in pages for link in re.findall(r"\]\((\.\./[^)#\s]+)", page.read_text())]
        assert [(page, link) for page, link in links if not (page.parent / link).exists()] == []
        named = {path for page in pages for path in re.findall(r"`(config/[\w.]+)`", page.read_text())}
        assert [path for path in named if not (folder / path).exists()] == []
    assert len((tmp_path / "taxi/config/datasets.csv").read_text().splitlines()) > 1


def test_all_is_committed_and_the_pristine_rendering_is_on_its_branch(project: Path) -> None:
    assert git(project, "status", "--porcelain") == ""
    assert git(project, "branch", "--show-current") == "main\n"
    assert git(project, "rev-parse", "main") == git(project, "rev-parse", "whitewater-template")


def test_the_library_is_pinned_by_the_hash_of_its_wheel(project: Path, wheel: tuple[str, bytes]) -> None:
    (vendored,) = (project / "vendor").iterdir()
    digest = sha256(vendored.read_bytes()).hexdigest()
    assert re.findall(r"--hash=sha256:(\w+)", (project / "envs/library.lock").read_text()) == [digest]
    # The same whether it is built from a checkout or packed from what is installed.
    assert (vendored.name, vendored.read_bytes()) == wheel


def test_environments_of_conda_have_the_library(project: Path, wheel: tuple[str, bytes]) -> None:
    scripts = {path.name: path.read_text() for path in (project / "envs").glob("*.post-deploy.sh")}
    assert set(scripts) == {f"{name}.post-deploy.sh" for name in ("base", "bikes-cpu", "bikes-gpu")}
    for script in scripts.values():
        assert f" vendor/{wheel[0]} " in script
        assert sha256(wheel[1]).hexdigest() in script


def test_hooks_run_what_the_project_has(project: Path) -> None:
    hooks = (project / ".pre-commit-config.yaml").read_text()
    assert all((project / path).exists() for path in re.findall(r"tests/\S+", hooks))
    assert "id: mypy" in hooks


def test_a_lock_holds_what_the_application_needs_and_nothing_of_others(project: Path) -> None:
    here = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    made = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    library = f"whitewater=={whitewater.__version__}"
    assert made["dependencies"] == [library, *here["optional-dependencies"]["minimal"]]
    locked = set(re.findall(r"(?m)^([\w.-]+)==", (project / "envs/cpu.lock").read_text()))
    assert {"dask", "numpy", "polars", "snakemake"} <= locked
    assert locked & {"zarr", "msprime", "xgboost-cpu", "fastwarc"} == set()
    whole = (ROOT / "envs/cpu.lock").read_text()
    for entry in re.split(r"\n(?=\w)", (project / "envs/cpu.lock").read_text().strip())[1:]:
        assert entry in whole


def test_code_and_configuration_are_formatted_and_name_the_project(project: Path) -> None:
    for command in (
        ["ruff", "check"],
        ["ruff", "format", "--check"],
        ["snakefmt", "--check", "workflows", "Snakefile"],
    ):
        ended = subprocess.run(command, cwd=project, check=False, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "\nbikes:\n" in (project / "config/bikes.yaml").read_text()
    assert "minimal" not in "".join((project / name).read_text() for name in listed(project) if name.endswith(".smk"))


def test_dry_run_lists_the_files_and_writes_none(installed: Installed, project: Path, tmp_path: Path) -> None:
    ended = installed.run(tmp_path, ["new", "bikes", "--from", "minimal", "--folder", "own/trips", "--dry-run"])
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.split()) == sorted(listed(project))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_empty_is_refused(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "trips").mkdir()
    (tmp_path / "trips/mine.txt").write_text("mine")
    ended = installed.run(tmp_path, ["new", "bikes", "--from", "minimal", "--folder", "trips"])
    assert ended.returncode == 1
    assert "is not empty" in ended.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["trips", "mine.txt"]
