"""Dask graphs that a loop runs again and again."""

from __future__ import annotations

import ast

from whitewater.idioms.places import Loop, Place
from whitewater.idioms.row_checks import definition, iterated
from whitewater.idioms.rules import COMPUTE_IN_LOOP, Rule
from whitewater.idioms.scopes import Scope

# One partition after another is how data beyond the memory are read.
_PARTS = {"partitions", "get_partition", "blocks", "to_delayed"}


def check_compute(place: Place) -> Rule | None:
    """Find ``x.compute()`` and ``dask.compute(...)`` in a loop whose turns do not depend on what they compute."""
    call, loop = place.node, place.loop
    if loop is None or loop.ends_early or not isinstance(call, ast.Call):
        return None
    if "_" in loop.targets or not _computes(call, place.scope):
        return None
    return None if _is_of_parts(call, loop, place.scope) else COMPUTE_IN_LOOP


def _is_of_parts(call: ast.Call, loop: Loop, scope: Scope) -> bool:
    """Whether it computes one partition: by its number, or in a loop over the partitions."""
    parts = [call, *(definition(each, scope) for each in iterated(loop.node))]
    return any(isinstance(node, ast.Attribute) and node.attr in _PARTS for part in parts for node in ast.walk(part))


def _computes(call: ast.Call, scope: Scope) -> bool:
    if scope.dotted(call.func) == "dask.compute":
        return True
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "compute" or scope.dotted(call.func):
        return False
    start = _start(call.func.value)
    known = scope.kind(start)
    if known is not None:
        return known.library == "dask" or (known.library == "" and _imports_dask(scope))
    return scope.dotted(start).startswith("dask") or (_imports_dask(scope) and not scope.dotted(start))


def _start(expression: ast.expr) -> ast.expr:
    """Return the name, or the call by its full name, that a chain of methods and keys starts from."""
    while isinstance(expression, ast.Attribute | ast.Subscript | ast.Call):
        expression = expression.func if isinstance(expression, ast.Call) else expression.value
    return expression


def _imports_dask(scope: Scope) -> bool:
    return any(each.split(".")[0] in {"dask", "dask_cudf"} for each in scope.imports.values())
