"""Rows in = rows kept + rows quarantined: the counts by mask of broken rules, and the proof that none is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from whitewater.errors import IntegrityError


def count_reasons(masks: Counter[int], reasons: Sequence[str]) -> dict[str, Any]:
    """Return the rows read and kept, and the rejected ones by reason: a row counts once under each of its reasons.

    ``masks`` counts rows by mask; bit *i* of a mask is set where ``reasons[i]`` holds, and 0 means kept.
    """
    found = {reason: sum(masks[mask] for mask in masks if mask >> bit & 1) for bit, reason in enumerate(reasons)}
    by_reason = {reason: rows for reason, rows in found.items() if rows}
    return {"rows_in": masks.total(), "rows_out": masks[0], "by_reason": by_reason}


def funnel(masks: Counter[int], reasons: Sequence[str], *, rare: Container[str] = ()) -> list[dict[str, Any]]:
    """Return the rows left after each rule in turn: a row leaves at its first reason.

    ``rare`` reasons are listed only where a row has one of them first.
    """
    first: Counter[int] = Counter()
    for mask, rows in masks.items():
        first[(mask & -mask).bit_length() - 1] += rows
    left = masks.total()
    stages: list[dict[str, Any]] = [{"rule": "read", "rows": left}]
    for bit, reason in enumerate(reasons):
        left -= first[bit]
        if first[bit] or reason not in rare:
            stages.append({"rule": reason, "rows": left})
    return stages


def check_written(data_set: Path, expected: int) -> None:
    """Compare the rows that lie on disk, by the footers of the files, with those that were counted.

    Raises IntegrityError if a row is missing or there twice.
    """
    found = sum(pq.read_metadata(path).num_rows for path in data_set.rglob("*.parquet"))
    if found != expected:
        raise IntegrityError(f"{data_set} holds {found} rows where {expected} were written. Run the step again; "
                             "if this stays, a disk or file system loses data.")  # fmt: skip
