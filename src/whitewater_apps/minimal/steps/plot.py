"""Step `plot`: draw the figure once and write it in every format."""

from pathlib import Path

from whitewater import lazy_pandas as pd
from whitewater.script import main
from whitewater.step import Outputs, Run
from whitewater_apps.minimal.config import Plot


def plot(run: Run[Plot], *, table: Path, plots: Outputs) -> None:
    """Draw wind by hour; each output's name gives the figure and the format: ``wind_by_hour.svg``."""
    from whitewater.figures import style
    from whitewater_apps.minimal import figures

    draw = {"wind_by_hour": lambda: figures.wind_by_hour(pd.read_parquet(table), stations=run.settings.stations)}
    run.note(pictures=style.draw_all(draw, plots))


if __name__ == "__main__":
    main(plot)
