"""The page on what goes wrong, made from the texts of `whitewater doctor` and of the errors, its one source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

DOCTOR = "src/whitewater/cli/doctor.py"
WITH_FIX = 3  # arguments of a check that names one
UNKNOWN = "…"
ERRORS = "src/whitewater/errors.py"
START = """# Troubleshooting

Made from the texts of `whitewater doctor` and of the errors.

    whitewater doctor --configfile mine.yaml

tries everything that a run with this configuration needs, in half a second, and prints a fix for all that fails.
A run that fails prints its error last, with the path of the log.

## What the doctor says

An ellipsis stands for what it finds on your machine.
"""
KINDS = """
## What an error says

Each message says what is wrong, where, and what to do. Its first word is its kind:

| kind | meaning |
|---|---|
"""


def troubleshooting(root: Path) -> str:
    """Return the page as Markdown."""
    checks = "".join(_checks(ast.parse((root / DOCTOR).read_text())))
    errors = (node for node in ast.parse((root / ERRORS).read_text()).body if isinstance(node, ast.ClassDef))
    rows = "".join(f"| `{each.name}` | {ast.get_docstring(each)} |\n" for each in errors if "told" not in _names(each))
    return START + checks + KINDS + rows


def _names(node: ast.AST) -> set[str]:
    return {each.name for each in ast.walk(node) if isinstance(each, ast.FunctionDef)}


def _checks(module: ast.Module) -> Iterator[str]:
    """Yield for each function that makes checks what it tries, and a line for each fix that it offers."""
    constants = [each for each in module.body if isinstance(each, ast.Assign)]
    for function in (each for each in module.body if isinstance(each, ast.FunctionDef)):
        assigned = [*constants, *(each for each in ast.walk(function) if isinstance(each, ast.Assign))]
        calls = [
            call
            for call in ast.walk(function)
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Check" and len(call.args) >= WITH_FIX
        ]
        calls.sort(key=lambda call: call.lineno)
        made = [[_text(each, assigned) for each in call.args[:WITH_FIX]] for call in calls]
        lines = [f"- {found} **{fix}**\n" for _, found, fix in made if fix != UNKNOWN]
        if lines:
            tried = f"{ast.get_docstring(function)}\n\n" if "check" in function.name else ""
            yield f"\n### {made[0][0]}\n\n{tried}{''.join(dict.fromkeys(lines))}"


def _text(node: ast.expr, assigned: list[ast.Assign]) -> str:
    """Return a text as it stands in the source, with an ellipsis where the program fills something in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, assigned) for part in node.values)
    if isinstance(node, ast.IfExp):  # the fix, or an empty text where all is well
        return _text(node.body, assigned)
    if isinstance(node, ast.Name):
        before = [each for each in assigned if each.lineno < node.lineno and node.id in map(ast.unparse, each.targets)]
        if before:
            return _text(max(before, key=lambda each: each.lineno).value, assigned)
    return UNKNOWN
