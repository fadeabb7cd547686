"""The figure of mean wind speed by hour."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from whitewater.figures import style, words

COLORS = (style.BLUE, style.VERMILION, style.GREEN, style.ORANGE, style.PURPLE, style.SKY_BLUE)
MARKS = ("o", "s", "^", "D", "v", "P")


@style.with_style
def wind_by_hour(table: pd.DataFrame, *, stations: int) -> Figure:
    """Draw the mean wind speed by hour of the stations with the most readings, a line each."""
    title = "Wind by hour of the day"
    if table.empty:
        return style.text_figure(title, "No station has enough readings in any hour.")
    counts = table.groupby("station")["values"].sum()
    most = counts.sort_values(ascending=False, kind="stable").index[:stations]
    notes = [f"{words.count(len(counts) - len(most))} stations are not shown."] if len(counts) > len(most) else []
    figure, body = style.new_figure(9, 4.2, title=title, subtitle="Mean wind speed of each station.", notes=notes)
    axes = body.subplots()
    for name, color, mark in zip(most, COLORS, MARKS, strict=False):
        mean = table[table["station"] == name].set_index("hour")["mean"].reindex(np.arange(24))
        axes.plot(mean.index, mean, marker=mark, color=color, label=style.fit_text(name))
    axes.set(xlabel="Hour", ylabel="Wind speed, m/s", xlim=(-0.5, 23.5))
    axes.set_ylim(bottom=0)
    body.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=6)
    return figure
