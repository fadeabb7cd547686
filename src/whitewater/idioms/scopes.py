"""Which names hold frames, columns and arrays, inferred function by function from what they are assigned.

A name has a kind where every assignment of its function gives it the same one; a name that is assigned different
kinds, or anything that is not understood, has none, and no rule judges it. A parameter has the kind that its
annotation says, or, where it has none, a frame's by its name (`df`, `frame`, `trips_df`).
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from whitewater.idioms import kinds
from whitewater.idioms.kinds import Kind, joined

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_PASSES = 4
_FRAME_NAMES = {"df", "ddf", "gdf", "pdf", "frame", "dataframe"}
_ANNOTATED: dict[str, Kind] = {
    "DataFrame": Kind("frame"),
    "Series": Kind("column"),
    "ndarray": Kind("array"),
    "NDArray": Kind("array"),
    "Path": Kind("path"),
    "int": Kind("number"),
    "float": Kind("number"),
}
_PATH_MAKERS = {"pathlib.Path", "os.path.join", "Path"}
# Decorators, and functions called with the name of a function, that compile its loops.
_COMPILERS = ("numba.", "cupyx.jit.", "cupy.fuse", "whitewater.devices.kernel.")


class Scope:
    """The names of a file or of one of its functions.

    Parameters
    ----------
    tree
        The module or function.
    imports
        Of the whole file: what each imported name stands for, as ``{"pd": "pandas"}``.
    parent
        The scope around a function.
    """

    def __init__(self, tree: ast.Module | Function, *, imports: dict[str, str], parent: Scope | None = None) -> None:
        self.tree = tree
        self.imports = imports
        self.parent = parent
        self._kinds: dict[str, Kind | None] | None = None

    @cached_property
    def _values(self) -> dict[str, list[ast.expr | Kind | None]]:
        """What each name is bound to, of which most scopes are never asked."""
        values: dict[str, list[ast.expr | Kind | None]] = defaultdict(list)
        for name, value in _bindings(self.tree):
            values[name].append(value)
        return dict(values)

    @cached_property
    def _functions(self) -> set[str]:
        nodes = (each for each in own_nodes(self.tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
        return {each.name for each in nodes if not self.is_compiled(each)}

    def kind(self, expression: ast.expr) -> Kind | None:
        """Return what an expression holds, or None where that cannot be told."""
        infer = _INFER.get(type(expression))
        return infer(self, expression) if infer else None

    def dotted(self, expression: ast.expr) -> str:
        """Return the full name of a module's function, as ``pandas.concat`` for ``pd.concat``; else an empty string."""
        if isinstance(expression, ast.Name):
            if expression.id in {"xp", "frames"}:
                return expression.id
            full = self.imports.get(expression.id, "")
            return "" if full and self._is_local(expression.id) else full
        if not isinstance(expression, ast.Attribute):
            return ""
        if expression.attr == "xp" or (expression.attr == "frames" and _last(expression.value) == "device"):
            return expression.attr
        base = self.dotted(expression.value)
        return f"{base}.{expression.attr}" if base else ""

    def frame_function(self, expression: ast.expr) -> tuple[str, str]:
        """Return the library and the name of a function of a library of frames, or empty strings."""
        return _of_modules(self.dotted(expression), kinds.FRAME_MODULES)

    def array_function(self, expression: ast.expr) -> tuple[str, str]:
        """Return the library and the name of a function of a library of arrays, or empty strings."""
        return _of_modules(self.dotted(expression), kinds.ARRAY_MODULES)

    def is_python_function(self, expression: ast.expr) -> bool:
        """Whether it is a function that runs in the interpreter: a lambda, one defined in this file, or a built-in."""
        if isinstance(expression, ast.Lambda):
            return True
        if isinstance(expression, ast.Call) and self.dotted(expression.func) == "functools.partial":
            return bool(expression.args) and self.is_python_function(expression.args[0])
        if not isinstance(expression, ast.Name):
            return False
        return self._defines(expression.id) or expression.id in {"str", "int", "float", "bool", "len", "repr", "hash"}

    def is_compiled(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """Whether a decorator compiles the function, so that loops in it are no loops of the interpreter."""
        decorators = [each.func if isinstance(each, ast.Call) else each for each in function.decorator_list]
        # As written, too: some import Numba by a function, when it is there.
        return any((self.dotted(each) or ast.unparse(each)).startswith(_COMPILERS) for each in decorators)

    def _defines(self, name: str) -> bool:
        if name in self._functions:
            return True
        return self.parent._defines(name) if self.parent and name not in self._values else False

    def _is_local(self, name: str) -> bool:
        """Whether a function's own variable hides an imported name."""
        if self.parent is None:
            return False
        return name in self._values or self.parent._is_local(name)

    def named(self, name: str) -> Kind | None:
        """Return the kind of a variable, looked up from this scope outwards."""
        if name in self._values:
            return self._inferred().get(name)
        return self.parent.named(name) if self.parent else None

    def only_value(self, name: str) -> ast.expr | None:
        """Return the expression that a variable is assigned, where it is assigned once."""
        if name not in self._values:
            return self.parent.only_value(name) if self.parent else None
        values = self._values[name]
        return values[0] if len(values) == 1 and isinstance(values[0], ast.expr) else None

    def _inferred(self) -> dict[str, Kind | None]:
        """Infer all kinds; first as if an assignment of a name from itself kept its kind, at last as it is."""
        if self._kinds is None:
            self._kinds = {}
            for turn in range(_PASSES):
                strict = turn == _PASSES - 1
                self._kinds = {name: self._common(name, values, strict=strict) for name, values in self._values.items()}
        return self._kinds

    def _common(self, name: str, values: Iterable[ast.expr | Kind | None], *, strict: bool) -> Kind | None:
        result: Kind | None = None
        for value in values:
            found = self.kind(value) if isinstance(value, ast.expr) else value
            if found is None:
                if not strict and isinstance(value, ast.expr) and name in names_in(value):
                    continue
                return None
            result = found if result is None else joined(result, found)
            if result is None:
                return None
        return result

    def _of_name(self, expression: ast.Name) -> Kind | None:
        return self.named(expression.id)

    def _of_constant(self, expression: ast.Constant) -> Kind | None:
        if isinstance(expression.value, int | float | complex):
            return Kind("number")
        return Kind("path") if isinstance(expression.value, str) else None

    def _of_text(self, expression: ast.JoinedStr) -> Kind:
        return Kind("path")

    def _of_call(self, call: ast.Call) -> Kind | None:
        library, function = self.frame_function(call.func)
        if library:
            return kinds.of_frame_function(library, function, {each.arg or "" for each in call.keywords})
        library, function = self.array_function(call.func)
        if library:
            return kinds.of_array_function(library, function, self._dimensions(function, call))
        if self.dotted(call.func) in _PATH_MAKERS:
            return Kind("path")
        return self._of_method_call(call)

    def _of_method_call(self, call: ast.Call) -> Kind | None:
        if isinstance(call.func, ast.Name):
            return Kind("number") if call.func.id in {"len", "float", "int"} else None
        if not isinstance(call.func, ast.Attribute) or self.dotted(call.func):
            return None
        receiver = self.kind(call.func.value)
        if call.func.attr == "groupby":
            return Kind("groups", receiver.library if receiver else "")
        if call.func.attr in {"to_host", "from_host"} and call.args:
            moved = self.kind(call.args[0])
            library = "numpy" if call.func.attr == "to_host" else "device"
            return Kind("array", library, moved.dimensions if moved else None)
        return kinds.of_method(receiver, call.func.attr) if receiver else None

    def _dimensions(self, function: str, call: ast.Call) -> int | None:
        """Return the dimensions of the array that a function makes, where its first argument tells them."""
        if not call.args:
            return None
        first = call.args[0]
        if function == "array" and isinstance(first, ast.List | ast.ListComp):
            items = first.elts[:1] if isinstance(first, ast.List) else [first.elt]
            return 1 if any(self._is_number(each) for each in items) else None
        if function in kinds.SHAPED:
            if isinstance(first, ast.Tuple):
                return None if any(isinstance(each, ast.Starred) for each in first.elts) else len(first.elts)
            return 1 if self._is_number(first) else None
        known = self.kind(first)
        return known.dimensions if known and known.form == "array" else None

    def _is_number(self, expression: ast.expr) -> bool:
        known = self.kind(expression)
        return known is not None and known.form == "number"

    def _of_attribute(self, expression: ast.Attribute) -> Kind | None:
        if expression.attr == "size" and self.kind(expression.value):
            return Kind("number")
        receiver = self.kind(expression.value)
        if receiver is None or self.dotted(expression):
            return None
        if receiver.form == "groups":
            return receiver
        if expression.attr == "values" and receiver.form in {"frame", "column"}:
            return kinds.values_of(receiver)
        if receiver.form == "frame" and expression.attr not in kinds.NOT_COLUMNS:
            return Kind("column", receiver.library)
        return None

    def _of_subscript(self, expression: ast.Subscript) -> Kind | None:
        if _is_shape(expression):
            return Kind("number")
        receiver = self.kind(expression.value)
        if receiver is None:
            return None
        return _PART.get(receiver.form, _no_part)(self, receiver, expression.slice)

    def _part_of_frame(self, frame: Kind, key: ast.expr) -> Kind | None:
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return Kind("column", frame.library)
        if isinstance(key, ast.List | ast.Compare | ast.Slice):
            return frame
        known = self.kind(key)
        return frame if known and known.form in {"column", "array"} else None

    def _part_of_column(self, column: Kind, key: ast.expr) -> Kind | None:
        known = self.kind(key)
        is_part = isinstance(key, ast.Slice | ast.Compare) or (known and known.form in {"column", "array"})
        return column if is_part else None

    def _part_of_groups(self, groups: Kind, key: ast.expr) -> Kind:
        return groups

    def _of_operation(self, expression: ast.BinOp | ast.UnaryOp | ast.Compare) -> Kind | None:
        if isinstance(expression, ast.UnaryOp):
            return self.kind(expression.operand)
        if isinstance(expression, ast.Compare):
            return self._of_both(expression.left, expression.comparators[0])
        if isinstance(expression.op, ast.MatMult):
            return None
        return self._of_both(expression.left, expression.right)

    def _of_both(self, left: ast.expr, right: ast.expr) -> Kind | None:
        first, second = self.kind(left), self.kind(right)
        if first and second and second.form == "number":
            return first
        if first and second and first.form == "number":
            return second
        if first and second:
            return joined(first, second)
        return None

    def _of_choice(self, expression: ast.IfExp) -> Kind | None:
        first, second = self.kind(expression.body), self.kind(expression.orelse)
        return joined(first, second) if first and second else None

    def _of_walrus(self, expression: ast.NamedExpr) -> Kind | None:
        return self.kind(expression.value)


def _no_part(scope: Scope, receiver: Kind, key: ast.expr) -> Kind | None:
    return None


def _part_of_array(scope: Scope, array: Kind, key: ast.expr) -> Kind | None:
    known = scope.kind(key)
    is_part = isinstance(key, ast.Slice | ast.Compare) or (known and known.form == "array" and known.dimensions == 1)
    return array if is_part else None


_PART: dict[str, Callable[[Scope, Kind, ast.expr], Kind | None]] = {
    "frame": Scope._part_of_frame,
    "column": Scope._part_of_column,
    "groups": Scope._part_of_groups,
    "array": _part_of_array,
}
_INFER: dict[type[ast.expr], Callable[[Scope, Any], Kind | None]] = {
    ast.Name: Scope._of_name,
    ast.Call: Scope._of_call,
    ast.Attribute: Scope._of_attribute,
    ast.Subscript: Scope._of_subscript,
    ast.Constant: Scope._of_constant,
    ast.JoinedStr: Scope._of_text,
    ast.BinOp: Scope._of_operation,
    ast.UnaryOp: Scope._of_operation,
    ast.Compare: Scope._of_operation,
    ast.IfExp: Scope._of_choice,
    ast.NamedExpr: Scope._of_walrus,
}


def imports_of(tree: ast.AST) -> dict[str, str]:
    """Return what each name that a file imports, anywhere in it, stands for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.asname or each.name.split(".")[0]: _imported(each) for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return found


def _imported(name: ast.alias) -> str:
    return name.name if name.asname else name.name.split(".")[0]


def names_in(tree: ast.AST) -> set[str]:
    """Return all names in an expression or statement."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def own_nodes(tree: ast.Module | Function) -> Iterator[ast.AST]:
    """Yield the nodes of a module or function without those inside of its functions, which are yielded themselves."""
    body = [tree.body] if isinstance(tree, ast.Lambda) else tree.body
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _OWN_SCOPE):
            waiting.extend(ast.iter_child_nodes(node))


def _bindings(tree: ast.Module | Function) -> Iterator[tuple[str, ast.expr | Kind | None]]:
    """Yield each name that is bound with the expression, or the kind, that it is bound to; None if that is unknown."""
    if not isinstance(tree, ast.Module):
        yield from _parameters(tree.args)
    assigned: set[int] = set()
    for node in own_nodes(tree):
        for target, value in _assignments(node):
            assigned.add(id(target))
            yield target.id, value
    for node in own_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, None
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in assigned:
            yield node.id, None


def _assignments(node: ast.AST) -> Iterator[tuple[ast.Name, ast.expr | Kind | None]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _paired(target, node.value)
    elif isinstance(node, ast.NamedExpr):
        yield node.target, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target, _annotated(node.annotation) or node.value
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        # `x += y` keeps what x is; the operation is bound to an expression of x itself.
        yield node.target, ast.Name(node.target.id, ast.Load())


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.Name, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for each, part in zip(target.elts, value.elts, strict=True):
            yield from _paired(each, part)


def _parameters(arguments: ast.arguments) -> Iterator[tuple[str, Kind | None]]:
    for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        if each.annotation:
            yield each.arg, _annotated(each.annotation)
        else:
            yield each.arg, Kind("frame") if _is_frame_name(each.arg) else None
    for other in (arguments.vararg, arguments.kwarg):
        if other:
            yield other.arg, None


def _is_frame_name(name: str) -> bool:
    return name in _FRAME_NAMES or name.endswith(("_df", "_frame")) or name.startswith("df_")


def _annotated(annotation: ast.expr) -> Kind | None:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return None
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return _ANNOTATED.get(_last(annotation))


def _last(expression: ast.expr) -> str:
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""


def _is_shape(expression: ast.expr) -> bool:
    return (
        isinstance(expression, ast.Subscript)
        and isinstance(expression.value, ast.Attribute)
        and expression.value.attr == "shape"
    )


def _of_modules(dotted: str, modules: dict[str, str]) -> tuple[str, str]:
    module, _, function = dotted.rpartition(".")
    while module and module not in modules:
        module, _, name = module.rpartition(".")
        function = f"{name}.{function}"
    return (modules[module], function) if module else ("", "")
