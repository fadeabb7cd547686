"""The guard calls slower what the base's difference from itself does not explain, and nothing else."""

import pytest

from benchmarks.guard import AGAIN, BEFORE, NOW, judge, page, total
from benchmarks.process_tree import MeasurementError
from tests.benchmarks.benchmark_results import outcome, report


@pytest.mark.parametrize(
    ("now", "again", "slower"),
    [
        (1.2, (1.0, 1.01), True),
        (1.04, (1.0, 1.01), False),  # not by more than 5 %
        (1.2, (0.9, 1.3), False),  # not by more than the machine's noise
        (0.5, (1.0, 1.01), False),
    ],
)
def test_slower_is_above_what_is_allowed_and_outside_the_band(
    now: float, again: tuple[float, float], slower: bool
) -> None:
    judged = judge(report({NOW: [now, now], BEFORE: [1.0, 1.0], AGAIN: list(again)}))
    assert judged.slower is slower
    assert ("| slower |" in page([judged], commit="abc")) is slower


def test_all_cases_together_are_weighed_by_their_time() -> None:
    long, short = (
        judge(report({NOW: [now] * 2, BEFORE: [before] * 2, AGAIN: [before] * 2})) for now, before in ((9, 10), (2, 1))
    )
    assert total([long, short]) == pytest.approx(1.0)


def test_an_answer_that_differs_from_the_bases_ends_the_guard() -> None:
    with pytest.raises(MeasurementError, match="now is void: wrong answer"):
        judge(report({NOW: outcome([], void="wrong answer: 1"), BEFORE: [1.0], AGAIN: [1.0]}))
