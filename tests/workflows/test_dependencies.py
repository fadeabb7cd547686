"""What pyproject.toml declares, what the code imports, and what the locks of envs/ hold are the same."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import whitewater

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
APPLICATIONS = [path.parent.name for path in sorted((SOURCES / "whitewater_apps").glob("*/application.py"))]
OURS = {"whitewater", "whitewater_apps"}
# Packages of the GPU, which the CPU's environment lacks: their distributions are named after them.
GPU = {"cudf", "cugraph", "cuml", "cupy", "dask_cuda", "rmm"}
# What those bring, and what pydantic does: cuML's forests, the driver's interface, errors.
BROUGHT = {"cupyx", "nvforest", "pydantic_core", "pylibcugraph", "pynvml"}
# Of the estimators in one module, which imports each where it is made, an application makes some.
NOT_MADE = {"genomics": {"treelite", "xgboost"}, "taxi": {"umap"}, "recsys": {"umap"}}


def declared(*extras: str) -> set[str]:
    lines = [*PROJECT["dependencies"], *(line for each in extras for line in PROJECT["optional-dependencies"][each])]
    return {name_of(Requirement(line)) for line in lines}


def everything() -> list[str]:
    extras = PROJECT["optional-dependencies"].values()
    return [*PROJECT["dependencies"], *(line for extra in extras for line in extra)]


def name_of(requirement: Requirement) -> str:
    """Return a package's name; where there is no GPU, the locks take XGBoost without its CUDA code."""
    return {"xgboost-cpu": "xgboost"}.get(name := canonicalize_name(requirement.name), name)


def requested(name: str) -> set[str]:
    """Return the packages that an input file of a lock asks for, included files among it."""
    lines = (ROOT / "envs" / f"{name}.in").read_text().splitlines()
    included = [line.removeprefix("-r ").removesuffix(".in") for line in lines if line.startswith("-r ")]
    own = {name_of(Requirement(line)) for line in lines if not line.startswith("-r ")}
    return own.union(*map(requested, included))


def path_of(module: str) -> Path | None:
    stem = SOURCES.joinpath(*module.split("."))
    return next((path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.is_file()), None)


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{each.name}" for each in node.names)
            yield from (name if path_of(name) else str(node.module) for name in names)


def imported_packages(folder: Path) -> set[str]:
    """Return the top packages of others that the modules of a folder import, themselves or through modules of ours."""
    waiting = [".".join(path.relative_to(SOURCES).with_suffix("").parts) for path in folder.rglob("*.py")]
    seen: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        if path := path_of(module):
            waiting += [*imports(path), *([module.rpartition(".")[0]] if "." in module else [])]
    return {module.partition(".")[0] for module in seen} - OURS - sys.stdlib_module_names - {"__future__"}


def undeclared(packages: set[str], known: set[str]) -> set[str]:
    """Return the packages that no declared distribution holds."""
    holders = packages_distributions()
    return {
        package
        for package in packages - GPU - BROUGHT
        if not known & {name_of(Requirement(each)) for each in holders.get(package, [package])}
    }


@pytest.mark.parametrize("application", APPLICATIONS)
def test_each_application_declares_what_it_imports(application: str) -> None:
    imported = imported_packages(SOURCES / "whitewater_apps" / application) - NOT_MADE.get(application, set())
    assert undeclared(imported, declared(application)) == set()


def test_each_command_needs_no_more_than_what_every_application_needs() -> None:
    assert undeclared(imported_packages(SOURCES / "whitewater" / "cli"), declared()) == set()


def test_the_code_for_gpus_imports_what_its_extra_declares() -> None:
    imported = set[str]().union(*(imported_packages(SOURCES / package) for package in OURS)) & GPU
    assert {package.replace("_", "-") for package in imported} == {
        re.sub(r"-cu(da)?\d+x?$", "", name) for name in declared("gpu") - declared() - {"xgboost"}
    }


@pytest.mark.parametrize(
    ("lock", "extras"), [("cpu", APPLICATIONS), ("dev", [*APPLICATIONS, "dev"]), ("gpu", [*APPLICATIONS, "gpu"])]
)
def test_a_lock_asks_for_what_is_declared(lock: str, extras: list[str]) -> None:
    asked = requested(lock) | (requested("bootstrap") - {"uv"} if lock == "dev" else set())
    assert asked == declared(*extras)


def test_the_lock_beside_the_others_asks_for_the_plugin_and_its_other_half() -> None:
    assert requested("slurm") == declared("slurm") - declared() | {"snakemake-executor-plugin-slurm-jobstep"}


@pytest.mark.parametrize("lock", ["bootstrap", "dev", "gpu", "slurm"])
def test_locked_versions_are_not_below_the_declared_bounds(lock: str) -> None:
    text = (ROOT / "envs" / f"{lock}.lock").read_text()
    bounds = {name_of(each): each for each in map(Requirement, everything())}
    for line in re.findall(r"(?m)^(\w[^\\\n]*)", text):
        locked = Requirement(line.strip())
        if bound := bounds.get(name_of(locked)):
            version = str(locked.specifier).removeprefix("==")
            assert bound.specifier.contains(version), f"{bound} is locked at {version}"


def test_every_requirement_has_a_lower_bound() -> None:
    for line in everything():
        assert [each.operator for each in Requirement(line).specifier] == [">="], line


def test_there_is_an_extra_for_each_application() -> None:
    assert PROJECT["optional-dependencies"].keys() == {*APPLICATIONS, "gpu", "slurm", "dev"}


def test_the_version_is_written_once_and_cited_as_it_is() -> None:
    assert "version" not in PROJECT
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == whitewater.__version__
    headings = re.findall(r"(?m)^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text())
    assert headings[0] == whitewater.__version__
