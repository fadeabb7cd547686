"""Step `plot`: the pictures, each drawn once and written in every format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from whitewater import style
from whitewater.recsys import figures
from whitewater.recsys.feature_folder import open_features
from whitewater.recsys.log_folder import open_log
from whitewater.store import read_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from whitewater.config.recsys import Plot
    from whitewater.step import Outputs, Run


def plot(
    run: Run[Plot],
    *,
    metrics: Path,
    drift: Path,
    statistics: Path,
    workflow: Path,
    events: Path,
    test: Path,
    plots: Outputs,
) -> None:
    """Draw what features are worth, the calibration, the drift, the categories, and a number before and after.

    The name of a file says which picture it is, and in which format: ``auc.png``.
    """
    draw: dict[str, Callable[[], Figure]] = {
        "auc": lambda: figures.auc(read_json(metrics)),
        "calibration": lambda: figures.calibration(read_json(metrics)),
        "drift": lambda: figures.drift(read_json(drift)),
        "categories": lambda: figures.categories(workflow, rows=read_json(statistics)["rows"]),
        "numbers": lambda: figures.numbers(
            read_json(statistics), events=open_log(events), features=open_features(test)
        ),
    }
    run.note(pictures=style.draw_all(draw, plots))
