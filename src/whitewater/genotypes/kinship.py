"""Kinship of all pairs of samples: KING-robust, the estimator between families of Manichaikul et al. 2010.

From the variants that both samples of a pair have a call of (Bioinformatics 26:2867, equation 11, as PLINK 2 has it)::

    kinship = 1/2 - sum of (dosage_1 - dosage_2)^2 / (4 min(heterozygous calls of 1, of 2))

It needs no allele frequencies, so population structure does not bias it. Expected are 1/2 for duplicates, 1/4 for the
first degree, 1/8 for the second, 1/16 for the third; samples of different populations are far below 0.

Samples are cut into tiles. A task takes a pair of tiles, and only related pairs and a histogram leave it. It multiplies
matrices, whose entries are small integers, and so few of them are added up that float32 is exact (and TF32, too, which
has 11 bits for an entry). So results are equal on every device.
"""

import logging
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, cycle

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device
from whitewater.engines.workers import Workers
from whitewater.genotypes.codes import SLAB_CELLS, expand_genotypes
from whitewater.genotypes.config import Relatedness
from whitewater.genotypes.genotypes import GENOTYPES_A_BYTE, GenotypeFolder, Genotypes
from whitewater.step import Run

logger = logging.getLogger(__name__)
Tile = tuple[int, int]
# Smaller tiles would be expanded more often than they are worth; larger ones would fill 0.2 GB a worker.
SMALLEST_TILE, LARGEST_TILE = 512, 2048
TILES_ACROSS = 8
# Two counts in one product: of a slab of fewer than 2^10 variants, one is in the lower 10 bits, one in those above.
DIGIT_BITS = 10
SLAB_VARIANTS = 2**DIGIT_BITS - 1
# Values by dosage 0, 1, 2, and of a missing call.
Values = tuple[float, float, float, float]
HETEROZYGOUS: Values = (0, 1, 0, 0)
SIGN: Values = (-1, 0, 1, 0)
CALLED: Values = (1, 1, 1, 0)
CALLED_AND_HETEROZYGOUS: Values = (1, 1 + 2**DIGIT_BITS, 1, 0)
# Bins of the histogram, 1/128 wide, from -1/2 to 1/2; every edge and every product with 128 is exact.
BINS = 128
# Bytes that a pair of samples takes for a while: eight counts of int32 and four values of eight bytes.
BYTES_A_PAIR = 64


@dataclass(frozen=True)
class Pairs:
    """Related pairs of samples, and what all pairs together look like; host arrays.

    ``related``, int64 (pairs, 5): the places of the two samples, the smaller first; the variants with a call in both,
    those heterozygous in both, and those homozygous for different alleles. ``kinship`` is float64 (pairs,).
    ``histogram``, int64 (BINS,), counts all pairs but the ``undefined`` ones, in which a sample has no heterozygous
    call that counts; values below the first bin are in it.
    """

    related: npt.NDArray[np.int64]
    kinship: npt.NDArray[np.float64]
    histogram: npt.NDArray[np.int64]
    undefined: int


def kinship_of_pairs(
    run: Run[Relatedness], folder: GenotypeFolder, rows: npt.NDArray[np.int64], *, threshold: float, workers: Workers
) -> Pairs:
    """Return the pairs of kinship at least ``threshold``, most related first, of the diploid samples of a folder.

    ``rows``, int64, are the variants that take part, ascending, at least one. Raises ResourceError if their calls, and
    a pair of tiles for each worker, do not fit into memory.
    """
    forecast(run, folder, workers, variants=len(rows))
    tasks = [rows[slice(*np.searchsorted(rows, bounds))] for bounds in folder.ranges()]
    read = workers.map(folder.read_rows, [task for task in tasks if len(task)], label="read", ordered=True)
    placed = workers.place(Genotypes(np.concatenate([part.codes for part in read]), folder.samples))
    # Each worker has all codes on its device, once.
    held = workers.hold(Genotypes.on, [(placed, run.device)] * len(workers.threads))
    tiles = cut(folder.samples)
    # Those of a tile with itself are last: they are shorter, so that all workers end together.
    pairs = [*combinations(tiles, 2), *((tile, tile) for tile in tiles)]
    work = partial(compare_tiles, threshold=threshold, device=run.device)
    parts = list(workers.map(work, list(zip(cycle(held), pairs, strict=False)), label="kinship"))
    related = np.concatenate([part.related for part in parts])
    kinship = np.concatenate([part.kinship for part in parts])
    order = np.lexsort((related[:, 1], related[:, 0], -kinship))
    histogram = np.sum([part.histogram for part in parts], axis=0)
    return Pairs(related[order], kinship[order], histogram, sum(part.undefined for part in parts))


def cut(samples: int) -> list[Tile]:
    """Cut the samples into tiles of multiples of four, by their number only."""
    size = -(-samples // (TILES_ACROSS * GENOTYPES_A_BYTE)) * GENOTYPES_A_BYTE
    size = min(max(size, SMALLEST_TILE), LARGEST_TILE)
    return [(start, min(start + size, samples)) for start in range(0, samples, size)]


def forecast(run: Run[Relatedness], folder: GenotypeFolder, workers: Workers, *, variants: int) -> None:
    """Log how much work there is, and refuse what does not fit into memory."""
    logger.info("%d pairs of samples at %d variants", folder.samples * (folder.samples - 1) // 2, variants)
    tiles = cut(folder.samples)
    start, stop = tiles[0]
    cells = min(SLAB_CELLS[run.device.name], SLAB_VARIANTS * (stop - start))
    # Five expanded matrices, and those that a product makes for a while.
    workers.forecast(
        run.device,
        a_task=BYTES_A_PAIR * (stop - start) ** 2 + 8 * 4 * cells,
        tasks=len(tiles) * (len(tiles) + 1) // 2,
        # The calls are here, as they are read and in order; a worker has them, or tiles of them, too.
        shared=variants * folder.row_bytes,
        here=variants * folder.row_bytes,
        what=f"kinship of {folder.samples} samples at {variants} variants",
        remedy="Keep fewer variants (lower genomics.ld_prune.r2), or use fewer threads or a machine with more memory.",
    )


def compare_tiles(task: tuple[Genotypes, tuple[Tile, Tile]], *, threshold: float, device: Device) -> Pairs:
    """Compare the samples of a tile with those of another, or with those behind them in the same tile.

    A task is genotypes on the device and a pair of tiles. A tile is its first sample, a multiple of four, and the one
    behind its last.
    """
    (genotypes, pair), xp = task, device.xp
    cells = GENOTYPES_A_BYTE if genotypes.packed else 1
    tiles, samples = [], []
    for start, stop in pair:
        tile = Genotypes(genotypes.codes[:, start // cells : -(-stop // cells)], stop - start)
        # The sample of each column of an expanded tile, -1 behind its last.
        places = xp.full(tile.columns, -1)
        places[tile.columns_of_samples(xp)] = xp.arange(start, stop)
        tiles.append(tile)
        samples.append(places)
    called, het_called, called_het, het_het, signs = count_pairs(*tiles, device=device)
    ibs0 = (called - het_called - called_het + het_het - signs) // 2
    fewer = xp.minimum(het_called, called_het)
    kinship = 0.5 - (4 * ibs0 + het_called + called_het - 2 * het_het) / (4.0 * xp.maximum(fewer, 1))
    first, second = samples
    # A pair counts where the first comes before the second, and so once if the tiles are the same.
    pairs = (first[:, None] < second[None, :]) & (first[:, None] >= 0)
    defined = pairs & (fewer > 0)
    # Undefined ones get a bin behind the last, so that the array is not empty, which CuPy does not count.
    bins = xp.where(defined, xp.clip(xp.floor(kinship * BINS) + BINS // 2, 0, BINS - 1), BINS).astype(xp.int64)
    rows, columns = xp.nonzero(defined & (kinship >= threshold))
    described = (called[rows, columns], het_het[rows, columns], ibs0[rows, columns])
    return Pairs(
        device.to_host(xp.stack([first[rows], second[columns], *described], axis=1)),
        device.to_host(kinship[rows, columns]),
        device.to_host(xp.bincount(bins.ravel(), minlength=BINS + 1)[:BINS]),
        int(pairs.sum() - defined.sum()),
    )


def count_pairs(first: Genotypes, second: Genotypes, *, device: Device) -> list[Array]:
    """Count the variants of all pairs of two tiles, int32 (samples of the first, samples of the second).

    In order: those called in both; heterozygous in the first and called in the second; the other way round;
    heterozygous in both; and those homozygous alike less those homozygous for different alleles.
    """
    shape = (first.columns, second.columns)
    counts = [device.xp.zeros(shape, np.int32) for _ in range(5)]
    step = max(1, min(SLAB_CELLS[device.name] // max(shape), SLAB_VARIANTS))
    for start in range(0, first.variants, step):
        rows, columns = (partial(_plane, tile.between(start, start + step), device) for tile in (first, second))
        packed = rows(CALLED_AND_HETEROZYGOUS).T
        called = (packed @ columns(CALLED)).astype(np.int32)
        het = (packed @ columns(HETEROZYGOUS)).astype(np.int32)
        signs = (rows(SIGN).T @ columns(SIGN)).astype(np.int32)
        parts = (called & SLAB_VARIANTS, called >> DIGIT_BITS, het & SLAB_VARIANTS, het >> DIGIT_BITS, signs)
        for place, part in enumerate(parts):
            counts[place] += part
    return counts


def _plane(tile: Genotypes, device: Device, values: Values) -> Array:
    """Expand a slab by values: float32 (variants, columns)."""
    table = device.xp.tile(device.xp.asarray(values, dtype=np.float32), (tile.variants, 1))
    return expand_genotypes(device, replace(tile, codes=device.xp.ascontiguousarray(tile.codes)), table)
