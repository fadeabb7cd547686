"""The computing steps of the genomics application in one process, on a device and a few dozen samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import zarr

from benchmarks.gpu_proof.same import Rule
from tests.contract.executed import APPLICATIONS, ROOT, device_code
from tests.contract.site import Site
from tests.helpers.genotype_folders import make_folder
from tests.helpers.genotype_stores import Sites, write_plink
from tests.helpers.genotype_structures import simulate
from whitewater.config.base import Section
from whitewater.engines import Device, resolve
from whitewater.genotypes import genotypes as genotype_folder
from whitewater.genotypes import kinship
from whitewater.genotypes.config import Pca, Relatedness
from whitewater.genotypes.pca.components import RitzPairs, block_krylov, start_block
from whitewater.genotypes.pca.passes import RawGenotypes
from whitewater.io.store import read_json
from whitewater.step import Output, Run
from whitewater_apps.genomics import config as genomics
from whitewater_apps.genomics.steps.ld_prune import ld_prune
from whitewater_apps.genomics.steps.outliers import outliers
from whitewater_apps.genomics.steps.pack import pack
from whitewater_apps.genomics.steps.pca import pca
from whitewater_apps.genomics.steps.project import project
from whitewater_apps.genomics.steps.relatedness import relatedness
from whitewater_apps.genomics.steps.umap import umap
from whitewater_apps.genomics.steps.variant_qc import variant_qc

Dosages = npt.NDArray[np.int8]
VARIANTS, SAMPLES, CHILDREN, COMPONENTS = 1_500, 63, 8, 3
NAMES: dict[str, Any] = {
    "contig": ["1"] * 800 + ["2"] * 700,
    "position": [100 + row for row in range(VARIANTS)],
    "id": [f"rs{row}" for row in range(VARIANTS)],
    "reference": ["AC"[row % 2] for row in range(VARIANTS)],
    "alternate": ["GT"[row % 2] for row in range(VARIANTS)],
}
STRANGER, EXCLUDED = f"S{SAMPLES}", "S3"
# Of the diploid samples by every solver, and by one that is not given the passes that it needs; of others by two.
SOLVERS: dict[str, Pca] = {
    "gram": Pca(components=COMPONENTS, solver="gram"),
    "randomized": Pca(components=COMPONENTS, solver="randomized"),
    "hurried": Pca(components=COMPONENTS, solver="randomized", maximum_passes=2, tolerance=1e-7),
}
# The solver for which there is too little memory to keep the genotypes on a GPU.
STREAMED = "hurried"
OF_TRIPLOIDS = ("gram", "randomized")
REPRODUCED = [*(f"diploid/{name}" for name in SOLVERS), *(f"triploid/{name}" for name in OF_TRIPLOIDS)]
# A covariance whose eigenvectors block Krylov iteration finds all, and the file of its eigenvalues.
SMALL, EXHAUSTED = np.diag([4.0, 3.0, 2.0, 1.0, 0.0]) + 0.1, "exhausted.npy"
# Products are float32, added up in other slabs and orders; the larger scores are about 1. Residuals are rounding where
# a solver converged. All else is equal: a solver's start is drawn on the host.
PRODUCTS = 1e-5
RULES = (
    *(Rule(f"*/{name}.parquet", PRODUCTS) for name in ("pcs", "samples", "projected", "without_outliers", "umap")),
    *(Rule(f"{name}/loadings.zarr", PRODUCTS, whole="group") for name in REPRODUCED),
    Rule("*/eigenvalues.json", 1e-6, left_out=("residuals", "tracy_widom")),
    Rule("*/umap.json", 1e-3),
    Rule(EXHAUSTED, compared=False),
)
CALLS = {
    "cupy.linalg.eigh", "cupy.linalg.qr", "cupy.bincount", "cupy.matmul", "cupyx.empty_pinned",
    "cuml.manifold.UMAP.fit_transform",
}  # fmt: skip
CROSSINGS = {
    "ld_prune": (1, 1),
    # Of each pair of tiles a histogram comes down.
    "relatedness": (1, 1.82),
    # The table of scaled dosages has 16 bytes a variant, and so have the codes of 64 samples; counts, matrices of a
    # block's columns, and sums for least squares come down.
    "outliers": (2.81, 54.02),
    "pca gram": (1.95, 1),
    "pca randomized": (2.58, 1),
    "project": (1, 1.83),
    "umap": (1, 1),
}
CODE, FRAMES = device_code(ROOT / "genotypes", APPLICATIONS / "genomics"), ()
# Kernels for the CPU and what calls them, and what makes and counts the codes of sources, which is done there.
OF_CPU = (
    "expand_packed", "expand_dosages", "count_packed", "_count_codes", "_mark_correlated", "fill_row", "are_correlated",
    "_prune_windows", "thin", "count_missing", "encode_alleles", "encode_bed", "pack_alleles", "add_missing",
)  # fmt: skip
# A map of too few samples is not made.
BESIDE = {
    'logger.warning("no map is made: %d samples are not more than genomics.umap.neighbors, %d", len(table),',
    "settings.neighbors)  # fmt: skip",
}
FILES = {"pcs": "pcs.parquet", "eigenvalues": "eigenvalues.json", "loadings": "loadings.zarr",
         "selected": "samples.parquet"}  # fmt: skip


def write_inputs(directory: Path) -> Path:
    """Write families of three populations, with a stranger, samples of another ploidy, and a second data set."""
    dosages = diploid_dosages()
    inputs = directory / "inputs"
    _with_decisions(inputs / "diploid", dosages, ploidy=2)
    _with_decisions(inputs / "triploid", triploid_dosages(), ploidy=3)
    _write_second(inputs / "second", dosages[:, 5:20])
    return inputs


def diploid_dosages() -> Dosages:
    """Return dosages (variants, samples), the last sample a stranger; a third of the variants have all calls."""
    dosages = simulate("populations", samples=SAMPLES, variants=VARIANTS, children=CHILDREN, missing=0.05)
    stranger = np.random.default_rng(6).integers(0, 3, (VARIANTS, 1)).astype(np.int8)
    dosages = np.hstack([dosages, stranger])
    dosages[::3] = np.abs(dosages[::3])
    return dosages


def triploid_dosages() -> Dosages:
    """Return dosages 0 to 3, (variants, samples), of two populations."""
    random = np.random.default_rng(7)
    dosages = random.binomial(3, random.uniform(0.1, 0.9, (VARIANTS, 2)).repeat(15, axis=1)).astype(np.int8)
    dosages[random.random(dosages.shape) < 0.05] = -1
    return dosages


@contextmanager
def spread_out() -> Iterator[None]:
    """Let so little data have several blocks of variants and several tiles of samples, the last ones shorter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(genotype_folder, "BLOCK_BYTES", 1)
        patch.setattr(kinship, "SMALLEST_TILE", 24)
        yield


@contextmanager
def no_room_for_genotypes() -> Iterator[None]:
    """Let a GPU have no room for genotypes beside what it needs to compute."""
    keep = RawGenotypes.keep_on_gpus
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            RawGenotypes,
            "keep_on_gpus",
            lambda self, *, other_bytes: keep(self, other_bytes=other_bytes + 2**50),
        )
        yield


def run_steps(site: Site, *, inputs: Path, results: Path) -> None:
    """Run the steps one after the other for both ploidies."""
    diploid, triploid = results / "diploid", results / "triploid"
    step = partial(site.run, "genomics")
    _select(step, inputs / "diploid", diploid, Relatedness(exclude=(EXCLUDED,)))
    chosen = diploid / "without_outliers.parquet"
    step(
        outliers,
        settings=genomics.Outliers(iterations=2, components=COMPONENTS, standard_deviations=4.0),
        packed=diploid / "packed",
        samples=diploid / "unrelated.parquet",
        selected=Output(chosen),
    )
    for name in SOLVERS:
        with no_room_for_genotypes() if name == STREAMED else nullcontext():
            _decompose(step, diploid, name, samples=chosen)
    _project(step, diploid, genomics.Project(second=str(inputs / "second")))
    step(
        umap,
        settings=genomics.Umap(neighbors=8),
        pcs=diploid / "gram" / FILES["pcs"],
        embedding=Output(diploid / "umap.parquet"),
        quality=Output(diploid / "umap.json"),
    )
    _select(step, inputs / "triploid", triploid, Relatedness(method="none", exclude=(EXCLUDED,)))
    for name in OF_TRIPLOIDS:
        _decompose(step, triploid, name, samples=triploid / "unrelated.parquet")
    _project(step, triploid, genomics.Project())
    np.save(results / EXHAUSTED, exhausted(site.device).values)


def exhausted(device: Device) -> RitzPairs:
    """Ask block Krylov iteration for one eigenvalue of `SMALL` more than there are; return all that it finds."""
    components = len(SMALL) + 1
    matrix = device.to_device(SMALL)
    start = device.to_device(start_block(np.ones(len(SMALL), bool), width=2, seed=0))
    *_, (found, _) = block_krylov(
        lambda block: matrix @ block, start, components=components, maximum_passes=10, device=device
    )
    return found


def _select(step: Callable[..., None], folder: Path, results: Path, choice: Relatedness) -> None:
    """Choose variants and samples, and pack them."""
    results.mkdir(parents=True)
    variants = results / "variants.parquet"
    decided = folder / "variant_qc.parquet"
    step(ld_prune, settings=genomics.LdPrune(window=40, step=5, r2=0.3), genotypes=folder, variants=decided,
         pruned=Output(variants))  # fmt: skip
    step(
        relatedness,
        settings=choice,
        genotypes=folder,
        variants=variants,
        kinship=Output(results / "kinship.parquet"),
        summary=Output(results / "relatedness.json"),
        samples=Output(results / "unrelated.parquet"),
    )
    step(pack, settings=Section(), genotypes=folder, variants=variants, packed=Output(results / "packed"))


def _decompose(step: Callable[..., None], results: Path, name: str, *, samples: Path) -> None:
    folder = results / name
    folder.mkdir()
    outputs = {output: Output(folder / file) for output, file in FILES.items()}
    step(pca, settings=SOLVERS[name], case=name, packed=results / "packed", samples=samples, **outputs)


def _project(step: Callable[..., None], results: Path, settings: genomics.Project) -> None:
    step(
        project,
        settings=settings,
        packed=results / "packed",
        samples=results / "gram" / FILES["selected"],
        loadings=results / "gram" / FILES["loadings"],
        projected=Output(results / "projected.parquet"),
    )


def _with_decisions(path: Path, dosages: Dosages, *, ploidy: int) -> Path:
    """Write a folder of genotypes, and in it what `variant_qc`, which sees no device, decides on its variants."""
    make_folder(path, dosages, ploidy=ploidy, columns=NAMES)
    settings = genomics.VariantQc(minimum_call_rate=0.8)
    run = Run("genomics", "variant_qc", resolve("cpu"), settings)
    variant_qc(run, genotypes=path, variants=Output(path / "variant_qc.parquet"))
    return path


def _write_second(prefix: Path, dosages: Dosages) -> Path:
    """Write some of the samples again, half of the variants with their alleles swapped."""
    swapped = np.arange(VARIANTS) % 2 == 1
    dosages = dosages.copy()
    dosages[swapped] = np.where(dosages[swapped] < 0, -1, 2 - dosages[swapped])
    first, second = (np.array(NAMES[name]) for name in ("reference", "alternate"))
    reference, alternate = np.where(swapped, second, first), np.where(swapped, first, second)
    sites = Sites(**{**NAMES, "reference": reference.tolist(), "alternate": alternate.tolist()})
    return write_plink(prefix, dosages, sites=sites)


def assert_same_components(found: Path, expected: Path) -> None:
    """Compare what `RULES` has no tolerance for: statistics of eigenvalues, and what the loadings were made with."""
    one, other = (
        [test["statistic"] for test in read_json(each / FILES["eigenvalues"])["tracy_widom"]]
        for each in (found, expected)
    )
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-2)
    mine, theirs = (zarr.open_group(each / FILES["loadings"], mode="r") for each in (found, expected))
    for name in set(theirs.array_keys()) - {"loadings"}:
        np.testing.assert_array_equal(np.asarray(mine[name]), np.asarray(theirs[name]), err_msg=name)


def check_data(folder: Path) -> None:
    """Check that the steps found strangers, relatives, and variants that are linked; and that a solver was hurried."""
    chosen = pd.read_parquet(folder / "diploid" / "without_outliers.parquet")
    assert chosen.loc[chosen["reason"].str.startswith("outlier"), "sample"].tolist() == [STRANGER]
    assert chosen["reason"].str.startswith("relative").sum() == CHILDREN + 1
    assert len(pd.read_parquet(folder / "diploid" / "kinship.parquet")) > 2 * CHILDREN
    for ploidy in ("diploid", "triploid"):
        variants = pd.read_parquet(folder / ploidy / "variants.parquet")
        assert (variants["ld_partner"] >= 0).sum() > 300
        assert len(pd.read_parquet(folder / ploidy / "packed" / "variants.parquet")) > 500
    hurried = read_json(folder / "diploid" / "hurried" / FILES["eigenvalues"])
    assert not all(hurried["converged"])
