"""Calls of another ploidy than that of their data set: one triploid call makes all diploid ones count as missing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from whitewater.errors import InputError
from whitewater.redaction import redacted

if TYPE_CHECKING:
    import pandas as pd

    from whitewater.genomics.sources.source import Source, Tally

logger = logging.getLogger(__name__)


def check_ploidy(source: Source, variants: pd.DataFrame, tally: Tally, *, key: str) -> None:
    """Refuse a source whose ploidy is that of the smaller part of its calls; warn of calls of another one.

    Parameters
    ----------
    variants
        Table of the variants of the source.
    tally
        Of all its ranges.
    key
        The key of the configuration that sets the ploidy of the source.

    Raises
    ------
    InputError
        Naming the first call that makes the ploidy what it is.
    """
    other, even = int(tally.uneven.sum()), int(tally.counts[:, :-1].sum(dtype=np.int64))
    if not other:
        return
    what = f"{redacted(source.origins[0])}: {other:,} of {other + even:,} calls have not {source.ploidy} alleles"
    if other <= even:
        row = int((tally.uneven > 0).argmax())
        logger.warning("%s and count as missing, the first at %s", what, _place(variants, row))
        return
    first = ""
    if even:
        row = int((tally.counts[:, :-1].sum(axis=1) > 0).argmax())
        dosages, _ = source.read_dosages(row, row + 1)
        sample = source.samples[int((dosages[0] >= 0).argmax())]
        first = f", the first that has them is that of sample {sample} at {_place(variants, row)}"
    raise InputError(f"{what} and would be missing{first}. Correct the calls, or set {key} to the number of alleles "
                     "that a call should have: those with another one are missing then.")  # fmt: skip


def _place(variants: pd.DataFrame, row: int) -> str:
    variant = variants.iloc[row]
    return f"{variant['contig']}:{variant['position']} ({variant['id']})"
