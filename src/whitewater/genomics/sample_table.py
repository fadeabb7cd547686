"""The table of the samples: which ones the components are computed from, and why not the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whitewater.errors import InputError, IntegrityError
from whitewater.genomics.genotype_folder import GenotypeFolder

if TYPE_CHECKING:
    import pandas as pd


def read_samples(path: Path, folder: GenotypeFolder) -> pd.DataFrame:
    """Read sample, label, call_rate, used and reason of the samples of a folder, in its order.

    Raises
    ------
    InputError
        If the table cannot be read.
    IntegrityError
        If it is of other samples, or of the same in another order.
    """
    import pandas as pd

    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}. Run relatedness again.") from error
    if table["sample"].tolist() != folder.samples_table()["sample"].tolist():
        raise IntegrityError(f"{path} is not of the samples of {folder.path}. Run relatedness and pack again.")
    return table
