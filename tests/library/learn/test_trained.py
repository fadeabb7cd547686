"""A stored model predicts what the fitted one did, is loaded once in a process, and no changed byte of it is used."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from distributed.protocol.pickle import dumps, loads
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.library.learn.rows import FORMS, sample_of
from whitewater.engines import Device
from whitewater.errors import InputError, IntegrityError
from whitewater.io.folder import Format
from whitewater.learn import trained
from whitewater.learn.config import Forest, Search
from whitewater.learn.estimators import forest_as_treelite
from whitewater.learn.trained import Models, fit_forest, fit_ridge, load, save

CPU, ROWS = Device(), sample_of()
SETTINGS = Search(forest=Forest(rows_per_tree=1_000))
FORMAT = Format("model.json", 2, "model", remedy="Fit it again.")


@pytest.fixture(scope="module")
def fitted() -> Models:
    ridge, _ = fit_ridge(ROWS.features, ROWS.target, alpha=5.0, forms=FORMS, device=CPU)
    forest = fit_forest(ROWS.features, ROWS.target, trees=10, depth=6, forms=FORMS, settings=SETTINGS, device=CPU)
    return Models(ridge, forest_as_treelite(forest, CPU))


@pytest.fixture
def stored(fitted: Models, tmp_path: Path) -> Path:
    save({"bikes": fitted}, tmp_path, form=FORMAT, described={}, columns=FORMS.linear_columns())
    return tmp_path


def read(folder: Path) -> Models:
    return load(folder, "bikes", form=FORMAT, files=FORMAT.read_signed(folder)["files"])


def test_a_reloaded_model_is_the_model(fitted: Models, stored: Path) -> None:
    assert read(stored) == fitted


def test_a_reloaded_ridge_predicts_what_scikit_learn_does(stored: Path) -> None:
    columns = FORMS.linear(ROWS.features, CPU)
    expected = make_pipeline(StandardScaler(), Ridge(alpha=5.0)).fit(columns, ROWS.target).predict(columns)
    predicted = read(stored).predict(ROWS.features, FORMS, CPU)["ridge"]
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-12)


def test_a_reloaded_forest_predicts_what_scikit_learn_does(stored: Path) -> None:
    rows = FORMS.tree(ROWS.features, CPU)
    forest = RandomForestRegressor(
        n_estimators=10, max_depth=6, max_features=1 / 3, min_samples_leaf=5, max_samples=1_000 / len(ROWS),
        random_state=SETTINGS.seed,
    )  # fmt: skip
    expected = forest.fit(rows, ROWS.target).predict(rows)
    predicted = read(stored).predict(ROWS.features, FORMS, CPU)["forest"]
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-6)


def test_a_folder_without_a_model_or_of_another_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no model"):
        read(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps({"format": 1, "sha256": "signed in another way"}))
    with pytest.raises(InputError, match=r"has format 1; this version reads 2\. Fit it again\."):
        read(tmp_path)


def test_every_file_is_listed_and_a_changed_or_lost_one_is_refused(stored: Path) -> None:
    listed = set(json.loads((stored / "model.json").read_text())["files"])
    assert listed == {path.relative_to(stored).as_posix() for path in stored.rglob("*.*")} - {"model.json"}
    for name in listed:
        data = (stored / name).read_bytes()
        (stored / name).write_bytes(bytes([data[0] ^ 1]) + data[1:])
        with pytest.raises(IntegrityError, match=f"{name} was changed or cut off"):
            read(stored)
        (stored / name).unlink()
        with pytest.raises(InputError, match=f"{name} is missing or cannot be read"):
            read(stored)
        (stored / name).write_bytes(data)


def test_a_forest_is_loaded_once_however_many_blocks_it_predicts(fitted: Models) -> None:
    trained._load_forest.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        blocks = list(pool.map(lambda block: fitted.predict(block, FORMS, CPU)["forest"], np.split(ROWS.features, 8)))
    elsewhere = loads(dumps(fitted))
    assert elsewhere == fitted
    np.testing.assert_array_equal(elsewhere.predict(ROWS.features, FORMS, CPU)["forest"], np.concatenate(blocks))
    assert trained._load_forest.cache_info().misses == 1
