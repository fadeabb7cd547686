"""The map of the samples: neighbors stay neighbors, and every sample keeps its name and label."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

from whitewater.engines import resolve
from whitewater.errors import ConfigError, InputError
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import Umap
from whitewater_apps.genomics.steps.umap import leading_scores, measure_trustworthiness, umap

LABELS = ("AFR", "ASIA", "EUR", None)
EACH = 25


def scores_of(seed: int = 0) -> pd.DataFrame:
    """Four well separated groups of samples in four components, in mixed order."""
    random = np.random.default_rng(seed)
    group = random.permutation(np.repeat(np.arange(4), EACH))
    scores = 20 * np.eye(4)[group] + random.normal(size=(4 * EACH, 4))
    return pd.DataFrame(
        {
            "sample": [f"S{number}" for number in range(4 * EACH)],
            "label": [LABELS[each] for each in group],
            **{f"PC{number}": scores[:, number - 1] for number in range(1, 5)},
        }
    )


def run(directory: Path, table: pd.DataFrame, settings: Umap) -> tuple[pd.DataFrame, dict[str, float]]:
    directory.mkdir()
    table.to_parquet(directory / "pcs.parquet", index=False)
    write = partial(umap, pcs=directory / "pcs.parquet", embedding=Output(directory / "umap.parquet"))
    write(Run("genomics", "umap", resolve("cpu"), settings), quality=Output(directory / "umap.json"))
    return pd.read_parquet(directory / "umap.parquet"), json.loads((directory / "umap.json").read_text())


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> tuple[pd.DataFrame, dict[str, float]]:
    return run(tmp_path_factory.mktemp("umap") / "a", scores_of(), Umap(components=4, neighbors=8))


@pytest.mark.slow
def test_samples_keep_their_order_and_their_labels(mapped: tuple[pd.DataFrame, dict[str, float]]) -> None:
    table, given = mapped[0], scores_of()
    assert list(table.columns) == ["sample", "label", "UMAP1", "UMAP2"]
    pd.testing.assert_frame_equal(table[["sample", "label"]], given[["sample", "label"]])
    assert table["label"].isna().sum() == EACH


@pytest.mark.slow
def test_groups_are_apart_on_the_map(mapped: tuple[pd.DataFrame, dict[str, float]]) -> None:
    table, quality = mapped
    apart = cdist(table[["UMAP1", "UMAP2"]], table[["UMAP1", "UMAP2"]])
    label = table["label"].fillna("").to_numpy()
    same = label[:, np.newaxis] == label
    assert apart[same].max() < apart[~same].min()
    assert 0.9 < quality["trustworthiness"] <= 1
    assert (quality["neighbors"], quality["measured_samples"]) == (8, 100)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_map(mapped: tuple[pd.DataFrame, dict[str, float]], tmp_path: Path) -> None:
    again, _ = run(tmp_path / "b", scores_of(), Umap(components=4, neighbors=8))
    other, _ = run(tmp_path / "c", scores_of(), Umap(components=4, neighbors=8, seed=8))
    pd.testing.assert_frame_equal(mapped[0], again)
    assert not np.allclose(again["UMAP1"], other["UMAP1"])


def test_components_are_taken_by_number_as_far_as_asked() -> None:
    table = scores_of()[["PC3", "label", "PC1", "sample", "PC2", "PC4"]]
    np.testing.assert_array_equal(
        leading_scores(table, components=3), table[["PC1", "PC2", "PC3"]].to_numpy(np.float32)
    )


def by_definition(scores: np.ndarray, places: np.ndarray, k: int) -> float:
    """Trustworthiness, written out (Venna and Kaski 2001)."""
    count = len(scores)
    far, near = cdist(scores, scores), cdist(places, places)
    penalty = 0
    for i in range(count):
        rank = {j: r for r, j in enumerate(np.argsort(far[i]), start=0)}  # the sample itself has rank 0
        neighbors = [j for j in np.argsort(near[i]) if j != i][:k]
        penalty += sum(max(0, rank[j] - k) for j in neighbors)
    return 1 - 2 * penalty / (count * k * (2 * count - 3 * k - 1))


def test_trustworthiness_is_that_of_its_definition() -> None:
    random = np.random.default_rng(1)
    scores, places = random.normal(size=(40, 3)), random.normal(size=(40, 2))
    places[:, 0] += 2 * scores[:, 0]
    found = measure_trustworthiness(scores.astype(np.float32), places, neighbors=6, seed=0)
    assert found["trustworthiness"] == pytest.approx(by_definition(scores, places, 6), abs=1e-9)
    assert found["trustworthiness"] < 0.9


def test_fewer_neighbors_are_ranked_where_samples_are_few() -> None:
    random = np.random.default_rng(1)
    scores = random.normal(size=(9, 2))
    found = measure_trustworthiness(scores.astype(np.float32), scores, neighbors=8, seed=0)
    assert found == {"trustworthiness": 1.0, "measured_samples": 9, "measured_neighbors": 4}


def test_trustworthiness_of_many_samples_is_measured_on_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whitewater_apps.genomics.steps.umap.MEASURED_SAMPLES", 50)
    scores = np.random.default_rng(1).normal(size=(200, 2))
    assert measure_trustworthiness(scores.astype(np.float32), scores, neighbors=5, seed=0)["measured_samples"] == 50


def test_of_too_few_samples_no_map_is_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table, quality = run(tmp_path / "a", scores_of().head(15), Umap())
    assert table["sample"].tolist() == scores_of()["sample"].head(15).tolist()
    assert table[["UMAP1", "UMAP2"]].isna().all(axis=None)
    assert (quality["samples"], quality["components"]) == (15, 4)
    assert json.dumps(quality["trustworthiness"]) == "null"
    assert "no map is made: 15 samples are not more than genomics.umap.neighbors, 15" in caplog.text


@pytest.mark.parametrize(("computed", "taken"), [(1, 1), (4, 4), (10, 10), (12, 10)])
def test_without_a_number_of_components_the_first_ten_are_taken(computed: int, taken: int) -> None:
    table = pd.DataFrame({f"PC{number}": [number, 0.5] for number in range(1, computed + 1)})
    assert leading_scores(table, components=None)[0].tolist() == [*range(1, taken + 1)]


def test_more_components_than_there_are_say_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"components is 10, but only 4 .* genomics.pca.components"):
        run(tmp_path / "a", scores_of(), Umap(components=10))


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "pcs.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"pcs\.parquet cannot be read"):
        umap(
            Run("genomics", "umap", resolve("cpu"), Umap()),
            pcs=tmp_path / "pcs.parquet",
            embedding=Output(tmp_path / "umap.parquet"),
            quality=Output(tmp_path / "umap.json"),
        )
