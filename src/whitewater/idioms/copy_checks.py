"""Copies between host and device that a loop repeats."""

from __future__ import annotations

import ast

from whitewater.idioms.kinds import REDUCTIONS, Kind
from whitewater.idioms.places import Comprehension, Loop, Place, root
from whitewater.idioms.row_checks import iterated
from whitewater.idioms.rules import ELEMENT_COPY, SAME_COPY, SCALAR_SUM, Rule
from whitewater.idioms.scopes import Scope

_TO_NUMBER = {"float", "int", "bool"}
_CROSSING_FUNCTIONS = {"cupy.asnumpy", "cupy.asarray", "cupy.array", "cudf.from_pandas", "cudf.DataFrame.from_pandas"}
_CROSSING_METHODS = {"to_host", "from_host"}


def check_same_copy(place: Place) -> Rule | None:
    """Find copies in a loop of data that do not change from turn to turn."""
    loop = place.loop
    moved = _moved(place.node, place.scope) if loop else None
    if loop is None or moved is None or not root(moved):
        return None
    return None if {root(moved), *_keys(moved)} & loop.changed else SAME_COPY


def check_element_copy(place: Place) -> Rule | None:
    """Find numbers taken one by one from an array of the device, and loops over its values."""
    if any(_is_line_on_device(each, place.scope) for each in iterated(place.node)):
        return ELEMENT_COPY
    element = _to_number(place.node)
    if not isinstance(element, ast.Subscript) or not isinstance(element.slice, ast.Name | ast.Tuple):
        return None
    known = place.scope.kind(element.value)
    is_on_device = known is not None and known.form == "array" and known.on_device
    return ELEMENT_COPY if is_on_device and _keys(element) & _targets(place.loops) else None


def check_scalar_sum(place: Place) -> Rule | None:
    """Find ``total += float(...)`` and ``list.append(float(...))`` of a reduction on the device, in a loop."""
    node, loop = place.node, place.loop
    if loop is None or loop.ends_early or isinstance(loop.node, Comprehension):
        return None
    if isinstance(node, ast.AugAssign):
        fetched = [node.value]
    elif isinstance(node, ast.Expr) and _is_append(node.value):
        fetched = node.value.args  # type: ignore[attr-defined]  # an append is a call
    else:
        return None
    numbers = [_to_number(each) for each in fetched]
    return SCALAR_SUM if any(each and _is_reduction(each, place.scope) for each in numbers) else None


def _moved(node: ast.AST, scope: Scope) -> ast.expr | None:
    """Return what a node copies between host and device."""
    if isinstance(node, ast.Attribute):
        return node.value if node.attr == "values_host" else None
    if not isinstance(node, ast.Call):
        return None
    if scope.dotted(node.func) in _CROSSING_FUNCTIONS:
        return _host_argument(node, scope)
    if not isinstance(node.func, ast.Attribute):
        return None
    if node.func.attr in _CROSSING_METHODS:
        return node.args[0] if node.args else None
    return node.func.value if _fetches(node.func.attr, scope.kind(node.func.value)) else None


def _host_argument(call: ast.Call, scope: Scope) -> ast.expr | None:
    """Return the argument of a function of CuPy or cuDF, unless an array of the device is merely looked at."""
    if not call.args:
        return None
    known = scope.kind(call.args[0])
    is_there = known is not None and known.library == "cupy" and not scope.dotted(call.func).endswith("asnumpy")
    return None if is_there else call.args[0]


def _fetches(method: str, receiver: Kind | None) -> bool:
    """Whether a method copies to the host: of CuPy's arrays, not of dictionaries."""
    if method == "to_pandas":
        return True
    if receiver is None:
        return False
    is_array = method == "get" and receiver.form == "array" and receiver.library == "cupy"
    return is_array or (method == "to_numpy" and receiver.library == "cudf")


def _to_number(node: ast.AST) -> ast.expr | None:
    """Return what ``float(...)``, ``int(...)`` or ``.item()`` makes a number of the host."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Name) and node.func.id in _TO_NUMBER and len(node.args) == 1:
        return node.args[0]
    is_item = isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args
    return node.func.value if is_item and isinstance(node.func, ast.Attribute) else None


def _is_reduction(expression: ast.expr, scope: Scope) -> bool:
    """Whether it is a reduction by the device's functions, or of one of its arrays."""
    if not isinstance(expression, ast.Call) or not isinstance(expression.func, ast.Attribute):
        return False
    library, function = scope.array_function(expression.func)
    if library:
        return library in {"cupy", "device"} and function.rpartition(".")[2] in REDUCTIONS
    known = scope.kind(expression.func.value)
    return known is not None and known.on_device and expression.func.attr in REDUCTIONS


def _is_append(expression: ast.expr) -> bool:
    return (
        isinstance(expression, ast.Call)
        and isinstance(expression.func, ast.Attribute)
        and expression.func.attr == "append"
    )


def _is_line_on_device(expression: ast.expr, scope: Scope) -> bool:
    known = scope.kind(expression)
    return known is not None and known.form == "array" and known.on_device and known.dimensions == 1


def _keys(expression: ast.expr) -> set[str]:
    """Return the names of the keys in ``name[key]``."""
    return {
        each.id
        for part in ast.walk(expression)
        if isinstance(part, ast.Subscript)
        for each in ast.walk(part.slice)
        if isinstance(each, ast.Name)
    }


def _targets(loops: tuple[Loop, ...]) -> set[str]:
    return set().union(*(loop.targets for loop in loops))
