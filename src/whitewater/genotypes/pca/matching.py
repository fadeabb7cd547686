"""Variants of two data sets matched by their ids and alleles.

An id is looked up first. Where the second data set does not hold it, contig and position are, among those variants of
the second whose ids the first does not hold: if two data sets share ids but count positions by different genome builds,
the same place is not the same variant. The alleles must then be the same two: in the same order, swapped, or on the
other strand (A for T, C for G, longer ones backwards). Where an allele is the other one on the other strand (A/T, C/G),
the strand cannot be told; such variants are left out unless the caller knows that both data sets are on one strand.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

COMPLEMENT = str.maketrans("ACGT", "TGCA")


@dataclass(frozen=True)
class Matches:
    """Rows of two tables that are the same variant; ``swapped`` where the second counts the other allele.

    ``counts`` says how many variants of the first were matched how, or why not.
    """

    first: npt.NDArray[np.intp]
    second: npt.NDArray[np.intp]
    swapped: npt.NDArray[np.bool_]
    counts: dict[str, int]


def match(first: pd.DataFrame, second: pd.DataFrame, *, keep_ambiguous: bool) -> Matches:
    """Match variants; both tables have columns contig, position, id, reference, alternate.

    Where several variants of the second table share an id or a place, the first of them with fitting alleles counts.
    """
    import pandas as pd

    ours, theirs = _comparable(first), _comparable(second)
    unshared = (ours[~ours["id"].isin(theirs["id"])], theirs[~theirs["id"].isin(ours["id"])])
    by_id = ours.merge(theirs, on="id", suffixes=("", "_2"))
    by_place = unshared[0].merge(unshared[1], on=["contig", "position"], suffixes=("", "_2"))
    candidates = pd.concat([by_id, by_place], ignore_index=True).sort_values(["row", "row_2"])
    candidates["relation"] = _relations(candidates)
    fitting = candidates[candidates["relation"] != ""].drop_duplicates("row")
    outcomes = np.full(len(ours), "absent", object)
    outcomes[candidates["row"]] = "other alleles"
    outcomes[fitting["row"]] = fitting["relation"]
    if not keep_ambiguous:
        ambiguous = (_other_strand(ours["reference"]) == ours["alternate"]).to_numpy(bool)
        outcomes[ambiguous & (outcomes != "absent")] = "strand unknown"
        fitting = fitting[~ambiguous[fitting["row"]]]
    rows, others = (fitting[name].to_numpy(np.intp) for name in ("row", "row_2"))
    swapped = fitting["relation"].str.startswith("swapped").to_numpy(bool)
    return Matches(rows, others, swapped, dict(Counter(outcomes.tolist())))


def _comparable(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its columns of text as text, alleles in upper case, and the number of each row."""
    text = table[["contig", "id", "reference", "alternate"]].astype("str")
    alleles = {name: text[name].str.upper() for name in ("reference", "alternate")}
    return text.assign(**alleles, position=table["position"], row=np.arange(len(table))).reset_index(drop=True)


def _relations(pairs: pd.DataFrame) -> npt.NDArray[np.object_]:
    """Say how the alleles of pairs of variants correspond; empty where they do not."""
    relations = np.full(len(pairs), "", object)
    reference, alternate = pairs["reference_2"], pairs["alternate_2"]
    for strand in ("", ", other strand"):
        for how, one, other in (("same", reference, alternate), ("swapped", alternate, reference)):
            fits = ((pairs["reference"] == one) & (pairs["alternate"] == other)).to_numpy(bool)
            relations[fits & (relations == "")] = f"{how}{strand}"
        reference, alternate = _other_strand(reference), _other_strand(alternate)
    return relations


def _other_strand(alleles: pd.Series[str]) -> pd.Series[str]:
    return alleles.str.translate(COMPLEMENT).str[::-1]
