"""Vocabularies are the same with little memory for them; those that the machine cannot hold are refused."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.library.features.operator_cases import CPU, applied, categories, fields_of, rows_of
from whitewater.errors import ResourceError
from whitewater.features.columns.column import Block
from whitewater.features.operator import Inputs, Mode
from whitewater.features.operators.categorify import Categorify, Vocabulary

LITTLE, PLENTY = 3000, 2**30


def learned(operator: Categorify, parts: Sequence[Block], memory: int, inputs: Inputs = ("C",)) -> Vocabulary:
    """Return the vocabulary that is learned from parts of two blocks."""
    mode = Mode(CPU, memory=memory)
    (statistic,) = operator.statistics(inputs, fields_of(parts[0]))
    observed = [statistic.observe(iter([part, part]), mode) for part in parts]
    found = statistic.combine(observed, mode)
    assert isinstance(found, Vocabulary)
    return found


def long_tail(seed: int, rows: int = 2500) -> list[str | None]:
    """Return texts of which a few are frequent, many rare, and some null."""
    random = Random(seed)
    drawn = [min(int(random.paretovariate(0.5)), 10**6) for _ in range(rows)]
    return [None if number % 17 == 0 else f"{number}" * (number % 3 + 1) for number in drawn]


@pytest.mark.parametrize("settings", [{}, {"freq_threshold": 3}, {"max_size": 60}, {"num_buckets": 4}])
@pytest.mark.parametrize("whole", [str, int])
def test_little_memory_gives_the_same_vocabulary(settings: dict[str, Any], whole: type) -> None:
    values = long_tail(1)
    numbers = [None if value is None else int(value[:9]) for value in values]
    block = {"C": categories(values if whole is str else numbers)}
    parts = [rows_of(block, slice(start, start + 500)) for start in range(0, len(values), 500)]
    operator = Categorify(**settings)
    little, plenty = (learned(operator, parts, memory) for memory in (LITTLE, PLENTY))
    assert little.facts() == plenty.facts()
    assert little.tables() == plenty.tables()
    assert applied(operator, block, {"C": little}) == applied(operator, block, {"C": plenty})


def test_little_memory_gives_the_same_combinations() -> None:
    values = long_tail(2, 900)
    block = {"A": categories(values), "B": categories(values[::-1])}
    operator = Categorify(encode_type="combo")
    little, plenty = (learned(operator, [block], memory, (("A", "B"),)) for memory in (LITTLE, PLENTY))
    assert little.facts() == plenty.facts()
    assert little.tables() == plenty.tables()


def test_values_that_do_not_fit_into_memory_are_refused_with_their_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [{"C": categories([f"{part} {number}" for number in range(2000)])} for part in range(3)]
    monkeypatch.setattr("whitewater.engines.memory.available", lambda: 100_000)
    with pytest.raises(ResourceError, match=r"2,001 or more values of C needs about .* HashBucket"):
        learned(Categorify(), parts, LITTLE)


def test_a_stored_vocabulary_is_restored_or_refused_with_its_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    for values in (["b", "a", "", "a" * 30], [5, -7, 2**40, 0]):
        fitted = learned(Categorify(num_buckets=2), [{"C": categories([*values, values[2]])}], PLENTY)
        table = fitted.tables()["vocabulary"]
        tables = {"vocabulary": pa.concat_tables([table[:1], table[1:]])}
        restored = Categorify(num_buckets=2).restore(("C",), fitted.facts(), tables)
        other = pa.array([*values, values[0] * 2], fitted.ids.values.type)
        assert restored.ids.of_dictionary(other).tolist() == fitted.ids.of_dictionary(other).tolist()
        assert restored.ids.of_value()(values[3]) == fitted.ids.of_value()(values[3])
        assert restored.tables() == fitted.tables()
        with monkeypatch.context() as patch:
            patch.setattr("whitewater.engines.memory.available", lambda: 100)
            with pytest.raises(ResourceError, match=r"the vocabulary of C, 4 values, needs about"):
                Categorify(num_buckets=2).restore(("C",), fitted.facts(), tables)
