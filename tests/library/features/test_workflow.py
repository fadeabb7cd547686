"""Workflows: fitted once, and applied alike however the data are stored, cut and ordered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.recsys_logs import clicks, features, write_log, write_parts
from whitewater.engines import memory, resolve
from whitewater.errors import ConfigError, InputError, ResourceError
from whitewater.features import dataset, fit
from whitewater.features.columns.column import Block, Numbers
from whitewater.features.config import Fit
from whitewater.features.dataset import Dataset
from whitewater.features.feature_folder import open_features
from whitewater.features.log_folder import open_log
from whitewater.features.operator import Fitted, Inputs, Mode, Operator, RowFunction, Statistic
from whitewater.features.operators import Categorify, FillMedian, FillMissing, LogOp, Normalize, Rename, TargetEncoding
from whitewater.features.schema import Field
from whitewater.features.transform import tables
from whitewater.features.workflow import Workflow
from whitewater.step import Run

ROWS = 600
CLICKS = clicks(ROWS)
KEYS = ["label", "row_id"]


def fitted(data: Any = CLICKS, **options: Any) -> Workflow:
    return Workflow(features(), carry=KEYS).fit(data, **options)


def in_order(table: pa.Table) -> dict[str, Any]:
    """Return columns of NumPy in the order of the rows' numbers."""
    order = np.argsort(table["row_id"].to_numpy())
    return {name: table[name].to_numpy()[order] for name in table.column_names}


def assert_same(found: pa.Table, expected: pa.Table, *, tolerance: float = 1e-6) -> None:
    """Integers are equal; floats are within a tolerance, which may be 0."""
    left, right = in_order(found), in_order(expected)
    assert left.keys() == right.keys()
    for name, values in right.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(left[name], values, rtol=tolerance, atol=tolerance, err_msg=name)
        else:
            np.testing.assert_array_equal(left[name], values, err_msg=name)


WHOLE = fitted()
SERVED, TRAINED = WHOLE.transform(CLICKS), WHOLE.transform(CLICKS, training=True)


def test_normalize_and_categorify_are_what_numpy_says() -> None:
    logged = np.log1p(CLICKS["I1"].to_pandas().fillna(CLICKS["I1"].to_pandas().median()))
    np.testing.assert_allclose(SERVED["I1"].to_numpy(), (logged - logged.mean()) / logged.std(ddof=0), rtol=1e-5)
    words = CLICKS["C2"].to_pandas()
    order = sorted(set(words), key=lambda word: (-(words == word).sum(), word.encode()))
    assert SERVED["C2"].to_pylist() == [3 + order.index(word) for word in words]


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(0, 200), min_size=1, max_size=64), st.randoms(use_true_random=False))
def test_ids_hashes_and_folds_do_not_depend_on_parts_or_order(sizes: list[int], random: Any) -> None:
    order = list(range(ROWS))
    random.shuffle(order)
    shuffled = CLICKS.take(pa.array(order))
    cuts = np.minimum(np.cumsum([0, *sizes]), ROWS)
    parts = [shuffled.slice(start, stop - start) for start, stop in zip(cuts, [*cuts[1:], ROWS], strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "FEW_ROWS", 0)
        patch.setattr(fit, "SPAN_ROWS", 100)
        workflow = fitted(pa.concat_tables(parts))
        assert_same(workflow.transform(CLICKS), SERVED)
        assert_same(workflow.transform(CLICKS, training=True), TRAINED)


@pytest.mark.parametrize("span_rows", [1, 150, 10**6])
def test_threads_change_no_bit(span_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "FEW_ROWS", 0)
    monkeypatch.setattr(fit, "SPAN_ROWS", span_rows)
    data = pa.concat_tables([CLICKS.slice(start, 70) for start in range(0, ROWS, 70)])
    one, many = fitted(data, threads=1), fitted(data, threads=50)
    assert one.transform(CLICKS, threads=1).equals(many.transform(CLICKS, threads=3))


def test_where_memory_is_short_the_result_is_the_same() -> None:
    run = Run("recsys", "fit", resolve("cpu"), Fit(memory_share=3e-8), threads=2)
    graph = (["I1", "I2"] >> FillMedian()) + (["C1", "C2", "C3"] >> Categorify(freq_threshold=3))
    expected = Workflow(graph).fit(CLICKS).transform(CLICKS)
    with run.workers() as workers:
        fitted = fit.fit_workflow(graph, Dataset(CLICKS), run=run, workers=workers)
        made = tables(fitted, Dataset(CLICKS), run=run, workers=workers, training=False)
        assert pa.concat_tables(made).equals(expected)


@dataclass(frozen=True)
class Largest(Fitted):
    """The largest values found so far."""

    values: tuple[float, ...]


@dataclass(frozen=True)
class LargestOf(Statistic):
    """Learns the three largest values of a column, one in each pass."""

    found: tuple[float, ...] = ()

    def observe(self, blocks: Iterator[Block], mode: Mode) -> float:
        below = min(self.found, default=math.inf)
        columns = [block[self.name] for block in blocks]
        values = [float(value) for each in columns if isinstance(each, Numbers) for value in each.values]
        return max((value for value in values if value < below), default=-math.inf)

    def combine(self, summaries: Iterable[float], mode: Mode) -> Fitted | Statistic:
        found = (*self.found, max(summaries))
        return Largest(found) if len(found) == 3 else replace(self, found=found)


class LessThirdLargest(Operator):
    """The values less the third largest."""

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Field]:
        return [fields[each] for each in inputs if isinstance(each, str)]

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Statistic]:
        return [LargestOf(each, (each,)) for each in inputs if isinstance(each, str)]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], mode: Mode) -> Block:
        made = {}
        for name, column in block.items():
            learned = fitted[name]
            assert isinstance(column, Numbers)
            assert isinstance(learned, Largest)
            made[name] = Numbers(column.values - learned.values[-1])
        return made

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        raise NotImplementedError


@pytest.mark.parametrize("threads", [1, 8])
def test_a_statistic_may_ask_for_more_passes(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "FEW_ROWS", 0)
    monkeypatch.setattr(fit, "SPAN_ROWS", 2)
    batches = [pa.table({"a": [5.0, 9.0], "b": [1.0, 2.0]}), pa.table({"a": [7.0], "b": [3.0]})]
    graph = ["a", "b"] >> LessThirdLargest() >> LessThirdLargest()
    made = Workflow(graph).fit(pa.concat_tables(batches), threads=threads).transform(batches[1])
    assert made.to_pydict() == {"a": [2.0], "b": [2.0]}


def test_row_groups_that_do_not_fit_into_memory_are_refused_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1000)
    for work in (fitted, WHOLE.transform):
        with pytest.raises(ResourceError, match="Make smaller row groups"):
            work(CLICKS)


def test_files_a_folder_of_them_and_a_log_are_read_as_the_table_is(tmp_path: Path) -> None:
    several = write_parts(CLICKS, tmp_path / "parts", [100, 0, 499, 1])
    log = write_log(CLICKS, tmp_path / "log")
    pq.write_table(CLICKS, tmp_path / "one.parquet", row_group_size=77)
    sources: Sequence[Any] = [several, log, str(tmp_path / "one.parquet"), sorted(several.iterdir())]
    for source in sources:
        assert_same(fitted(source).transform(source), SERVED)


def test_a_log_without_rows_is_read_as_a_table_without_rows(tmp_path: Path) -> None:
    log = replace(open_log(write_log(CLICKS, tmp_path / "log")), path=tmp_path / "empty").finish([])
    found = Dataset(log.path)
    assert (found.rows, found.parts, found.schema.names) == (0, (), list(log.types))


def test_large_row_groups_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(CLICKS, tmp_path / "one.parquet")
    monkeypatch.setattr(dataset, "PART_ROWS", 130)
    monkeypatch.setattr(dataset, "FEW_ROWS", 0)
    data = Dataset(tmp_path / "one.parquet")
    assert [part.rows for part in data.parts] == [130, 130, 130, 130, 80]
    assert_same(fitted(data).transform(data), SERVED)


def test_frames_and_mappings_are_read_as_the_table_is() -> None:
    assert_same(WHOLE.transform(CLICKS.to_pandas()), SERVED)
    assert_same(WHOLE.transform({name: CLICKS[name].to_pylist() for name in CLICKS.column_names}), SERVED)


def test_a_dictionary_of_arrow_is_read_as_the_texts_are() -> None:
    place = CLICKS.column_names.index("C1")
    encoded = CLICKS.set_column(place, "C1", CLICKS["C1"].dictionary_encode())
    assert_same(WHOLE.transform(encoded), SERVED)


def test_transforming_in_parts_writes_what_transforming_at_once_returns(tmp_path: Path) -> None:
    source = write_parts(CLICKS, tmp_path / "parts", [300, 250, 50])
    assert WHOLE.transform_to(tmp_path / "made", source, row_group_rows=90) == ROWS
    folder = open_features(tmp_path / "made")
    assert_same(
        pa.concat_tables(map(pq.read_table, sorted((tmp_path / "made").glob("*.parquet")))), SERVED, tolerance=0
    )
    footers = [pq.read_metadata(folder.path / file.name) for file in folder.files]
    assert max(each.row_group(number).num_rows for each in footers for number in range(each.num_row_groups)) <= 90
    assert folder.schema.names == SERVED.column_names
    assert folder.seed is None


def test_carried_columns_are_tagged_for_loaders(tmp_path: Path) -> None:
    WHOLE.transform_to(tmp_path / "made", CLICKS, tags={"label": "label", "row_id": "key"})
    schema = open_features(tmp_path / "made").schema
    assert (schema["label"].tags, schema["row_id"].tags) == (("label",), ("key",))


def test_training_leaves_the_own_fold_out_and_serving_does_not() -> None:
    assert not np.allclose(TRAINED["TE_C1_label"].to_numpy(), SERVED["TE_C1_label"].to_numpy())
    assert_same(Workflow(features(), carry=KEYS).fit_transform(CLICKS), TRAINED, tolerance=0)


def test_what_a_later_operator_learns_is_of_what_earlier_ones_make_in_training() -> None:
    encoded = ["C1"] >> TargetEncoding(target="label")
    raw = Workflow(encoded).fit_transform(CLICKS)["TE_C1_label"].to_numpy().astype(np.float64)
    scaled = Workflow(encoded >> Normalize()).fit_transform(CLICKS)["TE_C1_label"].to_numpy()
    np.testing.assert_allclose(scaled, (raw - raw.mean()) / raw.std(), rtol=1e-3, atol=1e-4)


def test_carried_columns_go_along_where_the_data_have_them() -> None:
    assert SERVED.column_names[-2:] == KEYS
    assert SERVED["row_id"].equals(CLICKS["row_id"])
    assert "label" not in WHOLE.transform(CLICKS.drop_columns(["label"])).column_names


def test_columns_that_no_feature_needs_are_ignored() -> None:
    other = CLICKS.append_column("when", pa.array([0] * ROWS, pa.timestamp("us")))
    assert WHOLE.transform(other).equals(SERVED)


def test_no_rows_are_transformed_to_no_rows() -> None:
    made = WHOLE.transform(CLICKS.slice(0, 0))
    assert (made.num_rows, made.column_names) == (0, SERVED.column_names)
    with pytest.raises(InputError, match="no rows to learn from"):
        fitted(CLICKS.slice(0, 0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns(["C2", "I1"]), "column 'I1' is missing; column 'C2' is missing"),
        (lambda table: replaced(table, "C1", pa.array([1] * ROWS)), "column 'C1' is of numbers, but was of text"),
        (lambda table: replaced(table, "I1", pa.array(["1"] * ROWS)), "column 'I1' is of text, but was of numbers"),
        (lambda table: replaced(table, "C1", pa.array([["a"]] * ROWS)), "column 'C1' is of lists of text, but was of"),
        (lambda table: replaced(table, "I1", pa.array([0] * ROWS, pa.timestamp("s"))), "'I1' is of type timestamp"),
        (lambda table: replaced(table, "C3", pa.array([0.5] * ROWS)), "column 'C3' has numbers that are not whole"),
    ],
)
def test_data_that_do_not_suit_are_refused_by_name(change: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        WHOLE.transform(change(CLICKS))
    assert message in str(error.value)


def replaced(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


def test_integers_in_which_some_are_null_may_come_as_floats() -> None:
    floats = replaced(CLICKS, "C3", CLICKS["C3"].cast(pa.float64()))
    assert WHOLE.transform(floats).equals(SERVED)


@pytest.mark.parametrize("name", ["C1", "C3", "I1"])
def test_a_column_without_a_type_is_one_of_nulls(name: str) -> None:
    typed = replaced(CLICKS, name, pa.nulls(ROWS, CLICKS[name].type))
    assert_same(WHOLE.transform(replaced(CLICKS, name, pa.nulls(ROWS))), WHOLE.transform(typed), tolerance=0)


def test_files_that_differ_are_told_apart(tmp_path: Path) -> None:
    folder = write_parts(CLICKS, tmp_path / "parts", [300, 300])
    second = folder / "001.parquet"
    pq.write_table(CLICKS.drop_columns(["C1"]), second)
    with pytest.raises(InputError, match=r"001.parquet has no column 'C1', which .*000.parquet has"):
        fitted(folder)
    pq.write_table(replaced(CLICKS, "C1", CLICKS["row_id"]), second)
    with pytest.raises(InputError, match=r"column 'C1' is of numbers in .*001.parquet, but of text in .*000.parquet"):
        fitted(folder)


def test_files_may_differ_in_the_width_of_numbers_and_in_what_is_null(tmp_path: Path) -> None:
    folder = write_parts(CLICKS.slice(0, 300), tmp_path / "parts", [300])
    other = replaced(CLICKS, "I1", CLICKS["I1"].cast(pa.float64())).slice(300)
    pq.write_table(replaced(other, "C4", pa.nulls(300)), folder / "001.parquet")
    assert_same(fitted(folder).transform(folder), SERVED)


@pytest.mark.parametrize("source", ["nowhere.parquet", "empty"])
def test_a_missing_source_is_told(source: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=source):
        fitted(tmp_path / source)


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    folder = write_parts(CLICKS, tmp_path / "parts", [ROWS])
    data = (folder / "000.parquet").read_bytes()
    (folder / "000.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"000\.parquet"):
        fitted(folder)


def test_a_workflow_that_is_not_fitted_says_so() -> None:
    with pytest.raises(ConfigError, match="Call fit with a dataset"):
        Workflow(["I1"] >> LogOp()).transform(CLICKS)


def test_a_carried_column_cannot_be_a_result_as_well() -> None:
    with pytest.raises(ConfigError, match="label would be there twice"):
        Workflow(["label"] >> FillMissing(), carry=["label"]).fit(CLICKS)


def test_a_workflow_can_be_fitted_again_on_other_columns() -> None:
    workflow = Workflow(["I1"] >> Normalize() >> Rename(postfix="_scaled"))
    assert workflow.fit({"I1": [1.0, 3.0]}).transform({"I1": [2.0, 3.0]}).to_pydict() == {"I1_scaled": [0.0, 1.0]}
    assert workflow.fit({"I1": [10, 30]}).transform({"I1": [20.0, 30.0]}).to_pydict() == {"I1_scaled": [0.0, 1.0]}
