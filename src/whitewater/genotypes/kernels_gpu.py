"""GPU kernels of `whitewater.genotypes.codes` and `whitewater.genotypes.linkage`.

Kernels use the global `cuda`, because Numba's simulator replaces it there.
"""

from numba import config, cuda

from whitewater.engines.device import Array
from whitewater.genotypes.bit_planes import are_correlated, fill_row
from whitewater.genotypes.genotypes import PIECE_BYTES, GenotypeFolder, Genotypes

# Small grids are intended here.
config.CUDA_LOW_OCCUPANCY_WARNINGS = False
THREADS = 256


def gpu_read_codes(folder: GenotypeFolder, start: int, stop: int) -> Array:
    """Read the codes of variants through pinned memory, from which CUDA copies directly."""
    import cupy
    import cupyx

    codes: Array = cupy.empty((stop - start, folder.row_bytes), folder.dtype)
    rows = max(1, PIECE_BYTES // folder.row_bytes)
    for first in range(0, stop - start, rows):
        piece = codes[first : first + rows]
        pinned = cupyx.empty_pinned(piece.shape, folder.dtype)
        folder.read_into(pinned, start + first)
        piece.set(pinned)  # type: ignore[attr-defined]
    return codes


def gpu_expand_genotypes(genotypes: Genotypes, table: Array, out: Array) -> None:
    """Look up each genotype in the table of its variant, with a thread per byte."""
    blocks = -(-genotypes.codes.size // THREADS)
    if blocks and genotypes.packed:
        gpu_expand_packed[blocks, THREADS](genotypes.codes, table, out)
    elif blocks:
        gpu_expand_dosages[blocks, THREADS](genotypes.codes, table, out)


@cuda.jit(cache=True)
def gpu_expand_packed(codes: Array, table: Array, out: Array) -> None:
    """Do what `whitewater.genotypes.codes.expand_packed` does, with a thread per byte."""
    byte = cuda.grid(1)
    if byte < codes.size:
        size = codes.shape[1]
        variant, column = byte // size, byte % size
        for place in range(4):
            out[variant, place * size + column] = table[variant, (codes[variant, column] >> (2 * place)) & 3]


@cuda.jit(cache=True)
def gpu_expand_dosages(dosages: Array, table: Array, out: Array) -> None:
    """Do what `whitewater.genotypes.codes.expand_dosages` does, with a thread per genotype."""
    place = cuda.grid(1)
    if place < dosages.size:
        variant, sample = place // dosages.shape[1], place % dosages.shape[1]
        dosage = dosages[variant, sample]
        out[variant, sample] = table[variant, dosage if dosage >= 0 else table.shape[1] - 1]


def gpu_mark_correlated(words: Array, planes: Array, stops: Array, threshold: float, band: Array) -> None:
    """Fill the planes, with a thread per variant, then mark the correlated pairs, with a thread per pair."""
    if band.size:
        gpu_fill_planes[-(-len(words) // THREADS), THREADS](words, planes)
        gpu_mark_packed[-(-band.size // THREADS), THREADS](planes, stops, threshold, band)


@cuda.jit(cache=True)
def gpu_fill_planes(words: Array, planes: Array) -> None:
    """Fill the planes of a variant per thread; see `whitewater.genotypes.bit_planes.fill_row`."""
    variant = cuda.grid(1)
    if variant < len(words):
        fill_row(words[variant], planes[variant])


@cuda.jit(cache=True)
def gpu_mark_packed(planes: Array, stops: Array, threshold: float, band: Array) -> None:
    """Compare a pair per thread; see `whitewater.genotypes.bit_planes.are_correlated`."""
    place = cuda.grid(1)
    if place < band.size:
        first, distance = place // band.shape[1], place % band.shape[1]
        second = first + 1 + distance
        if second < stops[first]:
            band[first, distance] = are_correlated(planes[first], planes[second], threshold)
