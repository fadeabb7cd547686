"""Criteo's sample through every operator, against the same written out in pandas, NumPy and scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from tests.helpers.real_data import needs_real_data, real_data
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

pytestmark = needs_real_data

SIZES = [7, 60, 1, 132]
KEY = "C9"  # of three values
FOLDS, SMOOTH = 4, 3.0
_WORD = 2**64 - 1


@pytest.fixture(scope="module")
def sample() -> pd.DataFrame:
    """The sample with a number for each row, four periods of 50 rows, and a column of lists."""
    frame = pd.read_csv(real_data("recsys", "criteo_sample.txt"), dtype={f"C{n}": "str" for n in range(1, 27)})
    frame = frame.sort_values(KEY, kind="stable", ignore_index=True)
    categories = [None if null else value for value, null in zip(frame["C2"], frame["C2"].isna(), strict=True)]
    lists: Any = [categories[row - row % 5 : row] for row in range(len(frame))]
    return frame.assign(row_id=np.arange(len(frame)), time=(np.arange(len(frame)) * 37 % 200) * 10, L=lists)


def stored(frame: pd.DataFrame, folder: Path) -> Path:
    """Write a frame as files of several sizes."""
    folder.mkdir(parents=True)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for number, start in enumerate(np.cumsum([0, *SIZES[:-1]])):
        pq.write_table(table.slice(start, SIZES[number]), folder / f"{number}.parquet", row_group_size=50)
    return folder


def made(features: Node, frame: pd.DataFrame, folder: Path, *, training: bool = False) -> pd.DataFrame:
    """Return what a workflow makes that was fitted on the files, saved and loaded; by frames it is the same."""
    data = stored(frame, folder / "data")
    Workflow(features).fit(data, threads=2).save(folder / "workflow")
    table: pa.Table = Workflow.load(folder / "workflow").transform(data, training=training)
    found: pd.DataFrame = table.to_pandas()
    by_frames = Workflow(features).fit(data, threads=2, engine="dask")
    same = by_frames.transform(data, training=training, engine="dask").to_pandas()
    pd.testing.assert_frame_equal(same, found, rtol=1e-6, atol=1e-7)
    return found


def numeric(series: pd.Series) -> npt.NDArray[np.float64]:
    return series.to_numpy(np.float64)


def key_of(frame: pd.DataFrame, names: list[str]) -> pd.Series:
    """Return the category of each row, null as one of its own."""
    return frame[names].fillna("<null>").agg("/".join, axis=1)


def test_the_operators_here_are_all_there_are() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in OPERATORS if f"{name}(" not in source] == []


NUMBERS = ["I1", "I2", "I3", "I5", "I12"]
OF_NUMBERS: dict[str, tuple[Node, Callable[[pd.Series], Any]]] = {
    "fill": (NUMBERS >> FillMissing(fill_val=-1.5), lambda x: x.fillna(-1.5)),
    "median": (NUMBERS >> FillMedian(), lambda x: x.fillna(x.median())),
    "clip": (NUMBERS >> Clip(min_value=0, max_value=40), lambda x: x.clip(0, 40)),
    "log": (NUMBERS >> Clip(min_value=0) >> LogOp(), lambda x: np.log1p(x.clip(0))),
    "normalize": (NUMBERS >> Normalize(), lambda x: StandardScaler().fit_transform(x.to_frame())[:, 0]),
    "minmax": (NUMBERS >> NormalizeMinMax(), lambda x: MinMaxScaler().fit_transform(x.to_frame())[:, 0]),
    "buckets": (
        NUMBERS >> Bucketize(boundaries=(0, 2, 30)),
        lambda x: np.where(x.isna(), np.nan, np.digitize(x, [0, 2, 30])),
    ),
    "buckets to the right": (
        NUMBERS >> Bucketize(boundaries=(0, 2, 30), right=True),
        lambda x: np.where(x.isna(), np.nan, np.digitize(x, [0, 2, 30], right=True)),
    ),
    "function": (
        NUMBERS >> LambdaOp(function="squared_logarithm_bucket"),
        lambda x: np.where(x > 2, np.floor(np.log(x.clip(2)) ** 2), x),
    ),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_numbers(sample: pd.DataFrame, tmp_path: Path, name: str) -> None:
    features, oracle = OF_NUMBERS[name]
    found = made(features, sample, tmp_path)
    for column in NUMBERS:
        np.testing.assert_allclose(numeric(found[column]), oracle(sample[column]), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("operator", [FillMissing(add_binary_cols=True), FillMedian(add_binary_cols=True)])
def test_what_was_filled(sample: pd.DataFrame, tmp_path: Path, operator: Any) -> None:
    found = made(NUMBERS >> operator, sample, tmp_path)
    assert all(found[f"{name}_filled"].tolist() == sample[name].isna().tolist() for name in NUMBERS)


def ids_of(values: list[str | None], known: list[str | None], *, threshold: int = 0, buckets: int = 1) -> list[int]:
    """Return ids by counting in Python."""
    counts: dict[str, int] = {}
    for value in known:
        if value is not None:
            counts[value] = counts.get(value, 0) + 1
    frequent = [value for value in counts if counts[value] >= threshold]
    order = sorted(frequent, key=lambda value: (-counts[value], value.encode()))
    ids = {value: 2 + buckets + place for place, value in enumerate(order)}
    return [
        1 if value is None else ids.get(value, 2 + xxhash.xxh64_intdigest(value.encode()) % buckets) for value in values
    ]


def texts(series: pd.Series) -> list[str | None]:
    return [None if null else value for value, null in zip(series, series.isna(), strict=True)]


@pytest.mark.parametrize("name", ["C2", "C3", "C9", "C26"])
def test_categories(sample: pd.DataFrame, tmp_path: Path, name: str) -> None:
    rare = [name] >> Categorify(freq_threshold=3, num_buckets=5) >> Rename(name="rare")
    capped = [name] >> Categorify(max_size=6) >> Rename(name="capped")
    found = made(([name] >> Categorify()) + rare + capped, sample, tmp_path)
    values = texts(sample[name])
    assert found[name].tolist() == ids_of(values, values)
    assert found["rare"].tolist() == ids_of(values, values, threshold=3, buckets=5)
    assert found["capped"].tolist() == [each if each < 6 else 2 for each in ids_of(values, values)]


def test_a_vocabulary_of_two_columns_and_one_of_their_combinations(sample: pd.DataFrame, tmp_path: Path) -> None:
    combined = [["C19", "C20"]] >> Categorify(encode_type="combo")
    found = made(([["C19", "C20"]] >> Categorify()) + combined, sample, tmp_path)
    both = [texts(sample[name]) for name in ("C19", "C20")]
    assert found["C19"].tolist() == ids_of(both[0], both[0] + both[1])
    assert found["C20"].tolist() == ids_of(both[1], both[0] + both[1])
    pairs = pd.Series(list(zip(*both, strict=True)))
    nothing = pairs.map(lambda pair: pair == (None, None))
    ids = found["C19_C20"]
    assert (ids == 1).tolist() == nothing.tolist()
    # One id for each pair; from 3 without a gap; rarer pairs have higher ones.
    assert pd.DataFrame({"id": ids, "pair": pairs.astype(str)}).drop_duplicates().shape[0] == ids.nunique()
    counts = ids[~nothing].value_counts().sort_index()
    assert counts.index.tolist() == list(range(3, 3 + pairs[~nothing].nunique()))
    assert counts.is_monotonic_decreasing


def test_buckets_by_hash(sample: pd.DataFrame, tmp_path: Path) -> None:
    crossed = [["C9", "C20"], ["C20", "C9"]] >> HashedCross(num_buckets=2**30)
    found = made((["C3", "C20"] >> HashBucket(num_buckets=97)) + crossed, sample, tmp_path)
    for name in ("C3", "C20"):
        expected = [97 if each is None else xxhash.xxh64_intdigest(each.encode()) % 97 for each in texts(sample[name])]
        assert found[name].tolist() == expected
    assert found["C9_X_C20"].tolist() == [crossing(each) % 2**30 for each in parts_of(sample, ["C9", "C20"])]
    assert found["C20_X_C9"].tolist() == [crossing(each) % 2**30 for each in parts_of(sample, ["C20", "C9"])]


def parts_of(frame: pd.DataFrame, names: list[str]) -> list[tuple[bytes | None, ...]]:
    columns = ([value and value.encode() for value in texts(frame[name])] for name in names)
    return list(zip(*columns, strict=True))


def split_mix(state: int) -> int:
    """Return the next number of SplitMix64."""
    state = state + 0x9E3779B97F4A7C15 & _WORD
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    state = (state ^ state >> 27) * 0x94D049BB133111EB & _WORD
    return state ^ state >> 31


def crossing(parts: tuple[bytes | None, ...], seed: int = 0) -> int:
    """Return the hash of a row: of each part in turn, by the hash and what was there before."""
    state = split_mix(seed)
    for part in parts:
        # The hash of null is a mixed constant.
        state = split_mix(state ^ (split_mix_of_null(seed) if part is None else xxhash.xxh64_intdigest(part, seed)))
    return state


def split_mix_of_null(seed: int) -> int:
    return split_mix((seed ^ 0x9E3779B97F4A7C15) - 0x9E3779B97F4A7C15 & _WORD)


def encoded(known: pd.DataFrame, rows: pd.DataFrame, names: list[str]) -> npt.NDArray[np.float64]:
    groups = known["label"].groupby(key_of(known, names)).agg(["sum", "count"]).reindex(key_of(rows, names)).fillna(0)
    smoothed = (groups["sum"] + SMOOTH * known["label"].mean()) / (groups["count"] + SMOOTH)
    return smoothed.to_numpy(copy=True)


@pytest.mark.parametrize("training", [False, True])
def test_target_encoding(sample: pd.DataFrame, tmp_path: Path, training: bool) -> None:
    operator = TargetEncoding(target="label", kfold=FOLDS, p_smooth=SMOOTH)
    found = made(["C20", "C3", ["C9", "C20"]] >> operator, sample, tmp_path, training=training)
    folds = np.array([crossing((row.to_bytes(8, "little"),), 42) % FOLDS for row in range(len(sample))])
    for names in (["C20"], ["C3"], ["C9", "C20"]):
        expected = encoded(sample, sample, names)
        for fold in range(FOLDS) if training else ():
            expected[folds == fold] = encoded(sample[folds != fold], sample[folds == fold], names)
        np.testing.assert_allclose(found[f"TE_{'_'.join(names)}_label"], expected, rtol=1e-6)


@pytest.mark.parametrize("names", [["C20"], ["C9", "C20"]])
def test_rows_of_a_category(sample: pd.DataFrame, tmp_path: Path, names: list[str]) -> None:
    columns: Any = [names] if len(names) > 1 else names
    found = made(columns >> JoinGroupby(), sample, tmp_path)
    key = key_of(sample, names)
    assert found[f"{'_'.join(names)}_count"].tolist() == key.map(key.value_counts()).tolist()


@pytest.mark.parametrize("names", [["C20"], ["C9", "C20"]])
def test_counts_and_means_of_the_past(sample: pd.DataFrame, tmp_path: Path, names: list[str]) -> None:
    columns: Any = [names] if len(names) > 1 else names
    mean = columns >> PastMean(target="label", period=500, p_smooth=SMOOTH, first_mean=0.25)
    found = made((columns >> PastCount(period=500)) + mean, sample, tmp_path)
    counts, means = np.zeros(len(sample)), np.zeros(len(sample))
    keys, periods = key_of(sample, names), sample["time"] // 500
    for period in range(4):
        now, earlier = periods == period, sample[periods < period]
        of_key = earlier["label"].groupby(keys[earlier.index]).agg(["count", "sum"]).reindex(keys[now]).fillna(0)
        prior = earlier["label"].mean() if period else 0.25
        counts[now] = of_key["count"]
        means[now] = (of_key["sum"] + SMOOTH * prior) / (of_key["count"] + SMOOTH)
    assert found[f"{'_'.join(names)}_past_count"].tolist() == counts.tolist()
    np.testing.assert_allclose(found[f"{'_'.join(names)}_past_mean_label"], means, rtol=1e-6)


def test_lists(sample: pd.DataFrame, tmp_path: Path) -> None:
    ids = ["L"] >> Categorify()
    padded = ids >> ListSlice(start=-2, pad=True) >> Rename(name="padded")
    found = made(ids + padded, sample, tmp_path)
    known = [each for row in sample["L"] for each in row]
    expected = [ids_of(row, known) for row in sample["L"]]
    assert [row.tolist() for row in found["L"]] == expected
    assert [row.tolist() for row in found["padded"]] == [[*row[-2:], 0, 0][:2] for row in expected]


def test_a_joined_table(sample: pd.DataFrame, tmp_path: Path) -> None:
    table = sample.groupby("C9", as_index=False).agg(price=("I5", "mean")).iloc[1:]
    table.to_parquet(tmp_path / "prices.parquet")
    join = JoinExternal(table=str(tmp_path / "prices.parquet"), on="C9", columns=("price",))
    found = made(["C9"] >> join, sample, tmp_path)
    np.testing.assert_array_equal(found["price"], sample.merge(table, on="C9", how="left")["price"])


def test_names_and_tags_change_no_value(sample: pd.DataFrame, tmp_path: Path) -> None:
    users = ["I2"] >> TagAsUserID() >> TagAsUserFeatures() >> AddMetadata(tags=("x",)) >> Rename(postfix="_user")
    items = ["I5"] >> TagAsItemID() >> TagAsItemFeatures()
    found = made(users + items, sample, tmp_path)
    np.testing.assert_array_equal(found[["I2_user", "I5"]], sample[["I2", "I5"]])
