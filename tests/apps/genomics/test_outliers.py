"""Samples far from all others are taken out in rounds."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import stats

from tests.helpers.genotype_structures import Dosages, write_folder, write_samples
from whitewater.engines import resolve
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import Outliers
from whitewater_apps.genomics.steps.outliers import farthest, outliers


def with_strangers(strangers: int) -> Dosages:
    """Simulate 80 samples of one population, and behind them strangers, each less strange than the one before."""
    rng = np.random.default_rng(4)
    p, other = rng.uniform(0.2, 0.8, 2_000)[:, None], rng.uniform(0, 1, (2_000, strangers))
    strange = p + (other - p) * [1.0, 0.75, 0.55][:strangers]
    return rng.binomial(2, np.hstack([np.repeat(p, 80, axis=1), strange])).astype(np.int8)


def selected(
    folder: Path,
    dosages: Dosages,
    *,
    iterations: int,
    used: npt.NDArray[np.bool_] | None = None,
    standard_deviations: float = 6.0,
) -> pd.DataFrame:
    write_folder(folder / "g", dosages)
    samples = write_samples(folder / "s.parquet", np.ones(dosages.shape[1], bool) if used is None else used)
    settings = Outliers(iterations=iterations, components=2, standard_deviations=standard_deviations)
    run = Run("genomics", "outliers", resolve("cpu"), settings)
    outliers(run, packed=folder / "g", samples=samples, selected=Output(folder / "o.parquet"))
    return pd.read_parquet(folder / "o.parquet")


def test_strangers_are_taken_out_round_by_round(tmp_path: Path) -> None:
    found = selected(tmp_path, with_strangers(3), iterations=5)
    assert found.loc[~found["used"], "sample"].tolist() == ["S80", "S81", "S82"]
    assert found.loc[:79, "reason"].eq("").all()
    assert found.loc[80:, "reason"].str.fullmatch(r"outlier on PC[12] \(\d+\.\d sd, round [12]\)").all()
    assert set(found.loc[80:, "reason"].str[-2]) == {"1", "2"}


def test_rounds_are_limited(tmp_path: Path) -> None:
    assert (~selected(tmp_path, with_strangers(3), iterations=1)["used"]).sum() == 2


def test_samples_that_were_not_used_keep_their_reason(tmp_path: Path) -> None:
    used = np.arange(82) != 5
    found = selected(tmp_path, with_strangers(2), iterations=5, used=used)
    assert found.loc[5, "reason"] == "held out"
    assert found.loc[~found["used"], "sample"].tolist() == ["S5", "S80", "S81"]


def test_distance_is_in_standard_deviations_of_each_component() -> None:
    scores = np.random.default_rng(0).normal(size=(50, 3)) * [1, 10, 100]
    component, distance = farthest(scores)
    z = np.abs(stats.zscore(scores, ddof=1))
    np.testing.assert_allclose(distance, z.max(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(component, z.argmax(axis=1))


@pytest.mark.parametrize(("standard_deviations", "out"), [(4.0, 1), (8.0, 1), (9.0, 0)])
def test_the_limit_is_that_of_the_settings(tmp_path: Path, standard_deviations: float, out: int) -> None:
    """The one stranger among 81 samples is nearly all of a component, so its distance is almost 80 / sqrt(81)."""
    found = selected(tmp_path, with_strangers(1), iterations=1, standard_deviations=standard_deviations)
    assert (~found["used"]).sum() == out


def test_no_rounds_take_nobody_out(tmp_path: Path) -> None:
    assert selected(tmp_path, with_strangers(1), iterations=0)["used"].all()
