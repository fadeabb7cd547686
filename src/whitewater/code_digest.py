"""A digest of a step's code, its own module and all its imports, which its rule has as a parameter.

Snakemake reruns a step when a parameter of its rule changes, so editing a step or a helper reruns the steps that use
it. Comments, docstrings, descriptions of settings and imports for type checking do not count. Of a module ``config``
only the sections imported by name count, and what they refer to. Modules of the step's source folder and of
`whitewater` are parsed, never executed, so ``import_module`` is not followed; packages installed beside `whitewater` do
not count. A package that imports lazily, by a function ``__getattr__``, lists its modules under ``if TYPE_CHECKING``:
they count where a name of the package is imported, not where one of its modules is.
"""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import resolve_name
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from whitewater.errors import ConfigError

LIBRARY = Path(__file__).parents[1]
# The folders of packages that are installed.
INSTALLED = ("site-packages", "dist-packages")
SETTINGS = ".config"
# The part of a package that runs when a module in it is imported.
AS_PACKAGE = "<package>"
# The fields of a syntax node that hold nested statements.
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def code_digest(module: str, folder: Path = LIBRARY) -> str:
    """Return the digest of a module and its direct and indirect imports; ``folder`` holds its top-level package."""
    parts = reachable_parts(module, folder)
    if not parts:
        raise ConfigError(f"the step {module} has no module: {folder.joinpath(*module.split('.'))}.py is missing")
    digests = sorted((unit, part.digest) for unit, part in parts.items())
    return hashlib.sha256(repr(digests).encode()).hexdigest()[:16]


def reachable_parts(module: str, folder: Path = LIBRARY) -> dict[tuple[str, str], Part]:
    """Return a module and its direct and indirect imports by the names of module and definition."""
    parts: dict[tuple[str, str], Part] = {}
    home = Home(folder, _package(module))
    queue = [(module, "")]
    while queue:
        name, definition = queue.pop()
        if (name, definition) not in parts and (path := _source_path(name, home)):
            part = parts[name, definition] = _parse(name, path, home).part(definition)
            queue += part.imports
    return parts


class Home(NamedTuple):
    """Where a step's code is: the folder that holds its top-level package, and the package's name."""

    folder: Path
    package: str


class Part(NamedTuple):
    """A module, or one definition of a ``config`` module: its digest, and the modules and definitions it imports."""

    digest: str
    imports: list[tuple[str, str]]


@dataclass
class Source:
    """A parsed module, which a step reaches."""

    name: str
    path: Path
    home: Home

    def __post_init__(self) -> None:
        body: list[Any] = ast.parse(self.path.read_bytes()).body
        lazy = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in body)
        self.body = _strip(body, lazy=lazy)
        is_settings = self.name.endswith(SETTINGS)
        if is_settings:
            for node in _walk(self.body):
                if isinstance(node, ast.Call):
                    node.keywords = [keyword for keyword in node.keywords if keyword.arg != "description"]
        self.parts = {"": self._make_part(self.body)}
        if self.path.name == "__init__.py":
            self.parts[AS_PACKAGE] = self._make_part([node for node in self.body if not _is_type_checking(node)])
        if not is_settings:  # only definitions of settings are looked up later, and syntax trees take much memory
            self.body = []

    def part(self, name: str) -> Part:
        """Return the whole module (``""``), the part `AS_PACKAGE`, or one definition of a ``config`` module."""
        if name not in self.parts:
            self.parts[name] = self._make_definition(name)
        return self.parts[name]

    def _make_part(self, body: Sequence[ast.stmt]) -> Part:
        statements = [node for node in _walk(body) if isinstance(node, ast.Import | ast.ImportFrom)]
        imports = [(module, name) for statement in statements for module, name, _ in self._imports(statement)]
        words = self.name.split(".")
        packages = [(".".join(words[:length]), AS_PACKAGE) for length in range(1, len(words))]  # they run first
        code = "\n".join(map(ast.dump, body))
        return Part(hashlib.sha256(code.encode()).hexdigest(), [*imports, *packages])

    def _make_definition(self, name: str) -> Part:
        """Make the part of a definition, plus all statements that define nothing."""
        definitions: dict[str, list[ast.stmt]] = defaultdict(list)
        for statement in self.body:
            for key in _defined_names(statement) or [""]:
                definitions[key].append(statement)
        if name not in definitions:  # the whole module counts
            return Part("", [(self.name, "")])
        body = [*definitions[name], *definitions[""]]
        statements = [statement for statement in body if isinstance(statement, ast.Import | ast.ImportFrom)]
        if statements:  # the name is imported, and the definition is elsewhere
            imports = [unit for statement in statements for unit in self._imports(statement)]
            units = [unit for unit in imports if _local_name(unit[2]) == name]
            return Part(repr([alias.name for _, _, alias in units]), [unit[:2] for unit in units])
        digest, needed = self._make_part(body)
        # Annotations may be strings.
        texts = {node.value for node in _walk(body) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        used = {node.id for node in _walk(body) if isinstance(node, ast.Name)} | texts
        return Part(digest, [*needed, *((self.name, key) for key in sorted(used & set(definitions) - {name, ""}))])

    def _imports(self, statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, ast.alias]]:
        """Yield module, definition (``""``: the whole module) and alias for each name that a statement imports."""
        if isinstance(statement, ast.Import):
            yield from ((alias.name, "", alias) for alias in statement.names)
            return
        package = self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]
        module = resolve_name(f"{'.' * statement.level}{statement.module or ''}", package)
        for alias in statement.names:
            if _source_path(f"{module}.{alias.name}", self.home):
                yield f"{module}.{alias.name}", "", alias
            else:
                yield module, alias.name if module.endswith(SETTINGS) else "", alias


_parse = cache(Source)


@cache
def _source_path(module: str, home: Home) -> Path | None:
    """Find a module's file in the step's source folder or the library's."""
    for root in (home.folder, LIBRARY):
        if root.name in INSTALLED and _package(module) not in (home.package, _package(__name__)):
            continue
        stem = root.joinpath(*module.split("."))
        for path in (stem / "__init__.py", stem.with_suffix(".py")):
            if path.is_file():
                return path
    return None


def _package(module: str) -> str:
    """Return the top-level package of a module."""
    return module.partition(".")[0]


def _walk(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    return chain.from_iterable(map(ast.walk, body))


def _strip(body: Sequence[Any], *, lazy: bool) -> list[Any]:
    """Remove docstrings and, unless the module imports lazily, blocks under ``if TYPE_CHECKING``."""
    statements: list[Any] = []
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            continue
        for name in BLOCKS:
            if isinstance(inner := getattr(node, name, None), list):
                setattr(node, name, _strip(inner, lazy=lazy))
        if _is_type_checking(node) and not lazy:
            statements += node.orelse
        else:
            statements.append(node)
    return statements


def _is_type_checking(statement: ast.stmt) -> bool:
    test = getattr(statement, "test", None)
    return isinstance(statement, ast.If) and "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def _local_name(alias: ast.alias) -> str:
    return alias.asname or _package(alias.name)


def _defined_names(statement: ast.stmt) -> list[str]:
    """Return the names that a top-level statement defines."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return list(map(_local_name, statement.names))
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [node.id for target in targets if target for node in ast.walk(target) if isinstance(node, ast.Name)]
