"""Rules of the source that no linter knows."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "whitewater"
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
    assert not rows, "vectorise, or add a primitive to the device"


def test_applications_do_not_import_each_other_and_nothing_below_them_imports_them() -> None:
    from whitewater.registry import APPLICATIONS

    crossings = [
        (file.relative_to(SOURCE).as_posix(), module)
        for file in FILES
        for module in imported_modules(ast.parse(file.read_text()))
        for application in APPLICATIONS
        if module.startswith(f"whitewater.{application}") and file.relative_to(SOURCE).parts[0] != application
    ]
    assert not crossings


def test_devices_import_nothing_of_ours_but_what_has_no_dependency() -> None:
    allowed = (
        "whitewater.devices",
        "whitewater.arrow_arrays",
        "whitewater.errors",
        "whitewater.versions",
        "whitewater.cluster",
        "whitewater.workers",
        "whitewater.config",
    )
    imported = {
        (file.name, module)
        for file in (SOURCE / "devices").rglob("*.py")
        for module in imported_modules(ast.parse(file.read_text()))
        if module.startswith("whitewater") and not module.startswith(allowed)
    }
    assert not imported


def test_configuration_imports_the_standard_library_and_pydantic_only() -> None:
    import sys

    allowed = {*sys.stdlib_module_names, "pydantic", "pydantic_core", "whitewater"}
    imported = {
        (file.name, module)
        for file in (SOURCE / "config").rglob("*.py")
        for module in imported_modules(ast.parse(file.read_text()))
        if module.split(".")[0] not in allowed
    }
    assert not imported
