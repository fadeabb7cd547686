"""The guarantees ask from outside: no module here, nor what it imports, imports the product.

What they share with the tests of a project, `whitewater.testing`, is not part of it: what they import of that imports
nothing else of ours.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HARNESS = "whitewater.testing"


def imported(path: Path) -> set[str]:
    """Return the modules that a file imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def reached() -> Iterator[tuple[Path, set[str]]]:
    """Yield each file of the guarantees, here and of projects, and those of harness and tests that they import."""
    waiting, seen = [*HERE.rglob("*.py"), file_of(f"{HARNESS}.guarantees")], set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            names = imported(path)
            yield path, names
            waiting += [file for name in names if (file := file_of(name)).is_file()]


def file_of(module: str) -> Path:
    return ROOT / ("src" if is_harness(module) else "") / f"{module.replace('.', '/')}.py"


def test_no_guarantee_imports_what_it_tests() -> None:
    files = dict(reached())
    assert file_of(f"{HARNESS}.running") in files
    ours = {str(path.relative_to(ROOT)): {name for name in names if name.split(".")[0].startswith("whitewater")}
            for path, names in files.items()}  # fmt: skip
    assert {path: names for path, names in ours.items() if {name for name in names if not is_harness(name)}} == {}


def is_harness(module: str) -> bool:
    return module == HARNESS or module.startswith(f"{HARNESS}.")
