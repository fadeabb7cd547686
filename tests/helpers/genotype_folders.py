"""Folders of genotypes made from a known array, and known data to fill them with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from whitewater.genotypes.genotypes import GenotypeFolder, create_genotypes


def packed_codes(dosages: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
    """Pack diploid dosages, (variants, samples), by the definition of the two-bit code."""
    variants, samples = dosages.shape
    codes = np.full((variants, -(-samples // 4) * 4), 3, np.uint8)
    codes[:, :samples] = np.where(dosages < 0, 3, dosages)
    shifted = codes.reshape(variants, codes.shape[1] // 4, 4) << np.array([0, 2, 4, 6], np.uint8)
    packed: npt.NDArray[np.uint8] = np.bitwise_or.reduce(shifted, axis=2)
    return packed


def variants_table(
    dosages: npt.NDArray[np.int8], *, ploidy: int = 2, columns: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """Describe variants as `ingest` does; ``columns`` replace those made up here."""
    rows = len(dosages)
    counts = {f"count_{dosage}": (dosages == dosage).sum(axis=1, dtype=np.int32) for dosage in range(ploidy + 1)}
    table = pd.DataFrame(
        {
            "contig": ["1"] * rows,
            "position": np.arange(1, rows + 1),
            "id": [f"v{row}" for row in range(rows)],
            "reference": ["G"] * rows,
            "alternate": ["A"] * rows,
            "alleles": np.full(rows, 2, np.int32),
            "filter_pass": np.ones(rows, bool),
            "multiallelic": np.zeros(rows, bool),
            **counts,
            "count_missing": (dosages < 0).sum(axis=1, dtype=np.int32),
        }
    )
    return table.assign(**dict(columns or {}))


def make_folder(
    path: Path, dosages: npt.NDArray[np.int8], *, ploidy: int = 2, columns: Mapping[str, Any] | None = None
) -> GenotypeFolder:
    """Write dosages, (variants, samples), -1 where missing: two_bit if diploid, int8 otherwise; samples S0, S1, ..."""
    variants, samples = dosages.shape
    encoding: Any = "two_bit" if ploidy == 2 else "int8"
    folder = create_genotypes(path, encoding=encoding, ploidy=ploidy, variants=variants, samples=samples)
    folder.write(0, packed_codes(dosages) if ploidy == 2 else dosages)
    people = pd.DataFrame(
        {
            "sample": [f"S{sample}" for sample in range(samples)],
            "label": None,
            "count_missing": (dosages < 0).sum(axis=0),
        }
    )
    folder.finish(variants=variants_table(dosages, ploidy=ploidy, columns=columns), samples=people)
    return folder


def linked_dosages(
    variants: int, samples: int, *, seed: int, missing: float = 0.03, switch: float = 0.05
) -> npt.NDArray[np.int8]:
    """Simulate diploids with linkage disequilibrium: haplotypes are mosaics of twelve, with errors and missing calls.

    ``switch`` is the chance that a haplotype goes on with another of the twelve; no variant is constant.
    """
    generator = np.random.default_rng(seed)
    founders = generator.random((variants, 12)) < generator.uniform(0.1, 0.9, (variants, 1))
    copied = generator.integers(0, 12, 2 * samples)
    haplotypes = np.empty((variants, 2 * samples), np.int8)
    for variant in range(variants):
        switched = generator.random(2 * samples) < switch
        copied = np.where(switched, generator.integers(0, 12, 2 * samples), copied)
        haplotypes[variant] = founders[variant, copied]
    haplotypes ^= generator.random(haplotypes.shape) < 0.05
    dosages = (haplotypes[:, :samples] + haplotypes[:, samples:]).astype(np.int8)
    dosages[generator.random(dosages.shape) < missing] = -1
    dosages[:, :2] = [0, 1]
    return dosages
