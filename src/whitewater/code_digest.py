"""A digest of the code of a step: of its module and of all that it imports, for the parameters of its rule.

Snakemake runs a step again when a parameter of its rule changed, so editing a step, or a helper that it imports, runs
the steps that use it. Comments, docstrings, the descriptions of settings and what is imported for types change nothing.
Of a module ``config`` only the sections that are imported by name count, and what they refer to. Modules are read,
never executed: those of the step's own folder of packages, and of `whitewater`. What ``import_module`` is given is not
seen; a package that imports lazily, by a function ``__getattr__``, names its modules under ``if TYPE_CHECKING``. These
count where a name of the package is imported, and not where a module in it is.
"""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any, NamedTuple

from whitewater.errors import ConfigError

LIBRARY = Path(__file__).parents[1]
SETTINGS = ".config"
# The part of a package that runs when a module in it is imported.
AS_PACKAGE = "<package>"
# The fields of a statement that hold statements, or what holds statements.
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def code_digest(module: str, folder: Path = LIBRARY) -> str:
    """Return the digest of a module and of all that it imports, directly or not; ``folder`` holds its top package."""
    parts = reached(module, folder)
    if not parts:
        raise ConfigError(f"the step {module} has no module: {folder.joinpath(*module.split('.'))}.py is missing")
    digests = sorted((unit, part.digest) for unit, part in parts.items())
    return hashlib.sha256(repr(digests).encode()).hexdigest()[:16]


def reached(module: str, folder: Path = LIBRARY) -> dict[tuple[str, str], Part]:
    """Return a module and all that it imports, directly or not, by the names of module and definition."""
    seen: dict[tuple[str, str], Part] = {}
    waiting = [(module, "", folder)]
    while waiting:
        name, definition, importer = waiting.pop()
        if (name, definition) not in seen and (place := _source_path(name, importer)):
            source = _parsed(name, *place)
            part = seen[name, definition] = source.part(definition)
            waiting += [(*unit, source.folder) for unit in part.imports]
    return seen


class Part(NamedTuple):
    """A module or, of a module of settings, one definition: its digest, and the modules and definitions it imports."""

    digest: str
    imports: list[tuple[str, str]]


@dataclass
class Source:
    """A parsed module, of a package in ``folder``."""

    name: str
    path: Path
    folder: Path

    def __post_init__(self) -> None:
        body: list[Any] = ast.parse(self.path.read_bytes()).body
        lazy = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in body)
        self.body = _without_what_is_not_run(body, lazy=lazy)
        is_settings = self.name.endswith(SETTINGS)
        if is_settings:
            for call in (each for node in self.body for each in ast.walk(node) if isinstance(each, ast.Call)):
                call.keywords = [each for each in call.keywords if each.arg != "description"]
        self.parts = {"": self._of(self.body)}
        if self.path.name == "__init__.py":
            self.parts[AS_PACKAGE] = self._of([node for node in self.body if not _is_for_types(node)])
        if not is_settings:  # it is asked for whole, and its statements take much memory
            self.body = []

    def part(self, name: str) -> Part:
        """Return the whole module, what runs `AS_PACKAGE` or, by its name, a definition of a module of settings."""
        if name not in self.parts:
            self.parts[name] = self._definition(name)
        return self.parts[name]

    def _of(self, body: Sequence[ast.stmt]) -> Part:
        nodes = [node for statement in body for node in ast.walk(statement)]
        statements = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        imports = [(module, name) for statement in statements for module, name, _ in self._units(statement)]
        parts = self.name.split(".")
        packages = [(".".join(parts[:length]), AS_PACKAGE) for length in range(1, len(parts))]  # which run first
        code = "\n".join(map(ast.dump, body))
        return Part(hashlib.sha256(code.encode()).hexdigest(), [*imports, *packages])

    def _definition(self, name: str) -> Part:
        """Return a definition, with the statements that define nothing.

        Where the name is imported there it is that import, and where it is unknown the whole module.
        """
        defined: dict[str, list[ast.stmt]] = defaultdict(list)
        for statement in self.body:
            for each in _names(statement) or [""]:
                defined[each].append(statement)
        if name not in defined:
            return Part("", [(self.name, "")])
        body = [*defined[name], *defined[""]]
        imports = [each for each in body if isinstance(each, ast.Import | ast.ImportFrom)]
        if imports:
            units = [unit for each in imports for unit in self._units(each) if _imported_as(unit[2]) == name]
            return Part(repr([alias.name for _, _, alias in units]), [(module, each) for module, each, _ in units])
        digest, needed = self._of(body)
        nodes = [node for statement in body for node in ast.walk(statement)]
        # Annotations may be text.
        texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        used = {node.id for node in nodes if isinstance(node, ast.Name)} | texts
        return Part(digest, [*needed, *((self.name, each) for each in sorted(used & set(defined) - {name, ""}))])

    def _units(self, statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, ast.alias]]:
        """Yield the modules, and the definitions of settings, that an import brings, with what stands for each."""
        if isinstance(statement, ast.Import):
            yield from ((alias.name, "", alias) for alias in statement.names)
            return
        package = self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]
        module = resolve_name(f"{'.' * statement.level}{statement.module or ''}", package)
        for alias in statement.names:
            if _source_path(f"{module}.{alias.name}", self.folder):
                yield f"{module}.{alias.name}", "", alias
            else:
                yield module, alias.name if module.endswith(SETTINGS) else "", alias


_parsed = cache(Source)


@cache
def _source_path(module: str, folder: Path) -> tuple[Path, Path] | None:
    """Return the file of a module and the folder it was found in: that of the importing package, or the library's."""
    for root in (folder, LIBRARY):
        stem = root.joinpath(*module.split("."))
        for path in (stem / "__init__.py", stem.with_suffix(".py")):
            if path.is_file():
                return path, root
    return None


def _without_what_is_not_run(body: Sequence[Any], *, lazy: bool) -> list[Any]:
    """Return statements without docstrings and, but where they tell what is imported lazily, imports for types."""
    statements: list[Any] = []
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            continue
        for name in BLOCKS:
            if isinstance(inner := getattr(node, name, None), list):
                setattr(node, name, _without_what_is_not_run(inner, lazy=lazy))
        if _is_for_types(node) and not lazy:
            statements += node.orelse
        else:
            statements.append(node)
    return statements


def _is_for_types(statement: ast.stmt) -> bool:
    test = getattr(statement, "test", None)
    return isinstance(statement, ast.If) and "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def _imported_as(name: ast.alias) -> str:
    return name.asname or name.name.partition(".")[0]


def _names(statement: ast.stmt) -> list[str]:
    """Return the names that a statement at the top of a module defines."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return list(map(_imported_as, statement.names))
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [node.id for target in targets if target for node in ast.walk(target) if isinstance(node, ast.Name)]
