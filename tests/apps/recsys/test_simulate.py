"""The simulated clicks: what statistics find in them is what the model says was put there."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from scipy import stats

from whitewater.engines import resolve
from whitewater.step import Output, Run
from whitewater_apps.recsys.config import Simulate
from whitewater_apps.recsys.steps.simulate import simulate
from whitewater_apps.recsys.synthetic import AWKWARD, Plan, by_popularity, cardinalities, plan, roles, texts_of

SMALL = Simulate(rows=1000, days=3, largest_cardinality=100)


def simulated(settings: Simulate, directory: Path, *, threads: int = 1) -> list[Path]:
    simulate(Run("recsys", "simulate", resolve("cpu"), settings, threads=threads), simulated=Output(directory))
    return sorted(directory.iterdir())


@cache
def first_day() -> tuple[Plan, pa.Table]:
    made = plan(Simulate(largest_cardinality=2000))
    return made, pa.concat_tables(made.blocks(0, rows=100_000)).unify_dictionaries()


def column(place: int) -> npt.NDArray[Any]:
    """Codes of a column of categories of the first day, counted from 0; nulls are -1."""
    values = first_day()[1][f"C{place + 1}"].combine_chunks().indices
    return np.asarray(pc.fill_null(values, -1))


def clicks() -> npt.NDArray[Any]:
    return np.asarray(first_day()[1]["label"])


def dependence(values: npt.NDArray[Any]) -> float:
    """P-value of the label's independence of the twenty most frequent values."""
    frequent = [value for value, _ in Counter(values.tolist()).most_common(20)]
    counts = [np.bincount(clicks()[values == value], minlength=2) for value in frequent]
    return float(stats.chi2_contingency(counts).pvalue)


def test_equal_settings_give_equal_bytes_with_any_number_of_threads_and_other_seeds_others(tmp_path: Path) -> None:
    one, three = simulated(SMALL, tmp_path / "one"), simulated(SMALL, tmp_path / "three", threads=3)
    other = simulated(SMALL.model_copy(update={"seed": 1}), tmp_path / "other")

    assert [path.name for path in one] == ["day-00.parquet", "day-01.parquet", "day-02.parquet"]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in three]
    assert all(path.read_bytes() != another.read_bytes() for path, another in zip(one, other, strict=True))


def test_each_day_has_its_rows_in_order_of_time(tmp_path: Path) -> None:
    days = [pq.read_table(path)["time"].to_numpy() for path in simulated(SMALL, tmp_path / "days")]

    assert sum(map(len, days)) == SMALL.rows
    for number, times in enumerate(days):
        assert (np.diff(times) >= 0).all()
        since_monday = times - np.datetime64("2014-06-02", "s").astype(int)
        assert (since_monday // 86_400 == number).all()


def test_columns_are_as_many_as_asked_for_and_texts_are_not_dictionaries(tmp_path: Path) -> None:
    settings = Simulate(rows=100, days=3, continuous=15, categorical=2, largest_cardinality=10)
    schema = pq.read_schema(simulated(settings, tmp_path / "days")[0])

    assert schema.names == ["time", "label", *(f"I{i + 1}" for i in range(15)), "C1", "C2"]
    assert schema.field("C1").type == pa.string()
    assert {schema.field(f"I{i + 1}").type for i in range(15)} == {pa.int32(), pa.int64(), pa.float64()}


def test_days_without_rows_have_files_without_rows_and_names_are_in_order(tmp_path: Path) -> None:
    files = simulated(
        Simulate(rows=100, days=120, continuous=1, categorical=2, largest_cardinality=10), tmp_path / "days"
    )
    rows = [pq.read_metadata(path).num_rows for path in files]
    days = [pq.read_table(path)["time"][0].as_py() // 86_400 for path, count in zip(files, rows, strict=True) if count]

    assert (len(rows), sum(rows), min(rows)) == (120, 100, 0)
    assert days == sorted(days)


def test_values_follow_the_law_that_is_documented() -> None:
    drawn = by_popularity(50, 200_000, np.random.default_rng(1))

    at_least = 1 - np.log1p(np.arange(51)) / np.log1p(50)
    expected = -np.diff(at_least) * len(drawn)
    assert stats.chisquare(np.bincount(drawn, minlength=50), expected).pvalue > 0.001


def test_texts_are_eight_digits_distinct_and_awkward_in_some_columns() -> None:
    plain = texts_of(np.arange(100_000), column=0, seed=1).to_pylist()
    soiled = texts_of(np.arange(10, 100), column=1, seed=1).to_pylist()

    assert len(set(plain)) == len(plain)
    assert all(len(text) == 8 and int(text, 16) >= 0 for text in plain)
    assert soiled[2:10] == list(AWKWARD)
    assert len(set(soiled)) == 90
    assert texts_of(np.array([13, 40]), column=1, seed=1).to_pylist() == [soiled[3], soiled[30]]


def test_the_label_depends_on_the_columns_with_effects_and_not_on_noise() -> None:
    of = first_day()[0].roles

    assert max(dependence(column(place)) for place in of["effects"]) < 1e-6
    assert min(dependence(column(place)) for place in of["noise"]) > 1e-4


def test_the_label_depends_on_a_pair_of_columns_more_than_on_each_of_them() -> None:
    made, table = first_day()
    first, second = made.roles["pair"]

    assert table[f"C{first + 1}"].null_count == 0
    pairs = [column(first), column(second), column(first) * 1000 + column(second)]
    assert dependence(pairs[2]) < 1e-100
    assert dependence(pairs[2]) < min(dependence(pairs[0]), dependence(pairs[1])) ** 2


def test_the_label_depends_on_what_was_popular_the_day_before_more_than_on_the_same_day() -> None:
    made = plan(Simulate(largest_cardinality=500, days=4, drift=20.0))
    name = f"C{made.roles['popularity'][0] + 1}"
    before, today = (next(made.blocks(number, rows=100_000)).select([name, "label"]) for number in (1, 2))
    known = today.drop_null()
    values = known[name].to_pylist()

    def correlation(counted: pa.Table) -> float:
        rows = Counter(counted[name].to_pylist())
        return float(stats.spearmanr([rows[value] for value in values], known["label"].to_numpy()).statistic)

    assert correlation(before) > 0.05
    assert correlation(before) > 1.2 * correlation(today)


def test_categories_are_missing_in_some_columns_and_the_empty_text_is_a_value() -> None:
    table = first_day()[1]

    assert table["C16"].null_count / len(table) == pytest.approx(0.44, abs=0.01)
    assert table["C1"].null_count == 0
    assert "" in table["C2"].unique().to_pylist()


def test_numbers_are_long_tailed_missing_as_often_as_criteo_s_and_awkward() -> None:
    table = first_day()[1]

    assert table["I1"].null_count / len(table) == pytest.approx(0.45, abs=0.01)
    assert pc.min(table["I2"]).as_py() < 0
    skewed = [
        name for name in ("I1", "I2", "I3", "I5", "I8", "I9") if stats.skew(table[name].drop_null().to_numpy()) > 5
    ]
    assert len(skewed) == 6
    assert (table["I10"].drop_null().to_numpy() == 0).mean() > 0.95
    assert pc.mean(table["I12"]).as_py() > 1.3e9
    assert np.std(table["I13"].drop_null().to_numpy() - 1e12) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("drift", "least", "most"), [(0.0, 0.0, 0.01), (1.0, 0.05, 0.5)])
def test_drift_brings_new_values_and_other_popular_ones(drift: float, least: float, most: float) -> None:
    made = plan(Simulate(drift=drift, largest_cardinality=200, days=7))
    name = f"C{made.cardinalities.index(200) + 1}"
    first, last = (next(made.blocks(number, rows=100_000))[name] for number in (0, 6))
    known = set(first.to_pylist())
    new = [value not in known for value in last.to_pylist()]

    assert least <= np.mean(new) <= most
    orders = [[value for value, _ in Counter(each.to_pylist()).most_common(5)] for each in (first, last)]
    assert (orders[0] == orders[1]) == (drift == 0)


@pytest.mark.parametrize("columns", [2, 3, 10, 11, 26, 60])
def test_the_largest_column_is_noise_and_no_column_plays_two_roles(columns: int) -> None:
    sizes = cardinalities(Simulate(categorical=columns))
    of = roles(sizes)

    assert sorted(chain(*of.values())) == list(range(columns))
    assert sizes.index(max(sizes)) in of["noise"]
    assert of["effects"]
