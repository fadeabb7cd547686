"""PLINK 2: `--pca approx` (FastPCA), which it advises above 5,000 samples; from PLINK files, for it reads no Zarr."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.genomics.variant import CALL_RATE, COMPONENTS, MINOR_ALLELE_FREQUENCY, Work, main


def compute(work: Work) -> int:
    """Compute the components and return the number of variants."""
    with tempfile.TemporaryDirectory(dir=work.output.parent) as folder:
        result = Path(folder) / "result"
        rules = ["--geno", f"{1 - CALL_RATE}", "--maf", str(MINOR_ALLELE_FREQUENCY)]
        subprocess.run(
            ["plink2", "--bfile", work.plink, *rules, "--pca", str(COMPONENTS), "approx", "allele-wts",
             "--threads", str(work.threads), "--out", result],
            check=True, capture_output=True,
        )  # fmt: skip
        vectors = np.loadtxt(result.with_suffix(".eigenvec"), usecols=range(2, 2 + COMPONENTS))
        with result.with_suffix(".eigenvec.allele").open() as file:
            kept = sum(1 for _ in file) - 1
    np.save(work.output, vectors)
    return kept // 2


if __name__ == "__main__":
    main(compute)
