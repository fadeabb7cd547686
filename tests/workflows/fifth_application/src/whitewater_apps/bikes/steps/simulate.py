"""Step `simulate`: rides of one month."""

import numpy as np
import pandas as pd

from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.bikes.config import Simulate


def simulate(run: Run[Simulate], *, rides: Output, inputs: Output) -> None:
    """Write the rides as CSV, one in twenty too short, and the list of inputs, which is empty."""
    random, count = np.random.default_rng(run.settings.seed), run.settings.rides
    started = np.datetime64("2025-06-01", "s") + random.integers(0, 30 * 24 * 3600, count)
    seconds = np.where(random.random(count) < 0.05, 5, random.lognormal(6.5, 1.0, count)).astype(np.int64)
    times = {"started_at": started, "ended_at": started + seconds}
    pd.DataFrame({**times, "rider": random.choice(["member", "casual"], count)}).to_csv(rides, index=False)
    write_json(inputs, {"source": "simulated", "files": []})


if __name__ == "__main__":
    main(simulate)
