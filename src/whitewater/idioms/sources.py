"""Python files and the code of notebooks, read and parsed, never run."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whitewater.errors import InputError
from whitewater.idioms.suppressions import Comment

SKIPPED = ("results", "data", "logs", "__pycache__", "node_modules")
SUFFIXES = {".py", ".ipynb"}
# Lines of IPython: `%magic`, `!command`, `?help`; and the cells that are Python in spite of their `%%magic`.
_MAGIC = re.compile(r"\s*[%!?]|.*\?\s*$")
_PYTHON_CELLS = ("%%time", "%%timeit", "%%capture", "%%prun")


@dataclass(frozen=True)
class Source:
    """Python code of one file.

    Attributes
    ----------
    tree
        Its syntax tree; of a notebook, the trees of all code cells as one, so that names reach from cell to cell.
    comments
        All comments.
    cells
        Of a notebook: the number of the cell, counted from 1 with its cells of text, and the line in the cell, for each
        line of the tree; else empty.
    """

    path: Path
    tree: ast.Module
    comments: tuple[Comment, ...]
    cells: tuple[tuple[int, int], ...] = ()

    def place(self, line: int, column: int) -> str:
        """Return where a line of the tree is: ``path:line:column`` or ``path:cell 3:line:column``."""
        if not self.cells:
            return f"{self.path}:{line}:{column}"
        cell, line_of_cell = self.cells[line - 1]
        return f"{self.path}:cell {cell}:{line_of_cell}:{column}"


def files(paths: Iterable[Path]) -> list[Path]:
    """Return the Python files and notebooks of files and folders, without folders that hold no code of the user.

    A path that is given itself is always taken. In a folder, hidden folders, environments and those named in `SKIPPED`
    are left out.

    Raises
    ------
    InputError
        If a path does not exist.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: there is no such file or folder. Correct the path.")
        found |= dict.fromkeys(_in_folder(path) if path.is_dir() else [path])
    return list(found)


def read(path: Path) -> Source:
    """Read and parse one file.

    Raises
    ------
    InputError
        If it cannot be read, or is not Python, or not a notebook; with the line, and the cell, if they are known.
    """
    try:
        return _read_notebook(path) if path.suffix == ".ipynb" else _read_python(path)
    except SyntaxError as error:
        where = f"{path}:{error.lineno}" if error.lineno else f"{path}"
        raise InputError(f"{where}: is not Python: {error.msg}. Correct it, or leave the file out.") from None
    except (MemoryError, RecursionError):  # which of them the compiler raises depends on what is nested
        raise InputError(f"{path}: cannot be read: it is nested too deeply. Leave the file out.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}. Correct it, or leave the file out.") from None


def _in_folder(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not _is_skipped(Path(place, each)))
        yield from (Path(place, each) for each in sorted(names) if Path(each).suffix in SUFFIXES)


def _is_skipped(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in SKIPPED or (folder / "pyvenv.cfg").exists()


def _read_python(path: Path) -> Source:
    with tokenize.open(path) as file:
        text = file.read()
    return Source(path, _parsed(text), tuple(_comments(text)))


def _read_notebook(path: Path) -> Source:
    code: list[str] = []
    cells: list[tuple[int, int]] = []
    for number, lines in _code_cells(path):
        text = "\n".join(lines)
        try:
            _parsed(text)
        except SyntaxError as error:
            raise InputError(
                f"{path}:cell {number}:{error.lineno}: is not Python: {error.msg}. Correct it, or leave the file out."
            ) from None
        code += lines
        cells += [(number, line) for line in range(1, len(lines) + 1)]
    text = "\n".join(code)
    return Source(path, _parsed(text), tuple(_comments(text)), tuple(cells))


def _code_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the lines of each cell of Python, with comments in place of IPython's own lines."""
    notebook: Any = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError("it has no list of cells, as notebooks of format 4 have")
    for number, cell in enumerate(notebook["cells"], start=1):
        if not isinstance(cell, dict) or not _is_text(given := cell.get("source", "")):
            raise ValueError(f"its cell {number} has no text, as those of notebooks of format 4 have")
        if cell.get("cell_type") != "code":
            continue
        lines = "".join(given).split("\n")
        if lines[0].startswith("%%") and not lines[0].startswith(_PYTHON_CELLS):
            continue
        yield number, _without_magic(lines)


def _is_text(given: Any) -> bool:
    return isinstance(given, str) or (isinstance(given, list) and all(isinstance(line, str) for line in given))


def _without_magic(lines: list[str]) -> list[str]:
    try:
        _parsed("\n".join(lines))
    except SyntaxError:
        return [_as_statement(each) if _MAGIC.match(each) else each for each in lines]
    return lines


def _as_statement(line: str) -> str:
    return f"{line[: len(line) - len(line.lstrip())]}pass"


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes in strings: the compiler tells their author
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        tree = compile(text, "<source>", "exec", flags=flags, dont_inherit=True)
    assert isinstance(tree, ast.Module)  # noqa: S101  # what the flag for trees promises
    return tree


def _comments(text: str) -> Iterator[Comment]:
    if "idiom" not in text:  # tokens take as long as all rules
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            yield Comment(line, column + 1, token.string, not token.line[:column].strip())
