from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.published.array_join import matches
from benchmarks.published.fingerprint import added, fingerprint
from benchmarks.published.frame import answer_of_groups, means_of_arrays
from tests.benchmarks.published import disagreements, tiny_work

Columns = tuple[Any, Any]
KEYS = {
    "none": np.zeros(0, np.int64),
    "one": np.array([-7]),
    "all the same": np.full(11, 5),
    "dense, with gaps, below 0": np.array([-3, 4, -3, 0, 4, 4, -1]),
    "many": np.random.default_rng(0).integers(-9, 49_152, 50_001),
    "far apart": np.array([-(2**62), 2**62, 0, 2**62, -(2**63), 2**63 - 1]),
}


@pytest.fixture(params=list(KEYS))
def table(request: pytest.FixtureRequest) -> Columns:
    keys = KEYS[request.param]
    return keys, np.random.default_rng(1).random(len(keys))


@pytest.mark.parametrize("case", ["mean", "groupby", "merge"])
def test_every_variant_gives_the_answer_of_the_oracle(case: str, tmp_path: Path) -> None:
    assert disagreements("frame", case, tiny_work(tmp_path, scale=1e-4)) == []


def test_means_of_arrays_are_those_of_pandas(table: Columns) -> None:
    keys, values = table
    expected = pd.Series(values).groupby(keys).mean()

    found, means = means_of_arrays(np, keys, values)

    assert found.tolist() == expected.index.tolist()
    np.testing.assert_allclose(means, expected, rtol=1e-14)


@pytest.mark.parametrize(("left", "right"), [([], [1]), ([1], []), ([3, 9, 3, 1], [3, 3, 2, 1, 3])])
def test_matches_are_all_pairs_of_rows_with_equal_keys(left: list[int], right: list[int]) -> None:
    pairs = matches(np, np.array(left, np.int64), np.array(right, np.int64))

    expected = [(one, other) for one, key in enumerate(left) for other, key_too in enumerate(right) if key == key_too]
    assert sorted(zip(*map(list, pairs), strict=True)) == expected


def test_fingerprint_does_not_depend_on_the_order_of_rows_nor_on_parts() -> None:
    rng = np.random.default_rng(2)
    key, first, second = rng.integers(0, 9, 100), rng.random(100), rng.random(100)
    order = rng.permutation(100)

    whole = fingerprint(key, first, second)

    assert fingerprint(key[order], first[order], second[order]) == whole
    assert added(fingerprint(key[part], first[part], second[part]) for part in (slice(30), slice(30, 100))) == whole


def test_fingerprint_tells_a_lost_row_and_interchanged_values() -> None:
    key, first, second = np.array([1, 2, 3]), np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.5, 0.6])
    swapped = [1, 0, 2]

    wrong = [
        fingerprint(key[:2], first[:2], second[:2]),
        fingerprint(key[swapped], first, second),
        fingerprint(key, first[swapped], second),
        fingerprint(key, second, first),
    ]

    assert fingerprint(key, first, second) not in wrong


def test_answer_of_groups_tells_interchanged_means() -> None:
    means = np.array([0.1, 0.2])

    assert answer_of_groups(np.array([5, 6]), means) != answer_of_groups(np.array([5, 6]), means[::-1])
