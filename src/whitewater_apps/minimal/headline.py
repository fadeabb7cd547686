"""A summary of the results of the minimal application, in sentences."""

from pathlib import Path
from statistics import NormalDist

import numpy as np
import pyarrow.parquet as pq


def headline(results: Path) -> list[str]:
    """Say where and when the wind is strongest, with a 95 % interval, and how many other hours may be as windy.

    The strongest hour is tested against each other one, at a level of 5 % divided by their number (Bonferroni).
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
