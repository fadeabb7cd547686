"""Tables that one step writes and others read: which variants are kept, and which samples are used."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater import lazy_pandas as pd
from whitewater.errors import InputError, IntegrityError
from whitewater.genotypes.genotypes import GenotypeFolder
from whitewater.io.folder import Files

VARIANTS = Files(remedy="Run variant_qc and the steps after it again.")
SAMPLES = Files(remedy="Run relatedness and pack again.")
IDENTITY = ["contig", "position", "id", "reference", "alternate"]
# The least kinship of each degree: the geometric mean of the expected powers of two, as in table 1 of A. Manichaikul et
# al. (2010), Bioinformatics 26:2867.
DEGREES = {"duplicate": 2**-1.5, "first": 2**-2.5, "second": 2**-3.5, "third": 2**-4.5}
# Expected pairs of unrelated samples that look like relatives, from which on a warning is given.
FALSE_PAIRS = 1.0


def read_decisions(path: Path, folder: GenotypeFolder) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Return the decision on each variant of a folder of genotypes, and the rows of the kept ones.

    Raises InputError if the table cannot be read or keeps no variant, and IntegrityError if it has other variants or
    another order.
    """
    decisions = VARIANTS.table(path, rows=folder.variants)
    variants = VARIANTS.table(folder.path / "variants.parquet", IDENTITY, rows=folder.variants)
    for name in IDENTITY:
        if not decisions[name].cast(variants[name].type).equals(variants[name]):
            raise IntegrityError(f"{path} is not of the variants of {folder.path}: column {name} differs. "
                                 f"{VARIANTS.remedy}")  # fmt: skip
    rows = np.flatnonzero(decisions["kept"].to_numpy())
    if not len(rows):
        raise InputError(f"{path} keeps no variant, so nothing is left to do. Relax the rules of variant_qc.")
    return decisions, rows


def read_samples(path: Path, folder: GenotypeFolder) -> "pd.DataFrame":
    """Read sample, label, call_rate, used and reason of the samples of a folder.

    Raises InputError if the table cannot be read, and IntegrityError if it has other samples or another order.
    """
    table: pd.DataFrame = SAMPLES.table(path).to_pandas()
    if table["sample"].tolist() != folder.samples_table()["sample"].tolist():
        raise IntegrityError(f"{path} is not of the samples of {folder.path}. {SAMPLES.remedy}")
    return table
