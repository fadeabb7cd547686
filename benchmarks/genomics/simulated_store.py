"""Genotypes of structured populations at full size: a store of VCF Zarr as bio2zarr writes it, PLINK files of the same.

Model of Balding and Nichols (Genetica 96, 1995): each variant has an ancestral allele frequency, and each of ten
populations its own around it, by F_ST; besides them there are mixtures of the first two, in proportions of its own for
each sample. So nine components stand above the noise, the strongest far, the weakest little. Variants are independent,
calls are missing at random.
"""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import zarr
from numcodecs import Blosc

# As bio2zarr 0.2 chunks and compresses genotypes.
VARIANTS_OF_CHUNK = 1_000
SAMPLES_OF_CHUNK = 10_000
COMPRESSOR = Blosc(cname="zstd", clevel=7, shuffle=Blosc.BITSHUFFLE)

F_ST = np.array([0.14, 0.12, 0.10, 0.08, 0.06, 0.04, 0.03, 0.02, 0.012, 0.008])
SIGNAL = len(F_ST) - 1
MISSING = 0.01
LOW_CALL_RATE = 0.02  # share of the variants that have 10 % missing calls instead
FREQUENCIES = (0.002, 0.5)
VERSION = 1
# Code in a .bed file by the sum of the alleles, which is -2 for a missing call.
_BED_CODES = np.array([3, 2, 0, 1, 1], np.uint8)

Genotypes = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Stored:
    """Where the genotypes are: VCF Zarr, and the prefix of the PLINK files."""

    store: Path
    plink: Path
    samples: int
    variants: int

    @property
    def file_bytes(self) -> int:
        """Bytes of the stored calls."""
        return sum(each.stat().st_size for each in (self.store / "call_genotype").rglob("*") if each.is_file())


def prepare(directory: Path, *, samples: int, variants: int, seed: int, with_plink: bool, threads: int) -> Stored:
    """Make sure that the stores are there, and return them; what an earlier call made is not made again."""
    folder = directory / f"{samples}x{variants}-seed{seed}-v{VERSION}"
    stored = Stored(folder / "genotypes.vcz", folder / "genotypes", samples, variants)
    complete = folder / ("complete-with-plink.json" if with_plink else "complete.json")
    if not (complete.exists() or (folder / "complete-with-plink.json").exists()):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _write(stored, seed=seed, with_plink=with_plink, threads=threads)
        complete.write_text(json.dumps({"samples": samples, "variants": variants, "seed": seed}))
    return stored


def populations(samples: int, *, seed: int) -> npt.NDArray[np.float32]:
    """Return the share of each population in each sample's ancestry: float32 (samples, populations)."""
    random = np.random.default_rng([seed, 0])
    shares = np.eye(len(F_ST), dtype=np.float32)[random.integers(0, len(F_ST), samples)]
    admixed = random.random(samples) < 1 / (1 + len(F_ST))
    shares[admixed] = 0
    first = random.beta(2, 3, int(admixed.sum()))
    shares[admixed, 0], shares[admixed, 1] = first, 1 - first
    return shares


def chunk_of_genotypes(shares: npt.NDArray[np.float32], *, start: int, stop: int, seed: int) -> Genotypes:
    """Return the calls of some variants: alleles 0 and 1, or -1 where missing; int8 (variants, samples, 2)."""
    random = np.random.default_rng([seed, 1, start])
    count, samples = stop - start, len(shares)
    ancestral = np.exp(random.uniform(np.log(FREQUENCIES[0]), np.log(FREQUENCIES[1]), count))[:, None]
    spread = (1 - F_ST) / F_ST
    frequencies = random.beta(ancestral * spread, (1 - ancestral) * spread).astype(np.float32)
    of_sample = (frequencies @ shares.T)[:, :, None]
    calls: Genotypes = (random.random((count, samples, 2), dtype=np.float32) < of_sample).astype(np.int8)
    missing = np.where(random.random(count) < LOW_CALL_RATE, 0.1, MISSING)[:, None]
    calls[random.random((count, samples), dtype=np.float32) < missing] = -1
    return calls


def _write(stored: Stored, *, seed: int, with_plink: bool, threads: int) -> None:
    shares = populations(stored.samples, seed=seed)
    root = zarr.open_group(stored.store, mode="w", zarr_format=2, attributes={"vcf_zarr_version": "0.4"})
    shape, chunks = (stored.variants, stored.samples, 2), (VARIANTS_OF_CHUNK, min(SAMPLES_OF_CHUNK, stored.samples), 2)
    calls = _array(root, "call_genotype", ["variants", "samples", "ploidy"], shape=shape, chunks=chunks, dtype="i1")
    _write_sites(root, stored)
    row_bytes = -(-stored.samples // 4)
    bed = stored.plink.with_suffix(".bed")
    if with_plink:
        bed.write_bytes(b"\x6c\x1b\x01")
        os.truncate(bed, 3 + stored.variants * row_bytes)
        _write_plink_tables(stored)

    def write_chunk(start: int) -> None:
        stop = min(start + VARIANTS_OF_CHUNK, stored.variants)
        found = chunk_of_genotypes(shares, start=start, stop=stop, seed=seed)
        calls[start:stop] = found
        if with_plink:
            with bed.open("r+b") as file:
                file.seek(3 + start * row_bytes)
                file.write(_bed_codes(found).tobytes())

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write_chunk, range(0, stored.variants, VARIANTS_OF_CHUNK)))


def _array(root: zarr.Group, name: str, dimensions: list[str], **options: Any) -> Any:
    array = root.create_array(name, compressors=COMPRESSOR, config={"write_empty_chunks": True}, **options)
    array.attrs["_ARRAY_DIMENSIONS"] = dimensions
    return array


def _write_sites(root: zarr.Group, stored: Stored) -> None:
    variants, chunks = (stored.variants,), (100_000,)
    values: dict[str, tuple[list[str], npt.NDArray[Any]]] = {
        "variant_contig": (["variants"], np.zeros(stored.variants, np.int8)),
        "variant_position": (["variants"], np.arange(1, stored.variants + 1, dtype=np.int32) * 100),
        "variant_allele": (["variants", "alleles"], np.tile(np.array(["A", "G"], "U1"), (*variants, 1))),
        "variant_id": (["variants"], np.array([f"v{at}" for at in range(stored.variants)])),
        "contig_id": (["contigs"], np.array(["1"])),
        "sample_id": (["samples"], np.array(_names(stored.samples))),
    }
    for name, (dimensions, data) in values.items():
        size = (*chunks, 2)[: data.ndim] if dimensions[0] == "variants" else data.shape
        _array(root, name, dimensions, shape=data.shape, chunks=size, dtype=data.dtype)[:] = data


def _names(samples: int) -> list[str]:
    return [f"S{at:05d}" for at in range(samples)]


def _write_plink_tables(stored: Stored) -> None:
    with stored.plink.with_suffix(".bim").open("w") as file:
        file.writelines(f"1\tv{at}\t0\t{100 * (at + 1)}\tG\tA\n" for at in range(stored.variants))
    with stored.plink.with_suffix(".fam").open("w") as file:
        file.writelines(f"0\t{name}\t0\t0\t0\t-9\n" for name in _names(stored.samples))


def _bed_codes(calls: Genotypes) -> npt.NDArray[np.uint8]:
    """Return the rows of a .bed file: two bits a call, 0 for two copies of the alternate allele, 1 where missing."""
    dosage = calls.sum(axis=2)
    codes = np.zeros((len(calls), -(-calls.shape[1] // 4) * 4), np.uint8)
    codes[:, : calls.shape[1]] = _BED_CODES[dosage]
    first, second, third, fourth = (codes[:, place::4] for place in range(4))
    rows: npt.NDArray[np.uint8] = first | second << 2 | third << 4 | fourth << 6
    return rows
