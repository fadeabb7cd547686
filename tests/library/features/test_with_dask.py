"""Frames and kernels learn the same and make the same, however the rows are ordered and cut; each serves the other's.

What the kernels of the engine local make is held against oracles by the tests of the operators.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.recsys_logs import clicks, features
from whitewater.engines import Device
from whitewater.errors import InputError
from whitewater.features import dataset
from whitewater.features.dataset import Dataset
from whitewater.features.operator import Node
from whitewater.features.operators import (
    OPERATORS,
    AddMetadata,
    Bucketize,
    Categorify,
    Clip,
    FillMedian,
    FillMissing,
    HashBucket,
    HashedCross,
    JoinExternal,
    JoinGroupby,
    LambdaOp,
    ListSlice,
    LogOp,
    Normalize,
    NormalizeMinMax,
    PastCount,
    PastMean,
    Rename,
    TagAsItemFeatures,
    TagAsItemID,
    TagAsUserFeatures,
    TagAsUserID,
    TargetEncoding,
)
from whitewater.features.workflow import Workflow

ROWS = 400
CARRIED = ["row_id", "label"]
CATEGORIES: list[Any] = ["C1", "C3", "C4", ["C1", "C3"], ["C4", "C3"]]
# Of these every bit is the same: ids, hashes, folds, counts, sums of integers, and what is summed without rounding.
EXACT: dict[str, Node] = {
    "ids": CATEGORIES >> Categorify(freq_threshold=3, encode_type="combo"),
    "shared ids": [["C1", "C2"], "C3"] >> Categorify(max_size=12, num_buckets=3),
    "ids by hash": [["C1", "C3"], ["C1", "C2"]] >> Categorify(max_size=12, num_buckets=5, encode_type="combo"),
    "given ids": ["C2", "C3"] >> Categorify(vocabs={"C2": ("a", "", "zz"), "C3": (1, 5)}),
    "buckets": ["C1", "C3", "C4", "I3"] >> HashBucket(num_buckets=50),
    "crosses": [["C1", "C2"], ["C3", "C1"], ["C4", "C1"]] >> HashedCross(num_buckets=1000),
    "targets": (CATEGORIES >> TargetEncoding(target="label", kfold=4))
    + (CATEGORIES >> TargetEncoding(target="I1", kfold=4)),
    "folds by text": ["C1", "C3"] >> TargetEncoding(target="label", kfold=3, row_key=("C2", "row_id")),
    "counts": CATEGORIES >> JoinGroupby(),
    "past": CATEGORIES >> PastCount(period=5000),
    "past means": CATEGORIES >> PastMean(target="label", period=5000),
    "medians": ["I1", "I2", "I3"] >> FillMedian(add_binary_cols=True),
    "filled": ["I1", "I2", "day"] >> FillMissing(fill_val=0.5, add_binary_cols=True),
    "scales": ["I1", "I2", "I3", "time"] >> Normalize(),
    "ranges": ["I1", "I2", "I3"] >> NormalizeMinMax(),
    "two phases": ["C1"] >> PastCount(period=5000) >> LogOp() >> Normalize(),
    "bounds": ["I1", "I2", "I3"] >> Clip(min_value=0, max_value=40) >> LogOp(),
    "steps": (["I1", "I2"] >> Bucketize(boundaries=(0.5, 2, 10))) + (["time"] >> LambdaOp(function="hour_of_day")),
    "clipped": ["I1", "I3"] >> Clip(max_value=4) >> TagAsUserFeatures(),
    "lists": (["L1", "L2"] >> Categorify(freq_threshold=3))
    + ([["L1", "C1"]] >> Categorify(num_buckets=3) >> Rename(postfix="_too"))
    + (["L1"] >> HashBucket(num_buckets=9) >> Rename(postfix="_hash")),
    "slices": (["L1"] >> Categorify() >> ListSlice(start=0, end=2, pad=True)) + (["L2"] >> ListSlice(start=-2)),
    "lists as they are": ["L1", "L2"] >> TagAsUserFeatures(),
    "names": ["I1", "I2", "C1", "C3", "C4"] >> Rename(postfix="_again"),
    "tags": ["C1"] >> TagAsUserID() >> TagAsItemID() >> TagAsItemFeatures() >> AddMetadata(tags=("city",)),
}
# Of these the artifact may differ in the last digits of floats.
CLOSE: dict[str, Node] = {
    "float targets": CATEGORIES >> TargetEncoding(target="I2", kfold=3),
    "past float means": ["C1", ["C1", "C2"]] >> PastMean(target="I2", period=5000),
}


def fitted(graph: Node, rows: Any, engine: Any) -> Workflow:
    return Workflow(graph, carry=CARRIED).fit(rows, threads=2, engine=engine)


def files(workflow: Workflow, folder: Path) -> Mapping[str, bytes]:
    """Return the artifact, by names of files."""
    workflow.save(folder)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def cut(rows: pa.Table, partitions: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    """Return rows in another order, and see to it that they are read in so many partitions."""
    monkeypatch.setattr(Device, "partition_rows", 1)
    monkeypatch.setattr(dataset, "PART_ROWS", -(-len(rows) // partitions) if partitions > 2 else len(rows))
    return rows.take(pa.array(np.random.default_rng(seed).permutation(len(rows))))


def assert_equal(found: pa.Table, expected: pa.Table, *, tolerance: float = 0.0) -> None:
    assert found.schema.names == expected.schema.names
    assert found.schema.types == expected.schema.types
    for name in expected.column_names:
        if pa.types.is_floating(expected[name].type):
            left, right = found[name].to_numpy(), expected[name].to_numpy()
            np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance, err_msg=name)
        else:
            assert found[name].to_pylist() == expected[name].to_pylist(), name


def assert_parity(graph: Node, rows: pa.Table, shuffled: pa.Table, folder: Path, *, tolerance: float = 0.0) -> None:
    local, by_frames = fitted(graph, rows, "local"), fitted(graph, shuffled, "dask")
    stored = files(local, folder / "local"), files(by_frames, folder / "dask")
    assert stored[0].keys() == stored[1].keys()
    if not tolerance:
        assert stored[0] == stored[1]
    unseen = clicks(90, seed=9)
    for training in (False, True):
        data = rows if training else pa.concat_tables([rows, unseen])
        expected = local.transform(data, training=training, threads=2)
        for name in ("local", "dask"):  # each fitted one serves both
            loaded = Workflow.load(folder / name)
            for engine in ("local", "dask"):
                found = loaded.transform(data, training=training, threads=2, engine=engine)
                assert_equal(found, expected, tolerance=tolerance)


@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
def test_engines_agree(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = clicks(ROWS, seed=3)
    shuffled = cut(rows, 5, 1, monkeypatch)
    graph = {**EXACT, **CLOSE}[name]
    assert_parity(graph, rows, shuffled, tmp_path, tolerance=0.0 if name in EXACT else 1e-6)


@pytest.mark.slow
@settings(max_examples=25)
@given(data=st.data())
def test_engines_agree_on_any_rows_in_any_partitions(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    words = st.sampled_from([None, "", "a", "é", "日本", "x" * 40, "\0"])
    integers = st.sampled_from([None, 0, -1, 1, 2**62, -(2**63), 2**63 - 1])
    numbers = st.one_of(st.none(), st.floats(-1e9, 1e9, width=32), st.sampled_from([0.0, -0.0, 1e-300, float("nan")]))
    drawn = data.draw(st.lists(st.tuples(words, integers, numbers, st.booleans()), min_size=7, max_size=40))
    texts, keys, values, labels = map(list, zip(*drawn, strict=True))
    rows = pa.table(
        {
            "row_id": pa.array(range(len(drawn))), "time": pa.array([7 * row % 11 for row in range(len(drawn))]),
            "C1": pa.array(texts, pa.string()), "C3": pa.array(keys, pa.int64()),
            "I2": pa.array([*values[1:], 1.0], pa.float64()), "label": pa.array(labels, pa.bool_()),
        }
    )  # fmt: skip
    both: list[Any] = ["C1", "C3", ["C1", "C3"]]
    graph = (
        (both >> Categorify(encode_type="combo", num_buckets=3, freq_threshold=2) >> Rename(postfix="_id"))
        + (["C1", "C3"] >> HashBucket(num_buckets=7))
        + (both >> PastMean(target="label", period=3))
        + (both >> PastCount(period=3))
        + (["I2"] >> FillMedian(add_binary_cols=True))
    )
    with pytest.MonkeyPatch.context() as monkeypatch:
        shuffled = cut(rows, data.draw(st.integers(1, 7)), data.draw(st.integers(0, 99)), monkeypatch)
        folder = tmp_path_factory.mktemp("parity")
        local, by_frames = fitted(graph, rows, "local"), fitted(graph, shuffled, "dask")
        assert files(local, folder / "local") == files(by_frames, folder / "dask")
        assert_equal(by_frames.transform(rows, engine="dask"), local.transform(rows))


def test_engines_agree_on_many_operators_and_a_joined_file(tmp_path: Path) -> None:
    rows, table = clicks(ROWS), tmp_path / "joined.parquet"
    pq.write_table(pa.table({"C2": ["", "a", "é"], "price": [1, None, 2**62], "name": ["x", None, "z"]}), table)
    joined = ["C2"] >> JoinExternal(table=str(table), on="C2", columns=("price", "name"))
    workflow = fitted(features() + joined, rows, "dask")

    assert_equal(workflow.transform(rows, training=True, engine="dask"), workflow.transform(rows, training=True))


def operators_of(node: Any) -> set[str]:
    """Return the names of the operators of a graph."""
    parents = getattr(node, "parents", (node.parent,) if hasattr(node, "parent") else ())
    own = {type(node.operator).__name__} if hasattr(node, "operator") else set()
    return own.union(*map(operators_of, parents))


def test_engines_are_compared_for_every_operator() -> None:
    compared = set().union(*map(operators_of, [*EXACT.values(), *CLOSE.values()]))

    assert set(OPERATORS) - compared == {"JoinExternal"}  # which needs a file, and is compared above


@pytest.mark.parametrize("operator", [TargetEncoding(target="I2"), PastMean(target="I2")])
def test_infinite_numbers_are_refused(operator: Any) -> None:
    rows = clicks(20).set_column(5, "I2", pa.array([*np.ones(19), np.inf]))

    with pytest.raises(InputError, match="'I2' has infinite values"):
        fitted(["C1"] >> operator, rows, "dask")


def test_files_are_read_once_for_all_that_is_learned_of_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, read = clicks(ROWS), []
    of_file = Dataset.read

    def counted(*arguments: Any) -> Any:
        read.append(arguments[1])
        return of_file(*arguments)

    monkeypatch.setattr(Dataset, "read", counted)
    shuffled = cut(rows, 4, 0, monkeypatch)
    fitted(CATEGORIES >> Categorify(encode_type="combo"), shuffled, "dask")

    assert len(read) == len(set(read)) == 4
