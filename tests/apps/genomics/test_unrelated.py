"""No two of the samples that stay are relatives, as many stay as could, and every other one has its reason."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.errors import InputError
from whitewater.genotypes.config import Relatedness
from whitewater_apps.genomics.steps.relatedness import find_relatives_to_remove, select_samples

Pair = tuple[int, int]


def as_array(pairs: Sequence[Pair]) -> npt.NDArray[np.int64]:
    return np.array(pairs, np.int64).reshape(-1, 2)


def staying(samples: int, pairs: Sequence[Pair], call_rate: Sequence[float] | None = None) -> set[int]:
    rates = [1.0] * samples if call_rate is None else call_rate
    return set(range(samples)) - find_relatives_to_remove(range(samples), as_array(pairs), rates).keys()


def largest(samples: int, pairs: Sequence[Pair]) -> int:
    """Return the size of the largest set without a pair, by trying them all."""
    return max(
        size
        for size in range(samples + 1)
        for chosen in combinations(range(samples), size)
        if not any(one in chosen and other in chosen for one, other in pairs)
    )


def people(samples: int, **columns: Sequence[object]) -> pd.DataFrame:
    names = [f"S{place}" for place in range(samples)]
    return pd.DataFrame({"sample": names, "label": [None] * samples, "call_rate": [1.0] * samples} | columns)


def reasons(table: pd.DataFrame, pairs: Sequence[Pair] = (), *, config: Mapping[str, Any] | None = None) -> list[str]:
    chosen = select_samples(table, as_array(pairs), Relatedness.model_validate(config or {}))
    assert (chosen["used"] == (chosen["reason"] == "")).all()
    return chosen["reason"].tolist()


@st.composite
def graphs(draw: st.DrawFn, most: int = 8) -> tuple[int, list[Pair]]:
    samples = draw(st.integers(1, most))
    every = list(combinations(range(samples), 2))
    return samples, draw(st.lists(st.sampled_from(every), unique=True)) if every else []


@given(graphs(most=30))
def test_no_pair_stays_and_nobody_could_come_back(graph: tuple[int, list[Pair]]) -> None:
    samples, pairs = graph
    gone = find_relatives_to_remove(range(samples), as_array(pairs), [1.0] * samples)
    related = {frozenset(pair) for pair in pairs}
    assert not any({one, other}.isdisjoint(gone) for one, other in pairs)
    assert all(frozenset(entry) in related and entry[1] not in gone for entry in gone.items())


@settings(max_examples=60)
@given(graphs())
def test_at_most_one_fewer_stay_than_could(graph: tuple[int, list[Pair]]) -> None:
    assert len(staying(*graph)) >= largest(*graph) - 1


@settings(max_examples=60)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=9))
def test_as_many_stay_as_could_in_forests(parents: list[int]) -> None:
    pairs = [(parent % child, child) for child, parent in enumerate(parents, start=1) if parent % 4]
    assert len(staying(len(parents) + 1, pairs)) == largest(len(parents) + 1, pairs)


@given(graphs(most=12), st.randoms(use_true_random=False))
def test_order_of_the_pairs_does_not_matter(graph: tuple[int, list[Pair]], random: Random) -> None:
    samples, pairs = graph
    shuffled = [pair[::-1] for pair in random.sample(pairs, len(pairs))]
    assert staying(samples, shuffled) == staying(samples, pairs)


def test_fewer_relatives_then_higher_call_rate_then_first_in_order() -> None:
    assert staying(4, [(0, 1), (0, 2), (0, 3)], [1.0, 0.9, 0.9, 0.9]) == {1, 2, 3}
    assert staying(2, [(0, 1)], [0.95, 0.96]) == {1}
    assert staying(2, [(0, 1)]) == {0}


def test_reasons_name_the_relative_that_stays() -> None:
    assert reasons(people(3), [(0, 1), (1, 2)]) == ["", "relative of S0", ""]


def test_samples_that_are_out_anyway_push_no_relative_out() -> None:
    table = people(4, label=["A", "B", "A", "A"], call_rate=[1.0, 1.0, 0.71, 1.0])
    found = reasons(table, [(0, 1), (0, 2), (0, 3)], config={"exclude": ["S3"], "hold_out_labels": ["B"]})
    assert found == ["", "held out", "call rate 0.71", "excluded"]


def test_call_rate_at_the_limit_is_enough() -> None:
    assert reasons(people(2, call_rate=[0.9, 0.8999]), config={"minimum_call_rate": 0.9}) == ["", "call rate 0.8999"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"exclude": ["S1", "NA12878"]}, r"relatedness\.exclude names NA12878, .* Known: S0, S1, S2"),
        ({"hold_out_labels": ["TSI"]}, r"relatedness\.hold_out_labels names TSI, .* Known: CEU, YRI\."),
        ({"exclude": ["S0", "S1", "S2"]}, "None of the 3 samples is left, for the reasons: excluded"),
    ],
)
def test_unknown_names_and_nobody_left_are_errors(config: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        reasons(people(3, label=["YRI", None, "CEU"]), config=config)
