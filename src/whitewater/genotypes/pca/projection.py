"""New samples placed among principal components: their variants matched with those of the loadings, and their scores.

Variants of two data sets are matched by their ids and alleles. An id is looked up first. Where the second data set does
not hold it, contig and position are, among those variants of the second whose ids the first does not hold: if two data
sets share ids but count positions by different genome builds, the same place is not the same variant. The alleles must
then be the same two: in the same order, swapped, or on the other strand (A for T, C for G, longer ones backwards).
Where an allele is the other one on the other strand (A/T, C/G), the strand cannot be told; such variants are left out
unless the caller knows that both data sets are on one strand.

Scores are by least squares on the variants that each sample is called at. A projected sample is nearer to the origin
than it would be as one of the samples that the components were fitted to: those were fitted to their noise too. Method
``oadp`` undoes that. Sources: Zhang, Dey and Lee (Bioinformatics 36:3439, 2020), online augmentation, decomposition and
Procrustes; least squares on the called variants as in PCAone's and EIGENSOFT's projection (``lsqproject``).
"""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from whitewater import lazy_pandas as pd
from whitewater.engines import Array, Device
from whitewater.genotypes.codes import expand_genotypes, slab_rows
from whitewater.genotypes.genotypes import Genotypes, dosages_of
from whitewater.genotypes.pca.loadings import Loadings
from whitewater.genotypes.pca.passes import scaled_dosages

Floats = npt.NDArray[np.float64]
Method = Literal["oadp", "regression", "simple"]
# Called variants for each component below which they say nothing about a sample.
VARIANTS_A_COMPONENT = 10
# Condition of the least squares above which the rounding of float32 products decides the scores.
LARGEST_CONDITION = 1e5
# Samples whose small matrices are decomposed together.
SAMPLES_AT_ONCE = 4096
COMPLEMENT = str.maketrans("ACGT", "TGCA")


@dataclass(frozen=True)
class Matches:
    """Rows of two tables that are the same variant; ``swapped`` where the second counts the other allele.

    ``counts`` says how many variants of the first were matched how, or why not.
    """

    first: npt.NDArray[np.intp]
    second: npt.NDArray[np.intp]
    swapped: npt.NDArray[np.bool_]
    counts: dict[str, int]


def match(first: "pd.DataFrame", second: "pd.DataFrame", *, keep_ambiguous: bool) -> Matches:
    """Match variants; both tables have columns contig, position, id, reference, alternate.

    Where several variants of the second table share an id or a place, the first of them with fitting alleles counts.
    """
    ours, theirs = _comparable(first), _comparable(second)
    unshared = (ours[~ours["id"].isin(theirs["id"])], theirs[~theirs["id"].isin(ours["id"])])
    by_id = ours.merge(theirs, on="id", suffixes=("", "_2"))
    by_place = unshared[0].merge(unshared[1], on=["contig", "position"], suffixes=("", "_2"))
    candidates = pd.concat([by_id, by_place], ignore_index=True).sort_values(["row", "row_2"])
    candidates["relation"] = _relations(candidates)
    fitting = candidates[candidates["relation"] != ""].drop_duplicates("row")
    outcomes = np.full(len(ours), "absent", object)
    outcomes[candidates["row"]] = "other alleles"
    outcomes[fitting["row"]] = fitting["relation"]
    if not keep_ambiguous:
        ambiguous = (_other_strand(ours["reference"]) == ours["alternate"]).to_numpy(bool)
        outcomes[ambiguous & (outcomes != "absent")] = "strand unknown"
        fitting = fitting[~ambiguous[fitting["row"]]]
    rows, others = (fitting[name].to_numpy(np.intp) for name in ("row", "row_2"))
    swapped = fitting["relation"].str.startswith("swapped").to_numpy(bool)
    return Matches(rows, others, swapped, dict(Counter(outcomes.tolist())))


def _comparable(table: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table with its columns of text as text, alleles in upper case, and the number of each row."""
    text = table[["contig", "id", "reference", "alternate"]].astype("str")
    alleles = {name: text[name].str.upper() for name in ("reference", "alternate")}
    return text.assign(**alleles, position=table["position"], row=np.arange(len(table))).reset_index(drop=True)


def _relations(pairs: "pd.DataFrame") -> npt.NDArray[np.object_]:
    """Say how the alleles of pairs of variants correspond; empty where they do not."""
    relations = np.full(len(pairs), "", object)
    reference, alternate = pairs["reference_2"], pairs["alternate_2"]
    for strand in ("", ", other strand"):
        for how, one, other in (("same", reference, alternate), ("swapped", alternate, reference)):
            fits = ((pairs["reference"] == one) & (pairs["alternate"] == other)).to_numpy(bool)
            relations[fits & (relations == "")] = f"{how}{strand}"
        reference, alternate = _other_strand(reference), _other_strand(alternate)
    return relations


def _other_strand(alleles: "pd.Series[str]") -> "pd.Series[str]":
    return alleles.str.translate(COMPLEMENT).str[::-1]


def sums(
    genotypes: Genotypes, chosen: Array, rows: npt.NDArray[np.intp], *, loadings: Loadings, device: Device
) -> Array:
    """Sum over variants for each of the q samples ``chosen``; the genotypes belong to ``rows`` of the loadings.

    Genotypes and sums are on the device. Sums are float32 within a slab of variants and added up in float64; those of
    several sets of variants add up. Returns float64 (q, k + k (k + 1) / 2 + 2) for k components: x'w; the upper
    triangle of the sum of w w' over the called variants; x'x; and the number of variants with a call, of those that
    have a scale.
    """
    xp, components = device.xp, loadings.weights.shape[1]
    first, second = (device.to_device(each) for each in np.triu_indices(components))
    totals: Array = xp.zeros((len(chosen), components + len(first) + 2))
    size = slab_rows(device, len(chosen))
    for start in range(0, len(rows), size):
        slab, at = genotypes.between(start, start + size), rows[start : start + size]
        dosages = Genotypes(xp.ascontiguousarray(dosages_of(slab, chosen)), len(chosen), loadings.ploidy)
        weights = device.to_device(loadings.weights[at])
        table = device.to_device(scaled_dosages(loadings.scaling.iloc[at], ploidy=loadings.ploidy))
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


def scores(totals: Floats, *, loadings: Loadings, method: Method) -> Floats:
    """Return the scores of the samples, float64 (q, k), on the axes of the samples that were fitted, from their `sums`.

    NaN for samples with fewer than `VARIANTS_A_COMPONENT` called variants for each component, or whose called variants
    do not tell the components apart, such as those of one region in linkage disequilibrium.
    """
    variants, size = int((loadings.scaling["scale"] > 0).sum()), len(loadings.eigenvalues)
    product, squares, called = totals[:, :size], totals[:, -2], totals[:, -1]
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

    ``coordinates`` are W'x, (q, k), the samples in the basis of the loadings; ``rest`` is x'x less their squares, (q,);
    ``singular_values``, (k,), are those of the fitted samples.
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
