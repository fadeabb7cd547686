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
    by_id, by_place = _places(second, elsewhere=set(first["id"]))
    alleles = _alleles(second)
    rows, others, swaps = [], [], []
    outcomes: Counter[str] = Counter()
    for row, (key, place, pair) in enumerate(zip(first["id"].tolist(), _keys(first), _alleles(first), strict=True)):
        candidates = by_id.get(key) or by_place.get(place, [])
        outcome, other = _outcome(pair, candidates, alleles, keep_ambiguous=keep_ambiguous)
        outcomes[outcome] += 1
        if other >= 0:
            rows.append(row)
            others.append(other)
            swaps.append(outcome.startswith("swapped"))
    return Matches(np.array(rows, np.intp), np.array(others, np.intp), np.array(swaps, bool), dict(outcomes))


def _outcome(
    pair: tuple[str, str], candidates: list[int], alleles: list[tuple[str, str]], *, keep_ambiguous: bool
) -> tuple[str, int]:
    if not candidates:
        return "absent", -1
    if not keep_ambiguous and _other_strand(pair[0]) == pair[1]:
        return "strand unknown", -1
    for other in candidates:
        if relation := _relation(pair, alleles[other]):
            return relation, other
    return "other alleles", -1


def _relation(first: tuple[str, str], second: tuple[str, str]) -> str:
    """Say how the alleles of two variants correspond; empty where they do not."""
    for strand in ("", ", other strand"):
        if first == second:
            return f"same{strand}"
        if first == second[::-1]:
            return f"swapped{strand}"
        second = (_other_strand(second[0]), _other_strand(second[1]))
    return ""


def _other_strand(allele: str) -> str:
    return allele.translate(COMPLEMENT)[::-1]


def _places(
    table: pd.DataFrame, *, elsewhere: set[str]
) -> tuple[dict[str, list[int]], dict[tuple[str, int], list[int]]]:
    """Return rows by id, and by contig and position those whose id is not ``elsewhere``."""
    by_id: dict[str, list[int]] = {}
    by_place: dict[tuple[str, int], list[int]] = {}
    for row, (key, place) in enumerate(zip(table["id"].tolist(), _keys(table), strict=True)):
        by_id.setdefault(key, []).append(row)
        if key not in elsewhere:
            by_place.setdefault(place, []).append(row)
    return by_id, by_place


def _keys(table: pd.DataFrame) -> list[tuple[str, int]]:
    return list(zip(table["contig"].tolist(), table["position"].tolist(), strict=True))


def _alleles(table: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(table["reference"].str.upper().tolist(), table["alternate"].str.upper().tolist(), strict=True))
