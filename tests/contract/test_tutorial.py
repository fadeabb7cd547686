"""The functions of frames that tutorials take from pandas to Dask and cuDF ask of them what cuDF has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from tests.contract import device_array, frame_calls
from tests.contract.frame_calls import frames_as_cudf
from tests.contract.signatures import faults
from whitewater_apps.taxi.synthetic.months import simulate_month

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def readings() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame({"sensor": rng.integers(5, size=300), "reading": rng.normal(20, 9, size=300)})


def trips() -> pd.DataFrame:
    table: pd.DataFrame = simulate_month("yellow", "2019-03", rows=3000, seed=1).to_pandas()
    return table


def defined(notebook: Path, name: str) -> Any:
    """Return a function as a cell of a notebook defines it."""
    cells = ["".join(cell["source"]) for cell in json.loads(notebook.read_text())["cells"]]
    (source,) = [cell for cell in cells if f"def {name}" in cell]
    namespace: dict[str, Any] = {}
    definition = source[source.index(f"def {name}") :].partition("\n\n\n")[0]
    exec(compile(definition, str(notebook), "exec"), namespace)  # noqa: S102, our own
    return namespace[name]


@pytest.mark.parametrize(
    ("tutorial", "name", "make"), [("taxi", "tip_by_hour", trips), ("stack", "mean_by_sensor", readings)]
)
def test_it_gives_the_same_of_frames_that_do_as_cudf_does(
    tutorial: str, name: str, make: Callable[[], pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = NOTEBOOKS / f"{tutorial}.ipynb"
    function, frame = defined(notebook, name), make()
    monkeypatch.setattr(device_array, "SOURCES", (*device_array.SOURCES, str(notebook)))
    monkeypatch.setattr(frame_calls, "is_ours", str(notebook).__eq__)
    expected = function(frame)
    with frames_as_cudf() as calls:
        found = function(frame)
    pd.testing.assert_series_equal(found, expected)
    in_dask = function(dd.from_pandas(frame, npartitions=3)).compute(scheduler="threads")
    pd.testing.assert_series_equal(in_dask.sort_index(), expected, rtol=1e-12)
    assert {"cudf.DataFrame.groupby", "cudf.Series.groupby.mean"} <= {call.name for call in calls}
    assert faults(calls) == []
