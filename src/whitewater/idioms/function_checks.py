"""Functions of Python that a library calls for each row, value, group or element."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whitewater.idioms.places import Place
from whitewater.idioms.rules import DISGUISED_LOOP, FUNCTION_OF_GROUPS, FUNCTION_OF_ROWS, Rule
from whitewater.idioms.scopes import Scope

_OF_ROWS = {"apply", "map", "applymap"}
_OF_GROUPS = {"apply", "agg", "aggregate", "transform", "filter"}
_DISGUISED = {"vectorize", "frompyfunc", "apply_along_axis"}


def check_function_of_rows(place: Place) -> Rule | None:
    """Find ``apply(f, axis=1)``, ``applymap``, and ``apply`` or ``map`` of a function on a column."""
    call = place.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or _is_compiled(call):
        return None
    method = call.func.attr
    if method not in _OF_ROWS or place.scope.dotted(call.func):
        return None
    known = place.scope.kind(call.func.value)
    if method == "applymap":
        return FUNCTION_OF_ROWS
    if known is not None and known.library == "cudf":  # cuDF compiles them
        return None
    if method == "apply" and _is_by_rows(call):
        return FUNCTION_OF_ROWS
    is_by_value = known is not None and (known.form, method) in {
        ("column", "apply"), ("column", "map"), ("frame", "map"),
    }  # fmt: skip
    return FUNCTION_OF_ROWS if is_by_value and _has_python_function(call, place.scope) else None


def check_function_of_groups(place: Place) -> Rule | None:
    """Find methods of a group-by, or of windows, that are given a function of Python."""
    call = place.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or _is_compiled(call):
        return None
    if call.func.attr not in _OF_GROUPS:
        return None
    known = place.scope.kind(call.func.value)
    is_of_groups = known is not None and known.form == "groups"
    return FUNCTION_OF_GROUPS if is_of_groups and _has_python_function(call, place.scope) else None


def check_disguised_loop(place: Place) -> Rule | None:
    """Find NumPy's functions that hide a loop of Python; ``cupy.vectorize`` compiles and is none of them."""
    node = place.node
    if not isinstance(node, ast.Attribute | ast.Name) or not isinstance(node.ctx, ast.Load):
        return None
    library, function = place.scope.array_function(node)
    return DISGUISED_LOOP if library in {"numpy", "device"} and function in _DISGUISED else None


def _is_by_rows(call: ast.Call) -> bool:
    axes = [each.value for each in call.keywords if each.arg == "axis"]
    return any(isinstance(each, ast.Constant) and each.value in (1, "columns") for each in axes)


def _is_compiled(call: ast.Call) -> bool:
    engines = [each.value for each in call.keywords if each.arg == "engine"]
    return any(isinstance(each, ast.Constant) and each.value in ("numba", "jit") for each in engines)


def _has_python_function(call: ast.Call, scope: Scope) -> bool:
    return any(
        scope.is_python_function(each)
        for argument in [*call.args, *(keyword.value for keyword in call.keywords)]
        for each in _given(argument)
    )


def _given(argument: ast.expr) -> Iterator[ast.expr]:
    """Yield an argument, and what it holds where it is a dictionary, list or tuple of aggregations."""
    yield argument
    inner = argument.values if isinstance(argument, ast.Dict) else getattr(argument, "elts", [])
    for each in inner:
        yield from _given(each)
