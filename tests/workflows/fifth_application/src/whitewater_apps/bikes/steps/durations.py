"""Step `durations`: mean duration of rides by hour of the day and kind of rider."""

from pathlib import Path

import pandas as pd

from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.bikes.config import Durations


def durations(run: Run[Durations], *, kept: Path, table: Output) -> None:
    """Write rides and mean minutes of each group; sums are of integers, so that no order of rows changes a bit."""
    rides = pd.read_parquet(kept)
    groups = rides.groupby([rides["started_at"].dt.hour.rename("hour"), "rider"])["seconds"].agg(["count", "sum"])
    listed = groups[groups["count"] >= run.settings.minimum_rides]
    means = pd.DataFrame({"rides": listed["count"], "mean_minutes": listed["sum"] / listed["count"] / 60})
    means.reset_index().to_parquet(table, index=False)


def headline(results: Path) -> list[str]:
    """Say what a folder of results shows."""
    table = pd.read_parquet(results / "durations.parquet")
    longest = table.loc[table["mean_minutes"].idxmax()]
    return [f"Rides are longest at {longest.hour}:00, for a {longest.rider}: {longest.mean_minutes:.0f} minutes."]


if __name__ == "__main__":
    main(durations)
