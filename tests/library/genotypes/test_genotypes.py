"""Genotypes on the CPU, packed and not: expanded, counted, and compared with each other; NumPy is the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.genotype_folders import packed_codes
from tests.helpers.genotype_stores import write_plink
from tests.helpers.plink2 import needs_plink19, plink19
from whitewater.engines import Array, resolve
from whitewater.genotypes.codes import count_genotypes, expand_genotypes
from whitewater.genotypes.genotypes import Genotypes
from whitewater.genotypes.linkage import correlated_variants

CPU = resolve("cpu")
Dosages = npt.NDArray[np.int8]


@st.composite
def dosages_of(draw: st.DrawFn) -> tuple[Dosages, int]:
    """Draw dosages, -1 where missing, of no to 9 variants and 1 to 70 samples, and their ploidy."""
    ploidy = draw(st.integers(1, 4))
    shape = draw(st.integers(0, 9)), draw(st.integers(1, 70))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    lowest = draw(st.sampled_from([-1, 0]))
    return random.integers(lowest, ploidy + 1, shape).astype(np.int8), ploidy


def encodings(dosages: Dosages, ploidy: int) -> Iterator[Genotypes]:
    """Yield the same genotypes as dosages and, where they are diploid, packed."""
    yield Genotypes(dosages, dosages.shape[1], ploidy)
    if ploidy == 2:
        yield Genotypes(packed_codes(dosages), dosages.shape[1])


def test_a_byte_holds_four_genotypes_the_first_in_its_lowest_bits() -> None:
    genotypes = Genotypes(np.array([[0b11_10_01_00, 0b11_11_11_10]], np.uint8), 5)
    table = np.array([[10, 11, 12, 13]], np.float32)
    expanded = expand_genotypes(CPU, genotypes, table)
    assert expanded[0, genotypes.sample_columns(np)].tolist() == [10, 11, 12, 13, 12]
    assert (genotypes.variants, genotypes.columns, genotypes.packed) == (1, 8, True)
    assert expanded[0, [5, 3, 7]].tolist() == [13, 13, 13]


@settings(max_examples=150, deadline=None)
@given(dosages_of(), st.integers(1, 3))
def test_a_product_with_expanded_genotypes_is_that_with_the_plain_matrix(drawn: tuple[Dosages, int], k: int) -> None:
    dosages, ploidy = drawn
    random = np.random.default_rng(0)
    table = random.integers(-50, 50, (len(dosages), ploidy + 2)).astype(np.float32)
    rows = random.integers(-50, 50, (dosages.shape[1], k)).astype(np.float32)
    matrix = np.take_along_axis(table, dosages.astype(np.int64) % (ploidy + 2), axis=1)
    for genotypes in encodings(dosages, ploidy):
        # Whole numbers, so that no order of additions changes the sums.
        out = np.full((len(dosages), genotypes.columns), np.nan, np.float32)
        assert expand_genotypes(CPU, genotypes, table, out) is out
        np.testing.assert_array_equal(expand_genotypes(CPU, genotypes, table), out)
        places = genotypes.sample_columns(np)
        factor = np.zeros((genotypes.columns, k), np.float32)
        factor[places] = rows
        np.testing.assert_array_equal(out @ factor, matrix @ rows)
        np.testing.assert_array_equal(out[:, places], matrix)


@given(st.integers(1, 50))
def test_each_sample_has_a_column_of_its_own(samples: int) -> None:
    genotypes = Genotypes(np.zeros((1, -(-samples // 4)), np.uint8), samples)
    places = genotypes.sample_columns(np)
    assert len(np.unique(places)) == samples
    assert 0 <= places.min() <= places.max() < genotypes.columns


@settings(max_examples=150, deadline=None)
@given(dosages_of(), st.one_of(st.none(), st.floats(0, 1)))
def test_dosages_of_the_chosen_samples_are_counted(drawn: tuple[Dosages, int], share: float | None) -> None:
    dosages, ploidy = drawn
    draws = np.random.default_rng(1).uniform(size=dosages.shape[1])
    chosen = None if share is None else np.less(draws, share)
    counting = dosages if chosen is None else dosages[:, chosen]
    expected = np.stack([np.sum(counting == each, axis=1) for each in [*range(ploidy + 1), -1]], axis=1)
    for genotypes in encodings(dosages, ploidy):
        found = count_genotypes(CPU, genotypes, chosen)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, expected)


def test_a_part_of_the_variants_is_counted_as_in_the_whole() -> None:
    dosages = np.random.default_rng(2).integers(-1, 3, (30, 21)).astype(np.int8)
    genotypes = Genotypes(packed_codes(dosages), 21)
    parts = [count_genotypes(CPU, genotypes.slice(start, stop)) for start, stop in pairwise([0, 0, 7, 30])]
    np.testing.assert_array_equal(np.concatenate(parts), count_genotypes(CPU, genotypes))


def squared_correlation(first: Dosages, second: Dosages) -> float:
    """Return r2 over the samples called in both, 0 where one is constant among them."""
    called = (first >= 0) & (second >= 0)
    one, other = first[called], second[called]
    if len(np.unique(one)) < 2 or len(np.unique(other)) < 2:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1] ** 2)


def linked(random: np.random.Generator, variants: int, samples: int, *, ploidy: int, missing: float) -> Dosages:
    """Return dosages of which most follow the same pattern, a share of the calls missing."""
    pattern, noise = random.integers(0, ploidy + 1, samples), random.integers(0, ploidy + 1, (variants, samples))
    dosages = np.where(random.random((variants, samples)) < 0.6, pattern, noise)
    return np.where(random.random((variants, samples)) < missing, -1, dosages).astype(np.int8)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 2**32), st.integers(0, 12), st.integers(1, 200), st.integers(1, 4), st.sampled_from([0.0, 0.02, 0.6])
)
def test_pairs_above_the_threshold_are_those_of_the_correlation_of_complete_pairs(
    seed: int, variants: int, samples: int, ploidy: int, missing: float
) -> None:
    random = np.random.default_rng(seed)
    dosages = linked(random, variants, samples, ploidy=ploidy, missing=missing)
    # Some variants have every call, so that pairs of both kinds occur.
    dosages[::3] = np.abs(dosages[::3])
    stops = np.minimum(np.arange(variants) + random.integers(0, variants + 1, variants), variants).astype(np.int32)
    squared = {
        (first, second): squared_correlation(dosages[first], dosages[second])
        for first in range(variants)
        for second in range(first + 1, stops[first])
    }
    # Between two values that occur, further from either than rounding reaches.
    levels = np.unique([0.0, *squared.values(), 1.0])
    gap = random.choice(np.flatnonzero(np.diff(levels) > 1e-9))
    threshold = float(levels[gap : gap + 2].mean())
    expected = [pair for pair, value in squared.items() if value > threshold]
    for genotypes in encodings(dosages, ploidy):
        found = correlated_variants(CPU, genotypes, stops, threshold)
        assert found.dtype == np.int32
        assert list(map(tuple, found.tolist())) == expected


@needs_plink19
def test_pairs_above_the_threshold_are_plinks(tmp_path: Path) -> None:
    dosages = linked(np.random.default_rng(5), 80, 301, ploidy=2, missing=0.05)
    dosages[::4] = np.abs(dosages[::4])
    window = ("--ld-window", 1_000, "--ld-window-kb", 1_000, "--ld-window-r2", 0.15)
    plink19("--bfile", write_plink(tmp_path / "calls", dosages), "--r2", *window, cwd=tmp_path)
    table = pd.read_csv(tmp_path / "plink.ld", sep=r"\s+")
    expected = [
        (int(first[1:]), int(second[1:]))
        for first, second, squared in zip(table.SNP_A, table.SNP_B, table.R2, strict=True)
        if squared > 0.15
    ]
    assert len(expected) > 500
    for genotypes in encodings(dosages, 2):
        found = correlated_variants(CPU, genotypes, stops_of(80), 0.15)
        assert list(map(tuple, found.tolist())) == sorted(expected)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_many_samples_are_compared_exactly(missing: float) -> None:
    random = np.random.default_rng(6)
    dosages = linked(random, 12, 70_001, ploidy=2, missing=missing)
    squared = squared_correlation(dosages[0], dosages[1])
    for threshold, found in ((squared * (1 - 1e-9), True), (squared * (1 + 1e-9), False)):
        for genotypes in encodings(dosages[:2], 2):
            assert bool(len(correlated_variants(CPU, genotypes, stops_of(2), threshold))) == found


def stops_of(variants: int) -> Array:
    """Compare every variant with all behind it."""
    return np.full(variants, variants, np.int32)


@pytest.mark.parametrize(
    ("first", "second", "squared"),
    [
        # 0.2 and 0.1 have no exact float64, and squares of these sums have none near them, either.
        ([0, 1, 2, 2, 0], [1, 0, 2, 1, 1], 0.125),
        ([0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 1, 0], 0.04),
        ([0, 2, 0, 1], [0, 2, 0, 1], 1.0),
    ],
)
def test_a_correlation_that_equals_the_threshold_is_not_above_it(
    first: list[int], second: list[int], squared: float
) -> None:
    dosages = np.array([first, second], np.int8)
    assert squared_correlation(*dosages) == pytest.approx(squared)
    for genotypes in encodings(dosages, 2):
        assert correlated_variants(CPU, genotypes, stops_of(2), squared).tolist() == []
        assert correlated_variants(CPU, genotypes, stops_of(2), squared - 1e-12).tolist() == [[0, 1]]


def test_a_constant_variant_is_correlated_with_none_even_itself() -> None:
    dosages = np.array([[1, 1, 1, 1, -1], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], np.int8)
    for genotypes in encodings(dosages, 2):
        assert len(correlated_variants(CPU, genotypes, stops_of(3), 0.0)) == 0


def test_a_stop_behind_the_last_variant_is_refused() -> None:
    with pytest.raises(ValueError, match="stop of 4 is beyond the 3 variants"):
        correlated_variants(CPU, Genotypes(np.zeros((3, 5), np.uint8), 20), stops_of(3) + 1, 0.2)
