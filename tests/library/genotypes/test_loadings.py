"""Loadings say all that a sample needs to be projected, and refuse to be read in part."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr

from tests.helpers.genotype_structures import components_of, scaled, simulate, write_folder
from whitewater.engines import Device
from whitewater.errors import InputError, IntegrityError
from whitewater.genotypes.config import Pca
from whitewater.genotypes.pca.components import PrincipalComponents
from whitewater.genotypes.pca.loadings import read_loadings, write_loadings

DOSAGES = simulate("admixture", samples=101, variants=1_200, missing=0.05)


def written(folder: Path, device: Device) -> PrincipalComponents:
    found = components_of(write_folder(folder / "g", DOSAGES), Pca(components=4, solver="gram"), device)
    write_loadings(folder / "loadings.zarr", found, scaling={"frequency": "observed"})
    return found


def test_loadings_give_the_scores_back(tmp_path: Path, device: Device) -> None:
    found = written(tmp_path, device)
    loadings = read_loadings(tmp_path / "loadings.zarr")
    dosages = np.where(DOSAGES >= 0, DOSAGES, np.nan)
    mean, scale = loadings.scaling[["mean", "scale"]].to_numpy().T
    matrix = np.nan_to_num((dosages - mean[:, None]) * scale[:, None])
    varying = scale > 0
    np.testing.assert_allclose(matrix[varying].T, scaled(DOSAGES), atol=1e-12)
    np.testing.assert_allclose(matrix.T @ loadings.weights / np.sqrt(varying.sum()), found.scores, atol=1e-5)
    np.testing.assert_allclose(loadings.weights.T @ loadings.weights, np.eye(4), atol=1e-5)


def test_loadings_name_their_variants(tmp_path: Path, device: Device) -> None:
    found = written(tmp_path, device)
    loadings = read_loadings(tmp_path / "loadings.zarr")
    assert loadings.ploidy == 2
    expected = found.genotypes.raw.folder.variants_table(["contig", "position", "id", "reference", "alternate"])
    pd.testing.assert_frame_equal(loadings.variants, expected)
    np.testing.assert_array_equal(loadings.eigenvalues, found.spectrum.eigenvalues)
    calls = DOSAGES[7][DOSAGES[7] >= 0]
    assert loadings.scaling["allele_frequency"][7] == pytest.approx(calls.mean() / 2)


def test_a_chunk_that_is_lost_is_named(tmp_path: Path, device: Device) -> None:
    written(tmp_path, device)
    chunk = next(path for path in (tmp_path / "loadings.zarr" / "mean").rglob("*") if path.name == "0")
    chunk.unlink()
    with pytest.raises(IntegrityError, match="mean"):
        read_loadings(tmp_path / "loadings.zarr")


def test_another_format_is_refused(tmp_path: Path) -> None:
    zarr.open_group(tmp_path / "loadings.zarr", mode="w", zarr_format=3, attributes={"format": 99})
    with pytest.raises(InputError, match="format 99"):
        read_loadings(tmp_path / "loadings.zarr")
