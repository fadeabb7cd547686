"""The picture, and what the results say."""

from pathlib import Path
from statistics import NormalDist

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from whitewater.figures import style, words

COLORS = (style.BLUE, style.VERMILION, style.GREEN, style.ORANGE, style.PURPLE, style.SKY_BLUE)
MARKS = ("o", "s", "^", "D", "v", "P")


@style.styled
def wind_by_hour(table: pd.DataFrame, *, stations: int) -> Figure:
    """Draw the mean wind speed by hour of the stations with the most readings, a line each."""
    title = "Wind by hour of the day"
    if table.empty:
        return style.explained(title, "No station has enough readings in any hour.")
    counts = table.groupby("station")["values"].sum()
    most = counts.sort_values(ascending=False, kind="stable").index[:stations]
    notes = [f"{words.count(len(counts) - len(most))} stations are not shown."] if len(counts) > len(most) else []
    figure, body = style.titled(9, 4.2, title=title, subtitle="Mean wind speed of each station.", notes=notes)
    axes = body.subplots()
    for name, color, mark in zip(most, COLORS, MARKS, strict=False):
        mean = table[table["station"] == name].set_index("hour")["mean"].reindex(np.arange(24))
        axes.plot(mean.index, mean, marker=mark, color=color, label=style.fitted(name))
    axes.set(xlabel="Hour", ylabel="Wind speed, m/s", xlim=(-0.5, 23.5))
    axes.set_ylim(bottom=0)
    body.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=6)
    return figure


def headline(results: Path) -> list[str]:
    """Say where and when the wind is strongest, with a 95 % interval, and how many other hours may be as strong.

    The strongest is compared with each other one, at 5 % divided by their number (Bonferroni).
    """
    rows = pq.read_table(results / "wind_by_hour.parquet").to_pandas().dropna(subset="deviation")
    if rows.empty:
        return ["No station has enough readings in any hour."]
    error = rows["deviation"] / np.sqrt(rows["values"])
    at = rows["mean"].idxmax()
    most, half = rows.loc[at], NormalDist().inv_cdf(0.975) * error[at]
    finding = (
        f"The wind is strongest at station {most['station']} at {most['hour']:.0f}:00: {most['mean']:.1f} "
        f"[{most['mean'] - half:.1f}, {most['mean'] + half:.1f}] m/s (n = {most['values']:,.0f})"
    )
    if len(rows) == 1:
        return [f"{finding}."]
    limit = NormalDist().inv_cdf(1 - 0.05 / (len(rows) - 1))
    alike = int((most["mean"] - rows["mean"] <= limit * np.hypot(error, error[at])).sum()) - 1
    if not alike:
        return [f"{finding}, more than in any other of {len(rows):,} hours of stations."]
    return [f"{finding}; of the other {len(rows) - 1:,} hours of stations, {alike:,} may be as windy, within noise."]
