"""Which samples the components are computed from: called often enough, not held out, and no two of them relatives."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from whitewater.config.genomics import Relatedness


def choose_samples(samples: pd.DataFrame, relatives: npt.NDArray[np.int64], settings: Relatedness) -> pd.DataFrame:
    """Return the samples with columns ``used`` (bool) and ``reason`` (text, empty where used).

    Of several reasons the first counts: excluded by name, held out by label, call rate, relative of a sample that is
    used.

    Parameters
    ----------
    samples
        Columns sample, label (null where there is none) and call_rate.
    relatives
        int64 (pairs, 2): places of samples that are relatives.

    Raises
    ------
    InputError
        If there is no sample or label of a name in the settings, or no sample is left.
    """
    reasons = _reasons(samples, settings)
    candidates = [place for place, reason in enumerate(reasons) if not reason]
    names = samples["sample"].tolist()
    for place, relative in keep_unrelated(candidates, relatives, samples["call_rate"].tolist()).items():
        reasons[place] = f"relative of {names[relative]}"
    if all(reasons):
        raise InputError(
            f"None of the {len(reasons)} samples is left, for the reasons: {', '.join(sorted(set(reasons))[:5])}. "
            "Change minimum_call_rate, exclude or hold_out_labels in genomics.relatedness."
        )
    return samples.assign(used=[not reason for reason in reasons], reason=reasons)


def keep_unrelated(
    candidates: Iterable[int], relatives: npt.NDArray[np.int64], call_rate: Sequence[float]
) -> dict[int, int]:
    """Return the candidates that must go, so that no two relatives stay, each with a relative that stays.

    Again and again the candidate with the fewest relatives left is kept, and these go; of equals, the one with the
    higher call rate, then the first. So none of those that went could come back: each has a relative that stays. To
    find the largest set is NP-hard; this finds it in forests, and in what families look like mostly.
    """
    left = set(candidates)
    neighbours: dict[int, set[int]] = defaultdict(set)
    for one, other in relatives.tolist():
        if one in left and other in left:
            neighbours[one].add(other)
            neighbours[other].add(one)
    waiting = [(len(near), -call_rate[place], place) for place, near in neighbours.items()]
    heapq.heapify(waiting)
    gone: dict[int, int] = {}
    while waiting:
        degree, _, kept = heapq.heappop(waiting)
        # Entries of candidates that lost a relative since are out of date; a newer one is in the heap.
        if kept not in left or degree != len(neighbours[kept]):
            continue
        left.remove(kept)
        for place in neighbours[kept]:
            left.remove(place)
            gone[place] = kept
        for place in _lose(neighbours, neighbours[kept]):
            if place in left:
                heapq.heappush(waiting, (len(neighbours[place]), -call_rate[place], place))
    return gone


def _lose(neighbours: dict[int, set[int]], going: set[int]) -> set[int]:
    """Take those that go away from their relatives; return these."""
    touched = set()
    for place in going:
        touched |= neighbours[place]
    for place in touched - going:
        neighbours[place] = neighbours[place] - going
    return touched - going


def _reasons(samples: pd.DataFrame, settings: Relatedness) -> list[str]:
    """Return for each sample why it is out whatever its relatives, else an empty text."""
    excluded, held_out = set(settings.exclude), set(settings.hold_out_labels)
    labels = samples["label"].astype(object).where(samples["label"].notna(), None).tolist()
    names = samples["sample"].tolist()
    _check_known(excluded - set(names), "exclude", known=names)
    _check_known(
        held_out - set(labels), "hold_out_labels", known=sorted({label for label in labels if label is not None})
    )
    return [
        "excluded" if name in excluded
        else "held out" if label in held_out
        else f"call rate {rate:.4g}" if rate < settings.minimum_call_rate
        else ""
        for name, label, rate in zip(names, labels, samples["call_rate"].tolist(), strict=True)
    ]  # fmt: skip


def _check_known(unknown: set[str], key: str, *, known: Sequence[str]) -> None:
    if unknown:
        shown = ", ".join(known[:20]) + (f", ... ({len(known)} in all)" if len(known) > 20 else "")
        raise InputError(
            f"genomics.relatedness.{key} names {', '.join(sorted(unknown))}, which no sample has. "
            f"Known: {shown or 'none'}."
        )
