"""Calls of another ploidy than that of their data set: one triploid call makes all diploid ones count as missing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError
from whitewater.genomics.sources.source import read_dosages
from whitewater.redaction import redacted

if TYPE_CHECKING:
    import pandas as pd

    from whitewater.genomics.sources.source import Source

logger = logging.getLogger(__name__)


def check_ploidy(
    source: Source, variants: pd.DataFrame, *, counts: npt.NDArray[np.int32], uneven: npt.NDArray[np.int64], key: str
) -> None:
    """Refuse a source whose ploidy is that of the smaller part of its calls; warn of calls of another one.

    Parameters
    ----------
    variants
        Table of the variants of the source.
    counts, uneven
        As `Source.encode` counts them.
    key
        The key of the configuration that sets the ploidy of the source.

    Raises
    ------
    InputError
        Naming the first call that makes the ploidy what it is.
    """
    other, even = int(uneven.sum()), int(counts[:, :-1].sum(dtype=np.int64))
    if not other:
        return
    what = f"{redacted(source.origins()[0])}: {other:,} of {other + even:,} calls have not {source.ploidy} alleles"
    if other <= even:
        row = int((uneven > 0).argmax())
        logger.warning("%s and count as missing, the first at %s", what, _place(variants, row))
        return
    first = ""
    if even:
        row = int((counts[:, :-1].sum(axis=1) > 0).argmax())
        dosages = read_dosages(source, row, row + 1, counts=np.zeros_like(counts[:1]), uneven=np.zeros_like(uneven[:1]))
        sample = source.samples[int((dosages[0] >= 0).argmax())]
        first = f", the first that has them is that of sample {sample} at {_place(variants, row)}"
    raise InputError(f"{what} and would be missing{first}. Correct the calls, or set {key} to the number of alleles "
                     "that a call should have: those with another one are missing then.")  # fmt: skip


def _place(variants: pd.DataFrame, row: int) -> str:
    variant = variants.iloc[row]
    return f"{variant['contig']}:{variant['position']} ({variant['id']})"
