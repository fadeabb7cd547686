"""Loops over rows: by position, by iterators of rows, and over the values of columns."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whitewater.idioms.places import Comprehension, Loop, Place
from whitewater.idioms.rules import COLUMN_ITERATION, ROW_ITERATOR, ROW_LOOP, Rule
from whitewater.idioms.scopes import Scope

_ROW_ITERATORS = {"iterrows", "itertuples"}
_INDEXERS = {"iloc", "loc", "iat", "at"}
_SIDE_BY_SIDE = {"zip", "enumerate", "reversed"}
_SCALAR_FUNCTIONS = {"float", "int", "str", "bool"}


def check_row_loop(place: Place) -> Rule | None:
    """Find ``for i in range(len(x))`` whose body takes single rows or values of a frame or array by ``i``."""
    node = place.node
    if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name):
        return None
    if not _counts_rows(node.iter, place.scope):
        return None
    return ROW_LOOP if _takes_single_rows(Loop(node), node.target.id, place.scope) else None


def check_row_iterator(place: Place) -> Rule | None:
    """Find calls of methods that iterate over rows; only frames have them."""
    node = place.node
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ROW_ITERATORS
    return ROW_ITERATOR if is_call else None


def check_column_iteration(place: Place) -> Rule | None:
    """Find loops and comprehensions over a column, alone or in ``zip`` and ``enumerate``."""
    return COLUMN_ITERATION if any(_is_column(each, place.scope) for each in iterated(place.node)) else None


def iterated(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a loop or comprehension runs over, and each part where it runs over several side by side."""
    for source in _sources(node):
        waiting = [source]
        while waiting:
            each = waiting.pop()
            yield each
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id in _SIDE_BY_SIDE:
                waiting.extend(each.args)


def _sources(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.For | ast.AsyncFor):
        return [node.iter]
    return [each.iter for each in node.generators] if isinstance(node, Comprehension) else []


def _is_column(expression: ast.expr, scope: Scope) -> bool:
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
        if expression.func.attr in {"items", "to_numpy"} and not expression.args:
            expression = expression.func.value
    elif isinstance(expression, ast.Attribute) and expression.attr == "values":
        expression = expression.value
    known = scope.kind(expression)
    return known is not None and known.form == "column"


def _counts_rows(expression: ast.expr, scope: Scope) -> bool:
    """Whether it is a range up to the length of a frame or array, given there or by a name."""
    if not isinstance(expression, ast.Call) or not isinstance(expression.func, ast.Name) or not expression.args:
        return False
    if expression.func.id != "range":
        return False
    stop = expression.args[0] if len(expression.args) == 1 else expression.args[1]
    return any(_is_length(node, scope) for node in ast.walk(definition(stop, scope)))


def definition(expression: ast.expr, scope: Scope) -> ast.expr:
    """Return what a name stands for, where it is assigned once; else the expression itself."""
    return scope.only_value(expression.id) or expression if isinstance(expression, ast.Name) else expression


def _is_length(node: ast.AST, scope: Scope) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
        measured: ast.expr = node.args[0]
    elif isinstance(node, ast.Attribute) and node.attr in {"size", "shape"}:
        measured = node.value
    else:
        return False
    known = scope.kind(measured)
    return known is not None and known.form in {"frame", "column", "array"}


def _takes_single_rows(loop: Loop, position: str, scope: Scope) -> bool:
    nodes = list(loop.nodes())
    return (
        any(_is_row_of_table(node, position, scope) for node in nodes)
        or any(_is_number_of_array(node, position, scope) for use in nodes for node in _computed_with(use))
        or any(_is_row_of_array(node, position, scope) for use in nodes for node in _scalars(use, scope))
    )


def _is_row_of_table(node: ast.AST, position: str, scope: Scope) -> bool:
    """Whether a row of a frame, or a value of a column, is taken by the loop's position."""
    if not isinstance(node, ast.Subscript):
        return False
    receiver = node.value
    if isinstance(receiver, ast.Attribute) and receiver.attr in _INDEXERS:
        known = scope.kind(receiver.value)
        return known is not None and known.form in {"frame", "column"} and _is_by(_first(node.slice), position)
    known = scope.kind(receiver)
    return known is not None and known.form == "column" and _is_by(node.slice, position)


def _is_number_of_array(node: ast.AST, position: str, scope: Scope) -> bool:
    """Whether it is a single number of an array whose dimensions are known."""
    known = scope.kind(node.value) if isinstance(node, ast.Subscript) else None
    if known is None or known.form != "array" or not isinstance(node, ast.Subscript):
        return False
    if isinstance(node.slice, ast.Tuple):
        return known.dimensions == len(node.slice.elts) and _are_numbers(node.slice, position)
    return known.dimensions == 1 and _is_by(node.slice, position)


def _is_row_of_array(node: ast.AST, position: str, scope: Scope) -> bool:
    """Whether it is an element of an array of unknown dimensions."""
    if not isinstance(node, ast.Subscript) or not _is_by(node.slice, position):
        return False
    known = scope.kind(node.value)
    return known is not None and known.form == "array" and known.dimensions is None


def _computed_with(node: ast.AST) -> list[ast.expr]:
    """Return the operands of arithmetic and comparisons: one that is only handed on may be a setting."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    return [node.operand] if isinstance(node, ast.UnaryOp) else []


def _scalars(node: ast.AST, scope: Scope) -> list[ast.expr]:
    """Return the expressions that a node uses as single numbers: compared in a condition, or converted."""
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        test = node.test
        return [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SCALAR_FUNCTIONS:
        return node.args
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        known = scope.kind(node.target)
        return _operands(node.value) if known and known.form == "number" else []
    return []


def _operands(expression: ast.expr) -> list[ast.expr]:
    if isinstance(expression, ast.BinOp):
        return [*_operands(expression.left), *_operands(expression.right)]
    return [expression]


def _first(key: ast.expr) -> ast.expr:
    return key.elts[0] if isinstance(key, ast.Tuple) and key.elts else key


def _is_by(key: ast.expr, position: str) -> bool:
    """Whether a key is the position itself, or a neighbour: ``i``, ``i - 1``."""
    if isinstance(key, ast.BinOp) and isinstance(key.right, ast.Constant):
        key = key.left
    return isinstance(key, ast.Name) and key.id == position


def _are_numbers(key: ast.Tuple, position: str) -> bool:
    """Whether all keys are single numbers, of which one is the position."""
    are_single = all(isinstance(each, ast.Name | ast.Constant | ast.BinOp) for each in key.elts)
    return are_single and any(_is_by(each, position) for each in key.elts)
