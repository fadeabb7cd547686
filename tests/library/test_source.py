"""Rules of the source that no linter knows."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
FILES = sorted(SOURCE.rglob("*.py"))
ROW_BY_ROW = {"apply", "applymap", "iterrows", "itertuples"}


def called_methods(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr, node.lineno


def imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_nothing_is_computed_row_by_row(file: Path) -> None:
    rows = [
        f"{file}:{line}: .{name}()" for name, line in called_methods(ast.parse(file.read_text())) if name in ROW_BY_ROW
    ]
    assert not rows, "vectorize, or add a primitive to the device"


def test_the_library_knows_no_application_and_no_application_another() -> None:
    crossings = [
        (file.relative_to(SOURCE).as_posix(), module)
        for file in FILES
        for module in imported_modules(ast.parse(file.read_text()))
        if module.startswith("whitewater_apps") and not module.startswith(package(file))
    ]
    assert not crossings


def package(file: Path) -> str:
    """Return what a file may import of applications: the package of its own."""
    parts = file.relative_to(SOURCE).parts
    return f"whitewater_apps.{parts[1]}" if parts[0] == "whitewater_apps" else "nothing"


def test_configuration_imports_the_standard_library_and_pydantic_only() -> None:
    import sys

    allowed = {*sys.stdlib_module_names, "pydantic", "pydantic_core", "whitewater"}
    imported = {
        (file.name, module)
        for file in (SOURCE / "whitewater" / "config").rglob("*.py")
        for module in imported_modules(ast.parse(file.read_text()))
        if module.split(".")[0] not in allowed
    }
    assert not imported
