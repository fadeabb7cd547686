"""The function of frames that the tutorial takes from pandas to Dask and cuDF asks of them what cuDF has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import pandas as pd
import pytest

from tests.contract import device_array, frame_calls
from tests.contract.frame_calls import frames_as_cudf
from tests.contract.gaps import known_gaps
from tests.contract.signatures import Describe, problems
from whitewater_apps.taxi.synthetic.months import simulate_month

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "taxi.ipynb"
NAME = "tip_by_hour"


@pytest.fixture
def tip_by_hour() -> Any:
    cells = ["".join(cell["source"]) for cell in json.loads(NOTEBOOK.read_text())["cells"]]
    (source,) = [cell for cell in cells if f"def {NAME}" in cell]
    namespace: dict[str, Any] = {}
    exec(compile(source.partition("\n\n\n")[0], str(NOTEBOOK), "exec"), namespace)  # noqa: S102, our own
    return namespace[NAME]


def test_it_gives_the_same_of_frames_that_do_as_cudf_does(
    tip_by_hour: Any, rapids: Describe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_array, "SOURCES", (*device_array.SOURCES, str(NOTEBOOK)))
    monkeypatch.setattr(frame_calls, "is_ours", str(NOTEBOOK).__eq__)
    trips = simulate_month("yellow", "2019-03", rows=3000, seed=1).to_pandas()
    expected = tip_by_hour(trips)
    with frames_as_cudf() as calls:
        found = tip_by_hour(trips)
    pd.testing.assert_series_equal(found, expected)
    in_dask = tip_by_hour(dd.from_pandas(trips, npartitions=3)).compute(scheduler="threads")
    pd.testing.assert_series_equal(in_dask.sort_index(), expected, rtol=1e-12)
    assert len(calls) > 8
    assert [*problems(calls, rapids), *known_gaps(calls)] == []
