"""Simulated genotypes of known structure, folders of them, and their exact principal components."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from whitewater.engines import Device
from whitewater.engines.workers import Workers
from whitewater.genotypes.config import Pca
from whitewater.genotypes.genotypes import GenotypeFolder, create_genotypes
from whitewater.genotypes.pca.components import PrincipalComponents, principal_components
from whitewater.genotypes.pca.passes import RawGenotypes

Dosages = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]
Structure = Literal["populations", "cline", "admixture"]
# Components that each structure has.
DIMENSIONS: dict[Structure, int] = {"populations": 3, "cline": 2, "admixture": 2}


def simulate(
    structure: Structure, *, samples: int, variants: int, seed: int = 0, children: int = 20, missing: float = 0.1
) -> Dosages:
    """Simulate dosages (variants, samples), -1 where missing, of which the last ``children`` are of sampled parents.

    Each tenth variant leads a block of linkage disequilibrium: of the nine behind it, a haplotype follows it with
    probability 0.7.
    """
    rng = np.random.default_rng(seed)
    founders = samples - children
    haplotypes = rng.random((2, variants, founders)) < _frequencies(structure, founders, variants, rng)
    leader = np.repeat(haplotypes[:, ::10], 10, axis=1)[:, :variants]
    haplotypes = np.where(rng.random(haplotypes.shape) < 0.7, leader, haplotypes)
    parents = rng.integers(0, founders, (2, children))
    chosen = np.repeat(rng.integers(0, 2, (2, -(-variants // 10), children)), 10, axis=1)[:, :variants]
    inherited = np.stack(
        [np.where(chosen[at], haplotypes[1][:, parents[at]], haplotypes[0][:, parents[at]]) for at in range(2)]
    )
    dosages = np.concatenate([haplotypes.sum(axis=0), inherited.sum(axis=0)], axis=1).astype(np.int8)
    dosages[rng.random(dosages.shape) < missing] = -1
    return dosages


def _frequencies(structure: Structure, samples: int, variants: int, rng: np.random.Generator) -> Floats:
    """Return the allele frequency of each variant in the population of each sample, (variants, samples)."""
    common = rng.uniform(0.1, 0.9, variants)
    if structure == "cline":
        place = rng.uniform(-1, 1, (2, samples))
        logit = np.log(common / (1 - common))[:, None] + rng.normal(0, 0.35, (variants, 2)) @ place
        return np.asarray(1 / (1 + np.exp(-logit)), np.float64)
    groups = DIMENSIONS[structure] + 1
    f_st = 0.1
    drifted = rng.beta(common * (1 - f_st) / f_st, (1 - common) * (1 - f_st) / f_st, (groups, variants)).T
    if structure == "populations":
        return drifted[:, rng.integers(0, groups, samples)]
    return np.asarray(drifted @ rng.dirichlet([0.6] * groups, samples).T, np.float64)


def write_folder(
    path: Path, dosages: Dosages, *, encoding: Literal["two_bit", "int8"] = "two_bit", ploidy: int = 2
) -> GenotypeFolder:
    """Write dosages, -1 where missing, as a folder of genotypes."""
    variants, samples = dosages.shape
    folder = create_genotypes(path, encoding=encoding, ploidy=ploidy, variants=variants, samples=samples)
    folder.write(0, _packed(dosages) if encoding == "two_bit" else dosages)
    counts = {f"count_{dosage}": (dosages == dosage).sum(axis=1, dtype=np.int32) for dosage in range(ploidy + 1)}
    rows = np.arange(variants)
    table = pd.DataFrame(
        {
            "contig": np.where(rows < variants // 2, "1", "X"),
            "position": rows + 1,
            "id": [f"rs{row}" for row in rows],
            "reference": "A",
            "alternate": ["G" if row % 3 else "GAATTC" for row in rows],
            "filter_pass": True,
            **counts,
            "count_missing": (dosages < 0).sum(axis=1, dtype=np.int32),
        }
    )
    names = [f"S{number}" for number in range(samples)]
    folder.finish(
        variants=table,
        samples=pd.DataFrame({"sample": names, "label": "a", "count_missing": (dosages < 0).sum(axis=0)}),
    )
    return folder


def write_samples(path: Path, used: npt.NDArray[np.bool_]) -> Path:
    """Write the table that step relatedness writes."""
    names = [f"S{number}" for number in range(len(used))]
    reasons = np.where(used, "", "held out")
    pd.DataFrame({"sample": names, "label": "a", "call_rate": 0.9, "used": used, "reason": reasons}).to_parquet(path)
    return path


def _packed(dosages: Dosages) -> npt.NDArray[np.uint8]:
    codes = np.where(dosages < 0, 3, dosages).astype(np.uint8)
    padded = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 4)), constant_values=3)
    return np.asarray(padded[:, 0::4] | padded[:, 1::4] << 2 | padded[:, 2::4] << 4 | padded[:, 3::4] << 6, np.uint8)


def components_of(
    folder: GenotypeFolder,
    settings: Pca,
    device: Device,
    *,
    used: npt.NDArray[np.bool_] | None = None,
    threads: int = 1,
) -> PrincipalComponents:
    """Compute principal components in this process."""
    chosen = np.ones(folder.samples, bool) if used is None else used
    return principal_components(shared(folder, device, threads=threads), chosen, settings=settings)


def shared(folder: GenotypeFolder, device: Device, *, threads: int = 1) -> RawGenotypes:
    """Return genotypes that threads of this process pass over, as long as it runs: loadings may be asked for later."""
    return RawGenotypes(folder, device, device, Workers(ThreadPoolExecutor(threads), threads))


def scaled(dosages: Dosages, *, ploidy: int = 2) -> Floats:
    """Return X (samples, variants) as the definition has it, float64; columns of constant variants are left out."""
    called = dosages >= 0
    number = called.sum(axis=1)
    mean = np.where(called, dosages, 0).sum(axis=1) / number
    varies = np.array([len(np.unique(row[row >= 0])) > 1 for row in dosages])
    p = mean / ploidy
    centered = np.where(called, dosages - mean[:, None], 0.0)[varies]
    return np.asarray((centered / np.sqrt(ploidy * p * (1 - p))[varies, None]).T, np.float64)


def exact(matrix: Floats) -> tuple[Floats, Floats]:
    """Return all eigenvalues, descending, and eigenvectors of X X' / m."""
    values, vectors = np.linalg.eigh(matrix @ matrix.T / matrix.shape[1])
    return values[::-1], vectors[:, ::-1]


def mean_explained_variance(found: Floats, reference: Floats) -> float:
    """Return the mean over the reference vectors of their squared cosine with the space of the found ones."""
    basis = np.linalg.qr(found)[0]
    return float((np.linalg.norm(basis.T @ reference, axis=0) ** 2).mean())
