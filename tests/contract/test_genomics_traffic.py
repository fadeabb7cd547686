"""Genotypes go to a GPU once in a step, however often it passes over them; without room for them, in each pass."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.contract.genomics_steps import FILES, no_room_for_genotypes
from tests.contract.site import Site
from tests.contract.strict_device import StrictDevice, cluster_of, stand_in_for_cupy
from tests.contract.traffic import Traffic
from tests.helpers.genotype_structures import simulate, write_folder, write_samples
from whitewater.genotypes.config import Pca
from whitewater.step import Output
from whitewater_apps.genomics.config import Outliers
from whitewater_apps.genomics.steps.outliers import outliers
from whitewater_apps.genomics.steps.pca import pca

# So many samples that their codes are many more bytes than what is known of a variant.
SAMPLES, VARIANTS = 400, 1_600
CODES = SAMPLES // 4 * VARIANTS


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed") / "packed"
    return write_folder(folder, simulate("populations", samples=SAMPLES, variants=VARIANTS)).path


@pytest.fixture(autouse=True)
def _cupy() -> Iterator[None]:
    with stand_in_for_cupy():
        yield


def of_pca(site: Site, packed: Path, folder: Path, *, passes: int) -> Traffic:
    """Run step pca with so many passes besides that which counts and that which makes the loadings."""
    folder.mkdir()
    settings = Pca(components=3, solver="randomized", maximum_passes=passes, tolerance=1e-12)
    samples = write_samples(folder / "in.parquet", np.ones(SAMPLES, bool))
    outputs: dict[str, Any] = {name: Output(folder / file) for name, file in FILES.items()}
    site.run("genomics", pca, settings=settings, case=str(passes), packed=packed, samples=samples, **outputs)
    return site.traffic[f"pca {passes}"]


def test_a_pass_more_sends_no_genotypes_and_fetches_no_sums(packed: Path, tmp_path: Path) -> None:
    site = Site(StrictDevice())
    few, many = (of_pca(site, packed, tmp_path / str(passes), passes=passes) for passes in (2, 8))
    assert CODES <= few.up < 2 * CODES
    # What the solver does between passes is with matrices of its few columns.
    assert many.up - few.up < 0.2 * CODES
    assert many.down - few.down < 0.2 * CODES


def test_workers_keep_the_genotypes_too(packed: Path, tmp_path: Path) -> None:
    with cluster_of(2) as cluster:
        kept = of_pca(Site(StrictDevice(), cluster), packed, tmp_path / "kept", passes=2)
        with no_room_for_genotypes():
            streamed = of_pca(Site(StrictDevice(), cluster), packed, tmp_path / "streamed", passes=2)
    # Counts, two passes and the loadings.
    assert streamed.up - kept.up == 3 * CODES


def test_rounds_of_outliers_share_the_genotypes(packed: Path, tmp_path: Path) -> None:
    samples, settings = (
        write_samples(tmp_path / "in.parquet", np.ones(SAMPLES, bool)),
        Outliers(iterations=2, components=3, standard_deviations=1.8),
    )
    site = Site(StrictDevice())
    site.run("genomics", outliers, settings=settings, packed=packed, samples=samples,
             selected=Output(tmp_path / "out.parquet"))  # fmt: skip
    assert pd.read_parquet(tmp_path / "out.parquet")["reason"].str.contains("round 2").any()
    assert CODES <= site.traffic["outliers"].up < 2 * CODES


def test_where_genotypes_do_not_fit_each_pass_sends_them_and_the_log_says_so(
    packed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with no_room_for_genotypes(), caplog.at_level(logging.INFO):
        found = of_pca(Site(StrictDevice()), packed, tmp_path / "streamed", passes=2)
    assert found.up > 4 * CODES
    assert "go to the GPU in each pass" in caplog.text
    of_pca(Site(StrictDevice()), packed, tmp_path / "kept", passes=2)
    streamed, kept = (pd.read_parquet(tmp_path / name / FILES["pcs"])["PC1"] for name in ("streamed", "kept"))
    np.testing.assert_allclose(streamed, kept, atol=1e-4)
