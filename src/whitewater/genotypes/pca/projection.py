"""Scores of samples that the components were not computed from, by least squares on the variants each is called at.

A projected sample is nearer to the origin than it would be as one of the samples that the components were fitted to:
those were fitted to their noise too. Method ``oadp`` undoes that.

Sources: Zhang, Dey and Lee (Bioinformatics 36:3439, 2020), online augmentation, decomposition and Procrustes; least
squares on the called variants as in PCAone's and EIGENSOFT's projection (``lsqproject``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from whitewater.engines import Device
from whitewater.genotypes.decode import SLAB_CELLS, expand_genotypes
from whitewater.genotypes.genotypes import Genotypes
from whitewater.genotypes.pca.scaled import LEAST_ROWS, MOST_ROWS, scaled_dosages

if TYPE_CHECKING:
    from whitewater.genotypes.pca.loadings import Loadings

Floats = npt.NDArray[np.float64]
Method = Literal["oadp", "regression", "simple"]
# Called variants for each component below which they say nothing of a sample.
VARIANTS_A_COMPONENT = 10
# Condition of the least squares above which the rounding of float32 products decides the scores.
LARGEST_CONDITION = 1e5


@dataclass(frozen=True)
class Sums:
    """What is summed over variants for each of q samples and k components, on the host.

    ``product`` (q, k): x'w; ``gram`` (q, k (k + 1) / 2): upper triangle of the sum of w w' over the called variants;
    ``squares`` (q,): x'x; ``called`` (q,): variants with a call, of those that have a scale.
    """

    product: Floats
    gram: Floats
    squares: Floats
    called: npt.NDArray[np.int64]

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.product + other.product,
            self.gram + other.gram,
            self.squares + other.squares,
            self.called + other.called,
        )


def sums(dosages: npt.NDArray[np.int8], rows: npt.NDArray[np.intp], *, loadings: Loadings, device: Device) -> Sums:
    """Sum over variants; ``dosages``, int8 (variants, q), -1 where missing, belong to ``rows`` of the loadings.

    Sums are float32 within a slab of variants and added up in float64.
    """
    size = min(max(LEAST_ROWS, SLAB_CELLS[device.name] // max(1, dosages.shape[1])), MOST_ROWS)
    slabs = [slice(start, start + size) for start in range(0, max(1, len(rows)), size)]
    return reduce(add, (_sums_of_slab(dosages[slab], rows[slab], loadings=loadings, device=device) for slab in slabs))


def _sums_of_slab(
    dosages: npt.NDArray[np.int8], rows: npt.NDArray[np.intp], *, loadings: Loadings, device: Device
) -> Sums:
    xp = device.xp
    genotypes = Genotypes(device.to_device(np.ascontiguousarray(dosages)), dosages.shape[1], loadings.ploidy)
    weights = loadings.weights[rows]
    first, second = np.triu_indices(weights.shape[1])
    scaling = loadings.scaling.at(rows)
    scaled = expand_genotypes(device, genotypes, device.to_device(scaled_dosages(scaling, ploidy=loadings.ploidy)))
    called = expand_genotypes(device, genotypes, device.to_device(_called(scaling.scale > 0, loadings.ploidy)))
    products = device.to_device(np.ascontiguousarray(weights[:, first] * weights[:, second]))
    return Sums(
        device.to_host((scaled.T @ device.to_device(weights)).astype(xp.float64)),
        device.to_host((called.T @ products).astype(xp.float64)),
        device.to_host((scaled * scaled).sum(axis=0).astype(xp.float64)),
        device.to_host(called.sum(axis=0).astype(xp.int64)),
    )


def scores(found: Sums, *, loadings: Loadings, method: Method) -> Floats:
    """Return the scores of the samples, float64 (q, k), on the axes of the samples that were fitted.

    NaN for samples with fewer than `VARIANTS_A_COMPONENT` called variants for each component, or whose called variants
    do not tell the components apart, such as those of one region in linkage disequilibrium.
    """
    variants = loadings.scaling.varying
    result = np.full(found.product.shape, np.nan)
    enough = np.flatnonzero(found.called >= VARIANTS_A_COMPONENT * found.product.shape[1])
    if method == "simple":
        result[enough] = found.product[enough] / np.sqrt(variants)
        return result
    for sample in enough:
        gram = _symmetric(found.gram[sample], found.product.shape[1])
        if np.linalg.cond(gram) > LARGEST_CONDITION:
            continue
        coordinates = np.linalg.solve(gram, found.product[sample])
        if method == "oadp":
            residual = found.squares[sample] - coordinates @ gram @ coordinates
            # The noise of the variants that are missing is taken to be that of the called ones.
            rest = max(residual, 0.0) * variants / found.called[sample]
            coordinates = augmented(coordinates, rest, np.sqrt(variants * loadings.eigenvalues))
        result[sample] = coordinates / np.sqrt(variants)
    return result


def augmented(coordinates: Floats, rest: float, singular_values: Floats) -> Floats:
    """Return the coordinates of a sample as if it had been among those fitted, on the axes that these have.

    Parameters
    ----------
    coordinates
        W'x, (k,): the sample in the basis of the loadings.
    rest
        x'x less the squares of the coordinates.
    singular_values
        Those of the fitted samples, (k,).
    """
    size = len(coordinates)
    joined = np.zeros((size + 1, size + 1))
    joined[:size, :size] = np.diag(singular_values)
    joined[size, :size] = coordinates
    joined[size, size] = np.sqrt(rest)
    left, values, _ = np.linalg.svd(joined)
    moved = left[:, :size] * values[:size]
    # Procrustes: the rotation and the scale that bring the fitted samples back to where they were. Their mean is 0 on
    # both sides, so nothing is shifted.
    fitted, target = moved[:size], np.diag(singular_values)
    turn, strength, back = np.linalg.svd(fitted.T @ target)
    placed: Floats = moved[size] @ (turn @ back) * (strength.sum() / (fitted**2).sum())
    return placed


def _called(varying: npt.NDArray[np.bool_], ploidy: int) -> npt.NDArray[np.float32]:
    table = np.zeros((len(varying), ploidy + 2), np.float32)
    table[:, :-1] = varying[:, None]
    return table


def _symmetric(triangle: Floats, size: int) -> Floats:
    matrix = np.zeros((size, size))
    first, second = np.triu_indices(size)
    matrix[first, second] = matrix[second, first] = triangle
    return matrix
