"""A rule takes the lightest environment that its step can run in, and a GPU only if its step computes on one."""

import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from whitewater.code_digest import reached

ROOT = Path(__file__).parents[2]
FIFTH = Path(__file__).parent / "fifth_application"
OURS = {"whitewater", "whitewater_apps", "benchmarks"}
# What only GPU code imports: RAPIDS, and what RAPIDS brings. Every step can reach the module of the GPU's engine.
GPU = {"cudf", "cugraph", "cuml", "cupy", "dask_cuda", "nvforest", "pylibcudf", "pylibcugraph", "pynvml", "rmm"}
# Imported by name: by fsspec for gs:// and s3:// URLs, by Dask for its report of a step; and what starts the jobs.
BY_NAME = {"bokeh", "gcsfs", "pygments", "s3fs", "snakemake"}
HOLDERS = packages_distributions()


class Rule(NamedTuple):
    """A rule with a conda environment: the module that it runs, in which folder of packages, and what it asks for."""

    module: str
    folder: Path
    environment: str
    engine: bool
    gpu: bool


def rules_of(snakefile: Path) -> dict[str, Rule]:
    """Return the rules that run a step or a module of the benchmarks, by ``<workflow>/<rule>``."""
    sources = snakefile.parents[2] / "src"
    parts = re.split(r"(?m)^rule (\w+):$", snakefile.read_text())[1:]
    found = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if not (environment := re.search(r'conda:\n +"\.\./\.\./envs/(\S+)\.yaml"', body)):
            continue
        if script := re.search(r'script:\n +"\.\./\.\./src/(\S+)\.py"', body):
            module, folder = script[1].replace("/", "."), sources
        else:
            command = re.search(r'"python -m (\S+)', body)
            assert command, body
            module, folder = command[1], ROOT
            module += ".__main__" if (folder.joinpath(*module.split(".")) / "__main__.py").exists() else ""
        found[f"{snakefile.parent.name}/{name}"] = Rule(
            module, folder, environment[1], "engine=engine," in body, "gpu=gpus," in body
        )
    return found


RULES = {
    name: rule
    for snakefile in sorted([*ROOT.glob("workflows/*/Snakefile"), *FIFTH.glob("workflows/*/Snakefile")])
    for name, rule in rules_of(snakefile).items()
}
STEPS = {name: rule for name, rule in RULES.items() if not name.startswith("benchmarks/")}


def imported(rule: Rule) -> set[str]:
    """Return the distributions of others that the code of a rule can import, but for those of the GPU."""
    names = {name.partition(".")[0] for part in reached(rule.module, rule.folder).values() for name, _ in part.imports}
    packages = names - OURS - GPU - sys.stdlib_module_names
    return {canonicalize_name(HOLDERS.get(package, [package])[0]) for package in packages}


def locked(name: str) -> set[str]:
    """Return the names of the packages of a lock."""
    text = (ROOT / "envs" / f"{name}.lock").read_text()
    return {canonicalize_name(Requirement(line).name) for line in re.findall(r"(?m)^(\w[^\\\n]*)", text)}


BASE, CPU = locked("base"), locked("cpu")


def test_every_rule_of_an_application_is_found() -> None:
    scripts = sorted(ROOT.glob("src/whitewater_apps/*/steps/*.py"))
    steps = {f"{path.parts[-3]}/{path.stem}" for path in scripts if path.stem != "__init__"}
    assert steps == {name for name in STEPS if not name.startswith("bikes/")}


@pytest.mark.parametrize("name", STEPS)
def test_only_a_step_that_computes_on_the_device_asks_for_a_gpu_and_its_environment(name: str) -> None:
    rule = STEPS[name]
    assert rule.gpu == rule.engine
    assert rule.environment in ({"{device}"} if rule.engine else {"base", "cpu"})


@pytest.mark.parametrize("name", RULES)
def test_the_environment_of_a_rule_holds_what_its_code_can_import(name: str) -> None:
    assert imported(RULES[name]) - (BASE if RULES[name].environment == "base" else CPU) == set()


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.environment == "cpu"])
def test_a_rule_of_the_environment_cpu_imports_what_base_lacks(name: str) -> None:
    assert imported(RULES[name]) - BASE


def test_the_environment_base_holds_no_package_that_no_rule_of_it_and_no_command_imports() -> None:
    asked = {Requirement(line).name for line in (ROOT / "envs" / "base.in").read_text().splitlines()}
    of_rules = [rule for rule in RULES.values() if rule.environment == "base"]
    commands = [
        Rule(f"whitewater.cli.{path.stem}", ROOT / "src", "base", engine=False, gpu=False)
        for path in ROOT.glob("src/whitewater/cli/*.py")
    ]
    needed = set[str]().union(*map(imported, [*of_rules, *commands]))
    assert asked - needed == BY_NAME
