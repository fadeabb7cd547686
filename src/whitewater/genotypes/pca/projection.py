"""Project new samples on principal components: match their variants with those of the loadings, then compute scores.

Variants match by id, or by contig and position if neither data set has the id of the other: data sets that share ids
may count positions by different genome builds. Their alleles must be the same, in either order, or complementary.
Alleles that are complementary to each other (A/T, C/G) do not show the strand, so such variants are ambiguous.

Scores are least squares on the variants called in a sample, as in PCAone and in EIGENSOFT's ``lsqproject``. They shrink
toward the origin, because components are fitted to the noise of their own samples, too. ``oadp`` undoes that: online
augmentation, decomposition and Procrustes (Zhang, Dey and Lee 2020, Bioinformatics 36:3439).
"""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from whitewater import lazy_pandas as pd
from whitewater.engines import Array, Device
from whitewater.genotypes.codes import expand_genotypes, slab_rows
from whitewater.genotypes.genotypes import Genotypes, extract_dosages
from whitewater.genotypes.pca.loadings import Loadings
from whitewater.genotypes.pca.passes import scaled_dosages

Floats = npt.NDArray[np.float64]
Method = Literal["oadp", "regression", "simple"]
# Called variants that a sample needs per component.
VARIANTS_A_COMPONENT = 10
# Condition number of the least squares above which float32 rounding dominates the scores.
LARGEST_CONDITION = 1e5
# Samples per batch of small matrix decompositions.
BATCH_SAMPLES = 4096
COMPLEMENT = str.maketrans("ACGT", "TGCA")


@dataclass(frozen=True)
class Matches:
    """Rows of two tables that are the same variant."""

    first: npt.NDArray[np.intp]
    second: npt.NDArray[np.intp]
    swapped: npt.NDArray[np.bool_]  # whether the second counts the other allele
    counts: dict[str, int]  # variants of the first table, by the way they match or the reason why they do not


def match_variants(first: "pd.DataFrame", second: "pd.DataFrame", *, keep_ambiguous: bool) -> Matches:
    """Match variants of two tables with columns contig, position, id, reference, alternate.

    If several variants of the second table share an id or a position, the first one with the same alleles matches. An
    unknown position, 0, matches none, nor does an id that was made of it.
    """
    first, second = _normalize(first), _normalize(second)
    placed, placed_2 = (table[table["position"] > 0] for table in (first, second))
    named, named_2 = (each[(each["position"] > 0) | ~each["id"].str.contains(":0:")] for each in (first, second))
    by_id = named.merge(named_2, on="id", suffixes=("", "_2"))
    first_only, second_only = placed[~placed["id"].isin(second["id"])], placed_2[~placed_2["id"].isin(first["id"])]
    by_position = first_only.merge(second_only, on=["contig", "position"], suffixes=("", "_2"))
    candidates = pd.concat([by_id, by_position], ignore_index=True).sort_values(["row", "row_2"])
    candidates["relation"] = _compare_alleles(candidates)
    matches = candidates[candidates["relation"] != ""].drop_duplicates("row")
    outcomes = np.full(len(first), "absent", object)
    outcomes[candidates["row"]] = "other alleles"
    outcomes[matches["row"]] = matches["relation"]
    if not keep_ambiguous:
        ambiguous = (_complement(first["reference"]) == first["alternate"]).to_numpy(bool)
        outcomes[ambiguous & (outcomes != "absent")] = "strand unknown"
        matches = matches[~ambiguous[matches["row"]]]
    rows, rows_2 = (matches[name].to_numpy(np.intp) for name in ("row", "row_2"))
    swapped = matches["relation"].str.startswith("swapped").to_numpy(bool)
    return Matches(rows, rows_2, swapped, dict(Counter(outcomes.tolist())))


def _normalize(table: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table with alleles in upper case and row numbers."""
    text = table[["contig", "id", "reference", "alternate"]].astype("str")
    alleles = {name: text[name].str.upper() for name in ("reference", "alternate")}
    return text.assign(**alleles, position=table["position"], row=np.arange(len(table))).reset_index(drop=True)


def _compare_alleles(pairs: "pd.DataFrame") -> npt.NDArray[np.object_]:
    """Return how the alleles of pairs of variants correspond; empty if they do not."""
    relations = np.full(len(pairs), "", object)
    reference, alternate = pairs["reference_2"], pairs["alternate_2"]
    for strand in ("", ", other strand"):
        for order, one, other in (("same", reference, alternate), ("swapped", alternate, reference)):
            equal = ((pairs["reference"] == one) & (pairs["alternate"] == other)).to_numpy(bool)
            relations[equal & (relations == "")] = f"{order}{strand}"
        reference, alternate = _complement(reference), _complement(alternate)
    return relations


def _complement(alleles: "pd.Series[str]") -> "pd.Series[str]":
    """Return the alleles on the other strand, which is read backward."""
    return alleles.str.translate(COMPLEMENT).str[::-1]


def sum_over_variants(
    genotypes: Genotypes, samples: Array, rows: npt.NDArray[np.intp], *, loadings: Loadings, device: Device
) -> Array:
    """Return sums over the variants at ``rows`` of the loadings for each of the q ``samples`` (indices); see `scores`.

    All is on the device. Sums are float32 within a slab of variants, and float64 across slabs; sums over several sets
    of variants add up. Returns float64 (q, k + k (k + 1) / 2 + 2) for k components: x'w; the upper triangle of the sum
    of w w' over the called variants; x'x; and the number of called variants. Constant variants do not count.
    """
    xp, components = device.xp, loadings.weights.shape[1]
    first, second = map(device.to_device, np.triu_indices(components))
    totals: Array = xp.zeros((len(samples), components + len(first) + 2))
    size = slab_rows(device, len(samples))
    for start in range(0, len(rows), size):
        slab, batch = genotypes.slice(start, start + size), rows[start : start + size]
        dosages = Genotypes(xp.ascontiguousarray(extract_dosages(slab, samples)), len(samples), loadings.ploidy)
        weights = device.to_device(loadings.weights[batch])
        table = device.to_device(scaled_dosages(loadings.scaling.iloc[batch], ploidy=loadings.ploidy))
        calls = xp.zeros_like(table)
        calls[:, :-1] = (table != 0).any(axis=1)[:, None]
        scaled, called = (expand_genotypes(device, dosages, lookup) for lookup in (table, calls))
        columns = (
            scaled.T @ weights,
            called.T @ xp.ascontiguousarray(weights[:, first] * weights[:, second]),
            (scaled * scaled).sum(axis=0)[:, None],
            called.sum(axis=0)[:, None],
        )
        totals += xp.concatenate([column.astype(np.float64) for column in columns], axis=1)
    return totals


def scores(totals: Floats, *, loadings: Loadings, method: Method) -> Floats:
    """Return the scores of samples, float64 (q, k), from the sums of `sum_over_variants`.

    They are NaN for samples with too few called variants, see `VARIANTS_A_COMPONENT`, or whose called variants cannot
    separate the components, for example because all are in one region of linkage disequilibrium.
    """
    variants, size = int((loadings.scaling["scale"] > 0).sum()), len(loadings.eigenvalues)
    product, squares, called = totals[:, :size], totals[:, -2], totals[:, -1]
    result, (first, second) = np.full(product.shape, np.nan), np.triu_indices(size)
    enough = np.flatnonzero(called >= VARIANTS_A_COMPONENT * size)
    if method == "simple":
        result[enough] = product[enough] / np.sqrt(variants)
        return result
    for start in range(0, len(enough), BATCH_SAMPLES):
        batch = enough[start : start + BATCH_SAMPLES]
        gram = np.zeros((len(batch), size, size))
        gram[:, first, second] = gram[:, second, first] = totals[batch, size:-2]
        solvable = ~(np.linalg.cond(gram) > LARGEST_CONDITION)
        batch, gram = batch[solvable], gram[solvable]
        coordinates = np.linalg.solve(gram, product[batch, :, None])[:, :, 0]
        if method == "oadp":
            explained = (coordinates[:, None, :] @ gram @ coordinates[:, :, None])[:, 0, 0]
            # Missing variants are assumed to have as much noise as the called ones.
            rest = np.maximum(squares[batch] - explained, 0.0) * variants / called[batch]
            coordinates = augment(coordinates, rest, np.sqrt(variants * loadings.eigenvalues))
        result[batch] = coordinates / np.sqrt(variants)
    return result


def augment(coordinates: Floats, rest: Floats, singular_values: Floats) -> Floats:
    """Return the coordinates that each sample would have if the components had been fitted to it, too.

    ``coordinates`` are W'x, (q, k), the samples in the basis of the loadings; ``rest`` is x'x less their squares, (q,);
    ``singular_values``, (k,), are those of the fitted samples.
    """
    samples, size = coordinates.shape
    matrix = np.zeros((samples, size + 1, size + 1))
    target = np.diag(singular_values)
    matrix[:, :size, :size] = target
    matrix[:, size, :size] = coordinates
    matrix[:, size, size] = np.sqrt(rest)
    left, values, _ = np.linalg.svd(matrix)
    augmented = left[:, :, :size] * values[:, None, :size]
    # Procrustes: rotate and scale the fitted samples back to where they were. Both means are 0, so nothing shifts.
    fitted = augmented[:, :size]
    left, strength, right = np.linalg.svd(fitted.swapaxes(1, 2) @ target)
    rotated = (augmented[:, size:] @ (left @ right))[:, 0]
    scale = strength.sum(axis=1) / (fitted**2).sum(axis=(1, 2))
    return np.asarray(rotated * scale[:, None], np.float64)
