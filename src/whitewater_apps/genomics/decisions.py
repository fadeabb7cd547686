"""What steps decide: which variants are kept (`variant_qc`, then `ld_prune`), and which samples are used."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater import lazy_pandas as pd
from whitewater.errors import InputError, IntegrityError
from whitewater.genotypes.genotypes import GenotypeFolder
from whitewater.io.folder import Files

VARIANTS = Files(remedy="Run variant_qc and what follows it again.")
SAMPLES = Files(remedy="Run relatedness and pack again.")
IDENTITY = ["contig", "position", "id", "reference", "alternate"]
# The least kinship of each degree: halfway between the powers of two that are expected, on the scale of logarithms, as
# in table 1 of A. Manichaikul et al. (2010), Bioinformatics 26:2867.
DEGREES = {"duplicate": 2**-1.5, "first": 2**-2.5, "second": 2**-3.5, "third": 2**-4.5}
# Pairs of strangers expected to come out as relatives, from which on it is said.
FALSE_PAIRS = 1.0


def read_decisions(path: Path, folder: GenotypeFolder) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Read a table with a row and a decision for each variant of a folder of genotypes, and which rows are kept.

    Raises InputError if it cannot be read or keeps no variant, and IntegrityError if it is of other variants, or of the
    same in another order.
    """
    decisions = VARIANTS.table(path, rows=folder.variants)
    variants = VARIANTS.table(folder.path / "variants.parquet", IDENTITY, rows=folder.variants)
    for name in IDENTITY:
        if not decisions[name].cast(variants[name].type).equals(variants[name]):
            raise IntegrityError(
                f"{path} is of other variants than {folder.path}: column {name} differs. {VARIANTS.remedy}"
            )
    rows = np.flatnonzero(decisions["kept"].to_numpy())
    if not len(rows):
        raise InputError(f"{path} keeps no variant, so nothing is left to do. Relax the rules of variant_qc.")
    return decisions, rows


def read_samples(path: Path, folder: GenotypeFolder) -> "pd.DataFrame":
    """Read sample, label, call_rate, used and reason of the samples of a folder, in its order.

    Raises InputError if the table cannot be read, and IntegrityError if it is of other samples, or of the same in
    another order.
    """
    table: pd.DataFrame = SAMPLES.table(path).to_pandas()
    if table["sample"].tolist() != folder.samples_table()["sample"].tolist():
        raise IntegrityError(f"{path} is not of the samples of {folder.path}. {SAMPLES.remedy}")
    return table
