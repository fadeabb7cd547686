"""A new step of an application: its module, settings, rule and test, each ready to be filled in."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from whitewater.application import Application
from whitewater.errors import ConfigError
from whitewater.template.names import class_name
from whitewater.template.source import package_folder

# A line of a rule file, as snakefmt has it.
WIDTH = 88
STEP = '''\
"""Step `{step}`: what it finds, in a sentence."""

from pathlib import Path

from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from {package}.config import {model}


def {step}(run: Run[{model}], *, summary: Output) -> None:
    """Write the number of the settings. Inputs are parameters, too, as ``trips: Path``, and named in the rule."""
    write_json(Path(summary), {{"example": run.settings.example}})


if __name__ == "__main__":
    main({step})
'''
SETTINGS = '''\
class {model}(Section):
    """What the step {step} does, in a sentence."""

    example: int = Field(1, ge=0, description="A number that is written; the first setting of yours takes its place.")


'''
TEST = '''\
"""What the step `{step}` promises."""

import json
from pathlib import Path

from whitewater.engines import resolve
from whitewater.step import Output, Run
from {package}.config import {model}
from {package}.steps.{step} import {step}


def test_the_number_of_the_settings_is_written(tmp_path: Path) -> None:
    run = Run("{name}", "{step}", resolve("cpu"), {model}(example=3))
    {step}(run, summary=Output(tmp_path / "summary.json"))
    assert json.loads((tmp_path / "summary.json").read_text()) == {{"example": 3}}
'''
RULE = """\
rule {step}:
    output:
        summary="<results>/{name}/{{device}}/{step}.json",
        record="<logs>/{name}/{{device}}/{step}.json",
    log:
        "<logs>/{name}/{{device}}/{step}.log",
    benchmark:
        "<logs>/{name}/{{device}}/{step}.jsonl"
    conda:
        "../../envs/base.yaml"
    threads: 1
    resources:
        mem_mb=by_input(600),
        runtime=by_input(5),
    params:
        settings=lookup("{name}/{step}", within=config),
        code=step_digest("{name}", "{step}"),
    script:
        "../../src/{folder}/steps/{step}.py"


"""
LAST = "manifest"  # the step that lists what the others made


def step_files(application: Application, step: str) -> dict[Path, str]:
    """Return the text of each file that a new step adds or changes, by its path in the project.

    Raises ConfigError if there is such a step, or a file is not as `whitewater new` writes it.
    """
    package = package_folder(application)
    model = class_name(step)
    fields = {
        "name": application.name, "step": step, "model": model, "package": application.package,
        "folder": application.package.replace(".", "/"),
    }  # fmt: skip
    rules, config = Path("workflows", application.name, "Snakefile"), package / "config.py"
    declared = package / "application.py"
    added = {
        package / "steps" / f"{step}.py": STEP.format_map(fields),
        Path("tests/apps", application.name, f"test_{step}.py"): TEST.format_map(fields),
    }
    if step in application.steps or any(path.exists() for path in added):
        raise ConfigError(f"{application.name} has a step {step} already. Choose another name.")
    settings = SETTINGS.format_map(fields)
    return {
        **added,
        config: _with_settings(config, application.settings.__name__, settings, f"    {step}: {model} = {model}()\n"),
        declared: _with_name(declared, declared.read_text(), r"steps=\(([^)]*)\)", "steps=({})", step),
        rules: _with_rule(rules, RULE.format_map(fields), step),
    }


def _with_settings(path: Path, section: str, model: str, field: str) -> str:
    """Put a model before the section of the application, and a field at that section's end."""
    text = path.read_text()
    classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == section]
    fields = [node for node in classes[0].body if isinstance(node, ast.AnnAssign)] if classes else []
    if not fields:
        raise ConfigError(f"{path} has no class {section} with fields. Write the settings of the step by hand.")
    lines = text.splitlines(keepends=True)
    lines.insert(fields[-1].end_lineno or 0, field)
    start = min([classes[0].lineno, *(node.lineno for node in classes[0].decorator_list)]) - 1
    lines.insert(start, model)
    text = "".join(lines)
    return (
        text
        if re.search(r"\bimport .*\bField\b", text)
        else text.replace("\nfrom ", "\nfrom pydantic import Field\nfrom ", 1)
    )


def _with_name(path: Path, text: str, pattern: str, form: str, step: str) -> str:
    """Add a step to a list of names, before the manifest, which comes last."""
    match = re.search(pattern, text)
    if not match:
        raise ConfigError(f"{path} has nothing like {pattern}. Add the step by hand: docs/architecture.md.")
    return text[: match.start()] + _listed(form, match[1], step) + text[match.end() :]


def _listed(form: str, inside: str, step: str) -> str:
    names = re.findall(r"\w+", inside)
    names.insert(names.index(LAST) if LAST in names else len(names), step)
    line = form.format(", ".join(f'"{name}"' for name in names))
    return line if len(line) <= WIDTH else form.format("\n" + "".join(f'    "{name}",\n' for name in names))


def _with_rule(path: Path, rule: str, step: str) -> str:
    """Add a rule before that of the manifest, and its name to the lists of steps and results."""
    text = path.read_text()
    for name in ("STEPS", "RESULTS"):
        text = _with_name(path, text, rf"(?m)^{name} = \[([^]]*)\]", f"{name} = [{{}}]", step)
    before = f"\nrule {LAST}:\n" if f"\nrule {LAST}:\n" in text else "\nrule all:\n"
    return text.replace(before, f"\n{rule.rstrip()}\n\n{before}")
