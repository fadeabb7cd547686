"""R11: the principal components of genotypes in a Zarr store: load, preprocess, SVD; whole processes.

The published store holds 25 GB of decoded calls, int8 (variants, samples, 2), on GCS. Here, unless ``store`` names one
of your own, it is that of `benchmarks.genomics`, of 2,504 samples and as many variants as the scale gives; so are the
work, which includes filters by call rate and frequency, and the exact answer that all are judged by. Ours calls the
steps of the application, with the files that they write.

All must count the same variants. Captured variance and mean squared cosine of the subspaces (see
`benchmarks.genomics.accuracy`) must be at least 0.99: where there are few variants the weakest components are hardly
above the noise, and four passes do not tell them apart to the last digits. Without any one of the nine components the
second would be 0.89. Of a store of your own, whose spectrum is not known, only the first is asked for.

A store of your own is VCF Zarr, biallelic and diploid, and public if it is on gs:// or s3://. So that the exact answer
can be computed, it should have a few thousand samples.
"""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from pydantic import JsonValue

from benchmarks import measure
from benchmarks.genomics.accuracy import Reference, accuracy, reference
from benchmarks.genomics.simulated_store import Stored, prepare
from benchmarks.measure import this_python
from benchmarks.published.row import ONE_BLAS_THREAD, SEED, ProcessCase, Published, Row, Work, missing_packages
from benchmarks.report import Size
from whitewater.errors import InputError

SAMPLES, PLOIDY = 2_504, 2
DECODED_BYTES = 25_000_000_000
# With fewer there may be no ten components.
FEWEST_VARIANTS = 100
LEAST = 0.99
# Module of each variant, and the variables of its environment: where threads of its own call BLAS, it has one.
MODULES = {
    "whitewater": ("benchmarks.genomics.with_whitewater", ONE_BLAS_THREAD),
    "as_published": ("benchmarks.published.svd_zarr_dask", ONE_BLAS_THREAD),
    "scikit_learn": ("benchmarks.genomics.with_scikit_learn", {}),
}
PACKAGES = {"scikit_learn": ("sklearn",), "as_published": ("dask", "distributed"), "whitewater": ()}


def simulated(work: Work) -> Stored:
    """Return the simulated store of the scale; it is made unless it is there."""
    variants = max(FEWEST_VARIANTS, round(DECODED_BYTES * work.scale / (SAMPLES * PLOIDY)))
    return prepare(work.folder, samples=SAMPLES, variants=variants, seed=SEED, with_plink=False, threads=work.threads)


def store(work: Work) -> str:
    """Return the path or URL of the store."""
    return str(work.options.get("store") or simulated(work).store)


def exact(work: Work) -> Reference:
    """Return the exact answer; it is computed unless it is there."""
    place = store(work)
    file = work.folder / f"reference-{hashlib.sha256(place.encode()).hexdigest()[:16]}.npz"
    return reference(place, file=file, threads=work.threads)


def commands(work: Work) -> list[measure.Variant]:
    """Return the commands of the variants."""
    place, answer, own = store(work), exact(work), bool(work.options.get("store"))
    return [_command(name, work, place, answer, own=own) for name in MODULES]


def _command(name: str, work: Work, place: str, answer: Reference, *, own: bool) -> measure.Variant:
    module, environment = MODULES[name]
    folder = work.folder / "written" / name
    output = folder / "components.npy"
    options = {
        "store": place,
        "output": str(output),
        "threads": str(work.threads),
        "device": work.device.name,
        "cluster": work.cluster.model_dump_json(exclude_defaults=True),
    }
    return measure.Variant(
        name,
        (this_python(), "-m", module, *(text for key, value in options.items() for text in (f"--{key}", value))),
        environment=environment,
        outputs=(folder,),
        inspect=partial(judge, output, answer, own=own),
        missing=missing_packages(PACKAGES[name]),
    )


def judge(components: Path, answer: Reference, *, own: bool) -> JsonValue:
    """Return whether the components in a file, (samples, 10), are accurate."""
    captured, subspace = accuracy(np.load(components), answer)
    judged: dict[str, JsonValue] = {f"captured variance >= {LEAST}": bool(captured >= LEAST)}
    if not own:
        judged[f"subspace >= {LEAST}"] = bool(subspace >= LEAST)
    return judged


def size(work: Work) -> Size:
    """Return the genotypes, and the bytes of their calls as they are decoded."""
    calls: Any = zarr.open_group(store(work), mode="r")["call_genotype"]
    variants, samples, ploidy = calls.shape
    return Size(rows=variants * samples, bytes=variants * samples * ploidy, basis="memory")


def make(work: Work) -> None:
    """Make the store and its exact answer.

    Raises
    ------
    InputError
        If there is no store where the settings say.
    """
    try:
        exact(work)
    except FileNotFoundError as error:
        raise InputError(f"{error}. Correct benchmarks.svd_zarr.store; if empty, one is simulated.") from None


ROW = Row(
    id="R11",
    name="svd_zarr",
    title="25 GB of genotypes in a Zarr store: load, preprocess, SVD",
    cases=(
        ProcessCase(
            name="",
            variants=commands,
            oracle="scikit_learn",
            size=size,
            prepare=make,
            published=(Published("16 GPUs of a DGX-2", 18.7), Published("16 GPUs of a DGX-2, loading", 14.3)),
        ),
    ),
)
