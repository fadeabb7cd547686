"""Target encoding against pandas, and against what spoils models elsewhere: leaks and skew."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from tests.library.features.frames import learned
from whitewater.errors import ConfigError, InputError, ResourceError
from whitewater.features.columns.categories import row_hash_one
from whitewater.features.operators.encodings import TargetEncoding

FOLDS, SEED, SMOOTH = 5, 42, 20.0
INPUTS = ("city", "item", ("city", "item"))
TARGETS = ("clicked", "spent")


@pytest.fixture(scope="module")
def log() -> pd.DataFrame:
    """Text and integers with nulls, a target of 0 and 1, and one of floats with nulls."""
    draw = np.random.default_rng(5)
    rows = 2000
    city = np.array(["", "Ulm", "Zürich", "Köln", "N/A", None], object)[draw.integers(0, 6, rows)]
    item = pd.array(draw.zipf(1.5, rows) % 50, "Int64")
    item[draw.random(rows) < 0.1] = pd.NA
    spent = np.where(draw.random(rows) < 0.2, np.nan, draw.normal(30, 9, rows))
    clicked = (draw.random(rows) < 0.2 + 0.3 * (city == "Ulm")).astype(np.int8)
    return pd.DataFrame(
        {"row_id": np.arange(rows) + 2**40, "city": city, "item": item, "clicked": clicked, "spent": spent}
    )


def fold_of(frame: pd.DataFrame, folds: int = FOLDS) -> npt.NDArray[np.int64]:
    return np.array([row_hash_one([int(key)], SEED) % folds for key in frame["row_id"]])


def category_of(frame: pd.DataFrame, columns: str | tuple[str, ...]) -> pd.Series:
    names = [columns] if isinstance(columns, str) else list(columns)
    return frame[names].astype(object).where(frame[names].notna(), None).apply(tuple, axis=1)


def encoded_by_pandas(
    known: pd.DataFrame, rows: pd.DataFrame, columns: str | tuple[str, ...], target: str
) -> pd.Series:
    known = known[known[target].notna()]
    groups = known[target].astype(float).groupby(category_of(known, columns))
    sums, counts = (found.reindex(category_of(rows, columns)).fillna(0) for found in (groups.sum(), groups.count()))
    return pd.Series(((sums + SMOOTH * known[target].mean()) / (counts + SMOOTH)).to_numpy(), rows.index)


def name_of(columns: str | tuple[str, ...], target: str) -> str:
    return f"TE_{columns if isinstance(columns, str) else '_'.join(columns)}_{target}"


@pytest.mark.parametrize("columns", INPUTS)
@pytest.mark.parametrize("target", TARGETS)
def test_in_serving_an_encoding_is_of_all_rows(log: pd.DataFrame, columns: str | tuple[str, ...], target: str) -> None:
    rows = log.copy()
    rows.loc[:9, "city"], rows.loc[:9, "item"] = "Aleppo", 777
    found = learned(TargetEncoding(target=target), log, INPUTS, parts=3).applied(rows)
    expected = encoded_by_pandas(log, rows, columns, target)
    assert list(found) == [name_of(each, target) for each in INPUTS]
    np.testing.assert_allclose(found[name_of(columns, target)], expected, rtol=1e-6)


@pytest.mark.parametrize("columns", INPUTS)
@pytest.mark.parametrize("target", TARGETS)
def test_in_training_an_encoding_is_of_the_rows_of_other_folds(
    log: pd.DataFrame, columns: str | tuple[str, ...], target: str
) -> None:
    found = learned(TargetEncoding(target=target), log, INPUTS).applied(log, training=True)
    folds = fold_of(log)
    expected = pd.concat(
        encoded_by_pandas(log[folds != fold], log[folds == fold], columns, target) for fold in range(FOLDS)
    )
    np.testing.assert_allclose(found[name_of(columns, target)], expected.sort_index(), rtol=1e-6)


def test_new_data_are_encoded_alike_whatever_their_keys_and_company(log: pd.DataFrame) -> None:
    # NVTabular applies the sums of some fold whenever it transforms: the same row gets other values in serving.
    encoding = learned(TargetEncoding(target="clicked"), log, ("city",))
    serving = encoding.applied(log)
    alone = pd.concat(encoding.applied(log.iloc[[place]]) for place in range(20))
    pd.testing.assert_frame_equal(alone, serving.iloc[:20])
    assert len(serving.groupby([category_of(log, "city"), serving["TE_city_clicked"]])) == 6


@settings(max_examples=12, deadline=None)
@given(parts=st.integers(1, 64), blocks=st.integers(1, 3), seed=st.integers(0, 99))
def test_folds_and_encodings_do_not_depend_on_partitions_or_order(
    log: pd.DataFrame, parts: int, blocks: int, seed: int
) -> None:
    # NVTabular draws folds anew in each partition, so that its results depend on the partitions.
    operator = TargetEncoding(target="clicked")
    small = log.head(500)
    shuffled = small.sample(frac=1, random_state=seed)
    whole = learned(operator, small, INPUTS)
    parted = learned(operator, shuffled, INPUTS, parts=parts, blocks=blocks)
    for training in (True, False):
        found = parted.applied(shuffled, training=training).sort_index()
        pd.testing.assert_frame_equal(found, whole.applied(small, training=training), check_exact=True)


def test_a_row_does_not_know_its_own_target_not_even_its_last_digit(log: pd.DataFrame) -> None:
    operator = TargetEncoding(target="spent")
    huge = log.head(300).copy()
    row = huge.index[huge["spent"].notna()][7]
    huge.loc[row, "spent"] = 1e14
    before = learned(operator, log.head(300), INPUTS).applied(huge, training=True)
    after = learned(operator, huge, INPUTS).applied(huge, training=True)
    own = fold_of(huge) == fold_of(huge)[row]
    pd.testing.assert_frame_equal(after[own], before[own], check_exact=True)
    assert (after[~own] != before[~own]).any(axis=None)


@pytest.mark.parametrize("seed", range(3))
def test_trees_gain_no_more_by_a_noise_column_than_by_random_numbers(seed: int) -> None:
    # Trees find what a line does not, such as the fold that a mean was taken without.
    draw = np.random.default_rng(seed)
    rows, train, test = 9000, slice(0, 6000), slice(6000, None)
    signal, random = draw.normal(size=(2, rows))
    label = (draw.random(rows) < 1 / (1 + np.exp(1 - signal))).astype(np.int8)
    frame = pd.DataFrame({"row_id": np.arange(rows), "noise": draw.integers(0, 3000, rows), "label": label})
    encoding = learned(TargetEncoding(target="label"), frame[train], ("noise",))
    serving, training = encoding.applied(frame)["TE_noise_label"], encoding.applied(frame[train], training=True)
    out_of_fold = np.concatenate([training["TE_noise_label"], serving[test]])

    def areas(*columns: Any) -> npt.NDArray[np.float64]:
        features = np.column_stack([signal, *columns])
        trees = GradientBoostingClassifier(n_estimators=20, max_depth=4, random_state=seed).fit(
            features[train], label[train]
        )
        predicted = trees.predict_proba(features)[:, 1]
        return np.array([roc_auc_score(label[part], predicted[part]) for part in (train, test)])

    assert (areas(out_of_fold) - areas(random) <= 0.01).all()
    assert (areas(out_of_fold) - areas())[1] <= 0.01
    assert (areas(serving) - areas(random))[0] > 0.05


def test_null_is_a_category_and_an_unseen_one_is_the_mean() -> None:
    seen = pd.DataFrame({"row_id": range(6), "city": ["a", "a", None, None, None, "b"], "label": [1, 0, 1, 1, 1, 0]})
    new = pd.DataFrame({"city": [None, "c", "a", ""]})
    found = learned(TargetEncoding(target="label", p_smooth=1), seen, ("city",)).applied(new)
    mean = 4 / 6
    expected = [(3 + mean) / 4, mean, (1 + mean) / 3, mean]
    np.testing.assert_allclose(found["TE_city_label"], expected, rtol=1e-6)


def test_a_column_of_nulls_is_one_category() -> None:
    frame = pd.DataFrame({"row_id": range(40), "city": np.full(40, None), "label": [0, 1, 1, 1] * 10})
    encoding = learned(TargetEncoding(target="label"), frame, ("city",), parts=3)
    np.testing.assert_allclose(encoding.applied(frame)["TE_city_label"], 0.75)
    labels, folds = frame["label"], fold_of(frame)
    expected = [labels[folds != fold].mean() for fold in folds]
    np.testing.assert_allclose(encoding.applied(frame, training=True)["TE_city_label"], expected, rtol=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_no_rows_make_no_encodings(log: pd.DataFrame, training: bool) -> None:
    encoding = learned(TargetEncoding(target="spent"), log, INPUTS)
    assert encoding.applied(log.head(0), training=training).shape == (0, 3)


def test_rows_with_a_null_target_count_nowhere_and_are_told(log: pd.DataFrame) -> None:
    encoding = learned(TargetEncoding(target="spent"), log, ("city",), parts=3)
    told = encoding.fitted["city"].facts()["targets"]["spent"]
    assert told["null_rows"] == log["spent"].isna().sum() > 0
    assert told["rows"] == log["spent"].notna().sum()
    assert told["mean"] == pytest.approx(log["spent"].mean(), rel=1e-12)


def test_without_folds_it_serves_but_does_not_train(log: pd.DataFrame) -> None:
    folded = learned(TargetEncoding(target="clicked"), log, ("city",))
    unfolded = learned(TargetEncoding(target="clicked", kfold=1), log.drop(columns="row_id"), ("city",))
    pd.testing.assert_frame_equal(unfolded.applied(log), folded.applied(log), check_exact=True)
    with pytest.raises(ConfigError, match="kfold=1"):
        unfolded.applied(log, training=True)


def test_rows_of_one_fold_only_have_no_others_to_learn_from() -> None:
    one = pd.DataFrame({"row_id": [1], "city": ["a"], "label": [1]})
    encoding = learned(TargetEncoding(target="label"), one, ("city",))
    with pytest.raises(InputError, match="one fold"):
        encoding.applied(one, training=True)


def test_a_table_that_does_not_fit_into_memory_is_refused_with_its_size(log: pd.DataFrame) -> None:
    many = log.assign(item=np.arange(len(log)))
    with pytest.raises(ResourceError, match=r"item: the table of its categories takes [\d.]+ MB .*memory_share"):
        learned(TargetEncoding(target="clicked"), many, ("item",), blocks=10, memory=100_000)
