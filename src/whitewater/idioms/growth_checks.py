"""Frames and arrays that grow in a loop, and files that are read at each turn."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from whitewater.idioms.places import Comprehension, Loop, Place, root
from whitewater.idioms.rules import GROWING_ARRAY, GROWING_FRAME, SAME_FILE, Rule
from whitewater.idioms.scopes import Scope, names_in

_FRAME_JOINERS = {"concat", "append"}
_ARRAY_JOINERS = {
    "append", "insert", "concatenate", "concat", "hstack", "vstack", "column_stack", "row_stack", "dstack",
}  # fmt: skip
_ARRAY_INDEXERS = {"r_", "c_"}
_ARRAY_READERS = {"load", "loadtxt", "genfromtxt", "fromfile"}
_PURE = {"str", "Path"}


def check_growing_frame(place: Place) -> Rule | None:
    """Find ``x = concat([x, ...])``, ``x = x.append(...)`` and ``x.loc[len(x)] = ...`` in a loop."""
    node, loop = place.node, place.loop
    if loop is None or not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return None
    target = node.targets[0]
    if _is_new_row(target):
        return GROWING_FRAME
    return GROWING_FRAME if _extends_frame(target, node.value, place.scope) and _is_kept(target, node, loop) else None


def check_growing_array(place: Place) -> Rule | None:
    """Find ``x = np.append(x, ...)``, ``x = np.concatenate([x, ...])`` and their like in a loop."""
    node, loop = place.node, place.loop
    if loop is None or not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return None
    target = node.targets[0]
    return GROWING_ARRAY if _extends_array(target, node.value, place.scope) and _is_kept(target, node, loop) else None


def check_same_file(place: Place) -> Rule | None:
    """Find readers in a loop over something else, none of whose arguments changes from turn to turn."""
    call, loop = place.node, place.loop
    if loop is None or loop.ends_early or "_" in loop.targets or not isinstance(call, ast.Call) or not call.args:
        return None
    if not _reads(call, place.scope) or not _is_path(call.args[0], place.scope):
        return None
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return None if any(_varies(each, loop) for each in given) else SAME_FILE


def _extends_frame(target: ast.expr, value: ast.expr, scope: Scope) -> bool:
    if not isinstance(value, ast.Call):
        return False
    if scope.frame_function(value.func)[1] in _FRAME_JOINERS:
        return _has(target, _listed(value))
    is_append = isinstance(value.func, ast.Attribute) and value.func.attr == "append"
    if not is_append or not isinstance(value.func, ast.Attribute) or not _same(target, value.func.value):
        return False
    known = scope.kind(target)
    is_table = known is not None and known.form in {"frame", "column"}
    return is_table or any(keyword.arg == "ignore_index" for keyword in value.keywords)


def _extends_array(target: ast.expr, value: ast.expr, scope: Scope) -> bool:
    if isinstance(value, ast.Subscript):
        keys = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
        return scope.array_function(value.value)[1] in _ARRAY_INDEXERS and _has(target, keys)
    if not isinstance(value, ast.Call) or scope.array_function(value.func)[1] not in _ARRAY_JOINERS:
        return False
    return _has(target, [*value.args[:1], *_listed(value)])


def _listed(call: ast.Call) -> list[ast.expr]:
    """Return the items of the list or tuple that a call is given first."""
    first = call.args[0] if call.args else next((each.value for each in call.keywords if each.arg == "objs"), None)
    return first.elts if isinstance(first, ast.List | ast.Tuple) else []


def _is_new_row(target: ast.expr) -> bool:
    """Whether it is ``x.loc[len(x)]`` or ``x.loc[x.shape[0]]``."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Attribute):
        return False
    if target.value.attr != "loc":
        return False
    frame = ast.dump(target.value.value)
    lengths = [each for each in ast.walk(target.slice) if isinstance(each, ast.Call | ast.Attribute)]
    return any(ast.dump(measured) == frame for each in lengths for measured in _measured(each))


def _measured(length: ast.Call | ast.Attribute) -> list[ast.expr]:
    if isinstance(length, ast.Attribute):
        return [length.value] if length.attr == "shape" else []
    is_len = isinstance(length.func, ast.Name) and length.func.id == "len"
    return length.args if is_len else []


def _is_kept(target: ast.expr, growth: ast.Assign, loop: Loop) -> bool:
    """Whether the target is not made anew at each turn."""
    if root(target) in loop.targets:
        return False
    others = (binding for node in loop.nodes() if node is not growth for binding in _bindings(node))
    return not any(
        isinstance(each, ast.Name | ast.Attribute) and _same(target, each) and root(target) not in names_in(value)
        for bound, value in others
        for each in ast.walk(bound)
    )


def _bindings(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """Return what a statement binds, tuples as a whole, and to what."""
    if isinstance(node, ast.Assign):
        return [(target, node.value) for target in node.targets]
    if isinstance(node, ast.For | ast.AsyncFor):
        return [(node.target, node.iter)]
    return [(node.optional_vars, node.context_expr)] if isinstance(node, ast.withitem) and node.optional_vars else []


def _has(target: ast.expr, items: Iterable[ast.expr]) -> bool:
    return any(_same(target, each) for each in items)


def _same(first: ast.expr, second: ast.expr) -> bool:
    """Whether both are the same name or attribute, read or written."""
    return isinstance(first, ast.Name | ast.Attribute) and ast.unparse(first) == ast.unparse(second)


def _reads(call: ast.Call, scope: Scope) -> bool:
    is_table = scope.frame_function(call.func)[1].startswith("read_")
    return is_table or scope.array_function(call.func)[1] in _ARRAY_READERS


def _is_path(expression: ast.expr, scope: Scope) -> bool:
    known = scope.kind(expression)
    if known is not None and known.form == "path":
        return True
    if isinstance(expression, ast.BinOp):
        return any(_is_path(each, scope) for each in (expression.left, expression.right))
    return isinstance(expression, ast.Name) and (expression.id == "path" or expression.id.endswith("_path"))


def _varies(expression: ast.expr, loop: Loop) -> bool:
    """Whether a value may differ at the next turn: it has a name that changes, or a call that may answer anew."""
    calls = [each.func for each in ast.walk(expression) if isinstance(each, ast.Call)]
    is_pure = all(isinstance(each, ast.Name) and each.id in _PURE for each in calls)
    has_own_names = any(isinstance(each, Comprehension | ast.Lambda | ast.NamedExpr) for each in ast.walk(expression))
    return bool(names_in(expression) & loop.changed) or not is_pure or has_own_names
