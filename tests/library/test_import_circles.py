"""No modules of ours import each other in a circle, nor do folders of the library, for types or in functions either."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path("src")
# A folder imports folders of its own layer and of those before it.
LAYERS = (
    {"config", "engines", "io"},
    {"figures", "learn", "tables"},
    {"features", "genotypes", "graphs", "text", "web"},
)
# It puts the configuration of a project together, of all engines and applications, above what its folder is for.
ABOVE_ITS_FOLDER = {"whitewater.config.resolve"}


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


@pytest.fixture(scope="module")
def modules() -> dict[str, set[str]]:
    """The modules of ours, each with those that it imports."""
    files = {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in SOURCE.rglob("*.py")
    }
    assert len(files) > 200
    return {name: set(imported(path, set(files))) - {name} for name, path in files.items()}


def check_no_circle(graph: Mapping[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(reversed(error.args[1]))) from None


def test_no_modules_import_each_other_in_a_circle(modules: dict[str, set[str]]) -> None:
    check_no_circle(modules)


def unit(module: str) -> str:
    """Return the folder of the library that a module is in, or the module where it is in none."""
    parts = module.split(".")
    is_in_folder = parts[0] == "whitewater" and len(parts) > 1 and (SOURCE / "whitewater" / parts[1]).is_dir()
    return parts[1] if is_in_folder and module not in ABOVE_ITS_FOLDER else module


def test_folders_of_the_library_are_in_layers(modules: dict[str, set[str]]) -> None:
    library = {name: names for name, names in modules.items() if name.split(".")[0] == "whitewater"}
    graph: dict[str, set[str]] = {}
    for name, names in library.items():
        graph.setdefault(unit(name), set()).update({unit(each) for each in names} - {unit(name)})
    check_no_circle(graph)
    layer = {folder: number for number, folders in enumerate(LAYERS) for folder in folders}
    folders = {path.name for path in (SOURCE / "whitewater").iterdir() if (path / "__init__.py").is_file()}
    assert folders == {*layer, "cli", "template", "testing"}
    known = [(name, each) for name in layer for each in graph[name] if each in layer]
    assert [(name, each) for name, each in known if layer[each] > layer[name]] == []
