"""The guarantees ask from outside: no module here, nor what it imports, imports the product.

What they share with the tests of a project, `whitewater.testing`, is not part of it: it imports nothing else of ours.
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
    return names | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


def reached() -> Iterator[tuple[Path, set[str]]]:
    """Yield each file of the guarantees, of the harness, and of the tests that they import, with what it imports."""
    waiting, seen = [*HERE.rglob("*.py"), *ROOT.glob(f"src/{HARNESS.replace('.', '/')}/*.py")], set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            names = imported(path)
            yield path, names
            files = (ROOT / f"{name.replace('.', '/')}.py" for name in names if name.split(".")[0] == "tests")
            waiting += [file for file in files if file.is_file()]


def test_no_guarantee_imports_what_it_tests() -> None:
    files = dict(reached())
    assert len(files) > len(list(HERE.glob("*.py")))
    ours = {str(path.relative_to(ROOT)): {name for name in names if name.split(".")[0].startswith("whitewater")}
            for path, names in files.items()}  # fmt: skip
    assert {path: names for path, names in ours.items() if {name for name in names if not is_harness(name)}} == {}


def is_harness(module: str) -> bool:
    return module == HARNESS or module.startswith(f"{HARNESS}.")
