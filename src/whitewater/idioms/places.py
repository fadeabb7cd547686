"""Each expression and statement of a file with the loops and the function that it is in."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from whitewater.idioms.scopes import Function, Scope, imports_of, names_in

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Turns: TypeAlias = ast.For | ast.AsyncFor | ast.While | Comprehension
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Loop:
    """A loop or comprehension, and what happens at each turn."""

    node: Turns

    @cached_property
    def targets(self) -> frozenset[str]:
        """The names that the loop itself binds."""
        if isinstance(self.node, _COMPREHENSIONS):
            return frozenset().union(*(names_in(each.target) for each in self.node.generators))
        return frozenset() if isinstance(self.node, ast.While) else frozenset(names_in(self.node.target))

    @cached_property
    def turn(self) -> Sequence[ast.AST]:
        """What is evaluated at each turn."""
        if isinstance(self.node, _COMPREHENSIONS):
            return [self.node]
        return [self.node.test, *self.node.body] if isinstance(self.node, ast.While) else self.node.body

    @cached_property
    def changed(self) -> frozenset[str]:
        """The names that hold, or may hold, something else at the next turn."""
        found = set(self.targets)
        for node in self.nodes():
            found |= _changed_by(node)
        return frozenset(found)

    @cached_property
    def ends_early(self) -> bool:
        """Whether what a turn computes may end the loop, so that the turns cannot be computed together."""
        return isinstance(self.node, ast.While) or any(
            isinstance(node, ast.Break | ast.Return) for node in self.nodes()
        )

    def nodes(self) -> Iterator[ast.AST]:
        """Yield all nodes of a turn."""
        for part in self.turn:
            yield from ast.walk(part)


@dataclass(frozen=True)
class Place:
    """A node of a file's tree."""

    node: ast.AST
    scope: Scope
    loops: tuple[Loop, ...]

    @property
    def loop(self) -> Loop | None:
        """The innermost loop around it."""
        return self.loops[-1] if self.loops else None


def places(tree: ast.Module) -> list[Place]:
    """Return all places of a file, without those in functions that Numba or CuPy compile."""
    found: list[Place] = []
    scope = Scope(tree, imports=imports_of(tree))
    walk = _Walk(found, compiled=_compiled_by_call(scope))
    for node in tree.body:
        walk.visit(node, scope, ())
    return found


class _Walk:
    def __init__(self, found: list[Place], *, compiled: set[str]) -> None:
        self.found = found
        self.compiled = compiled

    def visit(self, node: ast.AST, scope: Scope, loops: tuple[Loop, ...]) -> None:
        self.found.append(Place(node, scope, loops))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            self._visit_function(node, scope, loops)
        elif isinstance(node, ast.For | ast.AsyncFor):
            self._visit_all([node.target, node.iter, *node.orelse], scope, loops)
            self._visit_all(node.body, scope, (*loops, Loop(node)))
        elif isinstance(node, ast.While):
            self._visit_all(node.orelse, scope, loops)
            self._visit_all([node.test, *node.body], scope, (*loops, Loop(node)))
        elif isinstance(node, _COMPREHENSIONS):
            self._visit_comprehension(node, scope, loops)
        else:
            self._visit_all(ast.iter_child_nodes(node), scope, loops)

    def _visit_all(self, nodes: Iterator[ast.AST] | Sequence[ast.AST], scope: Scope, loops: tuple[Loop, ...]) -> None:
        for node in nodes:
            self.visit(node, scope, loops)

    def _visit_function(self, node: Function, scope: Scope, loops: tuple[Loop, ...]) -> None:
        arguments = node.args
        around: list[ast.AST] = [*arguments.defaults, *(each for each in arguments.kw_defaults if each)]
        if not isinstance(node, ast.Lambda):
            around += node.decorator_list
        self._visit_all(around, scope, loops)
        if not isinstance(node, ast.Lambda) and (scope.is_compiled(node) or node.name in self.compiled):
            return
        inner = Scope(node, imports=scope.imports, parent=scope)
        self._visit_all([node.body] if isinstance(node, ast.Lambda) else node.body, inner, ())

    def _visit_comprehension(self, node: Comprehension, scope: Scope, loops: tuple[Loop, ...]) -> None:
        first, *others = node.generators
        self.visit(first.iter, scope, loops)
        inside = (*loops, Loop(node))
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._visit_all([*results, *first.ifs], scope, inside)
        for generator in others:
            self._visit_all([generator.iter, *generator.ifs], scope, inside)


def _compiled_by_call(scope: Scope) -> set[str]:
    """Return the functions that a call compiles, as `fast = numba.njit(slow)` does."""
    if not any(each.startswith("numba") for each in scope.imports.values()):
        return set()
    found: set[str] = set()
    for node in ast.walk(scope.tree):
        if isinstance(node, ast.Call):
            function = node.func.func if isinstance(node.func, ast.Call) else node.func
            if scope.dotted(function).startswith("numba."):
                found |= {each.id for each in node.args if isinstance(each, ast.Name)}
    return found


def _changed_by(node: ast.AST) -> set[str]:
    """Return the names that a node binds, stores into, or hands to a call that is made for its effect."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return {root(node)}
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        receiver = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        return {root(each) for each in [*receiver, *call.args, *(keyword.value for keyword in call.keywords)]}
    if isinstance(node, ast.keyword) and node.arg == "out":
        return names_in(node.value)
    return set()


def root(expression: ast.expr) -> str:
    """Return the name at the start of `name.attribute[key]`, or an empty string."""
    while isinstance(expression, ast.Attribute | ast.Subscript | ast.Starred):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else ""
