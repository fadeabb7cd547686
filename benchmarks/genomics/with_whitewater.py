"""Whitewater: the steps ingest, variant_qc, pack and pca, as functions, in one process, with the files that they write.

It starts as Whitewater's command line does, and gathers more than is asked for: the tables of variants and samples with
their counts, loadings, and significance.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from benchmarks.genomics.variant import CALL_RATE, COMPONENTS, MINOR_ALLELE_FREQUENCY, Work, main
from whitewater import engines
from whitewater.config.base import Section
from whitewater.engines.config import Cluster
from whitewater.genotypes.config import Pca, Vcz
from whitewater.process import start_fast
from whitewater.step import Inputs, Output, Run
from whitewater_apps.genomics import config as genomics
from whitewater_apps.genomics.steps.ingest import ingest
from whitewater_apps.genomics.steps.pack import pack
from whitewater_apps.genomics.steps.pca import pca
from whitewater_apps.genomics.steps.variant_qc import variant_qc

Settings = TypeVar("Settings", bound=Section)


def compute(work: Work) -> int:
    """Compute the components and return the number of variants."""
    folder = work.output.parent
    genotypes, variants, packed, samples = (folder / name for name in ("all", "variants.parquet", "kept", "samples"))
    source = genomics.Ingest(source="vcz", vcz=Vcz(store=work.store))
    rules = genomics.VariantQc(minimum_call_rate=CALL_RATE, minimum_allele_frequency=MINOR_ALLELE_FREQUENCY)
    with work.phase("load_seconds"):
        ingest(
            _run(work, "ingest", source),
            simulated=Inputs({}),
            genotypes=Output(genotypes),
            inputs=Output(folder / "inputs.json"),
        )
    with work.phase("preprocess_seconds"):
        variant_qc(_run(work, "variant_qc", rules), genotypes=genotypes, variants=Output(variants))
        pack(_run(work, "pack", Section()), genotypes=genotypes, variants=variants, packed=Output(packed))
        _use_all(packed, samples)
    outputs = {name: Output(folder / name) for name in ("pcs", "eigenvalues", "loadings", "selected")}
    with work.phase("svd_seconds"):
        pca(_run(work, "pca", Pca(components=COMPONENTS)), packed=packed, samples=samples, **outputs)
    scores = pd.read_parquet(outputs["pcs"])
    np.save(work.output, scores[[f"PC{at + 1}" for at in range(COMPONENTS)]].to_numpy())
    return int(pd.read_parquet(variants, columns=["kept"])["kept"].sum())


def _run(work: Work, step: str, settings: Settings) -> Run[Settings]:
    cluster = Cluster.model_validate_json(work.cluster)
    return Run("genomics", step, engines.resolve(work.device), settings, threads=work.threads, cluster_settings=cluster)


def _use_all(packed: Path, samples: Path) -> None:
    """Write the selection of samples that step `relatedness` would: here all."""
    table = pd.read_parquet(packed / "samples.parquet")
    table.assign(call_rate=1.0, used=True, reason="").to_parquet(samples)


if __name__ == "__main__":
    start_fast()
    main(compute)
