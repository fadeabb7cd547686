"""A rule takes the lightest environment that its step can run in, and a GPU only if its step computes on one."""

import csv
import re
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.workflows.test_dependencies import BROUGHT, NOT_MADE
from whitewater.code_digest import reachable_parts

ROOT = Path(__file__).parents[2]
FIFTH = Path(__file__).parent / "fifth_application"
OURS = {"whitewater", "whitewater_apps", "benchmarks"}
# What only GPU code imports: RAPIDS, and what RAPIDS brings. Every step can reach the module of the GPU's engine.
GPU = {"cudf", "cugraph", "cuml", "cupy", "dask_cuda", "pylibcudf", "rmm", *BROUGHT} - {"pydantic_core"}
# Imported by name: by fsspec for s3:// URLs, by Dask for its report; what formats projects.
BY_NAME = {"bokeh", "pygments", "ruff", "s3fs"}
HOLDERS = packages_distributions()
IN_LOCKS = {"xgboost": "xgboost-cpu"}
with (ROOT / "envs" / "channels.csv").open() as _file:
    PUBLISHED = {row["package"]: row for row in csv.DictReader(_file)}


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


def reached_names(rule: Rule) -> set[str]:
    """Return the modules that the code of a rule can import."""
    return {name for part in reachable_parts(rule.module, rule.folder).values() for name, _ in part.imports}


def imported(rule: Rule) -> set[str]:
    """Return the distributions of others that the code of a rule can import, but for those of the GPU."""
    names = {name.partition(".")[0] for name in reached_names(rule)}
    packages = names - OURS - GPU - sys.stdlib_module_names - NOT_MADE.get(rule.module.split(".")[1], set())
    held = {canonicalize_name(HOLDERS.get(package, [package])[0]) for package in packages}
    return {name.removesuffix("-cpu") for name in held}


def installed(name: str, device: str = "cpu") -> set[str]:
    """Return the packages of a conda file, by their names here, and what they need in turn."""
    own = {row["conda"]: package for package, row in PUBLISHED.items()}
    document = yaml.safe_load((ROOT / "envs" / f"{name.format(device=device)}.yaml").read_text())
    waiting = [
        line for each in document["dependencies"] for line in (each["pip"] if isinstance(each, dict) else [each])
    ]
    found: set[str] = set()
    while waiting:
        package = re.split("[=<>!~;[( ]", waiting.pop())[0]
        package = canonicalize_name(own.get(package, package))
        if package not in found:
            found.add(package)
            waiting += needed_by(package)
    return found


def needed_by(package: str) -> list[str]:
    """Return what an installed package needs on this machine; of one that is not installed nothing is known."""
    try:
        needs = map(Requirement, requires(IN_LOCKS.get(package, package)) or [])
    except PackageNotFoundError:
        return []
    return [each.name for each in needs if each.marker is None or each.marker.evaluate({"extra": ""})]


def test_every_rule_of_an_application_is_found() -> None:
    scripts = sorted(ROOT.glob("src/whitewater_apps/*/steps/*.py"))
    steps = {f"{path.parts[-3]}/{path.stem}" for path in scripts if path.stem != "__init__"}
    assert steps == {name for name in STEPS if not name.startswith("bikes/")}


@pytest.mark.parametrize("name", STEPS)
def test_only_a_step_that_computes_on_the_device_asks_for_a_gpu_and_its_environment(name: str) -> None:
    rule, application = STEPS[name], name.partition("/")[0]
    assert rule.gpu == rule.engine
    assert rule.environment in ({f"{application}-{{device}}"} if rule.engine else {"base", f"{application}-cpu"})


@pytest.mark.parametrize("name", RULES)
def test_the_environment_of_a_rule_holds_what_its_code_can_import(name: str) -> None:
    assert imported(RULES[name]) - installed(RULES[name].environment) == set()


@pytest.mark.parametrize("name", [name for name, rule in STEPS.items() if not rule.engine])
def test_a_rule_has_an_environment_of_its_application_only_where_base_lacks_what_it_imports(name: str) -> None:
    assert bool(imported(STEPS[name]) - installed("base")) == (STEPS[name].environment != "base")


@pytest.mark.parametrize("application", sorted({name.partition("/")[0] for name in STEPS} - {"bikes"}))
def test_the_environment_for_gpus_adds_what_the_steps_import_on_one(application: str) -> None:
    rules = [rule for name, rule in STEPS.items() if name.startswith(application) and rule.engine]
    names = {part.partition(".")[0] for rule in rules for part in reached_names(rule)} & GPU - BROUGHT
    for_gpus, for_cpus = (installed(f"{application}-{device}") for device in ("gpu", "cpu"))
    assert {re.sub(r"-cu(da)?\d+x?$", "", name) for name in for_gpus - for_cpus} == names | {"cuda-version"}


def test_the_environment_base_holds_no_package_that_no_rule_of_it_and_no_command_imports() -> None:
    asked = {Requirement(line).name for line in (ROOT / "envs" / "base.in").read_text().splitlines()}
    of_rules = [rule for rule in RULES.values() if rule.environment == "base"]
    commands = [
        Rule(f"whitewater.cli.{path.stem}", ROOT / "src", "base", engine=False, gpu=False)
        for path in ROOT.glob("src/whitewater/cli/*.py")
    ]
    needed = set[str]().union(*map(imported, [*of_rules, *commands]))
    assert asked - needed == BY_NAME
