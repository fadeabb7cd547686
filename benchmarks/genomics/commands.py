"""The commands of the variants, which the benchmark and the guard run."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.genomics.accuracy import Reference, judge
from benchmarks.genomics.simulated_store import Stored
from benchmarks.measure import Variant, this_python


def variant(tool: str, stored: Stored, exact: Reference, folder: Path, *, threads: int) -> Variant:
    """Return the command of a tool that writes ten principal components below ``folder``."""
    output = folder / "components.npy"
    paths = ["--store", str(stored.store), "--plink", str(stored.plink), "--output", str(output)]
    return Variant(
        tool,
        (this_python(), "-m", f"benchmarks.genomics.with_{tool}", *paths, "--threads", str(threads)),
        # Whitewater's workers are threads of their own, each with one of BLAS, as its command line sets it.
        environment={"PYTHONPATH": "src"} | ({"OPENBLAS_NUM_THREADS": "1"} if tool == "whitewater" else {}),
        outputs=(folder,),
        inspect=partial(judge, output, exact),
    )
