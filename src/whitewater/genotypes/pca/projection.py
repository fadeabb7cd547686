"""Scores of samples that the components were not computed from, by least squares on the variants each is called at.

A projected sample is nearer to the origin than it would be as one of the samples that the components were fitted to:
those were fitted to their noise too. Method ``oadp`` undoes that.

Sources: Zhang, Dey and Lee (Bioinformatics 36:3439, 2020), online augmentation, decomposition and Procrustes; least
squares on the called variants as in PCAone's and EIGENSOFT's projection (``lsqproject``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device
from whitewater.genotypes.decode import SLAB_CELLS, expand_genotypes
from whitewater.genotypes.genotypes import Genotypes, dosages_of
from whitewater.genotypes.pca.scaled import LEAST_ROWS, MOST_ROWS, scaled_dosages

if TYPE_CHECKING:
    from whitewater.genotypes.pca.loadings import Loadings

Floats = npt.NDArray[np.float64]
Method = Literal["oadp", "regression", "simple"]
# Called variants for each component below which they say nothing about a sample.
VARIANTS_A_COMPONENT = 10
# Condition of the least squares above which the rounding of float32 products decides the scores.
LARGEST_CONDITION = 1e5
# Samples whose small matrices are decomposed together.
SAMPLES_AT_ONCE = 4096


def sums(
    genotypes: Genotypes, chosen: Array, rows: npt.NDArray[np.intp], *, loadings: Loadings, device: Device
) -> Array:
    """Sum over variants for each of the q samples ``chosen``; the genotypes belong to ``rows`` of the loadings.

    Genotypes and sums are on the device. Sums are float32 within a slab of variants and added up in float64; those of
    several sets of variants add up.

    Returns
    -------
    array
        float64 (q, k + k (k + 1) / 2 + 2) for k components: x'w; the upper triangle of the sum of w w' over the called
        variants; x'x; and the number of variants with a call, of those that have a scale.
    """
    xp, components = device.xp, loadings.weights.shape[1]
    first, second = (device.to_device(each) for each in np.triu_indices(components))
    totals: Array = xp.zeros((len(chosen), components + len(first) + 2))
    size = min(max(LEAST_ROWS, SLAB_CELLS[device.name] // max(1, len(chosen))), MOST_ROWS)
    for start in range(0, len(rows), size):
        slab, at = genotypes.between(start, start + size), rows[start : start + size]
        dosages = Genotypes(xp.ascontiguousarray(dosages_of(slab, chosen)), len(chosen), loadings.ploidy)
        weights = device.to_device(loadings.weights[at])
        table = device.to_device(scaled_dosages(loadings.scaling.at(at), ploidy=loadings.ploidy))
        calls = xp.zeros_like(table)
        # A variant has a scale if its dosages have not all the same value.
        calls[:, :-1] = (table != 0).any(axis=1)[:, None]
        scaled, called = (expand_genotypes(device, dosages, each) for each in (table, calls))
        columns = (
            scaled.T @ weights,
            called.T @ xp.ascontiguousarray(weights[:, first] * weights[:, second]),
            (scaled * scaled).sum(axis=0)[:, None],
            called.sum(axis=0)[:, None],
        )
        totals += xp.concatenate([each.astype(np.float64) for each in columns], axis=1)
    return totals


def called_variants(totals: Floats) -> npt.NDArray[np.int64]:
    """Return the number of called variants that have a scale, for each sample, from its `sums`."""
    return totals[:, -1].astype(np.int64)


def scores(totals: Floats, *, loadings: Loadings, method: Method) -> Floats:
    """Return the scores of the samples, float64 (q, k), on the axes of the samples that were fitted, from their `sums`.

    NaN for samples with fewer than `VARIANTS_A_COMPONENT` called variants for each component, or whose called variants
    do not tell the components apart, such as those of one region in linkage disequilibrium.
    """
    variants, size = loadings.scaling.varying, len(loadings.eigenvalues)
    product, squares, called = totals[:, :size], totals[:, -2], called_variants(totals)
    result, (first, second) = np.full(product.shape, np.nan), np.triu_indices(size)
    enough = np.flatnonzero(called >= VARIANTS_A_COMPONENT * size)
    if method == "simple":
        result[enough] = product[enough] / np.sqrt(variants)
        return result
    for start in range(0, len(enough), SAMPLES_AT_ONCE):
        some = enough[start : start + SAMPLES_AT_ONCE]
        gram = np.zeros((len(some), size, size))
        gram[:, first, second] = gram[:, second, first] = totals[some, size:-2]
        apart = ~(np.linalg.cond(gram) > LARGEST_CONDITION)
        some, gram = some[apart], gram[apart]
        coordinates = np.linalg.solve(gram, product[some, :, None])[:, :, 0]
        if method == "oadp":
            explained = (coordinates[:, None, :] @ gram @ coordinates[:, :, None])[:, 0, 0]
            # The noise of the variants that are missing is taken to be that of the called ones.
            rest = np.maximum(squares[some] - explained, 0.0) * variants / called[some]
            coordinates = augmented(coordinates, rest, np.sqrt(variants * loadings.eigenvalues))
        result[some] = coordinates / np.sqrt(variants)
    return result


def augmented(coordinates: Floats, rest: Floats, singular_values: Floats) -> Floats:
    """Return the coordinates of samples as if each had been among those fitted, on the axes that these have.

    Parameters
    ----------
    coordinates
        W'x, (q, k): the samples in the basis of the loadings.
    rest
        x'x less the squares of the coordinates, (q,).
    singular_values
        Those of the fitted samples, (k,).
    """
    samples, size = coordinates.shape
    joined = np.zeros((samples, size + 1, size + 1))
    target = np.diag(singular_values)
    joined[:, :size, :size] = target
    joined[:, size, :size] = coordinates
    joined[:, size, size] = np.sqrt(rest)
    left, values, _ = np.linalg.svd(joined)
    moved = left[:, :, :size] * values[:, None, :size]
    # Procrustes: the rotation and the scale that bring the fitted samples back to where they were. Their mean is 0 on
    # both sides, so nothing is shifted.
    fitted = moved[:, :size]
    turn, strength, back = np.linalg.svd(fitted.swapaxes(1, 2) @ target)
    placed = (moved[:, size:] @ (turn @ back))[:, 0]
    scale = strength.sum(axis=1) / (fitted**2).sum(axis=(1, 2))
    return np.asarray(placed * scale[:, None], np.float64)
