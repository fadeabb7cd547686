"""Ids are those that counting and sorting by hand gives, however the rows lie."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.library.features.operator_cases import (
    CPU,
    applied,
    applied_by_row,
    categories,
    fields_of,
    fitted_on,
    lists,
    numbers,
    values_of,
)
from whitewater.engines import Device
from whitewater.errors import ConfigError, InputError
from whitewater.features import Transformer, Workflow
from whitewater.features.columns.column import Block, Categories
from whitewater.features.operator import Inputs, Mode
from whitewater.features.operators.categorify import Categorify, Vocabulary
from whitewater.features.schema import Field

Value = str | int | None
PADDING, NULL, OUT = 0, 1, 2


def key(value: str | int) -> bytes | int:
    return value.encode() if isinstance(value, str) else value


def by_hand(
    values: Sequence[Value], learned: Sequence[Value], threshold: int = 0, most: int = 0, buckets: int | None = None
) -> list[int]:
    """Return the ids of values by the definition."""
    counts = Counter(value for value in learned if value is not None)
    order = sorted(counts, key=lambda value: (-counts[value], key(value)))
    kept = [value for value in order if counts[value] >= threshold]
    first = OUT + (buckets or 1)
    places = {value: first + place for place, value in enumerate(kept[: most - first] if most else kept)}
    return [NULL if value is None else places.get(value, OUT + bucket(value, buckets or 1)) for value in values]


def bucket(value: str | int, buckets: int) -> int:
    data = value.encode() if isinstance(value, str) else value.to_bytes(8, "little", signed=True)
    return int(xxhash.xxh64_intdigest(data, 0) % buckets)


def ids(operator: Categorify, learned: Sequence[Value], values: Sequence[Value] | None = None) -> list[int]:
    """Return the ids of values, by default of those that are learned."""
    fitted = fitted_on(operator, [{"C": categories(learned)}])
    found: list[int] = applied(operator, {"C": categories(learned if values is None else values)}, fitted)["C"]
    return found


texts = st.sampled_from(["", "a", "A", "aa", "ab", "b", "é", "z", "日", "\U0001f600", "x" * 40, "x" * 40 + "y"])
integers = st.sampled_from([0, 1, -1, 5, 255, 256, -(2**63), 2**63 - 1])
columns = st.one_of(st.lists(st.none() | texts, max_size=60), st.lists(st.none() | integers, max_size=60))
options = st.fixed_dictionaries(
    {"num_buckets": st.none() | st.integers(1, 5)},
    optional={"freq_threshold": st.integers(0, 4)},
) | st.fixed_dictionaries({"max_size": st.integers(5, 12), "num_buckets": st.none() | st.integers(1, 2)})


@settings(max_examples=60, deadline=None)
@given(values=columns, unseen=columns, settings_=options)
def test_ids_are_those_of_counting_by_hand(values: list[Value], unseen: list[Value], settings_: dict[str, Any]) -> None:
    kinds = {type(value) for value in [*values, *unseen] if value is not None}
    more = [*values, *(unseen if len(kinds) < 2 else [])]
    operator = Categorify(**settings_)
    assert ids(operator, values, more) == by_hand(
        more, values, settings_.get("freq_threshold", 0), settings_.get("max_size", 0), settings_["num_buckets"]
    )


@settings(max_examples=40, deadline=None)
@given(values=columns.filter(bool), parts=st.integers(1, 64), random=st.randoms(use_true_random=False))
def test_ids_are_equal_for_1_to_64_partitions_and_shuffled_rows(
    values: list[Value], parts: int, random: Random
) -> None:
    operator = Categorify(num_buckets=3, freq_threshold=2)
    shuffled = random.sample(values, len(values))
    kind = next((type(value) for value in values if value is not None), str)
    cut = [shuffled[len(values) * part // parts : len(values) * (part + 1) // parts] for part in range(parts)]
    blocks = [{"C": column_of(each, kind)} for each in cut]
    whole, parted = (fitted_on(operator, each) for each in ([{"C": column_of(values, kind)}], blocks))
    assert whole["C"].facts() == parted["C"].facts()
    assert whole["C"].tables() == parted["C"].tables()
    assert applied(operator, {"C": column_of(values, kind)}, parted)["C"] == by_hand(values, values, 2, 0, 3)


def column_of(values: Sequence[Value], kind: type) -> Categories:
    """Return a column of a type even where it is empty."""
    column = categories(values)
    return Categories(column.codes, column.dictionary.cast(pa.string() if kind is str else pa.int64()))


def test_equally_frequent_values_have_one_order_whatever_the_order_of_the_rows() -> None:
    """NVTabular leaves the order of ties to the partitions and the device."""
    values = ["b", "é", "a", "Z", "", "ab", "a\u0000"]
    expected = {"": 3, "Z": 4, "a": 5, "a\u0000": 6, "ab": 7, "b": 8, "é": 9}
    for seed in range(5):
        shuffled = Random(seed).sample(values, len(values))
        assert ids(Categorify(), shuffled) == [expected[value] for value in shuffled]
    assert ids(Categorify(), [10, 9, -1]) == [5, 4, 3]


def test_rare_values_have_the_bucket_that_their_bytes_give_whatever_their_codes() -> None:
    """NVTabular warns that num_buckets is not consistent on GPU and CPU: its hashes are the device's."""
    learned = {"C": categories(["a", "a", "b", "c"])}
    operator = Categorify(num_buckets=100, freq_threshold=2)
    fitted = fitted_on(operator, [learned])
    for dictionary, codes in ((["a", "b", "d"], [0, 1, 2, -1]), (["d", "b", "a", "b"], [2, 3, 0, -1])):
        column = Categories(np.array(codes, np.int32), pa.array(dictionary))
        made = operator.transform(("C",), {"C": column}, fitted, Mode(Device()))["C"]
        assert values_of(made) == [102, OUT + bucket("b", 100), OUT + bucket("d", 100), NULL]


def test_a_large_column_is_pandas() -> None:
    random = np.random.default_rng(3)
    values = pd.Series(random.zipf(1.4, 30_000) % 4000)
    counts = values.value_counts().rename_axis("value").reset_index()
    order = counts.sort_values(["count", "value"], ascending=[False, True]).reset_index(drop=True)
    order = order[order["count"] >= 3]
    expected = values.map(pd.Series(order.index + 3, index=order["value"])).fillna(OUT).astype("int64")
    blocks = [{"C": numbers(part, "int32")} for part in np.array_split(values.to_numpy(), 7)]
    fitted = fitted_on(Categorify(freq_threshold=3), blocks)
    found = applied(Categorify(freq_threshold=3), {"C": numbers(values.to_numpy(), "int64")}, fitted)["C"]
    assert found == expected.tolist()


def test_what_was_learned_is_told_in_brief() -> None:
    block = {"C": categories(["a", "a", None, "b", "c"])}
    fitted = fitted_on(Categorify(freq_threshold=2, num_buckets=4), [block, block])
    fitted |= fitted_on(Categorify(freq_threshold=3, num_buckets=4), [{"D": categories(["x", "x"])}])
    assert fitted["C"].facts() == {
        "columns": ["C"], "kind": "string", "num_buckets": 4, "values": 3, "cardinality": 9, "rows": 10, "nulls": 2,
        "out_of_vocabulary_rows": 0, "out_of_vocabulary_values": 0,
    }  # fmt: skip
    assert (fitted["D"].facts()["out_of_vocabulary_rows"], fitted["D"].facts()["out_of_vocabulary_values"]) == (2, 1)
    assert fitted["C"].tables()["vocabulary"].to_pydict() == {"value": ["a", "b", "c"], "count": [4, 2, 2]}


def test_values_of_a_dictionary_that_do_not_occur_are_not_learned() -> None:
    column = Categories(np.array([1, 1, -1], np.int32), pa.array(["never", "a", "nor this"]))
    fitted = fitted_on(Categorify(), [{"C": column}])
    assert fitted["C"].tables()["vocabulary"]["value"].to_pylist() == ["a"]
    assert fitted["C"].facts()["out_of_vocabulary_values"] == 0


def test_joint_columns_share_a_vocabulary_whose_counts_are_added() -> None:
    inputs: Inputs = (("A", "B"), "C")
    block = {"A": categories(["x", "y", "x"]), "B": categories(["y", "y", "z"]), "C": categories(["z", "z", "x"])}
    fitted = fitted_on(Categorify(), [block], inputs)
    made = applied(Categorify(), block, fitted, inputs)
    assert made == {"A": [4, 3, 4], "B": [3, 3, 5], "C": [3, 3, 4]}
    assert applied_by_row(Categorify(), block, fitted, inputs) == made
    assert (list(fitted), fitted["A_B"].facts()["rows"]) == (["A_B", "C"], 6)


def test_combinations_are_categories_of_their_own() -> None:
    inputs: Inputs = ("A", ("A", "B"))
    operator = Categorify(encode_type="combo", num_buckets=5)
    block: Block = {"A": categories(["x", "x", "x", None, None, "xy"]), "B": numbers([1, 1, None, 1, None, 2], "int16")}
    fitted = fitted_on(operator, [block], inputs)
    made = applied(operator, block, fitted, inputs)
    assert made["A"] == [7, 7, 7, NULL, NULL, 8]
    assert made["A_B"][:2] == [7, 7]
    assert sorted(made["A_B"][2:4] + made["A_B"][5:]) == [8, 9, 10]
    assert made["A_B"][4] == NULL
    assert applied_by_row(operator, block, fitted, inputs) == made
    new: Block = {"A": categories(["y", "x"]), "B": numbers([1, 2], "int64")}
    assert applied_by_row(operator, new, fitted, inputs) == applied(operator, new, fitted, inputs)


def test_combinations_are_not_confused_by_where_texts_end() -> None:
    inputs: Inputs = (("A", "B"),)
    operator = Categorify(encode_type="combo")
    block = {"A": categories(["ab", "a", "b_c"]), "B": categories(["c", "bc", "d"])}
    assert len(set(applied(operator, block, fitted_on(operator, [block], inputs), inputs)["A_B"])) == 3


def test_elements_of_lists_are_encoded_and_empty_lists_stay_empty() -> None:
    block: Block = {"L": lists([["a", "b"], [], ["b", None]], "text"), "I": lists([[7], [7, 5], []])}
    fitted = fitted_on(Categorify(), [block])
    assert applied(Categorify(), block, fitted) == {"L": [[4, 3], [], [3, NULL]], "I": [[3], [3, 4], []]}
    assert applied_by_row(Categorify(), block, fitted) == applied(Categorify(), block, fitted)


def test_given_vocabularies_are_used_as_they_are_and_counted(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([9, 4], pa.int32())}), tmp_path / "ids.parquet")
    operator = Categorify(vocabs={"C": ("z", "a", "never"), "I": str(tmp_path / "ids.parquet")}, num_buckets=2)
    block: Block = {
        "C": categories(["a", "z", "b", None]),
        "I": numbers([4, 9, 9, 1], "int64"),
        "D": categories(["q"] * 4),
    }
    fitted = fitted_on(operator, [block, block])
    made = applied(operator, block, fitted)
    assert made == {"C": [5, 4, OUT + bucket("b", 2), NULL], "I": [5, 4, 4, OUT + bucket(1, 2)], "D": [4] * 4}
    assert fitted["C"].tables()["vocabulary"]["count"].to_pylist() == [2, 2, 0]
    facts = fitted["I"].facts()
    assert (facts["out_of_vocabulary_rows"], facts["out_of_vocabulary_values"], facts["cardinality"]) == (2, None, 6)


@pytest.mark.parametrize(
    ("vocabs", "told"),
    [
        ({"C": ("a", "a")}, "a value more than once"),
        ({"C": (1, 2)}, "values of type int64, but it has string"),
        ({"X": ("a",)}, "vocabs names X, but the vocabularies are C"),
    ],
)
def test_vocabularies_that_do_not_suit_are_refused(vocabs: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Categorify(vocabs=vocabs).statistics(("C",), {"C": Field("C", pa.string())})


def test_a_vocabulary_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.parquet cannot be read"):
        Categorify(vocabs={"C": str(tmp_path / "none.parquet")}).statistics(("C",), {"C": Field("C", pa.string())})


def test_text_and_integers_are_not_taken_for_each_other() -> None:
    for known, value, kind in ((["1", "2"], 1, "text"), ([1, 2], "1", "numbers")):
        workflow = Workflow(["C"] >> Categorify()).fit({"C": known})
        with pytest.raises(InputError, match=f"column 'C' is of .*, but was of {kind} when it was fitted"):
            workflow.transform({"C": [value]})
        with pytest.raises(InputError, match=f"the row's 'C' is {value!r}, but the column was of {kind}"):
            Transformer(workflow)({"C": value})


def test_a_column_of_nulls_is_learned_and_everything_is_unseen() -> None:
    fitted = fitted_on(Categorify(), [{"C": categories([None, None])}])
    for later in (["a", None], [7, None]):
        assert applied(Categorify(), {"C": categories(later)}, fitted)["C"] == [OUT, NULL]
        assert applied_by_row(Categorify(), {"C": categories(later)}, fitted)["C"] == [OUT, NULL]
    nulls = {"C": numbers([np.nan, np.nan])}
    (statistic,) = Categorify().statistics(("C",), {"C": Field("C", pa.null())})
    assert statistic.columns == ("C",)
    known = fitted_on(Categorify(), [{"C": categories(["a"])}])
    made = Categorify().transform(("C",), nulls, known, Mode(CPU))["C"]
    assert values_of(made) == [NULL, NULL]


@settings(max_examples=30, deadline=None)
@given(values=columns.filter(bool), settings_=options)
def test_a_row_has_what_the_batch_has(values: list[Value], settings_: dict[str, Any]) -> None:
    operator = Categorify(**settings_)
    fitted = fitted_on(operator, [{"C": categories(values[::2])}])
    assert applied_by_row(operator, {"C": categories(values)}, fitted) == applied(
        operator, {"C": categories(values)}, fitted
    )
    assert operator.row(("C",), fitted)({"C": float("nan")}) == {"C": NULL}


def test_outputs_say_what_their_ids_are_below() -> None:
    block: Block = {
        "A": categories(["x", "y", "x"]),
        "B": categories(["y", "y", "z"]),
        "L": lists([["q"], [], []], "text"),
    }
    inputs: Inputs = (("A", "B"), "L")
    operator = Categorify(num_buckets=2)
    described = operator.describe(operator.output(inputs, fields_of(block)), fitted_on(operator, [block], inputs))
    assert [(field.name, str(field.type), field.properties) for field in described] == [
        ("A", "int32", {"cardinality": 7}),
        ("B", "int32", {"cardinality": 7}),
        ("L", "list<item: int32>", {"cardinality": 5}),
    ]


def test_ids_that_32_bits_do_not_hold_have_64() -> None:
    operator = Categorify(num_buckets=2**33)
    assert ids(operator, ["a"], ["a", "b"]) == [2**33 + 2, OUT + bucket("b", 2**33)]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"freq_threshold": 2, "max_size": 10}, "freq_threshold and max_size both limit the vocabulary"),
        ({"max_size": 3}, "max_size 3 leaves no id for a value: 3 are reserved"),
        ({"max_size": 12, "num_buckets": 10}, "12 are reserved"),
    ],
)
def test_options_that_contradict_each_other_are_refused(values: dict[str, int], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Categorify.model_validate(values)


@pytest.mark.parametrize(
    ("inputs", "combo", "told"),
    [
        (("A", ("A", "B")), False, "A occurs more than once.*encode_type to combo"),
        (("A_B", ("A", "B")), True, "A_B occurs more than once.*rename one"),
        ((("A", "I"),), False, "some are text and some are integers"),
        (("F",), False, "column F is of type double.*Bucketize"),
        ((("A", "L"),), True, "column L has lists, but Categorify takes one category of each row"),
    ],
)
def test_columns_that_cannot_be_encoded_are_named(inputs: Inputs, combo: bool, told: str) -> None:
    types = {"A": pa.string(), "B": pa.string(), "A_B": pa.string(), "I": pa.int8(), "F": pa.float64()}
    fields = {name: Field(name, type_) for name, type_ in types.items()} | {"L": Field("L", pa.list_(pa.string()))}
    with pytest.raises(ConfigError, match=told):
        Categorify(encode_type="combo" if combo else "joint").output(inputs, fields)


def test_a_vocabulary_survives_the_way_to_another_process() -> None:
    fitted = fitted_on(Categorify(), [{"C": categories(["a", "b", "b"])}])["C"]
    assert isinstance(fitted, Vocabulary)
    fitted.ids.of_dictionary(pa.array(["a"]))
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    assert again.ids.of_dictionary(pa.array(["b", "q", "a"])).tolist() == [3, OUT, 4, NULL]


def test_many_buckets_take_no_memory() -> None:
    operator = Categorify(vocabs={"C": ("a", "b")}, num_buckets=2**60)
    fitted = fitted_on(operator, [{"C": categories(["b", "c", "b"])}])
    assert fitted["C"].tables()["vocabulary"]["count"].to_pylist() == [0, 2]
    assert applied(operator, {"C": categories(["a"])}, fitted) == {"C": [2**60 + 2]}
