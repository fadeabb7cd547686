"""No modules of ours import each other in a circle, not for types either, nor within functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCE = Path("src")


def imported(path: Path, modules: set[str]) -> Iterator[str]:
    """Yield the modules of ours that a file names anywhere: `from package import name` may mean a module or a name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            names = [f"{node.module}.{each.name}" for each in node.names]
            yield from (name for name in names if name in modules)
            if any(name not in modules for name in names):
                yield node.module


def test_no_modules_import_each_other_in_a_circle() -> None:
    files = {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in SOURCE.rglob("*.py")
    }
    assert len(files) > 200
    graph = {name: set(imported(path, set(files))) - {name} for name, path in files.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(reversed(error.args[1]))) from None
