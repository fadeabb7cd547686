"""All rules, applied to one source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from whitewater.idioms.copy_checks import check_element_copy, check_same_copy, check_scalar_sum
from whitewater.idioms.dask_checks import check_compute
from whitewater.idioms.function_checks import check_disguised_loop, check_function_of_groups, check_function_of_rows
from whitewater.idioms.growth_checks import check_growing_array, check_growing_frame, check_same_file
from whitewater.idioms.places import Comprehension, Place, places
from whitewater.idioms.row_checks import check_column_iteration, check_row_iterator, check_row_loop
from whitewater.idioms.rules import Finding, Rule
from whitewater.idioms.sources import Source
from whitewater.idioms.suppressions import without_suppressed

Check = Callable[[Place], Rule | None]
_OF_CALLS: tuple[Check, ...] = (
    check_row_iterator,
    check_same_file,
    check_function_of_rows,
    check_function_of_groups,
    check_same_copy,
    check_element_copy,
    check_compute,
)
_OF_COMPREHENSIONS: tuple[Check, ...] = (check_column_iteration, check_element_copy)
_CHECKS: dict[type[ast.AST], tuple[Check, ...]] = {
    ast.Call: _OF_CALLS,
    ast.For: (check_row_loop, *_OF_COMPREHENSIONS),
    ast.AsyncFor: _OF_COMPREHENSIONS,
    ast.ListComp: _OF_COMPREHENSIONS,
    ast.SetComp: _OF_COMPREHENSIONS,
    ast.DictComp: _OF_COMPREHENSIONS,
    ast.GeneratorExp: _OF_COMPREHENSIONS,
    ast.Assign: (check_growing_frame, check_growing_array),
    ast.AugAssign: (check_scalar_sum,),
    ast.Expr: (check_scalar_sum,),
    ast.Attribute: (check_disguised_loop, check_same_copy),
    ast.Name: (check_disguised_loop,),
}


def inspect(source: Source) -> list[Finding]:
    """Return what the rules find in a source, in the order of its lines, without what its comments suppress."""
    found = dict.fromkeys(_findings(source.tree))
    return sorted(without_suppressed(found, source.comments), key=lambda each: (each.line, each.column, each.rule.code))


def _findings(tree: ast.Module) -> Iterator[Finding]:
    for place in places(tree):
        for check in _CHECKS.get(type(place.node), ()):
            rule = check(place)
            if rule is not None and isinstance(place.node, ast.expr | ast.stmt):
                yield _finding(rule, place.node)


def _finding(rule: Rule, node: ast.expr | ast.stmt) -> Finding:
    return Finding(rule, node.lineno, node.col_offset + 1, _last_line_of_head(node))


def _last_line_of_head(node: ast.expr | ast.stmt) -> int:
    """Return where a comment may still stand: at the end of a loop's first line, or of the whole expression."""
    head: ast.expr | ast.stmt = node.iter if isinstance(node, ast.For | ast.AsyncFor) else node
    if isinstance(node, Comprehension):
        head = node
    return head.end_lineno or node.lineno
