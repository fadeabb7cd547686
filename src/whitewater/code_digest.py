"""A digest of the code of a step: of its module and of all that it imports, for the parameters of its rule.

Snakemake runs a step again when a parameter of its rule changed, so editing a step, or a helper that it imports, runs
the steps that use it. Comments, docstrings and the descriptions of settings change nothing. Of a module ``config`` only
the sections that are imported by name count, and what they refer to. Modules are read, never executed: those of the
step's own folder of packages, and of `whitewater`.
"""

from __future__ import annotations

import ast
import gc
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

LIBRARY = Path(__file__).parents[1]
SETTINGS = "config"


def code_digest(module: str, folder: Path = LIBRARY) -> str:
    """Return the digest of a module and of all that it imports, directly or not.

    ``folder`` is where its top package lies. A module that is imported under ``if TYPE_CHECKING`` is not run and does
    not count, but where a package imports lazily, by a function ``__getattr__``.
    """
    folders = tuple(dict.fromkeys((folder, LIBRARY)))
    seen: dict[tuple[str, str], str] = {}
    waiting = [(module, "")]
    with _without_collection():
        while waiting:
            unit = waiting.pop()
            if unit in seen:
                continue
            source = _source(unit[0], folders)
            if source is None:
                continue
            part = source.part(unit[1])
            seen[unit] = part.digest
            waiting += part.imports
    return hashlib.sha256(repr(sorted(seen.items())).encode()).hexdigest()[:16]


@dataclass
class Part:
    """A module or, of a module of settings, one definition: its digest, and the modules and definitions it imports."""

    digest: str
    imports: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Source:
    """A parsed module."""

    name: str
    path: Path
    folders: tuple[Path, ...]

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.path.read_bytes())
        body = self.tree.body
        self.is_lazy = any(isinstance(each, ast.FunctionDef) and each.name == "__getattr__" for each in body)
        self.parts: dict[str, Part] = {}

    def part(self, name: str) -> Part:
        """Return the whole module or, by its name, a definition of a module of settings."""
        if name not in self.parts:
            self.parts[name] = self._definition(name) if name else self._whole(self.tree.body)
        return self.parts[name]

    def _whole(self, body: Sequence[ast.stmt]) -> Part:
        imports = [unit for each in _imports(body, lazy=self.is_lazy) for unit in self._units(each)]
        _strip(body)
        text = "\n".join(map(ast.dump, body))
        return Part(hashlib.sha256(text.encode()).hexdigest(), [*imports, *self._packages()])

    def _definition(self, name: str) -> Part:
        """Return a definition; where the name is imported there, or unknown, that import or the whole module."""
        defined = {each: statement for statement in self.tree.body for each in _names(statement)}
        if name not in defined:
            return Part("", [(self.name, "")])
        statement = defined[name]
        used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} & set(defined) - {name}
        if isinstance(statement, ast.Import | ast.ImportFrom):
            return Part("", [unit for unit in self._units(statement) if not unit[1] or unit[1] == name])
        part = self._whole([_Undescribed().visit(statement)])
        part.imports += [(self.name, each) for each in sorted(used)]
        return part

    def _units(self, statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
        """Yield the modules, and the definitions of settings, that an import brings."""
        if isinstance(statement, ast.Import):
            yield from ((each.name, "") for each in statement.names)
            return
        package = self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]
        above = package.split(".")[: len(package.split(".")) - statement.level + 1] if statement.level else []
        module = ".".join([*above, *([statement.module] if statement.module else [])])
        for each in statement.names:
            if _path(f"{module}.{each.name}", self.folders):
                yield f"{module}.{each.name}", ""
            else:
                yield module, each.name if module.endswith(f".{SETTINGS}") else ""

    def _packages(self) -> list[tuple[str, str]]:
        """Return the packages that hold the module: their ``__init__`` runs first."""
        parts = self.name.split(".")
        return [(".".join(parts[:length]), "") for length in range(1, len(parts))]


@cache
def _source(module: str, folders: tuple[Path, ...]) -> Source | None:
    path = _path(module, folders)
    return Source(module, path, folders) if path else None


@cache
def _path(module: str, folders: tuple[Path, ...]) -> Path | None:
    for folder in folders:
        stem = folder.joinpath(*module.split("."))
        for path in (stem / "__init__.py", stem.with_suffix(".py")):
            if path.is_file():
                return path
    return None


def _imports(body: Sequence[ast.stmt], *, lazy: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports among statements, at any depth."""
    for each in body:
        if isinstance(each, ast.Import | ast.ImportFrom):
            yield each
        elif not (isinstance(each, ast.If) and _is_type_checking(each.test)) or lazy:
            for name in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from _imports(getattr(each, name, ()), lazy=lazy)


def _is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _strip(body: Sequence[ast.stmt]) -> None:
    """Empty the docstrings among statements, at any depth."""
    for each in body:
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
            each.value.value = ""
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            _strip(getattr(each, name, ()))


def _names(statement: ast.stmt) -> list[str]:
    """Return the names that a statement at the top of a module defines."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [each.asname or each.name.partition(".")[0] for each in statement.names]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [each.id for each in targets if isinstance(each, ast.Name)]


class _Undescribed(ast.NodeTransformer):
    """Takes the descriptions out of the fields of a section."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Drop the keyword ``description``."""
        node.keywords = [each for each in node.keywords if each.arg != "description"]
        return self.generic_visit(node)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Switch the garbage collector off: parsing takes half as long."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
