"""Where templates come from: a checkout, or the files that its wheel brings along.

A template is an application itself: its package, its workflow, its tests, and what this repository has around them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from whitewater.application import Application, applications, in_project

IN_WHEEL = Path(__file__).parent / "files"
CHECKOUT = Path(__file__).parents[3]


def root() -> Path:
    """Return the folder that holds what is rendered: a checkout, or what ``envs/build_hook.py`` put into the wheel."""
    return IN_WHEEL if IN_WHEEL.is_dir() else CHECKOUT


def templates() -> dict[str, Application]:
    """Return the applications that a project can be made from, by name."""
    return {name: each for name, each in applications(in_project(root())).items() if each.steps}


def package_folder(application: Application) -> Path:
    """Return the folder of an application's package."""
    return Path(sys.modules[application.package].__path__[0])


def files_below(folder: Path) -> Iterator[Path]:
    """Yield a file, or the files of a folder, sorted, without what Python and editors leave there."""
    for path in [folder, *sorted(folder.rglob("*"))]:
        if path.is_file() and not {"__pycache__", ".ipynb_checkpoints", ".snakemake"} & set(path.parts):
            yield path
