"""Kinship of all pairs of samples: KING-robust between families (Manichaikul et al. 2010, Bioinformatics 26:2867).

Over the variants called in both samples of a pair (equation 11, as in PLINK 2)::

    kinship = 1/2 - sum of (dosage_1 - dosage_2)^2 / (4 min(heterozygous calls of 1, of 2))

It needs no allele frequencies, so population structure does not bias it. Expect 1/2 for duplicates, 1/4 for the first
degree, 1/8 for the second, 1/16 for the third. Samples of different populations are far below 0.

A task compares two tiles of samples by matrix products. Entries are small integers, and so few are added up that
float32 is exact, and so is TF32, with its 11 bits per entry. Results are therefore equal on every device.
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
# Smaller tiles would be expanded too often; larger ones would take more than 0.2 GB per worker.
SMALLEST_TILE, LARGEST_TILE = 512, 2048
TILES_ACROSS = 8
# One product counts two things over fewer than 2^10 variants: one in the lower 10 bits, one in the bits above.
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
# Working memory per pair of samples: eight int32 counts and four 8-byte values.
BYTES_A_PAIR = 64


@dataclass(frozen=True)
class Pairs:
    """Related pairs of samples, and a histogram of the kinship of all pairs; host arrays.

    ``related``, int64 (pairs, 5): the indices of the two samples, the smaller first; the numbers of variants called in
    both, heterozygous in both, and homozygous for different alleles. ``kinship`` is float64 (pairs,). ``histogram``,
    int64 (BINS,), has values below its first bin in that bin. It omits the ``undefined`` pairs, in which a sample has
    no heterozygous call that counts.
    """

    related: npt.NDArray[np.int64]
    kinship: npt.NDArray[np.float64]
    histogram: npt.NDArray[np.int64]
    undefined: int


def kinship_of_pairs(
    run: Run[Relatedness], folder: GenotypeFolder, rows: npt.NDArray[np.int64], *, threshold: float, workers: Workers
) -> Pairs:
    """Return the pairs of diploid samples with a kinship of at least ``threshold``, most related first.

    ``rows``, int64, are the variants to use: ascending, at least one. Raises ResourceError if their calls, and a pair
    of tiles per worker, do not fit into memory.
    """
    forecast(run, folder, workers, variants=len(rows))
    tasks = [rows[slice(*np.searchsorted(rows, bounds))] for bounds in folder.ranges()]
    blocks = workers.map(folder.read_rows, [task for task in tasks if len(task)], label="read", ordered=True)
    genotypes = workers.place(Genotypes(np.concatenate([block.codes for block in blocks]), folder.samples))
    # Each worker has all codes on its device, once.
    copies = workers.keep_results(Genotypes.to_device, [(genotypes, run.device)] * len(workers.threads))
    tiles = split_into_tiles(folder.samples)
    # A tile takes less time with itself than with another, so these pairs are last: all workers end together.
    pairs = [*combinations(tiles, 2), *((tile, tile) for tile in tiles)]
    work = partial(compare_tiles, threshold=threshold, device=run.device)
    parts = list(workers.map(work, list(zip(cycle(copies), pairs, strict=False)), label="kinship"))
    related = np.concatenate([part.related for part in parts])
    kinship = np.concatenate([part.kinship for part in parts])
    order = np.lexsort((related[:, 1], related[:, 0], -kinship))
    histogram = np.sum([part.histogram for part in parts], axis=0)
    return Pairs(related[order], kinship[order], histogram, sum(part.undefined for part in parts))


def split_into_tiles(samples: int) -> list[Tile]:
    """Split the samples into tiles of multiples of four, which depend only on the number of samples."""
    size = -(-samples // (TILES_ACROSS * GENOTYPES_A_BYTE)) * GENOTYPES_A_BYTE
    size = min(max(size, SMALLEST_TILE), LARGEST_TILE)
    return [(start, min(start + size, samples)) for start in range(0, samples, size)]


def forecast(run: Run[Relatedness], folder: GenotypeFolder, workers: Workers, *, variants: int) -> None:
    """Log the amount of work. Raises ResourceError if it does not fit into memory."""
    logger.info("%d pairs of samples at %d variants", folder.samples * (folder.samples - 1) // 2, variants)
    tiles = split_into_tiles(folder.samples)
    start, stop = tiles[0]
    cells = min(SLAB_CELLS[run.device.name], SLAB_VARIANTS * (stop - start))
    # Five expanded matrices, and temporary ones of a product.
    workers.forecast(
        run.device,
        a_task=BYTES_A_PAIR * (stop - start) ** 2 + 8 * 4 * cells,
        tasks=len(tiles) * (len(tiles) + 1) // 2,
        # This process has the calls as blocks and concatenated; a worker has them, too, or tiles of them.
        shared=variants * folder.row_bytes,
        here=variants * folder.row_bytes,
        what=f"kinship of {folder.samples} samples at {variants} variants",
        remedy="Keep fewer variants (lower genomics.ld_prune.r2), or use fewer threads or a machine with more memory.",
    )


def compare_tiles(task: tuple[Genotypes, tuple[Tile, Tile]], *, threshold: float, device: Device) -> Pairs:
    """Compare the samples of two tiles, or of one tile with each other.

    A task is genotypes on the device and a pair of tiles. A tile is the first sample, a multiple of four, and the stop.
    """
    (genotypes, pair), xp = task, device.xp
    cells = GENOTYPES_A_BYTE if genotypes.packed else 1
    tiles, samples = [], []
    for start, stop in pair:
        tile = Genotypes(genotypes.codes[:, start // cells : -(-stop // cells)], stop - start)
        # The sample of each column of an expanded tile; -1 after the last.
        sample_of_column = xp.full(tile.columns, -1)
        sample_of_column[tile.sample_columns(xp)] = xp.arange(start, stop)
        tiles.append(tile)
        samples.append(sample_of_column)
    called, het_called, called_het, het_het, signs = count_pairs(*tiles, device=device)
    ibs0 = (called - het_called - called_het + het_het - signs) // 2
    fewer = xp.minimum(het_called, called_het)
    kinship = 0.5 - (4 * ibs0 + het_called + called_het - 2 * het_het) / (4.0 * xp.maximum(fewer, 1))
    first, second = samples
    # A pair counts if the first sample comes before the second, and so only once within a tile.
    pairs = (first[:, None] < second[None, :]) & (first[:, None] >= 0)
    defined = pairs & (fewer > 0)
    # Undefined pairs get a bin after the last, so that bincount never sees an empty array, which CuPy refuses.
    bins = xp.where(defined, xp.clip(xp.floor(kinship * BINS) + BINS // 2, 0, BINS - 1), BINS).astype(xp.int64)
    rows, columns = xp.nonzero(defined & (kinship >= threshold))
    counts = (called[rows, columns], het_het[rows, columns], ibs0[rows, columns])
    return Pairs(
        device.to_host(xp.stack([first[rows], second[columns], *counts], axis=1)),
        device.to_host(kinship[rows, columns]),
        device.to_host(xp.bincount(bins.ravel(), minlength=BINS + 1)[:BINS]),
        int(pairs.sum() - defined.sum()),
    )


def count_pairs(first: Genotypes, second: Genotypes, *, device: Device) -> list[Array]:
    """Count variants for all pairs of samples of two tiles; each array is int32 (first.columns, second.columns).

    In order: called in both; heterozygous in the first and called in the second; the reverse; heterozygous in both; and
    homozygous for the same allele less homozygous for different alleles.
    """
    shape = (first.columns, second.columns)
    counts = [device.xp.zeros(shape, np.int32) for _ in range(5)]
    step = max(1, min(SLAB_CELLS[device.name] // max(shape), SLAB_VARIANTS))
    for start in range(0, first.variants, step):
        rows, columns = (partial(_map_dosages, tile.slice(start, start + step), device) for tile in (first, second))
        packed = rows(CALLED_AND_HETEROZYGOUS).T
        called = (packed @ columns(CALLED)).astype(np.int32)
        het = (packed @ columns(HETEROZYGOUS)).astype(np.int32)
        signs = (rows(SIGN).T @ columns(SIGN)).astype(np.int32)
        parts = (called & SLAB_VARIANTS, called >> DIGIT_BITS, het & SLAB_VARIANTS, het >> DIGIT_BITS, signs)
        for index, part in enumerate(parts):
            counts[index] += part
    return counts


def _map_dosages(tile: Genotypes, device: Device, values: Values) -> Array:
    """Replace each dosage of a slab by its value: float32 (variants, columns)."""
    table = device.xp.tile(device.xp.asarray(values, dtype=np.float32), (tile.variants, 1))
    return expand_genotypes(device, replace(tile, codes=device.xp.ascontiguousarray(tile.codes)), table)
