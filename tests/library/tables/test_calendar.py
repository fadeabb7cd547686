"""Calendar fields equal those of pandas."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.engines import resolve
from whitewater.tables.blocks import NULL_TIMESTAMP
from whitewater.tables.calendar import hour_of_week, month_index, month_name

DEVICE = resolve("cpu")
FIRST, LAST = pd.Timestamp("2000-01-01"), pd.Timestamp("2099-12-31 23:59:59.999999")


@settings(deadline=None)
@given(st.lists(st.datetimes(FIRST.to_pydatetime(), LAST.to_pydatetime()), min_size=1))
def test_hour_of_week_and_month_equal_those_of_pandas(moments: list[object]) -> None:
    times = pd.DatetimeIndex(moments).as_unit("us")
    stamps = times.to_numpy().astype(np.int64)
    assert hour_of_week(stamps, DEVICE).tolist() == (times.weekday * 24 + times.hour).tolist()
    assert [month_name(index) for index in month_index(stamps, DEVICE).tolist()] == times.strftime("%Y-%m").tolist()


def test_nulls_and_dates_far_away_have_no_month_and_no_hour() -> None:
    far = np.array([-(2**62), 2**62], np.int64)
    edges = np.array(["1999-12-31T23:59:59.999999", "2100-01-01"], "datetime64[us]").astype(np.int64)
    stamps = np.concatenate([[NULL_TIMESTAMP], far, edges])
    assert hour_of_week(stamps, DEVICE).tolist() == [-1] * 5
    assert month_index(stamps, DEVICE).tolist() == [-1] * 5
