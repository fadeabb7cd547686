"""Rows are counted by integers of any size, and nulls, alike in either engine."""

import numpy as np
import pandas as pd
import polars as pl

from whitewater.tables import with_dask, with_polars

MASKS = [0, 2**57 + 2, 2**57 + 2, 2**62 + 1, 5]
ZONES = [1, None, 7, None, 7]
EXPECTED = {(0, 1): 1, (2**57 + 2, None): 1, (2**57 + 2, 7): 1, (2**62 + 1, None): 1, (5, 7): 1}


def test_masks_of_many_reasons_are_exact_beside_nulls() -> None:
    frame = pd.DataFrame({"mask": MASKS, "zone": [np.nan if zone is None else zone for zone in ZONES]})
    assert with_dask.count_rows(frame, "mask", "zone") == EXPECTED
    assert with_polars.count_rows(pl.LazyFrame({"mask": MASKS, "zone": ZONES}), "mask", "zone") == EXPECTED


def test_groups_of_a_null_and_of_nan_are_added_up() -> None:
    zone = pd.Series([np.nan, np.nan, None, 1.0, None], dtype=object)
    assert with_dask.count_rows(pd.DataFrame({"zone": zone}), "zone") == {(None,): 4, (1,): 1}
