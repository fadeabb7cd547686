"""Step `plot`: the pictures, each drawn once and written in every format, such as ``auc.png``."""

from pathlib import Path

from whitewater.features.feature_folder import open_features
from whitewater.features.log_folder import open_log
from whitewater.io.store import read_json
from whitewater.script import main
from whitewater.step import Outputs, Run
from whitewater_apps.recsys.config import Plot


def plot(
    run: Run[Plot], *, metrics: Path, drift: Path, statistics: Path, workflow: Path, events: Path, test: Path,
    plots: Outputs,
) -> None:  # fmt: skip
    """Draw what features are worth, the calibration, the drift, the categories, and a number before and after."""
    from whitewater.figures import style
    from whitewater_apps.recsys import figures

    draw = {
        "auc": lambda: figures.auc(read_json(metrics)),
        "calibration": lambda: figures.calibration(read_json(metrics)),
        "drift": lambda: figures.drift(read_json(drift)),
        "categories": lambda: figures.categories(workflow, rows=read_json(statistics)["rows"]),
        "numbers": lambda: figures.numbers(
            read_json(statistics), events=open_log(events), features=open_features(test)
        ),
    }
    run.note(pictures=style.draw_all(draw, plots))


if __name__ == "__main__":
    main(plot)
