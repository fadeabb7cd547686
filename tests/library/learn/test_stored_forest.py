"""A stored forest is loaded once in a process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from distributed.protocol.pickle import dumps, loads

from whitewater.engines import Device
from whitewater.learn import search
from whitewater.learn.estimators import forest_as_treelite, forest_from_treelite, random_forest
from whitewater.learn.features import Features
from whitewater.learn.search import ForestModel

CPU, NUMBERS = Device(), Features(("x", "y", "z"))


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Fills with what is loaded."""
    given: list[bytes] = []

    def load(serialized: bytes, device: Device) -> object:
        given.append(serialized)
        return forest_from_treelite(serialized, device)

    monkeypatch.setattr(search, "forest_from_treelite", load)
    return given


def test_a_forest_is_loaded_once_however_many_blocks_it_predicts(loaded: list[bytes]) -> None:
    random = np.random.default_rng(0)
    features = random.normal(size=(400, 3))
    fitted = random_forest(CPU, trees=3, depth=3, sample_fraction=1.0, seed=0)
    fitted.fit(features.astype(np.float32), features[:, 0])
    model = ForestModel(forest_as_treelite(fitted, CPU))
    with ThreadPoolExecutor(4) as pool:
        blocks = list(pool.map(lambda block: model.predict(block, NUMBERS, CPU), np.split(features, 8)))
    np.testing.assert_allclose(np.concatenate(blocks), fitted.predict(features.astype(np.float32)), atol=1e-6)
    assert len(loaded) == 1
    elsewhere = loads(dumps(model))
    assert elsewhere == model
    np.testing.assert_array_equal(elsewhere.predict(features, NUMBERS, CPU), np.concatenate(blocks))
    assert len(loaded) == 1
