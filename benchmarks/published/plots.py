"""The pictures of results: ``python -m benchmarks.published.plots --results F --scaling F --plots variants.svg...``.

Draws the files that it is given; their names say which picture: ``variants``, ``roofline``, ``search``, ``scaling``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.published import figures
from benchmarks.report import Report, Reports
from benchmarks.results_file import Results, read
from whitewater.figures import style
from whitewater.log import log_output


def draw(results: Results, scaling: Sequence[Report], plots: Sequence[Path]) -> None:
    """Draw each picture once and write it to its files, each of them whole or not at all.

    Raises
    ------
    InputError
        If there is no picture of a name, or a file is neither ``.png`` nor ``.svg``.
    """
    # A file that is being written has its suffix last, by which its format is known.
    staged = {path: path.with_name(f".unfinished-{path.name}") for path in plots}
    for path in plots:
        path.parent.mkdir(parents=True, exist_ok=True)
    style.draw_all(
        {
            "variants": lambda: figures.variants(results),
            "roofline": lambda: figures.roofline(results),
            "search": lambda: figures.search(results),
            "scaling": lambda: figures.scaling(scaling),
        },
        {str(path): beside for path, beside in staged.items()},
    )
    for path, beside in staged.items():
        beside.replace(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the pictures that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published.plots", description=__doc__)
    parser.add_argument("--results", type=Path, required=True, help="results of all rows, JSON")
    parser.add_argument("--scaling", type=Path, help="reports of the scaling, JSON")
    parser.add_argument("--plots", type=Path, nargs="+", required=True, help="files of pictures, .svg or .png")
    parser.add_argument("--log", type=Path, help="file for everything printed")
    given: Any = parser.parse_args(arguments)
    with log_output(given.log, name="benchmarks plots"):
        scaling = read(given.scaling, Reports).reports if given.scaling else ()
        draw(read(given.results, Results), scaling, given.plots)
    return 0


if __name__ == "__main__":
    sys.exit(main())
