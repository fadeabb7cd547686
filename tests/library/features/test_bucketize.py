"""Buckets are those of numpy.digitize and of scikit-learn; null has none."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import KBinsDiscretizer

from tests.library.features.operator_cases import applied, applied_by_row, categories, fields_of, numbers, on_host
from whitewater.engines import Device
from whitewater.errors import ConfigError
from whitewater.features.columns.column import Block, Numbers
from whitewater.features.operators.arithmetic import Bucketize

BOUNDARIES = (0.0, 1.0, 10.0)
VALUES = [-1.0, 0.0, 0.5, 1.0, None, 9.99, 10.0, 11.0, math.inf, -math.inf, math.nan, -0.0]


@pytest.mark.parametrize("right", [False, True])
def test_buckets_are_those_of_digitize_and_null_stays_null(right: bool, device: Device) -> None:
    operator = Bucketize(boundaries=BOUNDARIES, right=right)
    block: Block = {"x": numbers(VALUES, device=device)}
    known = [value is not None and not math.isnan(value) for value in VALUES]
    oracle = np.digitize([value or 0.0 for value in VALUES], BOUNDARIES, right=right).tolist()
    expected = {"x": [bucket if there else None for bucket, there in zip(oracle, known, strict=True)]}
    assert applied(operator, block, device=device) == expected
    assert applied_by_row(operator, on_host(block, device)) == expected


@given(
    values=st.lists(st.floats(allow_nan=False) | st.integers(-3, 3), min_size=1),
    boundaries=st.lists(st.integers(-3, 3) | st.floats(-1e9, 1e9), min_size=1, unique=True).map(sorted),
    right=st.booleans(),
)
def test_a_bucket_holds_what_is_between_its_boundaries(
    values: list[float], boundaries: list[float], right: bool
) -> None:
    operator = Bucketize(boundaries=tuple(boundaries), right=right)
    block: Block = {"x": Numbers(np.array(values, np.float64))}
    found = applied(operator, block)
    reached = [sum((value > each) if right else (value >= each) for each in boundaries) for value in values]
    assert found == {"x": reached}
    assert applied_by_row(operator, block) == found


def test_a_row_has_the_bucket_of_the_float_of_an_integer_that_no_float_is() -> None:
    operator = Bucketize(boundaries=(2.0**53 + 4,))
    block: Block = {"x": numbers([2**53 + 3, 2**53 + 1], "int64")}
    assert applied(operator, block) == applied_by_row(operator, block) == {"x": [1, 0]}


def test_quantiles_of_scikit_learn_are_boundaries() -> None:
    values = np.random.default_rng(0).normal(0, 1, 300)
    bins = KBinsDiscretizer(8, encode="ordinal", strategy="quantile", quantile_method="averaged_inverted_cdf")
    oracle = bins.fit_transform(values[:, None])[:, 0]
    inner = tuple(bins.bin_edges_[0][1:-1].tolist())
    assert applied(Bucketize(boundaries=inner), {"x": Numbers(values)})["x"] == oracle.tolist()


def test_the_output_is_of_integers_below_its_cardinality_and_text_is_refused() -> None:
    operator, fields = Bucketize(boundaries=(0, 2)), fields_of({"a": numbers([1]), "c": categories(["x"])})
    (field,) = operator.output(("a",), fields)
    assert (field.type, field.properties) == (pa.int32(), {"cardinality": 3})
    with pytest.raises(ConfigError, match="'c' is of type string"):
        operator.output(("c",), fields)


@pytest.mark.parametrize("boundaries", [(), (1, 1), (2, 1), (0, math.nan), (0, math.inf)])
def test_boundaries_ascend_and_are_finite(boundaries: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="boundaries"):
        Bucketize(boundaries=boundaries)
