"""What holds of every operator that learns numbers of categories, whatever the numbers are."""

import numpy as np
import pandas as pd
import pytest

from tests.library.features.frames import learned
from whitewater.errors import ConfigError, InputError
from whitewater.features.operators import JoinGroupby, PastCount, PastMean, TargetEncoding
from whitewater.features.operators.by_category import ByCategory

INPUTS = ("city", "item", ("city", "item"))
OPERATORS: list[ByCategory] = [
    TargetEncoding(target="clicked"),
    TargetEncoding(target="spent"),
    JoinGroupby(),
    PastCount(),
    PastMean(target="clicked"),
    PastMean(target="spent", p_smooth=0),
]
every_operator = pytest.mark.parametrize("operator", OPERATORS, ids=lambda each: type(each).__name__)


@pytest.fixture(scope="module")
def log() -> pd.DataFrame:
    """Text and integers with nulls, five days, a target of 0 and 1, and one of floats with nulls."""
    draw, rows = np.random.default_rng(5), 2000
    item = pd.array(draw.zipf(1.5, rows) % 50, "Int64")
    item[draw.random(rows) < 0.1] = pd.NA
    return pd.DataFrame({
        "row_id": np.arange(rows) + 2**40,
        "time": draw.integers(0, 5 * 86_400, rows),
        "city": np.array(["", "Ulm", "Zürich", "Köln", "N/A", None], object)[draw.integers(0, 6, rows)],
        "item": item,
        "clicked": draw.integers(0, 2, rows).astype(np.int8),
        "spent": np.where(draw.random(rows) < 0.2, np.nan, draw.normal(30, 9, rows)),
    })  # fmt: skip


@every_operator
def test_one_row_is_as_in_a_batch(log: pd.DataFrame, operator: ByCategory) -> None:
    rows = log.head(200).copy()
    rows.loc[:20, "city"], rows.loc[:20, "item"], rows.loc[:9, "time"] = "Aleppo", 777, 10**7
    found = learned(operator, log, INPUTS)
    pd.testing.assert_frame_equal(found.applied_by_row(rows), found.applied(rows), check_exact=True)


@every_operator
def test_parts_of_many_categories_are_learned_as_the_whole_is(log: pd.DataFrame, operator: ByCategory) -> None:
    many = log.assign(item=np.arange(len(log)) // 2, city=None)
    whole = learned(operator, many, ("item",))
    memory = 100_000 if isinstance(operator, JoinGroupby) else 200_000
    merged = learned(operator, many, ("item",), parts=40, memory=memory)
    for training in (True, False):
        found, expected = (each.applied(many, training=training) for each in (merged, whole))
        pd.testing.assert_frame_equal(found, expected, rtol=1e-6)
        # Counts and sums of integers are exact in whatever order parts are merged.
        exact = [name for name in found if str(name).endswith(("_count", "_clicked"))]
        pd.testing.assert_frame_equal(found[exact], expected[exact], check_exact=True)


@every_operator
def test_a_column_of_floats_is_not_a_category(log: pd.DataFrame, operator: ByCategory) -> None:
    with pytest.raises(ConfigError, match="column spent is of type double"):
        learned(operator, log, ("spent",))


@pytest.mark.parametrize(
    "operator",
    [TargetEncoding(target="city"), PastMean(target="city")],
)
def test_text_is_not_a_number(log: pd.DataFrame, operator: ByCategory) -> None:
    with pytest.raises(ConfigError, match="the column 'city' is of type string"):
        learned(operator, log, ("item",))


@pytest.mark.parametrize("operator", [TargetEncoding(target="spent"), PastMean(target="spent")])
@pytest.mark.parametrize(("target", "complaint"), [([np.nan] * 4, "null in all"), ([1, 2, np.inf, 0], "infinite")])
def test_a_target_without_a_mean_is_refused(operator: ByCategory, target: list[float], complaint: str) -> None:
    frame = pd.DataFrame({"row_id": range(4), "time": range(4), "city": list("abab"), "spent": target})
    with pytest.raises(InputError, match=complaint):
        learned(operator, frame, ("city",))
