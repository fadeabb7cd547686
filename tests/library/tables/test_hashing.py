"""The stable hash is XXH64: the same bits as the reference implementation, whatever is hashed beside a row."""

import numpy as np
import numpy.typing as npt
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from whitewater.tables.hashing import hash_int64

INT64 = st.integers(-(2**63), 2**63 - 1)


def reference(rows: npt.NDArray[np.int64]) -> list[int]:
    return [xxhash.xxh64_intdigest(row.astype("<i8").tobytes(), seed=0) for row in rows]


@pytest.mark.parametrize("columns", range(1, 14))
def test_equals_the_reference_for_any_number_of_columns(columns: int) -> None:
    rows = np.random.default_rng(columns).integers(-(2**63), 2**63 - 1, (50, columns))
    assert hash_int64(np, *rows.T).tolist() == reference(rows)


@given(st.lists(st.tuples(INT64, INT64), min_size=1, max_size=20))
def test_equals_the_reference_for_any_values(rows: list[tuple[int, int]]) -> None:
    values = np.array(rows, np.int64)
    assert hash_int64(np, *values.T).tolist() == reference(values)


def test_a_row_hashes_the_same_alone_and_among_others() -> None:
    values = np.arange(-500, 500)
    together = hash_int64(np, values, values[::-1])
    alone = [hash_int64(np, values[i : i + 1], values[::-1][i : i + 1])[0] for i in range(0, 1000, 97)]
    assert together[::97].tolist() == alone


def test_hashes_fill_the_range_evenly() -> None:
    hashes = hash_int64(np, np.arange(100_000))
    counts = np.histogram(hashes / 2.0**64, bins=10, range=(0, 1))[0]
    assert np.abs(counts - 10_000).max() < 5 * np.sqrt(10_000)


def test_no_rows_give_no_hashes() -> None:
    assert hash_int64(np, np.array([], np.int64)).shape == (0,)
