"""The wheel: what it holds, and that its command works where nothing of a checkout is."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

import whitewater

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src", "benchmarks", "tests", "envs")
APPLICATIONS = [path.parent.name for path in sorted((ROOT / "src/whitewater_apps").glob("*/application.py"))]
# What projects are made from; tests/library/template makes some.
FILES = "whitewater/template/files/"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of a copy of the checkout, with the locked Hatchling and without a network."""
    pytest.importorskip("hatchling", reason="this environment was made before envs/bootstrap.lock held Hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=folder, check=True)
    (built,) = (folder / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel, by itself, into an environment that finds what it needs in that of the tests."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run(["uv", "pip", "install", "--offline", "--no-deps", "--python", python, wheel], check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "needed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder


def start(environment: Path, command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the environment in a folder; nobody's PYTHONPATH counts."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    path = f"{environment / 'bin'}{os.pathsep}{variables['PATH']}"
    return subprocess.run(
        command, cwd=folder, env={**variables, "PATH": path}, capture_output=True, text=True, check=False
    )


def test_it_holds_both_packages_with_their_types_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    information = f"whitewater-{whitewater.__version__}.dist-info"
    packages = {"whitewater", "whitewater_apps", "snakemake_logger_plugin_whitewater"}
    assert {name.partition("/")[0] for name in names} == {*packages, information}
    assert {"whitewater/py.typed", "whitewater_apps/py.typed"} <= set(names)
    assert [name for name in names if "__pycache__" in name] == []


def test_every_module_of_the_checkout_is_in_it(wheel: Path) -> None:
    modules = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    names = zipfile.ZipFile(wheel).namelist()
    assert modules == {name for name in names if name.endswith(".py") and not name.startswith(FILES)}


def test_its_command_tells_its_version(environment: Path, tmp_path: Path) -> None:
    ended = start(environment, ["whitewater", "--version"], tmp_path)
    assert (ended.returncode, ended.stdout) == (0, f"whitewater {whitewater.__version__}\n")


def test_doctor_says_what_is_there_and_what_is_missing(environment: Path, tmp_path: Path) -> None:
    ended = start(environment, ["whitewater", "doctor"], tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "packages" in ended.stdout


def test_its_applications_resolve(environment: Path, tmp_path: Path) -> None:
    for name in APPLICATIONS:
        folder = tmp_path / "workflows" / name
        folder.mkdir(parents=True)
        (folder / "Snakefile").touch()
    ended = start(environment, ["whitewater", "--help"], tmp_path)
    assert ended.returncode == 0, ended.stderr
    for name in APPLICATIONS:
        assert f"  {name} <step>" in ended.stdout


def test_what_only_a_checkout_has_is_one_message(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "workflows" / "benchmarks").mkdir(parents=True)
    (tmp_path / "workflows" / "benchmarks" / "Snakefile").touch()
    ended = start(environment, ["whitewater", "benchmarks"], tmp_path)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "remove its folder from workflows/" in ended.stderr
