"""Step `plot`: draw the figures, and write them in every format."""

from pathlib import Path

from whitewater import lazy_pandas as pd
from whitewater.io.store import read_json
from whitewater.script import main
from whitewater.step import Outputs, Run
from whitewater_apps.taxi.config import Plot
from whitewater_apps.taxi.schema import MODELS


def plot(
    run: Run[Plot], *, tips_by_hour: Path, tips_by_weekday_hour: Path, tips_by_borough: Path, tips_by_zone: Path,
    quality: Path, model: Path, plots: Outputs,
) -> None:  # fmt: skip
    """Draw tips, the quality of the data, and predictions; the file name, such as `data_quality.svg`, says which."""
    from whitewater.figures import style
    from whitewater_apps.taxi import figures

    read, settings = pd.read_parquet, run.settings
    few = {"minimum_trips": settings.minimum_trips}
    columns = ["service", "observed", *MODELS]
    draw = {
        "tip_fraction_by_hour": lambda: figures.tip_fraction_by_hour(read(tips_by_hour), **few),
        "tip_fraction_by_weekday_hour": lambda: figures.tip_fraction_by_weekday_hour(read(tips_by_weekday_hour), **few),
        "tip_fraction_by_borough": lambda: figures.tip_fraction_by_borough(read(tips_by_borough), **few),
        "tip_fraction_by_zone": lambda: figures.tip_fraction_by_zone(read(tips_by_zone), zones=settings.zones, **few),
        "data_quality": lambda: figures.data_quality(read_json(quality)),
        "predicted_against_observed": lambda: figures.predicted_against_observed(
            read(model / "predictions.parquet", columns=columns), metrics=read_json(model / "metrics.json")
        ),
    }
    run.note(pictures=style.draw_all(draw, plots))


if __name__ == "__main__":
    main(plot)
