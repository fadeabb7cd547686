"""Genotypes four a byte for the rows that keep them so: how they are packed, and looked up slab by slab on use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from whitewater.engines import Device
from whitewater.genotypes.codes import LEAST_ROWS, MOST_ROWS, SLAB_CELLS, expand_genotypes
from whitewater.genotypes.genotypes import GENOTYPES_A_BYTE, Genotypes

# What is looked up for each code: itself, so that a missing call counts 3, as it does where nothing is packed.
VALUES = (0.0, 1.0, 2.0, 3.0)
# Of the cells of a slab that the application takes for wider products: with few columns looking up weighs more, and the
# slab should stay in the cache that a core has for itself.
SHARE = 4


def packed(values: Any, device: Device) -> Genotypes:
    """Pack uint8 (rows, columns), all from 0 to 3, a multiple of four columns, without gaps in memory; on its device.

    Four values are one word of 32 bits, little-endian, so that two shifts bring them together.
    """
    xp = device.xp
    words = values.view("<u4")
    codes = xp.empty(words.shape, xp.uint8)
    rows = max(1, device.slice_rows // words.shape[1])
    for start in range(0, len(words), rows):
        pairs = words[start : start + rows] >> 6
        pairs |= words[start : start + rows]
        fours = pairs >> 12
        fours |= pairs
        codes[start : start + rows] = fours.astype(xp.uint8)
    return Genotypes(codes, samples=values.shape[1])


def slab_rows(columns: int, rows: int, device: Device) -> int:
    """Return the rows that are expanded at once, of so many."""
    return max(1, min(max(LEAST_ROWS, SLAB_CELLS[device.name] // SHARE // columns), MOST_ROWS, rows))


def slabs(genotypes: Genotypes, device: Device) -> Iterator[tuple[int, Any]]:
    """Yield the place of the first row of each slab, and its values, float32 (rows, columns).

    The columns are those of `Genotypes.sample_columns`. All slabs are views of one buffer, so each is gone when
    the next one is there.
    """
    xp = device.xp
    rows = slab_rows(genotypes.columns, genotypes.variants, device)
    buffer = xp.empty((rows, genotypes.columns), xp.float32)
    table = xp.tile(xp.asarray(VALUES, dtype=xp.float32), (rows, 1))
    for start in range(0, genotypes.variants, rows):
        part = genotypes.slice(start, start + rows)
        yield start, expand_genotypes(device, part, table[: part.variants], buffer[: part.variants])


def whole_bytes(columns: float) -> int:
    """Return the nearest number of columns, at least four, that fill whole bytes."""
    return GENOTYPES_A_BYTE * max(1, round(columns / GENOTYPES_A_BYTE))
