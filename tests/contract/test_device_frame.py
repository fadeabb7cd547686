"""Frames that stand for cuDF's refuse what those refuse, and do otherwise than pandas what those do otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.base import compute
from distributed.protocol.pickle import dumps, loads

from tests.contract import device_array
from tests.contract.device_array import recording
from tests.contract.device_frame import CUDF, CudfBackend, DaskFrame, DeviceFrame, DeviceSeries
from tests.contract.signatures import Describe, problems
from tests.contract.strict_device import StrictDevice
from whitewater.engines.gpu_cluster import DASK_SETTINGS

KEYS = np.arange(300) % 100
CSV = "when,count,miles,who\n" + "".join(
    f"2015-01-{1 + row % 28:02d} 00:00:{row % 60:02d},{row % 7 or ''},{row / 8},{'ab'[row % 2]}\n" for row in range(40)
)


@pytest.fixture(autouse=True)
def _this_file_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what this file asks count as what our source asks."""
    monkeypatch.setattr(device_array, "SOURCES", (*device_array.SOURCES, __file__))


@pytest.fixture
def frame() -> Any:
    device = StrictDevice()
    return CUDF.DataFrame({"key": device.to_device(KEYS), "x": device.to_device(np.arange(300.0))})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "trips.csv"
    path.write_text(CSV)
    return path


@pytest.mark.parametrize(
    "refused",
    [
        np.asarray,
        lambda frame: np.asarray(frame["x"]),
        lambda frame: np.sum(np.asarray(frame.index)),
        lambda frame: [each for each in frame["x"]],  # noqa: C416
        lambda frame: list(frame.iterrows()),
        lambda frame: frame["x"].tolist(),
        lambda frame: [each for each in frame.index],  # noqa: C416
    ],
)
def test_copies_to_the_host_that_are_not_asked_for_are_refused(frame: Any, refused: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="to_numpy"):
        refused(frame)


@pytest.mark.parametrize(
    ("ask", "fault"),
    [
        (lambda frame: frame.idxmax(), "RAPIDS has no cudf.DataFrame.idxmax"),
        (lambda frame: frame["x"].xs(0), "RAPIDS has no cudf.Series.xs"),
        (lambda frame: frame["x"].convert_dtypes(convert_floating=True), None),
        (lambda frame: frame["x"].clip(lower=1, upper=2), None),
        (lambda frame: frame.fillna(value=0), None),
        (lambda frame: frame.to_csv(index=False, float_format="%g"), "float_format"),
        (lambda frame: frame.groupby("key").skew(), "cudf.DataFrame.groupby.skew"),
        (lambda frame: frame.index.asof(1), "RAPIDS has no cudf.Index.asof"),
        (lambda frame: CUDF.Series([1]).sum(), None),
        (lambda frame: CUDF.wide_to_long, None),
    ],
)
def test_what_is_asked_is_compared_with_what_cudf_accepts(
    frame: Any, rapids: Describe, ask: Callable[[Any], Any], fault: str | None
) -> None:
    with recording() as calls:
        ask(frame)
    found = problems(calls, rapids)
    assert [each for each in found if fault and fault in each] == found
    assert bool(found) == bool(fault)


def test_rows_and_groups_come_in_an_order_that_pandas_does_not_give(frame: Any) -> None:
    groups = frame.groupby("key").mean()
    assert groups.index.to_numpy().tolist() != list(range(100))
    assert frame.groupby("key", sort=True).mean().index.to_numpy().tolist() == list(range(100))
    found, expected = frame.merge(frame, on="key"), pd.DataFrame({"key": KEYS, "x": np.arange(300.0)})
    expected = expected.merge(expected, on="key")
    order = ["key", "x_x", "x_y"]
    assert found["x_x"].to_numpy().tolist() != expected["x_x"].tolist()
    pd.testing.assert_frame_equal(
        pd.DataFrame({name: found[name].to_numpy() for name in order}).sort_values(order, ignore_index=True),
        expected[order].sort_values(order, ignore_index=True),
    )
    assert float(groups["x"].mean()) == 149.5


def test_columns_of_a_file_are_what_cudf_takes_them_for(file: Path) -> None:
    table = CUDF.read_csv(file)
    assert [str(table[name].dtype) for name in ("when", "count", "miles")] == ["datetime64[ns]", "Int64", "Float64"]
    counts = table["count"].astype("float64").to_numpy(na_value=np.nan)
    np.testing.assert_array_equal(counts[:3], [np.nan, 1.0, 2.0])


@pytest.mark.parametrize("blocksize", [20, 333, 10**6])
def test_ranges_of_a_file_have_each_line_once(file: Path, blocksize: int) -> None:
    found: Any = CudfBackend.read_csv([str(file)], blocksize=blocksize, dtype={"count": "float64"})
    assert isinstance(found, DaskFrame)
    table: Any = found
    miles = table.compute(scheduler="synchronous")["miles"]
    assert miles.to_numpy(dtype="float64").tolist() == (np.arange(40) / 8).tolist()


def test_what_dask_makes_of_frames_are_frames_and_what_it_is_asked_is_recorded(frame: Any, rapids: Describe) -> None:
    with recording() as calls:
        table = dd.from_map(lambda _: frame, range(2), meta=frame)
        merged = table.merge(table, on="key")
        means = table.groupby("key", dropna=True)["x"].mean()
        total = table.x.sum()
        with dask.config.set(DASK_SETTINGS):
            joined, found, added = compute(merged, means, total, scheduler="synchronous")
    assert isinstance(joined, DeviceFrame)
    assert isinstance(joined["x_x"], DeviceSeries)
    assert (len(joined), len(found), float(added)) == (100 * 6 * 6, 100, 2 * np.arange(300).sum())
    assert problems(calls, rapids) == []
    called = {call.name for call in calls}
    assert {f"dask_cudf.{name}" for name in ("DataFrame.merge", "DataFrame.groupby", "Series.sum")} <= called


def test_frames_are_sent_as_they_are(frame: Any) -> None:
    sent = loads(dumps(frame))
    assert isinstance(sent, DeviceFrame)
    assert sent["x"].to_numpy().tolist() == frame["x"].to_numpy().tolist()


def test_the_module_is_not_sent() -> None:
    with pytest.raises(TypeError, match="pickled"):
        dumps(CUDF)
