from pathlib import Path

import pytest
from distributed import futures_of

from benchmarks.published.join_dask import join_as_published
from tests.benchmarks.published import disagreements, tiny_work

SCALE = 2e-5


@pytest.mark.parametrize("case", ["join", "sum"])
def test_every_variant_gives_the_answer_of_the_oracle(case: str, tmp_path: Path) -> None:
    assert disagreements("join_dask", case, tiny_work(tmp_path, scale=SCALE)) == []


def test_a_result_that_is_still_held_is_computed_again(tmp_path: Path) -> None:
    with join_as_published(tiny_work(tmp_path, scale=SCALE)) as timed:
        first, second = timed.call(), timed.call()
        assert {future.key for future in futures_of(first)}.isdisjoint(future.key for future in futures_of(second))
