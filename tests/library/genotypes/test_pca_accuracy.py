"""Components against exact ones in float64, on structures with missing calls, relatives and linkage disequilibrium."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.genotype_structures import (
    DIMENSIONS,
    Dosages,
    Structure,
    components_of,
    exact,
    mean_explained_variance,
    scaled,
    simulate,
    write_folder,
)
from tests.helpers.real_data import needs_real_data, real_data
from whitewater.engines import Device
from whitewater.genotypes.config import Pca

HAPMAP3_EIGENVALUES = [26.160628, 23.393817, 6.915728, 6.049832, 4.402505]
HAPMAP3_TRACE = 987.3562
CONTINENTS = {"ASW": "Africa", "LWK": "Africa", "MKK": "Africa", "YRI": "Africa", "CEU": "Europe", "TSI": "Europe",
              "CHB": "East Asia", "CHD": "East Asia", "JPT": "East Asia", "GIH": "India", "MEX": "America"}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["gram", "randomized"])
@pytest.mark.parametrize("structure", DIMENSIONS)
def test_structure_and_variance_are_captured(tmp_path: Path, device: Device, structure: Structure, solver: str) -> None:
    dosages = simulate(structure, samples=400, variants=5_000)
    found = components_of(write_folder(tmp_path / "g", dosages), Pca(components=10, solver=solver), device)
    matrix = scaled(dosages)
    values, vectors = exact(matrix)
    basis = np.linalg.qr(found.spectrum.vectors)[0]
    captured = np.trace(basis.T @ matrix @ matrix.T @ basis) / matrix.shape[1]
    size = DIMENSIONS[structure]
    assert values[size - 1] > 1.5 * values[size], "the structure stands out"
    assert captured >= 0.9999 * values[:10].sum()
    assert mean_explained_variance(found.spectrum.vectors[:, :size], vectors[:, :size]) >= 0.9999
    assert found.spectrum.converged[:size].all()
    np.testing.assert_allclose(found.spectrum.eigenvalues[:size], values[:size], rtol=1e-6)
    np.testing.assert_allclose(found.total, values.sum(), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("structure", DIMENSIONS)
def test_sum_of_squares_is_estimated_well_enough_for_the_number_of_effective_variants(
    tmp_path: Path, device: Device, structure: Structure
) -> None:
    dosages = simulate(structure, samples=400, variants=5_000)
    folder = write_folder(tmp_path / "g", dosages)
    known, estimated = (components_of(folder, Pca(solver=solver), device) for solver in ("gram", "randomized"))
    values, _ = exact(scaled(dosages))
    np.testing.assert_allclose(known.spectrum.sum_of_squares, (values**2).sum(), rtol=1e-6)
    np.testing.assert_allclose(
        estimated.significance.effective_variants[3], known.significance.effective_variants[3], rtol=0.03
    )


@pytest.mark.parametrize("solver", ["gram", "randomized"])
def test_noise_alone_has_the_variance_of_its_leading_components(tmp_path: Path, device: Device, solver: str) -> None:
    dosages = np.random.default_rng(1).binomial(2, 0.3, (3_000, 200)).astype(np.int8)
    found = components_of(write_folder(tmp_path / "g", dosages), Pca(components=6, solver=solver), device)
    values, _ = exact(scaled(dosages))
    assert found.spectrum.eigenvalues.sum() >= 0.9999 * values[:6].sum()


def hapmap3() -> tuple[Dosages, npt.NDArray[np.str_]]:
    """Read dosages of A1, (variants, samples), and the population of each sample."""
    folder = real_data("genomics", "hapmap3")
    samples = [line.split()[1] for line in (folder / "HM3_thinned_autosomal_overlap.fam").read_text().splitlines()]
    codes = np.fromfile(folder / "HM3_thinned_autosomal_overlap.bed", np.uint8)[3:].reshape(-1, -(-len(samples) // 4))
    calls = np.stack([(codes >> shift) & 3 for shift in (0, 2, 4, 6)], axis=2).reshape(len(codes), -1)
    table = [line.split() for line in (folder / "relationships_w_pops_121708.txt").read_text().splitlines()[1:]]
    population = {row[1]: row[-1] for row in table}
    dosages = np.array([2, -1, 1, 0], np.int8)[calls[:, : len(samples)]]
    return dosages, np.array([CONTINENTS[population[name]] for name in samples])


@needs_real_data
@pytest.mark.parametrize("solver", ["gram", "randomized"])
def test_hapmap3_has_its_published_eigenvalues_and_continents(tmp_path: Path, device: Device, solver: str) -> None:
    dosages, continents = hapmap3()
    found = components_of(write_folder(tmp_path / "g", dosages), Pca(components=5, solver=solver), device)
    np.testing.assert_allclose(found.spectrum.eigenvalues, HAPMAP3_EIGENVALUES, rtol=0, atol=5.5e-7)
    assert found.total == pytest.approx(HAPMAP3_TRACE, abs=5e-5)
    names = np.unique(continents)
    scores = found.scores[:, :3]
    centroids = np.stack([scores[continents == name].mean(axis=0) for name in names])
    nearest = names[np.linalg.norm(scores[:, None] - centroids, axis=2).argmin(axis=1)]
    # Exact components place 955 of the 957: two Mexicans are nearer to the Europeans.
    assert round(float((nearest == continents).mean()), 3) >= 0.998
