"""Projected samples come to lie where they would have been among the samples that were fitted."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.linalg import orthogonal_procrustes

from whitewater.engines import Device
from whitewater.genotypes.genotypes import Genotypes
from whitewater.genotypes.pca.loadings import Loadings
from whitewater.genotypes.pca.projection import Method, augment, scores, sum_over_variants

Dosages = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]
POPULATIONS, OF_EACH, VARIANTS, COMPONENTS = 3, 40, 4_000, 2


def populations(of_each: int, *, seed: int) -> tuple[Dosages, npt.NDArray[np.int64]]:
    """Return dosages, (variants, samples), of three populations, and which each sample is of; one seed, one sample."""
    frequencies = np.random.default_rng(0).beta(0.5 * 9, 0.5 * 9, (VARIANTS, POPULATIONS))
    population = np.repeat(np.arange(POPULATIONS), of_each)
    dosages = np.random.default_rng(seed).binomial(2, frequencies[:, population]).astype(np.int8)
    return dosages, population


def fit(dosages: Dosages, components: int = COMPONENTS) -> tuple[Loadings, Floats]:
    """Return loadings and scores of a dense singular value decomposition in float64."""
    mean = dosages.mean(axis=1)
    deviation = np.sqrt(mean * (1 - mean / 2))
    scale = np.divide(1, deviation, out=np.zeros(len(mean)), where=deviation > 0)
    scaled = (dosages - mean[:, None]) * scale[:, None]
    left, values, right = np.linalg.svd(scaled, full_matrices=False)
    variants = int((scale > 0).sum())
    loadings = Loadings(
        left[:, :components].astype(np.float32),
        pd.DataFrame({"mean": mean, "scale": scale, "allele_frequency": mean / 2}),
        pd.DataFrame(),
        values[:components] ** 2 / variants,
        2,
    )
    return loadings, right[:components].T * values[:components] / np.sqrt(variants)


def sums_of(dosages: Dosages, rows: npt.NDArray[np.int64], loadings: Loadings) -> Floats:
    samples = dosages.shape[1]
    found: Floats = sum_over_variants(
        Genotypes(dosages, samples), np.arange(samples), rows, loadings=loadings, device=Device()
    )
    return found


def project(dosages: Dosages, loadings: Loadings, method: Method) -> Floats:
    found = sums_of(dosages, np.arange(len(dosages)), loadings)
    return scores(found, loadings=loadings, method=method)


@pytest.fixture(scope="module")
def fitted() -> tuple[Loadings, Floats]:
    return fit(populations(OF_EACH, seed=1)[0])


def centers(values: Floats) -> Floats:
    means: Floats = values.reshape(POPULATIONS, -1, COMPONENTS).mean(axis=1)
    return means


@pytest.mark.parametrize("method", ["simple", "regression"])
def test_a_sample_that_was_fitted_keeps_its_scores(fitted: tuple[Loadings, Floats], method: Method) -> None:
    loadings, expected = fitted
    found = project(populations(OF_EACH, seed=1)[0], loadings, method)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_new_samples_of_a_population_lie_around_the_fitted_ones_only_without_shrinkage(
    fitted: tuple[Loadings, Floats],
) -> None:
    loadings, expected = fitted
    new = populations(300, seed=2)[0]
    distance = np.linalg.norm(centers(expected), axis=1)
    shrunk = np.linalg.norm(centers(project(new, loadings, "regression")), axis=1) / distance
    corrected = np.linalg.norm(centers(project(new, loadings, "oadp")), axis=1) / distance
    assert shrunk.max() < 0.93
    np.testing.assert_allclose(corrected, 1, atol=0.02)


def test_missing_calls_do_not_draw_a_sample_to_the_center(fitted: tuple[Loadings, Floats]) -> None:
    loadings, _ = fitted
    whole = populations(100, seed=2)[0]
    gaps = whole.copy()
    gaps[np.random.default_rng(3).random(gaps.shape) < 0.4] = -1
    expected_slopes: dict[Method, float] = {"simple": 0.6, "regression": 1.0, "oadp": 1.0}
    for method, ratio in expected_slopes.items():
        at, expected = (centers(project(dosages, loadings, method)) for dosages in (gaps, whole))
        slope = (at * expected).sum() / (expected**2).sum()
        assert slope == pytest.approx(ratio, abs=0.03), method


def test_an_augmented_sample_is_where_a_fit_with_it_puts_it() -> None:
    random = np.random.default_rng(4)
    reference, sample = random.normal(size=(12, 50)), random.normal(size=50)
    left, values, right = np.linalg.svd(reference, full_matrices=False)
    refitted = np.vstack([reference, sample])
    new_left, new_values, _ = np.linalg.svd(refitted, full_matrices=False)
    # All components but the last of the new fit, turned and scaled to the scores of the old one.
    moved, target = (new_left * new_values)[:, :12], left * values
    turn, strength = orthogonal_procrustes(moved[:12], target)
    expected = moved[12] @ turn * strength / (moved[:12] ** 2).sum()
    coordinates = right @ sample
    rest = sample @ sample - coordinates @ coordinates
    (found,) = augment(coordinates[None], np.array([rest]), values)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_sums_over_parts_of_the_variants_add_up(fitted: tuple[Loadings, Floats]) -> None:
    loadings, _ = fitted
    dosages = populations(5, seed=2)[0]
    rows = np.random.default_rng(5).permutation(VARIANTS)
    parts = [sums_of(dosages[part], part, loadings) for part in np.array_split(rows, 7)]
    total = parts[0]
    for part in parts[1:]:
        total += part
    expected = project(dosages, loadings, "oadp")
    np.testing.assert_allclose(scores(total, loadings=loadings, method="oadp"), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["oadp", "regression", "simple"])
def test_a_sample_with_too_few_calls_gets_no_scores(fitted: tuple[Loadings, Floats], method: Method) -> None:
    loadings, _ = fitted
    dosages = populations(1, seed=2)[0]
    dosages[10 * COMPONENTS - 1 :, 0] = -1
    dosages[10 * COMPONENTS :, 1] = -1
    found = project(dosages, loadings, method)
    assert np.isnan(found).any(axis=1).tolist() == [True, False, False]


def test_a_sample_whose_called_variants_do_not_tell_the_components_apart_gets_no_scores(
    fitted: tuple[Loadings, Floats],
) -> None:
    loadings, _ = fitted
    dosages = populations(1, seed=2)[0]
    weights = loadings.weights.copy()
    weights[:100] = weights[:100, :1]
    dosages[100:, 0] = -1
    found = project(dosages, replace(loadings, weights=weights), "regression")
    assert np.isnan(found).any(axis=1).tolist() == [True, False, False]
