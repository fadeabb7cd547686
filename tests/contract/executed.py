"""Which lines of the step code ran: a contract proves nothing about a line that no scenario reaches."""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[2] / "src" / "whitewater"
APPLICATIONS = ROOT.with_name("whitewater_apps")
# What tells that a function handles arrays of a device: it is given the device, its namespace, or such arrays.
DEVICE_WORDS = frozenset(("device", "xp", "Array", "Genotypes", "Planes"))
FRAME_WORDS = frozenset(("frame", "series", "Frame", "Series"))
# File, qualified name of the function (a lambda is one of its own), and number.
Line = tuple[str, str, int]


@contextmanager
def executed_lines(folder: Path = ROOT) -> Iterator[set[Line]]:
    """Yield a set that fills with the lines of our source in a folder that run, on this thread and on new ones."""
    lines: set[Line] = set()
    root = str(folder)

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(root):
            return None
        lines.add((frame.f_code.co_filename, frame.f_code.co_qualname, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    threading.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(before)
        threading.settrace(before)


def never_run(
    path: Path, lines: set[Line], *, words: frozenset[str] = DEVICE_WORDS, without: Collection[str] = ()
) -> list[str]:
    """Return ``file:line: source`` of the lines of device code in a file that are not among the executed ones.

    Left out are functions that do not handle arrays of a device, by the words in them, or are named in ``without``, and
    lines that raise or are the CPU's.
    """
    source = path.read_text()
    tree = ast.parse(source)
    functions = _device_functions(tree, words)
    device_lines = _lines_of(functions) - _lines_of(each for each in functions if each.name in without)
    device_lines -= {line for each in _cpu_statements(tree) for line in range(each.lineno, (each.end_lineno or 0) + 1)}
    raising = _lines_of(node for node in ast.walk(tree) if isinstance(node, ast.Raise))
    handlers = (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler))
    raising |= {each.lineno for each in handlers if all(isinstance(line, ast.Raise) for line in each.body)}
    missing = {
        line
        for name, line in _code_lines(compile(source, str(path), "exec"))
        if line in device_lines - raising and (str(path), name, line) not in lines
    }
    text = source.splitlines()
    return [f"{path.name}:{line}: {text[line - 1].strip()}" for line in sorted(missing)]


def device_code(*folders: Path, words: frozenset[str] = frozenset({"device", "xp"})) -> list[Path]:
    """Return the files of folders in which a function names a device, but those of one device.

    Others see no array of a device.
    """
    paths = sorted(path for folder in folders for path in folder.rglob("*.py"))
    assert paths
    several = [path for path in paths if not path.stem.endswith(("_cpu", "_gpu", "_dask"))]
    return [path for path in several if _device_functions(ast.parse(path.read_text()), words)]


def _device_functions(tree: ast.AST, words: frozenset[str]) -> Sequence[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and words & _words(node)]


def _cpu_statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield what is left for the CPU after ``if device.name == "gpu"``: the other branch, or all behind a return."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for place, statement in enumerate(function.body):
            if isinstance(statement, ast.If) and ast.unparse(statement.test) == "device.name == 'gpu'":
                yield from statement.orelse
                if isinstance(statement.body[-1], ast.Return):
                    yield from function.body[place + 1 :]


def _words(node: ast.AST) -> set[str]:
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    found |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    return found | {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}


def _lines_of(nodes: Any) -> set[int]:
    """Return the lines of the bodies of functions, or of statements."""
    lines: set[int] = set()
    for node in nodes:
        for part in getattr(node, "body", [node]):
            lines |= set(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    return lines


def _code_lines(code: CodeType) -> set[tuple[str, int]]:
    """Return the lines of a code object and of those in it, each with the qualified name of its function."""
    lines = {(code.co_qualname, line) for _, _, line in code.co_lines() if line}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            lines |= _code_lines(constant)
    return lines
