"""Statistics by category against pandas, and against NumPy where digits may be lost."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.library.features.frames import learned
from whitewater.errors import ConfigError, InputError, IntegrityError
from whitewater.features.operators.join import JoinGroupby, Stat

STATS: tuple[Stat, ...] = ("count", "sum", "mean", "std", "var", "min", "max")
INPUTS = ("city", ("city", "item"))
EVERYTHING = JoinGroupby(cont_cols=("price", "age"), stats=STATS)


@pytest.fixture(scope="module")
def log() -> pd.DataFrame:
    """Text and integers with nulls, and numbers with nulls of which a category has none at all."""
    draw = np.random.default_rng(8)
    rows = 1500
    city = np.array(["", "Ulm", "Zürich", "Köln", "N/A", None], object)[draw.integers(0, 6, rows)]
    item = pd.array(draw.zipf(1.6, rows) % 40, "Int64")
    item[draw.random(rows) < 0.1] = pd.NA
    price = np.where((draw.random(rows) < 0.3) | (city == "Ulm"), np.nan, draw.lognormal(3, 1, rows))
    return pd.DataFrame({"city": city, "item": item, "price": price, "age": draw.integers(-90, 90, rows)})


def keys_of(frame: pd.DataFrame, columns: str | tuple[str, ...]) -> pd.Series:
    names = [columns] if isinstance(columns, str) else list(columns)
    return frame[names].astype(object).where(frame[names].notna(), None).apply(tuple, axis=1)


def joined_by_pandas(
    known: pd.DataFrame, rows: pd.DataFrame, columns: str | tuple[str, ...], number: str
) -> pd.DataFrame:
    groups = known.groupby(keys_of(known, columns))
    found = groups[number].agg(["sum", "mean", "std", "var", "min", "max"])
    found.insert(0, "count", groups.size())
    found = found.reindex(keys_of(rows, columns)).set_axis(rows.index)
    return found.fillna({"count": 0, "sum": 0})


@pytest.mark.parametrize("columns", INPUTS)
@pytest.mark.parametrize("number", EVERYTHING.cont_cols)
def test_statistics_are_those_of_pandas(
    log: pd.DataFrame, tmp_path: Path, columns: str | tuple[str, ...], number: str
) -> None:
    rows = log.copy()
    rows.loc[:9, "city"], rows.loc[:9, "item"] = "Aleppo", 777
    found = learned(EVERYTHING, log, INPUTS, scratch=tmp_path, parts=3, blocks=2).applied(rows)
    name = columns if isinstance(columns, str) else "_".join(columns)
    expected = joined_by_pandas(log, rows, columns, number)
    ours = found[[f"{name}_count", *(f"{name}_{number}_{stat}" for stat in STATS[1:])]].set_axis(STATS, axis=1)
    np.testing.assert_allclose(ours, expected[list(STATS)], rtol=1e-6)


@settings(max_examples=10, deadline=None)
@given(parts=st.integers(1, 64), seed=st.integers(0, 99))
def test_statistics_do_not_depend_on_partitions_or_order(
    log: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory, parts: int, seed: int
) -> None:
    scratch = tmp_path_factory.mktemp("scratch")
    whole = learned(EVERYTHING, log, INPUTS, scratch=scratch).applied(log)
    parted = learned(EVERYTHING, log.sample(frac=1, random_state=seed), INPUTS, scratch=scratch, parts=parts).applied(
        log
    )
    pd.testing.assert_frame_equal(parted, whole, rtol=1e-6)
    exact = [name for name in whole if str(name).endswith(("count", "min", "max"))]
    pd.testing.assert_frame_equal(parted[exact], whole[exact], check_exact=True)


def test_a_variance_is_right_at_an_offset_of_1e12(tmp_path: Path) -> None:
    # By the mean of squares less the square of the mean, which is NVTabular's, not a digit is right, or it is negative.
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"city": np.array(["a", "b"], object)[draw.integers(0, 2, 4000)], "noise": draw.normal(size=4000)}
    )
    frame["time"] = frame["noise"] + 1e12
    exact = frame.assign(offset=frame["time"] - 1e12).groupby("city")["offset"].var()
    operator = JoinGroupby(cont_cols=("time",), stats=("var", "std"))
    found = learned(operator, frame, ("city",), scratch=tmp_path, parts=7).applied(frame)
    np.testing.assert_allclose(found["city_time_var"], exact[frame["city"]], rtol=1e-6)
    np.testing.assert_allclose(found["city_time_std"], np.sqrt(exact[frame["city"]]), rtol=1e-6)


def test_one_value_has_no_sample_variance(tmp_path: Path) -> None:
    frame = pd.DataFrame({"city": ["a", "b", "b"], "price": [3.0, 5.0, 5.0]})
    operator = JoinGroupby(cont_cols=("price",), stats=("var",))
    found = learned(operator, frame, ("city",), scratch=tmp_path).applied(frame)
    np.testing.assert_array_equal(found["city_price_var"], [np.nan, 0, 0])


def test_rows_are_counted_without_numbers(log: pd.DataFrame, tmp_path: Path) -> None:
    found = learned(JoinGroupby(), log, ("city",), scratch=tmp_path).applied(log)
    assert list(found) == ["city_count"]
    assert found["city_count"].tolist() == log.groupby(keys_of(log, "city"))["age"].transform("size").tolist()


@pytest.mark.parametrize("settings_", [{"cont_cols": ("age",)}, {"stats": ("count", "mean")}, {"stats": ("median",)}])
def test_statistics_without_numbers_and_numbers_without_statistics_are_refused(settings_: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"Name columns of numbers|input should be"):
        JoinGroupby(**settings_)


def test_infinite_numbers_are_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"city": ["a", "b"], "price": [np.inf, 1]})
    with pytest.raises(InputError, match="'price' has infinite values"):
        learned(JoinGroupby(cont_cols=("price",), stats=("mean",)), frame, ("city",), scratch=tmp_path)


def test_a_table_of_another_form_is_refused(log: pd.DataFrame, tmp_path: Path) -> None:
    fitted = learned(EVERYTHING, log, ("city",), scratch=tmp_path).fitted["city"]
    table = fitted.tables()["categories"]
    for name in ("rows", "price_mean", "category"):
        with pytest.raises(IntegrityError, match="Fit again"):
            EVERYTHING.restore(("city",), fitted.facts(), {"categories": table.drop_columns([name])})
