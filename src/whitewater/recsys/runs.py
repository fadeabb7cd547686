"""Rows whose keys are equal, one behind the other: checked, and never parted.

Operators that go from a row to the one before, or make one row of many, are right only if all rows of a key are one
run, and in one block. Where they are not, it is an error, not a slightly wrong answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError
from whitewater.recsys.category_ids import category_type
from whitewater.recsys.dataset import Dataset, Part, Piece
from whitewater.recsys.hashing import row_hash
from whitewater.recsys.rows import rows_of

if TYPE_CHECKING:
    from whitewater.devices.columns import Block
    from whitewater.devices.protocol import Device
    from whitewater.step import Run
    from whitewater.workers import Workers

SEED = 0


@dataclass(frozen=True)
class Runs:
    """Runs of a part: the hash of each one's key, uint64 (runs,), and its first row, int64 (runs,)."""

    keys: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int64]


def check_runs(block: Block, keys: Sequence[str], device: Device) -> None:
    """Check the rows of one block.

    Raises
    ------
    InputError
        If a key has rows in more than one run.
    """
    runs = _runs(block, keys, device)
    _check(runs.keys, runs.starts, keys)


def cut_between_runs(dataset: Dataset, keys: Sequence[str], *, run: Run[Any], client: Workers) -> Dataset:
    """Return the dataset in parts that begin where a run begins.

    It holds a number for each run.

    Raises
    ------
    ConfigError
        If a key is neither text nor integers.
    InputError
        If a key has rows in more than one run.
    """
    for key in keys:
        category_type(dataset.schema[key])
    parts = dataset.parts()
    shared = {"dataset": dataset, "keys": tuple(keys), "device": run.device}
    found = list(run.map(_runs_of_part, parts, client=client, label="runs of rows", ordered=True, shared=shared))
    firsts = np.cumsum([0, *(part.rows for part in parts)])
    names = np.concatenate([each.keys for each in found]) if found else np.zeros(0, np.uint64)
    starts = [each.starts + first for each, first in zip(found, firsts[:-1], strict=True)]
    begins = np.concatenate(starts) if starts else np.zeros(0, np.int64)
    # A run that goes on in the next part is one.
    new = np.ones(len(names), bool)
    new[1:] = names[1:] != names[:-1]
    _check(names[new], begins[new], keys)
    return dataset.cut(_parts(parts, firsts, begins[new]))


def _runs_of_part(part: Part, *, dataset: Dataset, keys: tuple[str, ...], device: Device) -> Runs:
    return _runs(dataset.read(part, keys, device), keys, device)


def _runs(block: Block, keys: Sequence[str], device: Device) -> Runs:
    xp = device.xp
    if not rows_of(block):
        return Runs(np.zeros(0, np.uint64), np.zeros(0, np.int64))
    hashes = row_hash([block[key] for key in keys], SEED, device)
    new = xp.ones(len(hashes), bool)
    new[1:] = hashes[1:] != hashes[:-1]
    starts = xp.flatnonzero(new)
    return Runs(device.to_host(hashes[starts]), device.to_host(starts).astype(np.int64))


def _check(names: npt.NDArray[np.uint64], starts: npt.NDArray[np.int64], keys: Sequence[str]) -> None:
    order = np.argsort(names, kind="stable")
    twice = np.flatnonzero(names[order][1:] == names[order][:-1])
    if len(twice):
        first, second = starts[order[twice[0]]], starts[order[twice[0] + 1]]
        raise InputError(
            f"rows {first} and {second} (counted from 0) have the same {', '.join(keys)}, but not all rows between "
            f"them have. Sort the data by {', '.join(keys)}."
        )


def _parts(parts: Sequence[Part], firsts: npt.NDArray[np.int64], begins: npt.NDArray[np.int64]) -> list[Part]:
    """Cut at the first run that begins in each part; a part without one joins the part before."""
    following = np.searchsorted(begins, firsts[:-1])
    bounds = np.unique(np.append(begins[following[following < len(begins)]], firsts[-1]))
    pieces = [(int(first), piece) for first, piece in _pieces(parts)]
    return [Part(tuple(_within(pieces, int(start), int(stop)))) for start, stop in pairwise(bounds)]


def _pieces(parts: Sequence[Part]) -> list[tuple[int, Piece]]:
    found, row = [], 0
    for part in parts:
        for piece in part.pieces:
            found.append((row, piece))
            row += piece.rows
    return found


def _within(pieces: Sequence[tuple[int, Piece]], start: int, stop: int) -> list[Piece]:
    found = []
    for first, piece in pieces:
        begin, end = max(start, first), min(stop, first + piece.rows)
        if begin < end:
            found.append(Piece(piece.source, piece.row_group, piece.start + begin - first, end - begin))
    return found
