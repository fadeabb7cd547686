"""The exact test of Hardy-Weinberg equilibrium equals the sum of its definition, and PLINK's."""

from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.genotype_stores import write_plink
from tests.helpers.plink2 import needs_plink2, plink2
from whitewater.genotypes.hwe import hwe_p_values


def by_definition(reference: int, heterozygous: int, alternate: int) -> float:
    """Sum the exact probabilities of all numbers of heterozygotes that are at most as probable as the observed one."""
    samples, rare = reference + heterozygous + alternate, 2 * alternate + heterozygous
    weights = {}
    for het in range(rare % 2, min(rare, 2 * samples - rare) + 1, 2):
        homozygous = (rare - het) // 2
        # Ways to give the alleles to the samples so that so many are heterozygous.
        weights[het] = comb(samples, het) * comb(samples - het, homozygous) * 2**het
    at_most = sum(weight for weight in weights.values() if weight <= weights[heterozygous])
    return float(Fraction(at_most, sum(weights.values())))


@settings(deadline=None)
@given(st.tuples(*[st.integers(0, 60)] * 3))
def test_p_values_equal_the_definition(counts: tuple[int, int, int]) -> None:
    assert hwe_p_values(np.array([counts])) == pytest.approx([by_definition(*counts)], rel=1e-9)


@pytest.mark.parametrize(
    "counts", [(1000, 0, 1000), (0, 1800, 0), (2400, 0, 3), (1250, 1003, 251), (99, 2000, 401), (3, 2501, 0)]
)
def test_p_values_of_many_samples_equal_the_definition(counts: tuple[int, int, int]) -> None:
    assert hwe_p_values(np.array([counts])) == pytest.approx([by_definition(*counts)], rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("counts", [(3, 2, 1), (2, 4, 0), (21, 26, 9), (20, 28, 8), (30, 23, 5), (29, 25, 4)])
def test_another_number_of_heterozygotes_that_is_as_probable_counts(counts: tuple[int, int, int]) -> None:
    assert hwe_p_values(np.array([counts])) == pytest.approx([by_definition(*counts)], rel=1e-9)


def test_p_values_do_not_depend_on_which_allele_is_the_alternate_one() -> None:
    counts = np.random.default_rng(1).integers(0, 2_000, (500, 3))
    np.testing.assert_allclose(hwe_p_values(counts), hwe_p_values(counts[:, ::-1]), rtol=1e-12)


def test_a_variant_without_calls_does_not_deviate() -> None:
    assert hwe_p_values(np.zeros((1, 4), np.int32)).tolist() == [1.0]


@needs_plink2
def test_p_values_equal_those_of_plink2(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    shares = generator.dirichlet([1, 1, 1, 0.3], 300)
    dosages = np.stack([generator.choice([0, 1, 2, -1], 200, p=share) for share in shares]).astype(np.int8)
    plink2("--bfile", write_plink(tmp_path / "data", dosages), "--hardy", cwd=tmp_path)
    theirs = pd.read_csv(tmp_path / "plink2.hardy", sep="\t")["P"]
    counts = np.stack([(dosages == dosage).sum(axis=1) for dosage in (0, 1, 2)], axis=1)
    # PLINK prints six digits.
    np.testing.assert_allclose(hwe_p_values(counts), theirs, rtol=1e-5)
