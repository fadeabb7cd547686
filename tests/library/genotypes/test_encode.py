"""Alleles and PLINK's bytes become codes and counts, however they are cut: three lines of NumPy are the oracle."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.engines import Device
from whitewater.genotypes.codes import count_genotypes, count_missing, encode_alleles, encode_bed
from whitewater.genotypes.genotypes import Genotypes

Numbers = npt.NDArray[Any]


def dosages_of(alleles: Numbers) -> Numbers:
    """Return the alleles above 0 of each call, -1 where an allele is negative."""
    return np.where((alleles < 0).any(axis=2), -1, (alleles > 0).sum(axis=2))


def unpacked(codes: Numbers) -> Numbers:
    """Return the genotypes of two-bit codes, -1 where missing, those behind the last sample too."""
    pairs = np.unpackbits(codes, axis=1, bitorder="little").reshape(len(codes), 4 * codes.shape[1], 2)
    return np.where(pairs.all(axis=2), -1, pairs @ np.array([1, 2]))


def room(variants: int, samples: int, *, packed: bool = True) -> Numbers:
    """Return codes in which all calls are missing."""
    return np.full((variants, -(-samples // 4)), 0xFF, np.uint8) if packed else np.empty((variants, samples), "i1")


def assert_holds(codes: Numbers, dosages: Numbers, *, ploidy: int = 2) -> None:
    """Compare codes, what stands behind the last sample, and counts."""
    samples = dosages.shape[1]
    found = unpacked(codes) if codes.dtype == np.uint8 else codes
    np.testing.assert_array_equal(found[:, :samples], dosages)
    assert (found[:, samples:] == -1).all()
    expected = [np.sum(dosages == each, axis=1) for each in [*range(ploidy + 1), -1]]
    genotypes = Genotypes(codes, samples, ploidy)
    np.testing.assert_array_equal(count_genotypes(Device(), genotypes), np.stack(expected, axis=1))
    np.testing.assert_array_equal(count_missing(genotypes), np.sum(dosages == -1, axis=0))


@st.composite
def calls(draw: st.DrawFn) -> tuple[Numbers, list[int]]:
    """Draw alleles -2 to 3 of 0 to 6 variants and 1 to 50 samples, and where their samples are cut."""
    ploidy, samples = draw(st.integers(1, 4)), draw(st.integers(1, 50))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    alleles = random.integers(draw(st.integers(-2, 0)), 4, (draw(st.integers(0, 6)), samples, ploidy)).astype(np.int8)
    return alleles, sorted({0, samples, *draw(st.lists(st.integers(0, samples), max_size=3))})


@settings(max_examples=200, deadline=None)
@given(calls(), st.randoms(use_true_random=False))
def test_calls_are_encoded_and_counted_whichever_chunk_of_samples_comes_first(
    drawn: tuple[Numbers, list[int]], random: Any
) -> None:
    alleles, cuts = drawn
    variants, samples, ploidy = alleles.shape
    chunks = list(pairwise(cuts))
    random.shuffle(chunks)
    for packed in [False, True] if ploidy == 2 else [False]:
        codes = room(variants, samples, packed=packed)
        for start, stop in chunks:
            encode_alleles(alleles[:, start:stop], first_sample=start, codes=codes)
        assert_holds(codes, dosages_of(alleles), ploidy=ploidy)


@pytest.mark.parametrize("variants", [254, 255, 256, 600])
def test_missing_calls_of_a_sample_are_counted_beyond_a_byte(variants: int) -> None:
    alleles = np.full((variants, 9, 2), -1, np.int8)
    alleles[::7, 3] = 0
    codes = room(variants, 9)
    encode_alleles(alleles, first_sample=0, codes=codes)
    assert_holds(codes, dosages_of(alleles))


def test_rows_of_a_larger_array_and_calls_in_any_layout_are_taken() -> None:
    alleles = np.random.default_rng(0).integers(-1, 2, (5, 11, 2)).astype(np.int8)
    codes = room(8, 11)
    encode_alleles(np.asfortranarray(alleles), first_sample=0, codes=codes[2:7])
    assert_holds(codes[2:7], dosages_of(alleles))
    assert (codes[[0, 1, 7]] == 0xFF).all()


def test_two_bits_hold_diploid_genotypes_only_and_no_samples_are_no_work() -> None:
    codes = room(2, 5)
    with pytest.raises(ValueError, match="ploidy 2, not of 3"):
        encode_alleles(np.zeros((2, 5, 3), np.int8), first_sample=0, codes=codes)
    encode_alleles(np.zeros((2, 0, 2), np.int8), first_sample=5, codes=codes)
    assert (codes == 0xFF).all()


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 5), st.integers(1, 50))
def test_plinks_bytes_are_recoded_whatever_stands_behind_the_last_sample(
    seed: int, variants: int, samples: int
) -> None:
    bed = np.random.default_rng(seed).integers(0, 256, (variants, -(-samples // 4)), dtype=np.uint8)
    # 00 homozygous for A1, 01 missing, 10 heterozygous, 11 homozygous for A2.
    codes = (bed[:, np.arange(samples) // 4] >> (2 * (np.arange(samples) % 4)).astype(np.uint8)) & 3
    assert_holds(encode_bed(bed, samples=samples), np.array([2, -1, 1, 0])[codes])


def test_missing_calls_of_plinks_bytes_are_counted_beyond_a_byte() -> None:
    bed = np.full((700, 2), 0b01_01_01_01, np.uint8)
    assert_holds(encode_bed(bed, samples=7), np.full((700, 7), -1))
