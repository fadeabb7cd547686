"""Alleles and PLINK's bytes become codes and counts, however they are cut: three lines of NumPy are the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.genotypes.encode import encode_alleles, encode_bed

Numbers = npt.NDArray[Any]


def dosages_of(alleles: Numbers) -> Numbers:
    """Return the alleles above 0 of each call, -1 where an allele is negative."""
    return np.where((alleles < 0).any(axis=2), -1, (alleles > 0).sum(axis=2))


def unpacked(codes: Numbers) -> Numbers:
    """Return the genotypes of two-bit codes, -1 where missing, those behind the last sample too."""
    pairs = np.unpackbits(codes, axis=1, bitorder="little").reshape(len(codes), 4 * codes.shape[1], 2)
    return np.where(pairs.all(axis=2), -1, pairs @ np.array([1, 2]))


@dataclass
class Encoded:
    """What is filled."""

    codes: Numbers
    counts: Numbers
    missing: Numbers

    @classmethod
    def empty(cls, variants: int, samples: int, *, ploidy: int = 2, packed: bool = True) -> Encoded:
        codes = np.full((variants, -(-samples // 4)), 0xFF, np.uint8) if packed else np.empty((variants, samples), "i1")
        return cls(codes, np.zeros((variants, ploidy + 2), np.int32), np.zeros(samples, np.int64))

    def add(self, alleles: Numbers, first_sample: int) -> None:
        encode_alleles(alleles, first_sample=first_sample, codes=self.codes, counts=self.counts, missing=self.missing)

    def assert_holds(self, dosages: Numbers) -> None:
        """Compare codes, what stands behind the last sample, and counts."""
        samples, ploidy = dosages.shape[1], self.counts.shape[1] - 2
        genotypes = unpacked(self.codes) if self.codes.dtype == np.uint8 else self.codes
        np.testing.assert_array_equal(genotypes[:, :samples], dosages)
        assert (genotypes[:, samples:] == -1).all()
        expected = [np.sum(dosages == each, axis=1) for each in [*range(ploidy + 1), -1]]
        np.testing.assert_array_equal(self.counts, np.stack(expected, axis=1))
        np.testing.assert_array_equal(self.missing, np.sum(dosages == -1, axis=0))


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
        encoded = Encoded.empty(variants, samples, ploidy=ploidy, packed=packed)
        for start, stop in chunks:
            encoded.add(alleles[:, start:stop], start)
        encoded.assert_holds(dosages_of(alleles))


@pytest.mark.parametrize("variants", [254, 255, 256, 600])
def test_missing_calls_of_a_sample_are_counted_beyond_a_byte(variants: int) -> None:
    alleles = np.full((variants, 9, 2), -1, np.int8)
    alleles[::7, 3] = 0
    encoded = Encoded.empty(variants, 9)
    encoded.add(alleles, 0)
    encoded.assert_holds(dosages_of(alleles))


def test_rows_of_a_larger_array_and_calls_in_any_layout_are_taken() -> None:
    alleles = np.random.default_rng(0).integers(-1, 2, (5, 11, 2)).astype(np.int8)
    encoded = Encoded.empty(8, 11)
    inside = Encoded(encoded.codes[2:7], encoded.counts[2:7], encoded.missing)
    inside.add(np.asfortranarray(alleles), 0)
    inside.assert_holds(dosages_of(alleles))
    assert (encoded.codes[[0, 1, 7]] == 0xFF).all()


def test_two_bits_hold_diploid_genotypes_only_and_no_samples_are_no_work() -> None:
    encoded = Encoded.empty(2, 5)
    with pytest.raises(ValueError, match="ploidy 2, not of 3"):
        encoded.add(np.zeros((2, 5, 3), np.int8), 0)
    encoded.add(np.zeros((2, 0, 2), np.int8), 5)
    assert (encoded.codes == 0xFF).all()


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 5), st.integers(1, 50))
def test_plinks_bytes_are_recoded_whatever_stands_behind_the_last_sample(
    seed: int, variants: int, samples: int
) -> None:
    bed = np.random.default_rng(seed).integers(0, 256, (variants, -(-samples // 4)), dtype=np.uint8)
    encoded = Encoded.empty(variants, samples)
    encode_bed(bed, samples=samples, codes=encoded.codes, counts=encoded.counts, missing=encoded.missing)
    # 00 homozygous for A1, 01 missing, 10 heterozygous, 11 homozygous for A2.
    codes = (bed[:, np.arange(samples) // 4] >> (2 * (np.arange(samples) % 4)).astype(np.uint8)) & 3
    encoded.assert_holds(np.array([2, -1, 1, 0])[codes])


def test_missing_calls_of_plinks_bytes_are_counted_beyond_a_byte() -> None:
    bed = np.full((700, 2), 0b01_01_01_01, np.uint8)
    encoded = Encoded.empty(700, 7)
    encode_bed(bed, samples=7, codes=encoded.codes, counts=encoded.counts, missing=encoded.missing)
    encoded.assert_holds(np.full((700, 7), -1))
