"""Rows by category against pandas."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.library.features.frames import learned
from whitewater.features.operators.encodings import JoinGroupby

INPUTS = ("city", ("city", "item"))


@pytest.fixture(scope="module")
def log() -> pd.DataFrame:
    """Text and integers with nulls."""
    draw = np.random.default_rng(8)
    rows = 1500
    city = np.array(["", "Ulm", "Zürich", "Köln", "N/A", None], object)[draw.integers(0, 6, rows)]
    item = pd.array(draw.zipf(1.6, rows) % 40, "Int64")
    item[draw.random(rows) < 0.1] = pd.NA
    return pd.DataFrame({"city": city, "item": item})


def keys_of(frame: pd.DataFrame, columns: str | tuple[str, ...]) -> pd.Series:
    names = [columns] if isinstance(columns, str) else list(columns)
    return frame[names].astype(object).where(frame[names].notna(), None).apply(tuple, axis=1)


@pytest.mark.parametrize("columns", INPUTS)
def test_rows_are_counted_as_by_pandas(log: pd.DataFrame, columns: str | tuple[str, ...]) -> None:
    rows = log.copy()
    rows.loc[:9, "city"], rows.loc[:9, "item"] = "Aleppo", 777
    found = learned(JoinGroupby(), log, INPUTS, parts=3, blocks=2).applied(rows)
    name = columns if isinstance(columns, str) else "_".join(columns)
    sizes = log.groupby(keys_of(log, columns)).size()
    assert found[f"{name}_count"].tolist() == sizes.reindex(keys_of(rows, columns)).fillna(0).tolist()


@settings(max_examples=10, deadline=None)
@given(parts=st.integers(1, 64), seed=st.integers(0, 99))
def test_counts_do_not_depend_on_partitions_or_order(log: pd.DataFrame, parts: int, seed: int) -> None:
    whole = learned(JoinGroupby(), log, INPUTS).applied(log)
    shuffled = log.sample(frac=1, random_state=seed)
    parted = learned(JoinGroupby(), shuffled, INPUTS, parts=parts).applied(log)
    pd.testing.assert_frame_equal(parted, whole, check_exact=True)
