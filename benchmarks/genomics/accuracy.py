"""The exact answer in float64, and how near to it the components of a variant come."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import zarr
from pydantic import JsonValue

from benchmarks.genomics.simulated_store import SIGNAL
from benchmarks.genomics.variant import dosages_of, passing, scaled

LEAST = 0.9999
# Variants whose product is added up at once, in float32; the sum over them is float64.
_SLAB = 2_000


@dataclass(frozen=True)
class Reference:
    """The covariance of the samples, float64 (samples, samples), its eigenvalues, largest first, and eigenvectors."""

    covariance: npt.NDArray[np.float64]
    eigenvalues: npt.NDArray[np.float64]
    eigenvectors: npt.NDArray[np.float64]
    variants: int


def reference(store: str | Path, *, file: Path, threads: int) -> Reference:
    """Return the exact answer for a store, from a file where it was computed before."""
    if not file.exists():
        covariance, variants = _covariance(store, threads=threads)
        eigenvalues, eigenvectors = np.linalg.eigh(covariance)
        leading = eigenvectors[:, ::-1][:, :SIGNAL]
        np.savez(file, covariance=covariance, eigenvalues=eigenvalues[::-1], eigenvectors=leading, variants=variants)
    with np.load(file) as found:
        return Reference(found["covariance"], found["eigenvalues"], found["eigenvectors"], int(found["variants"]))


def _covariance(store: str | Path, *, threads: int) -> tuple[npt.NDArray[np.float64], int]:
    calls: Any = zarr.open_group(store, mode="r")["call_genotype"]

    def slab(start: int) -> npt.NDArray[np.float32]:
        dosages = dosages_of(calls[start : start + _SLAB])
        return scaled(dosages[passing(dosages)])

    total, variants = np.zeros((calls.shape[1], calls.shape[1])), 0
    with ThreadPoolExecutor(threads) as pool:
        starts = range(0, calls.shape[0], _SLAB)
        for first in range(0, len(starts), threads):
            for values in pool.map(slab, starts[first : first + threads]):
                total += values.T @ values
                variants += len(values)
    return total / variants, variants


def judge(components: Path, exact: Reference) -> JsonValue:
    """Return whether the components in a .npy file, (samples, k), reach the accuracy that all variants must have.

    Judged are the components above the noise, which are as many as populations less one. *Captured variance*: that of
    the best such number of directions in the space of the given ones, over the optimum. *Subspace*: the mean squared
    cosine of the exact components and that space (mean explained variance, as PCAone reports).
    """
    captured, subspace = accuracy(np.load(components), exact)
    return {
        f"captured variance >= {LEAST}": bool(captured >= LEAST),
        f"subspace >= {LEAST}": bool(subspace >= LEAST),
    }


def accuracy(components: npt.NDArray[Any], exact: Reference) -> tuple[float, float]:
    """Return captured variance and agreement of the subspace; see `judge`."""
    basis = np.linalg.qr(components.astype(np.float64))[0]
    ritz = np.linalg.eigvalsh(basis.T @ exact.covariance @ basis)[::-1]
    captured = ritz[:SIGNAL].sum() / exact.eigenvalues[:SIGNAL].sum()
    subspace = ((basis.T @ exact.eigenvectors[:, :SIGNAL]) ** 2).sum(axis=0).mean()
    return float(captured), float(subspace)
