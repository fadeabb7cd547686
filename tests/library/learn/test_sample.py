"""The sample is the rows of the smallest hash, whatever the pieces and the order that they are read in."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.library.learn.rows import sample_of
from whitewater.learn.sample import Sample, draw

ROWS = sample_of()


def drawn(rows: Sample, limit: int, *, pieces: int = 1, eligible: int = 1, sizes: list[int] | None = None) -> Sample:
    """Draw from rows in pieces, of which one in ``eligible`` may be learned from; note how many each piece brings."""

    def read(largest: np.uint64) -> Iterator[Sample]:
        for piece in np.array_split(np.arange(len(rows)), pieces):
            found = rows.take(piece[::eligible])
            low = found.take(found.hashes <= largest)
            if sizes is not None:
                sizes.append(len(low))
            yield Sample(low.hashes, low.time, low.target, low.features, len(found))

    return draw(read, rows=len(rows), limit=limit, features=2, what="trips")


def assert_same(one: Sample, two: Sample) -> None:
    assert one.eligible == two.eligible
    for name in ("hashes", "time", "target", "features"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


@pytest.mark.parametrize("pieces", [1, 2, 7])
@pytest.mark.parametrize("limit", [1, 300, 10_000])
def test_it_does_not_depend_on_pieces_or_order(limit: int, pieces: int) -> None:
    shuffled = ROWS.take(np.random.default_rng(pieces).permutation(len(ROWS)))
    found = drawn(shuffled, limit, pieces=pieces)
    assert found.hashes.tolist() == sorted(ROWS.hashes.tolist())[:limit]
    assert_same(found, drawn(ROWS, limit))


def test_few_eligible_rows_still_fill_the_sample() -> None:
    found = drawn(ROWS, 30, pieces=3, eligible=50)
    assert found.eligible == pytest.approx(40, abs=3)
    assert len(found) == 30


def test_rows_that_differ_only_outside_the_hash_are_drawn_by_content() -> None:
    same = Sample(np.full(len(ROWS), 5, np.uint64), ROWS.time, ROWS.target, ROWS.features, len(ROWS))
    backwards = same.take(np.arange(len(ROWS))[::-1])
    assert_same(drawn(same, 150), drawn(backwards, 150, pieces=5))


def test_memory_is_bounded_by_the_sample_not_by_the_rows() -> None:
    sizes: list[int] = []
    drawn(sample_of(30_000), 100, pieces=10, sizes=sizes)
    assert sum(sizes) < 400
