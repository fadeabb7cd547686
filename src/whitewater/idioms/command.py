"""Find slow idioms in Python files and notebooks: ``python -m whitewater idioms``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from whitewater.errors import InputError
from whitewater.idioms.inspection import inspect
from whitewater.idioms.rules import RULES
from whitewater.idioms.sources import SKIPPED, files, read

FOUND, UNREADABLE = 1, 2
_EPILOG = f"""
In folders, these are left out: hidden folders (.git, .venv and the like), environments of Python, and
{", ".join(SKIPPED)}. A file or folder that is named itself is always read.

A comment lets a finding stand, with a reason: # idiom: WW101 because each row needs the row before it

Exit status: 0 nothing found, 1 something found, 2 something could not be read.
"""


def main(arguments: Sequence[str]) -> int:
    """Print what the rules find; return 1 when they find something, and 2 when a file could not be read."""
    options = _parser().parse_args(list(arguments))
    if options.explain:
        print(RULES[options.explain].explanation, end="")
        return 0
    try:
        paths = files(options.path)
    except InputError as error:
        print(error, file=sys.stderr)
        return UNREADABLE
    return _inspect_all(paths, [str(each) for each in options.path])


def _inspect_all(paths: Sequence[Path], asked: Sequence[str]) -> int:
    if not paths:
        print(f"{', '.join(asked)}: there are no Python files or notebooks.", file=sys.stderr)
        return UNREADABLE
    found, unreadable = 0, 0
    for path in paths:
        try:
            source = read(path)
        except InputError as error:
            print(error, file=sys.stderr)
            unreadable += 1
            continue
        for finding in inspect(source):
            found += 1
            print(f"{source.place(finding.line, finding.column)}: {finding.message}")
    print(_summary(len(paths), found, unreadable))
    return UNREADABLE if unreadable else FOUND if found else 0


def _summary(read_files: int, found: int, unreadable: int) -> str:
    text = f"{found or 'No'} slow idiom{'s' if found != 1 else ''} in {read_files} file{'s' if read_files != 1 else ''}"
    text += f", of which {unreadable} could not be read" if unreadable else ""
    return f"{text}. `python -m whitewater idioms --explain CODE` says why." if found else f"{text}."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m whitewater idioms",
        description="Find slow idioms in Python files and notebooks, which are read and never run.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("path", type=Path, nargs="*", default=[Path()], help="files and folders (default: this folder)")
    parser.add_argument("--explain", metavar="CODE", choices=RULES, help=f"what, why, what else: {', '.join(RULES)}")
    return parser
