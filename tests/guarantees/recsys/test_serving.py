"""A workflow that was fitted on times in seconds is served times in seconds."""

from __future__ import annotations

import pandas as pd

from tests.guarantees.running import Clone

WORKFLOW = "results/recsys/cpu/workflow"


def test_milliseconds_are_refused_where_the_workflow_was_fitted_on_seconds(finished: Clone) -> None:
    """The features of the simulated log have counts of the past, which would take them for a far future."""
    (path, *_) = sorted((finished / "data/recsys/test").glob("*.parquet"))
    rows = pd.read_parquet(path)
    rows.assign(time=rows["time"] * 1000).to_parquet(finished / "milliseconds.parquet")
    command = ("python", "-m", "whitewater", "recsys", "transform", "--workflow", WORKFLOW)
    ended = finished.start(*command, "milliseconds.parquet", "none.parquet", PYTHONPATH="src").ended()
    assert ended.message.startswith(f"InputError: column 'time' has the time {rows['time'][0]}000, ")
    assert "seconds since 1970" in ended.message
    assert not (finished / "none.parquet").exists()
