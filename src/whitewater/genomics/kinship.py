"""Kinship of all pairs of samples: KING-robust, the estimator between families of Manichaikul et al. 2010.

From the variants that both samples of a pair have a call of (Bioinformatics 26:2867, equation 11, as PLINK 2 has it)::

    kinship = 1/2 - sum of (dosage_1 - dosage_2)^2 / (4 min(heterozygous calls of 1, of 2))

It needs no allele frequencies, so population structure does not bias it. Expected are 1/2 for duplicates, 1/4 for the
first degree, 1/8 for the second, 1/16 for the third; samples of different populations are far below 0.

Samples are cut into tiles. A task takes a pair of tiles, and only related pairs and a histogram leave it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whitewater.devices import Array, Device
from whitewater.devices.genotypes import GENOTYPES_A_BYTE, Genotypes
from whitewater.errors import ConfigError
from whitewater.genomics.genotype_folder import GenotypeFolder
from whitewater.genomics.kinship_tiles import (
    BYTES_A_PAIR,
    SLAB_VARIANTS,
    Pairs,
    columns_of,
    count_pairs,
    places_of,
    related_pairs,
)
from whitewater.memory import forecast

if TYPE_CHECKING:
    from whitewater.config.genomics import Relatedness
    from whitewater.step import Run
    from whitewater.workers import Workers

logger = logging.getLogger(__name__)
Rows = npt.NDArray[np.int64]
Tile = tuple[int, int]
# Smaller tiles would be expanded more often than they are worth; larger ones would fill 0.2 GB a worker.
SMALLEST_TILE, LARGEST_TILE = 512, 2048
TILES_ACROSS = 8
# Products of matrices of a pair of tiles, each a multiplication and an addition a pair of samples and variant.
OPERATIONS = 3 * 2


def kinship_of_pairs(
    run: Run[Relatedness], folder: GenotypeFolder, rows: Rows, *, threshold: float, client: Workers
) -> Pairs:
    """Return the pairs of kinship at least ``threshold``, most related first, over the variants of ``rows``.

    Parameters
    ----------
    folder
        Of diploid samples.
    rows
        int64: the variants that take part, ascending, at least one.

    Raises
    ------
    ResourceError
        If the calls of these variants, and a pair of tiles for each worker, do not fit into memory.
    """
    _forecast(run, folder, variants=len(rows))
    genotypes, complete = _read_kept(run, folder, rows, client=client)
    work = partial(compare_tiles, complete=complete, threshold=threshold, device=run.device)
    pairs = _pairs_of_tiles(folder.samples)
    return _merge(run.map(work, pairs, client=client, label="kinship", shared={"genotypes": genotypes}))


def require_diploid(folder: GenotypeFolder) -> None:
    """Refuse samples of another ploidy with a `ConfigError`."""
    if folder.ploidy != 2:
        raise ConfigError(
            f"{folder.path} holds samples of ploidy {folder.ploidy}, but KING-robust kinship is for diploids. "
            "Set genomics.relatedness.method to none, or name a source of diploid genotypes."
        )


def compare_tiles(
    pair: tuple[Tile, Tile], *, genotypes: Genotypes, complete: int, threshold: float, device: Device
) -> Pairs:
    """Compare the samples of a tile with those of another, or with those behind them in the same tile.

    A tile is its first sample and the one behind its last; the first ``complete`` variants have no missing call.
    """
    first, second = (columns_of(genotypes, tile) for tile in pair)
    counts = count_pairs(first, None if pair[0] == pair[1] else second, complete=complete, device=device)
    places = [device.from_host(places_of(each, tile[0])) for each, tile in zip((first, second), pair, strict=True)]
    return related_pairs(counts, *places, threshold=threshold, device=device)


def cut(samples: int) -> list[Tile]:
    """Cut the samples into tiles of multiples of four, by their number only."""
    size = -(-samples // (TILES_ACROSS * GENOTYPES_A_BYTE)) * GENOTYPES_A_BYTE
    size = min(max(size, SMALLEST_TILE), LARGEST_TILE)
    return [(start, min(start + size, samples)) for start in range(0, samples, size)]


def _pairs_of_tiles(samples: int) -> list[tuple[Tile, Tile]]:
    """List the pairs of tiles, those of a tile with itself last: they are shorter, so that all workers end together."""
    tiles = cut(samples)
    different = [(first, second) for first in tiles for second in tiles if first < second]
    return [*different, *((tile, tile) for tile in tiles)]


def _forecast(run: Run[Relatedness], folder: GenotypeFolder, *, variants: int) -> None:
    """Log how much work there is, and refuse what does not fit into memory."""
    pairs = folder.samples * (folder.samples - 1) // 2
    logger.info(
        "%d pairs of samples at %d variants: up to %.1e operations",
        pairs,
        variants,
        float(OPERATIONS * pairs * variants),
    )
    start, stop = cut(folder.samples)[0]
    cells = min(run.device.slab_cells, SLAB_VARIANTS * (stop - start))
    # Five expanded matrices, and those that a product makes for a while.
    a_worker = BYTES_A_PAIR * (stop - start) ** 2 + 8 * 4 * cells
    forecast(
        2 * variants * folder.row_bytes + run.threads * a_worker,
        what=f"kinship of {folder.samples} samples at {variants} variants",
        remedy="Keep fewer variants (lower genomics.ld_prune.r2), or use fewer threads or a machine with more memory.",
    )


def _read_kept(run: Run[Relatedness], folder: GenotypeFolder, rows: Rows, *, client: Workers) -> tuple[Genotypes, int]:
    """Read the calls of the variants that take part, those without missing calls first, and count those."""
    missing = folder.variants_table(["count_missing"])["count_missing"].to_numpy()[rows]
    tasks = [rows[slice(*np.searchsorted(rows, (start, stop)))] for start, stop in folder.ranges()]
    read = run.map(
        partial(_read_codes, folder=folder),
        [task for task in tasks if len(task)],
        client=client,
        label="read",
        ordered=True,
    )
    order = np.argsort(missing > 0, kind="stable")
    codes = np.concatenate(list(read))[order]
    return Genotypes(codes, folder.samples), int((missing == 0).sum())


def _read_codes(rows: Rows, *, folder: GenotypeFolder) -> Array:
    return folder.read_rows(rows).codes


def _merge(found: Iterable[Pairs]) -> Pairs:
    """Put the pairs of all tiles together, most related first, equals by the places of their samples."""
    parts = list(found)
    related = np.concatenate([part.related for part in parts])
    kinship = np.concatenate([part.kinship for part in parts])
    order = np.lexsort((related[:, 1], related[:, 0], -kinship))
    histogram = np.sum([part.histogram for part in parts], axis=0)
    return Pairs(related[order], kinship[order], histogram, sum(part.undefined for part in parts))
