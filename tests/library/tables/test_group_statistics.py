"""Statistics by keys on both engines, for any partitions and order of rows: the oracle is pandas on the values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dask.base import compute
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.errors import InputError
from whitewater.tables import group_statistics, with_dask, with_polars
from whitewater.tables.group_statistics import BINS, LIMIT, merge, summarize

KEYS = [pa.schema({"station": pa.string()}), pa.schema({"hour": pa.int16(), "station": pa.string()})]
Engine = Callable[[Sequence[pd.DataFrame]], list[pa.Table]]


def by_polars(parts: Sequence[pd.DataFrame]) -> list[pa.Table]:
    frames = (pl.from_pandas(part, nan_to_null=True).lazy() for part in parts)
    return merge((with_polars.sums_by_bin(frame, KEYS, "fraction") for frame in frames), KEYS)


def by_dask(parts: Sequence[pd.DataFrame]) -> list[pa.Table]:
    rows = dd.from_map(lambda part: part, list(parts), meta=parts[0].head(0))
    tables: list[pa.Table]
    [tables] = compute(with_dask.group_statistics(rows, KEYS, "fraction"), scheduler="threads", num_workers=2)
    return tables


ENGINES = pytest.mark.parametrize("sums_of", [by_polars, by_dask])


def rides(seed: int, rows: int, *, stations: int = 5) -> pd.DataFrame:
    """Return rides with nulls in the keys and in the value, and zeros and repeated values."""
    random = np.random.default_rng(seed)
    cents = random.integers(0, 900, rows) * random.choice([0, 1], rows, p=[0.2, 0.8])
    station = pd.Series(random.integers(0, stations, rows)).map("station {}".format).astype("str")
    return pd.DataFrame(
        {
            "station": station.where(random.random(rows) > 0.1),
            "hour": pd.Series(random.integers(0, 24, rows), dtype="float64").where(random.random(rows) > 0.1),
            "fraction": pd.Series(cents / random.integers(250, 8_000, rows)).where(random.random(rows) > 0.1),
        }
    )


def split(frame: pd.DataFrame, parts: int) -> list[pd.DataFrame]:
    return [frame.iloc[rows] for rows in np.array_split(np.arange(len(frame)), parts)]


def check(frame: pd.DataFrame, sums: pa.Table, by: list[str]) -> None:
    found = summarize(sums, by).to_pandas()
    groups = frame.sort_values(by).groupby(by, dropna=False)["fraction"]
    expected = groups.agg(["size", "count", "mean", "std", "median"]).reset_index()
    pd.testing.assert_frame_equal(found[by], expected[by], check_dtype=False)
    assert found["rows"].tolist() == expected["size"].tolist()
    assert found["values"].tolist() == expected["count"].tolist()
    np.testing.assert_allclose(found["mean"], expected["mean"], rtol=1e-10, atol=2**-42)
    np.testing.assert_allclose(found["deviation"], expected["std"], rtol=1e-6, atol=1e-7)
    distance = (found["median"] - expected["median"]).abs().fillna(0)
    assert (distance <= found["median_error"].fillna(0)).all()
    assert (found["median"].isna() == expected["median"].isna()).all()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1_000), rows=st.integers(0, 300), parts=st.sampled_from([1, 2, 7]), shuffled=st.booleans())
def test_both_engines_make_the_same_tables_whatever_the_partitions(
    seed: int, rows: int, parts: int, shuffled: bool
) -> None:
    frame = rides(seed, rows)
    whole = by_polars([frame])
    rearranged = frame.sample(frac=1, random_state=seed) if shuffled else frame
    others = [sums_of(split(rearranged, parts)) for sums_of in (by_polars, by_dask)]
    for place, schema in enumerate(KEYS):
        for by in (schema.names, schema.names[-1:]):
            expected = summarize(whole[place], by)
            assert all(summarize(tables[place], by).equals(expected) for tables in others)
        check(frame, whole[place], schema.names)


@pytest.mark.parametrize("largest", [64, 700])
@ENGINES
def test_more_groups_and_bins_than_fit_make_wider_bins_whatever_the_partitions(
    sums_of: Engine, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_statistics, "LARGEST", largest)
    frame = rides(3, 4_000)
    [whole, _] = sums_of([frame])
    assert len(whole) <= largest
    assert summarize(whole, ["station"])["median_error"][0].as_py() > 1 / BINS
    check(frame, whole, ["station"])
    for parts in (2, 9):
        [other, _] = sums_of(split(frame.sample(frac=1, random_state=1), parts))
        assert summarize(other, ["station"]).equals(summarize(whole, ["station"]))


@ENGINES
def test_more_groups_than_fit_keep_one_bin_besides_that_of_zero(
    sums_of: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_statistics, "LARGEST", 2)
    frame = rides(4, 500)
    [whole, _] = sums_of(split(frame, 3))
    check(frame, whole, ["station"])


@pytest.mark.slow
@ENGINES
def test_a_hundred_thousand_stations_learned_from_the_rows_stay_within_the_bound(
    sums_of: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_statistics, "LARGEST", 2**18)
    frame = rides(5, 300_000, stations=130_000)
    [table, _] = sums_of(split(frame, 3))
    assert len(frame["station"].unique()) > 100_000
    assert len(table) <= 2**18
    assert table.nbytes < 110 * 2**18
    check(frame, table, ["station"])


@ENGINES
def test_sums_of_parts_that_do_not_fit_together_are_added_up_on_the_way(
    sums_of: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = rides(6, 2_000)
    expected = [summarize(table, ["station"]) for table in sums_of([frame])]
    monkeypatch.setattr(group_statistics, "LARGEST", 10_000)
    parts = [merged for part in split(frame, 40) if (merged := sums_of([part]))]
    monkeypatch.setattr(group_statistics, "LARGEST", 2_000)
    assert [summarize(table, ["station"]) for table in merge(parts, KEYS)] == expected


@pytest.mark.parametrize("value", [-1e-300, np.inf, -np.inf, LIMIT])
@ENGINES
def test_values_that_are_negative_infinite_or_too_large_are_refused(sums_of: Engine, value: float) -> None:
    frame = pd.DataFrame({"station": ["a", "b", "a"], "hour": 1.0, "fraction": [value, 0.5, value]})
    with pytest.raises(InputError, match=r"^2 values are negative, infinite"):
        sums_of([frame])


@ENGINES
def test_zero_is_exact_and_values_within_their_bins(sums_of: Engine) -> None:
    frame = pd.DataFrame({"station": ["a", "a", "a", "b"], "hour": 1.0, "fraction": [0.0, 0.0, 7.0, 1e-300]})
    [table, _] = sums_of([frame])
    zero, least = summarize(table, ["station"])["median"].to_pylist()
    assert zero == 0
    assert 0 < least < 1 / BINS


def test_no_rows_at_all_have_no_groups() -> None:
    tables = merge([], KEYS)
    assert [summarize(table, ["station"]).num_rows for table in tables] == [0, 0]
