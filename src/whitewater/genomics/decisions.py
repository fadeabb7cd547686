"""Which variants are kept: the table that `variant_qc` writes, and `ld_prune` after it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError, IntegrityError
from whitewater.genomics.genotype_folder import GenotypeFolder

if TYPE_CHECKING:
    import pyarrow as pa

IDENTITY = ["contig", "position", "id", "reference", "alternate"]


def read_decisions(path: Path, folder: GenotypeFolder) -> pa.Table:
    """Read a table with a row and a decision for each variant of a folder of genotypes.

    Raises
    ------
    InputError
        If it cannot be read.
    IntegrityError
        If it is of other variants, or of the same in another order.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    remedy = "Run variant_qc and what follows it again."
    try:
        decisions, variants = pq.read_table(path), pq.read_table(folder.path / "variants.parquet", columns=IDENTITY)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} or the variants of {folder.path} cannot be read: {error}. {remedy}") from error
    if len(decisions) != folder.variants:
        raise IntegrityError(
            f"{path} decides on {len(decisions)} variants; {folder.path} has {folder.variants}. {remedy}"
        )
    for name in IDENTITY:
        if not decisions[name].cast(variants[name].type).equals(variants[name]):
            raise IntegrityError(f"{path} is of other variants than {folder.path}: column {name} differs. {remedy}")
    return decisions


def kept_rows(decisions: pa.Table, path: Path) -> npt.NDArray[np.int64]:
    """Return the rows that decisions, read from ``path``, keep, ascending.

    Raises
    ------
    InputError
        If there are none.
    """
    rows = np.flatnonzero(decisions["kept"].to_numpy())
    if not len(rows):
        raise InputError(f"{path} keeps no variant, so nothing is left to do. Relax the rules of variant_qc.")
    return rows


def write_decisions(decisions: pa.Table, path: Path) -> None:
    """Write a table with a row and a decision for each variant."""
    import pyarrow.parquet as pq

    pq.write_table(decisions, path)
