"""The calls into RAPIDS that our GPU code makes, read from its source: no GPU runs it here.

A small interpreter follows each function: what is imported, what a call or an attribute of RAPIDS gives (the tables
below), what annotations say. Of a method whose object it cannot tell, it says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from tests.contract.rapids_kinds import (
    ARRAY,
    FIELDS,
    FRAME,
    GIVES,
    HOST,
    INDEX,
    ON_HOST,
    PARAMETERS,
    SERIES,
    UNKNOWN,
    Instance,
    Items,
    Kind,
    Name,
    Other,
    Several,
    annotated,
    combined,
    element,
    is_rapids,
)
from tests.contract.record import NAMESPACES
from tests.contract.signatures import NAMES_COLUMNS, Call

GPU_NAMES = ("gpu_", "Gpu", "_gpu_", "_Gpu")
# Modules whose functions run on frames of pandas, too, where `tests.contract.frame_calls` watches them: what is read of
# their source is what only a GPU runs.
ON_FRAMES = "with_dask"


@dataclass
class Findings:
    """Calls and uses of names of RAPIDS with their places, and what is wrong or not known."""

    calls: dict[Call, list[str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    unresolved: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)


def find_calls(path: Path, source: str | None = None) -> Findings:
    """Follow the GPU code of a module."""
    tree = ast.parse(source if source is not None else path.read_text())
    module = _Module(path.stem, tree)
    for function, self_kinds in module.gpu_functions():
        _Function(module, function, dict(self_kinds)).follow()
    return module.found


class _Module:
    """Names of a module, and which of its functions are GPU code: by their name, or called by such."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name, self.found = name, Findings()
        self.functions = {
            node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and not is_kernel(node)
        }
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self.scope: dict[str, Kind] = {}
        for node in tree.body:
            for statement in node.body if isinstance(node, ast.If) else [node]:
                self.scope |= imported(statement)

    def gpu_functions(self) -> Iterator[tuple[ast.FunctionDef, dict[str, Kind]]]:
        """Yield GPU functions; of methods also the kinds of the attributes of ``self``, as other methods set them."""
        if self.name == ON_FRAMES:
            for node in self.functions.values():
                if uses_rapids(node) or any(is_of_gpu(each) is not None for each in ast.walk(node)):
                    yield node, {}
            return
        whole = self.name.startswith("gpu") or self.name.endswith("_gpu")
        wanted = {
            name for name, node in self.functions.items() if whole or name.startswith(GPU_NAMES) or uses_rapids(node)
        }
        classes = [node for name, node in self.classes.items() if whole or name.startswith(GPU_NAMES)]
        reached = [*classes, *(self.functions[name] for name in wanted)]
        while reached:
            names = {node.id for node in ast.walk(reached.pop()) if isinstance(node, ast.Name)}
            called = {name for name in names & set(self.functions) - ON_HOST if not name.startswith("cpu_")}
            reached += [self.functions[name] for name in called - wanted]
            wanted |= called
        for name in sorted(wanted):
            yield self.functions[name], {}
        for each in classes:
            yield from self._methods(each)

    def _methods(self, node: ast.ClassDef) -> Iterator[tuple[ast.FunctionDef, dict[str, Kind]]]:
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        kinds: dict[str, Kind] = {}
        for method in methods:
            draft = _Function(_Module(self.name, ast.Module([], [])), method, dict(kinds))
            draft.module.scope = self.scope
            draft.module.functions = self.functions
            draft.follow()
            kinds |= draft.self_kinds
        for method in methods:
            yield method, kinds


class _Function(ast.NodeVisitor):
    """Follows the statements of one function in order."""

    def __init__(self, module: _Module, node: ast.FunctionDef, self_kinds: dict[str, Kind]) -> None:
        self.module, self.node, self.self_kinds = module, node, self_kinds
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        self.scope = {
            each.arg: PARAMETERS.get(f"{node.name}.{each.arg}", annotated(each.annotation)) for each in arguments
        }

    def follow(self) -> None:
        self.module.found.functions.append(self.node.name)
        self._visit_all(self.node.body)

    def visit_Import(self, node: ast.Import) -> None:
        self.scope |= imported(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.scope |= imported(node)
        for name, kind in imported(node).items():
            if isinstance(kind, Name) and is_rapids(kind):
                self._record(Call(kind.path, used=True), node)
                self.scope[name] = kind

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if not is_kernel(node):
            inner = _Function(self.module, node, self.self_kinds)
            inner.scope = {**self.scope, **inner.scope}
            inner.follow()
        self.scope[node.name] = HOST

    def visit_Assign(self, node: ast.Assign) -> None:
        kind = self.kind(node.value)
        for target in node.targets:
            self._bind(target, kind)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        found = self.kind(node.value) if node.value else UNKNOWN
        self._bind(node.target, found if found != UNKNOWN else annotated(node.annotation))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._bind(node.target, combined([self.kind(node.target), self.kind(node.value)]))

    def visit_If(self, node: ast.If) -> None:
        side = is_of_gpu(node.test)
        if side is None:
            self.kind(node.test)
        self._visit_all([*(node.body if side is not False else []), *(node.orelse if side is not True else [])])

    def visit_For(self, node: ast.For) -> None:
        self._bind(node.target, element(self.kind(node.iter)))
        self._visit_all([*node.body, *node.orelse])

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            kind = self.kind(item.context_expr)
            if item.optional_vars is not None:
                self._bind(item.optional_vars, kind)
        self._visit_all(node.body)

    def visit_Expr(self, node: ast.Expr) -> None:
        self.kind(node.value)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value:
            self.kind(node.value)

    def generic_visit(self, node: ast.AST) -> None:
        """Follow the parts of other statements; an expression in one is evaluated."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.kind(child)
            else:
                self.visit(child)

    def kind(self, node: ast.expr) -> Kind:
        """Return what an expression gives, noting the calls in it."""
        method = getattr(self, f"_kind_of_{type(node).__name__.lower()}", None)
        if method is not None:
            found: Kind = method(node)
            return found
        return combined([self.kind(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)])

    def _kind_of_name(self, node: ast.Name) -> Kind:
        return self.scope.get(node.id, self.module.scope.get(node.id, HOST))

    def _kind_of_ifexp(self, node: ast.IfExp) -> Kind:
        side = is_of_gpu(node.test)
        if side is None:
            return combined([self.kind(each) for each in (node.body, node.orelse)])
        return self.kind(node.body if side else node.orelse)

    def _kind_of_lambda(self, node: ast.Lambda) -> Kind:
        inner = _Function(self.module, self.node, self.self_kinds)
        inner.scope = {**self.scope, **{each.arg: UNKNOWN for each in node.args.args}}
        inner.kind(node.body)
        return HOST

    def _kind_of_attribute(self, node: ast.Attribute) -> Kind:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self.self_kinds.get(node.attr, HOST)
        of = self.kind(node.value)
        if isinstance(of, Name):
            return self._member(of, node)
        if node.attr in FIELDS.get(of, {}):
            return FIELDS[of][node.attr]
        if isinstance(of, Instance):
            full_name = f"{of.of}.{node.attr}"
            self._record(Call(full_name, used=True), node)
            return GIVES.get(full_name, UNKNOWN)
        return of if isinstance(of, Other) else HOST

    def _member(self, of: Name, node: ast.Attribute) -> Kind:
        full = Name(f"{of.path}.{node.attr}")
        if is_rapids(full) and of.path in NAMESPACES and full.path not in NAMESPACES:
            self._record(Call(full.path, used=True), node)
        return full

    def _kind_of_call(self, node: ast.Call) -> Kind:
        arguments = [self.kind(each) for each in [*node.args, *(keyword.value for keyword in node.keywords)]]
        function = self._called(node.func)
        if function == Name("functools.partial"):
            # It is called with one more argument.
            return self.kind(
                ast.copy_location(ast.Call(node.args[0], [*node.args[1:], node.args[0]], node.keywords), node)
            )
        if function == Name("importlib.import_module"):
            return Name("cudf")
        if isinstance(function, Name) and is_rapids(function):
            return self._of_rapids(function.path, node)
        if isinstance(function, Name):
            return self._of_ours(function, node, arguments)
        return self._builtin(node, arguments) if isinstance(node.func, ast.Name) else function

    def _called(self, function: ast.expr) -> Kind:
        """Return the name of a function or method; what a method of anything else than RAPIDS gives is not known."""
        if not isinstance(function, ast.Attribute):
            return self.kind(function)
        if isinstance(function.value, ast.Name) and function.value.id == "self":
            return HOST
        of = self.kind(function.value)
        if isinstance(of, Name):
            return Name(f"{of.path}.{function.attr}")
        if isinstance(of, Instance):
            return Name(f"{of.of}.{function.attr}")
        if isinstance(of, Items) and function.attr in {"items", "values", "pop", "get"}:
            return {"items": Items(Several((HOST, of.each))), "values": of}.get(function.attr, of.each)
        if of == UNKNOWN:
            self.module.found.unresolved.append(f"{self.module.name}.{self.node.name}: {ast.unparse(function)}")
        return UNKNOWN if of == UNKNOWN else HOST

    def _of_rapids(self, name: str, node: ast.Call) -> Kind:
        starred = name not in NAMES_COLUMNS and (
            any(isinstance(each, ast.Starred) for each in node.args) or any(not each.arg for each in node.keywords)
        )
        if starred:
            self.module.found.unresolved.append(f"{self.module.name}.{self.node.name}: {ast.unparse(node)}")
        self._record(Call(name, len(node.args), tuple(each.arg or "" for each in node.keywords)), node)
        if name in NAMESPACES:
            return Instance(name)
        return GIVES.get(name, GIVES.get(f"{name.rpartition('.')[0]}.", UNKNOWN))

    def _of_ours(self, function: Name, node: ast.Call, arguments: Sequence[Kind]) -> Kind:
        """Return what a function of ours, of NumPy or of pyarrow gives; the last two take no array of a device."""
        place = f"{self.module.name}.py:{node.lineno}: {ast.unparse(node)}"
        if not function.path.startswith("whitewater."):
            if any(isinstance(each, Instance) and each in (ARRAY, FRAME, SERIES, INDEX) for each in arguments):
                self.module.found.faults.append(f"{place}: an array of the device is given to {function.path}")
            return HOST
        module, _, name = function.path.rpartition(".")
        called = getattr(import_module(module), name, None)
        if called is None:
            self.module.found.faults.append(f"{place}: there is no {function.path}")
        given = getattr(called, "__annotations__", {}).get("return")
        return annotated(ast.parse(given, mode="eval").body) if isinstance(given, str) and name not in ON_HOST else HOST

    def _builtin(self, node: ast.Call, arguments: Sequence[Kind]) -> Kind:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name in self.module.functions and name not in ON_HOST:
            return annotated(self.module.functions[name].returns)
        if name == "zip":
            return Items(Several(tuple(map(element, arguments[: len(node.args)]))))
        if name == "enumerate":
            return Items(Several((HOST, element(arguments[0]))))
        if name in {"list", "tuple", "sorted", "reversed", "iter", "next", "abs"}:
            return element(arguments[0]) if name == "next" else arguments[0]
        return HOST

    def _kind_of_subscript(self, node: ast.Subscript) -> Kind:
        of, key = self.kind(node.value), self.kind(node.slice)
        if of == FRAME:
            several = isinstance(node.slice, ast.List) or getattr(node.slice, "attr", "") == "names"
            return SERIES if key == HOST and not several else FRAME
        return of.each if isinstance(of, Items) else of

    def _kind_of_compare(self, node: ast.Compare) -> Kind:
        kinds = [self.kind(each) for each in (node.left, *node.comparators)]
        identity = all(isinstance(each, ast.Is | ast.IsNot | ast.In | ast.NotIn) for each in node.ops)
        return HOST if identity else combined(kinds)

    def _kind_of_list(self, node: ast.List) -> Kind:
        return Items(combined([self.kind(each) for each in node.elts]))

    def _kind_of_tuple(self, node: ast.Tuple) -> Kind:
        return Several(tuple(self.kind(each) for each in node.elts))

    def _kind_of_dict(self, node: ast.Dict) -> Kind:
        return Items(combined([self.kind(each) for each in node.values]))

    def _kind_of_joinedstr(self, node: ast.JoinedStr) -> Kind:
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                self.kind(each.value)
        return HOST

    def _kind_of_listcomp(self, node: ast.ListComp) -> Kind:
        return self._comprehension(node.generators, node.elt)

    def _kind_of_generatorexp(self, node: ast.GeneratorExp) -> Kind:
        return self._comprehension(node.generators, node.elt)

    def _kind_of_setcomp(self, node: ast.SetComp) -> Kind:
        return self._comprehension(node.generators, node.elt)

    def _kind_of_dictcomp(self, node: ast.DictComp) -> Kind:
        return self._comprehension(node.generators, node.value, node.key)

    def _comprehension(self, generators: Sequence[ast.comprehension], *results: ast.expr) -> Kind:
        outside = dict(self.scope)
        for each in generators:
            self._bind(each.target, element(self.kind(each.iter)))
            for condition in each.ifs:
                self.kind(condition)
        found = [self.kind(each) for each in results]
        self.scope = outside
        return Items(found[0])

    def _bind(self, target: ast.expr, kind: Kind) -> None:
        if isinstance(target, ast.Name):
            self.scope[target.id] = kind
        elif isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
            self.self_kinds[target.attr] = kind
        elif isinstance(target, ast.Tuple | ast.List):
            parts = kind.parts if isinstance(kind, Several) else (element(kind),) * len(target.elts)
            for each, part in zip(target.elts, parts, strict=False):
                self._bind(each, part)
        else:
            self.kind(target)

    def _visit_all(self, statements: Sequence[ast.stmt]) -> None:
        """Follow statements, but none behind the return of a branch that a GPU takes."""
        for statement in statements:
            self.visit(statement)
            if (
                isinstance(statement, ast.If)
                and is_of_gpu(statement.test)
                and isinstance(statement.body[-1], ast.Return)
            ):
                return

    def _record(self, call: Call, node: ast.AST) -> None:
        place = f"{self.module.name}.py:{getattr(node, 'lineno', 0)}"
        places = self.module.found.calls.setdefault(call, [])
        if place not in places:
            places.append(place)


def imported(node: ast.AST) -> dict[str, Kind]:
    """Return the names that an import statement binds."""
    if isinstance(node, ast.Import):
        return {each.asname or each.name.split(".")[0]: Name(each.name if each.asname else each.name.split(".")[0])
                for each in node.names}  # fmt: skip
    if isinstance(node, ast.ImportFrom):
        return {each.asname or each.name: Name(f"{node.module}.{each.name}") for each in node.names}
    return {}


def is_kernel(node: ast.FunctionDef) -> bool:
    """Tell whether a function is a kernel of numba.cuda, which Numba's simulator runs (`test_gpu_kernels`)."""
    return any("cuda.jit" in ast.unparse(each) for each in node.decorator_list)


def uses_rapids(node: ast.AST) -> bool:
    """Tell whether a function imports RAPIDS."""
    kinds = [kind for each in ast.walk(node) for kind in imported(each).values()]
    return any(isinstance(kind, Name) and is_rapids(kind) for kind in kinds)


def is_of_gpu(test: ast.AST) -> bool | None:
    """Tell whether a condition holds where frames are cuDF's, or where they are not; None where it does not say."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return is_of_gpu(test.values[0])
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        side = is_of_gpu(test.operand)
        return None if side is None else not side
    text = ast.unparse(test) if isinstance(test, ast.Compare | ast.Call) else ""
    if text in ("backend == 'cudf'", "backend == 'pandas'"):
        return text == "backend == 'cudf'"
    return True if re.fullmatch(r"hasattr\(\w+, 'to_(arrow|pandas)'\)", text) else None
