"""The Tracy-Widom distribution equals its tables and its differential equation; its test finds structure only."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.special import airy, airye
from scipy.stats import binomtest, kstest

from whitewater.genotypes.pca.tracy_widom import TracyWidomTest, critical_value, survival, tracy_widom_test

Floats = npt.NDArray[np.float64]
Dosages = npt.NDArray[np.int64]


def draw(
    rng: np.random.Generator, *, samples: int, variants: int, populations: int = 1, divergence: float = 0.0
) -> Dosages:
    """Draw independent variants (Balding and Nichols 1995): int (samples, variants), populations of equal size."""
    ancestral = rng.uniform(0.1, 0.5, variants)
    spread = (1 - divergence) / max(divergence, 1e-12)
    frequency = (
        rng.beta(ancestral * spread, (1 - ancestral) * spread, (populations, variants))
        if divergence
        else np.tile(ancestral, (populations, 1))
    )
    return rng.binomial(2, frequency[np.arange(samples) % populations])


def covariance_spectrum(dosages: Dosages) -> tuple[Floats, int]:
    """Return the eigenvalues of the covariance of the samples, descending, and the number of variants that vary."""
    frequency = dosages.mean(axis=0) / 2
    varying = (frequency > 0) & (frequency < 1)
    deviation = np.sqrt(2 * frequency * (1 - frequency))[varying]
    scaled = (dosages[:, varying] - 2 * frequency[varying]) / deviation
    return np.linalg.eigvalsh(scaled @ scaled.T / varying.sum())[::-1], int(varying.sum())


def components_test(dosages: Dosages, *, components: int = 6) -> TracyWidomTest:
    spectrum, variants = covariance_spectrum(dosages)
    return tracy_widom_test(
        spectrum[:components],
        total=float(spectrum.sum()),
        sum_of_squares=float((spectrum**2).sum()),
        samples=len(dosages),
        variants=variants,
    )


@pytest.mark.parametrize(
    ("probability", "value"),
    [(0.01, -3.8954), (0.05, -3.1804), (0.1, -2.7824), (0.9, 0.4501), (0.95, 0.9793), (0.99, 2.0234), (0.999, 3.2724)],
)
def test_quantiles_are_those_of_published_tables(probability: float, value: float) -> None:
    found = critical_value(1 - probability)
    assert found == pytest.approx(value, abs=3e-4)
    assert 1 - float(survival(found)) == pytest.approx(probability, abs=1e-12)


def test_moments_are_those_of_published_tables() -> None:
    nodes, weights = np.polynomial.legendre.leggauss(120)
    last, first = 16.0, -12.0
    at, weights = (last - first) / 2 * (nodes + 1) + first, weights * (last - first) / 2
    below = 1 - survival(at)
    # By parts: the integral of x^k dF is last^k less that of k x^(k - 1) F.
    raw = [last**k - float(weights @ (k * at ** (k - 1) * below)) for k in (1, 2, 3)]
    mean, variance = raw[0], raw[1] - raw[0] ** 2
    skewness = (raw[2] - 3 * raw[0] * variance - raw[0] ** 3) / variance**1.5
    np.testing.assert_allclose([mean, variance, skewness], [-1.2065335746, 1.6077810346, 0.2934645241], atol=1e-9)


def test_distribution_solves_painleve_ii() -> None:
    """F1(s) = exp(-1/2 of the integral over (s, inf) of q(x) + (x - s) q(x)^2), where q'' = s q + 2 q^3, q ~ Ai."""
    start = 8.0

    def slope(s: float, state: Floats) -> list[float]:
        q, derivative, sum_of_squares, _, _ = state
        return [derivative, s * q + 2 * q**3, -(q**2), -sum_of_squares, -q]

    value, derivative = airy(start)[:2]
    begin = [value, derivative, *(quad(tail, start, 30)[0] for tail in (_square, _first_moment, _airy))]
    at = np.linspace(start, -4, 25)
    solved = solve_ivp(slope, (start, -4), begin, t_eval=at, method="DOP853", rtol=1e-13, atol=1e-20)
    expected = np.exp(-(solved.y[3] + solved.y[4]) / 2)
    np.testing.assert_allclose(1 - survival(at), expected, rtol=0, atol=1e-9)


def _airy(x: float) -> float:
    return float(airy(x)[0])


def _square(x: float) -> float:
    return _airy(x) ** 2


def _first_moment(x: float) -> float:
    return (x - 8.0) * _airy(x) ** 2


@pytest.mark.parametrize("value", [12.0, 40.0, 75.0, 102.0])
def test_far_right_tail_is_half_the_integral_of_airy(value: float) -> None:
    """The trace of the kernel; the next term is its square. airye keeps the integral from underflow."""
    decay = 2 / 3 * value**1.5

    def scaled(step: float) -> float:
        return float(airye(value + step)[0] * np.exp(decay - 2 / 3 * (value + step) ** 1.5)) / 2

    expected = quad(scaled, 0, 12, epsabs=0, epsrel=1e-12)[0] * np.exp(-decay)
    assert 0 < float(survival(value)) == pytest.approx(expected, rel=1e-11)


def test_extreme_statistics_have_probabilities() -> None:
    values = np.array([-1e9, -40.0, -12.0, 0.0, 60.0, 104.0, 1e3, 1e9])
    assert (np.diff(survival(values)) <= 0).all()
    assert survival(values)[[0, -1]].tolist() == [1.0, 0.0]


@pytest.mark.slow
def test_p_values_without_structure_are_nearly_uniform_and_right_in_the_tail() -> None:
    rng = np.random.default_rng(20060)
    drawn = (draw(rng, samples=50, variants=700) for _ in range(200))
    p_values = np.array([components_test(dosages, components=1).p_values[0] for dosages in drawn])
    assert kstest(p_values, "uniform").statistic < 0.15
    assert binomtest(int((p_values < 0.05).sum()), 200, 0.05).pvalue > 0.05
    assert binomtest(int((p_values < 0.1).sum()), 200, 0.1).pvalue > 0.05


def test_effective_variants_do_not_count_copies() -> None:
    dosages = draw(np.random.default_rng(5), samples=120, variants=1000)
    once, copied = components_test(dosages), components_test(np.tile(dosages, (1, 5)))
    assert once.effective_variants[0] == pytest.approx(1000, rel=0.05)
    np.testing.assert_allclose(copied.effective_variants, once.effective_variants, rtol=1e-9)
    np.testing.assert_allclose(copied.p_values, once.p_values, rtol=1e-6)


@pytest.mark.parametrize("populations", [1, 2, 3, 4])
def test_significant_components_are_one_fewer_than_populations(populations: int) -> None:
    rng = np.random.default_rng(17)
    found = components_test(draw(rng, samples=150, variants=2000, populations=populations, divergence=0.05))
    assert found.significant_components(0.01) == populations - 1


@pytest.mark.parametrize("level", [0.5, 0.01, 1e-30])
def test_thresholds_are_the_eigenvalues_at_which_a_component_becomes_significant(level: float) -> None:
    spectrum = np.array([9.0, 3.0, 1.4, 1.2, 1.0])
    test = tracy_widom_test(spectrum, total=60.0, sum_of_squares=150.0, samples=50, variants=900)
    thresholds = test.thresholds(spectrum, level)
    assert ((spectrum > thresholds) == (test.p_values < level)).all()
    for component, threshold in enumerate(thresholds):
        rows, n = 49 - component, test.effective_variants[component]
        mean = (60.0 - spectrum[:component].sum()) / rows
        mu = (np.sqrt(n - 1) + np.sqrt(rows)) ** 2 / n
        sigma = (np.sqrt(n - 1) + np.sqrt(rows)) / n * (1 / np.sqrt(n - 1) + 1 / np.sqrt(rows)) ** (1 / 3)
        assert survival((threshold / mean - mu) / sigma) == pytest.approx(level, rel=1e-6)


def test_later_small_p_values_do_not_count_after_a_large_one() -> None:
    test = TracyWidomTest(np.array([9.0, 0.0, 9.0]), np.ones(3), np.ones(3))
    assert test.significant_components(0.01) == 1


def test_formulas_are_those_of_patterson_price_and_reich() -> None:
    """Equations 5 to 11 on the eigenvalues left, written for one component at a time."""
    spectrum, variants = covariance_spectrum(
        draw(np.random.default_rng(3), samples=40, variants=300, populations=2, divergence=0.05)
    )
    test = tracy_widom_test(
        7 * spectrum[:4],
        total=7 * spectrum.sum(),
        sum_of_squares=49 * (spectrum**2).sum(),
        samples=40,
        variants=variants,
    )
    for component in range(4):
        left = spectrum[component:39]
        m = len(left)
        n = (m + 2) * left.sum() ** 2 / (m * (left**2).sum() - left.sum() ** 2)
        mu = (np.sqrt(n - 1) + np.sqrt(m)) ** 2 / n
        sigma = (np.sqrt(n - 1) + np.sqrt(m)) / n * (1 / np.sqrt(n - 1) + 1 / np.sqrt(m)) ** (1 / 3)
        assert test.effective_variants[component] == pytest.approx(n)
        assert test.statistics[component] == pytest.approx((m * left[0] / left.sum() - mu) / sigma)


def test_components_without_variance_are_not_significant() -> None:
    eigenvalues = np.array([3.0, 1.0, 0.0, 0.0])
    test = tracy_widom_test(eigenvalues, total=4.0, sum_of_squares=10.0, samples=5, variants=100)
    assert np.isfinite(test.statistics).all()
    assert (test.p_values[2:] > 0.5).all()
