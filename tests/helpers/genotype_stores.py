"""Genotypes written in every format that is read, from one array of called alleles."""

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import zarr

Alleles = npt.NDArray[np.int8]
BASES = ("A", "C", "G", "T")


@dataclass(frozen=True)
class Sites:
    """What is known of each variant besides its calls; alternates of a variant are joined by commas."""

    contig: list[str]
    position: list[int]
    id: list[str]
    reference: list[str]
    alternate: list[str]


def random_alleles(
    variants: int, samples: int, ploidy: int = 2, *, missing: float = 0.1, alleles: int = 2, seed: int = 0
) -> Alleles:
    """Return calls, int8 (variants, samples, ploidy), of random frequencies; a missing call is -1 throughout."""
    random = np.random.default_rng(seed)
    frequency = random.uniform(0.05, 0.95, (variants, 1, 1))
    alternate = random.integers(1, alleles, (variants, samples, ploidy), endpoint=False) if alleles > 1 else 0
    called = np.where(random.random((variants, samples, ploidy)) < frequency, alternate, 0)
    return np.where(random.random((variants, samples, 1)) < missing, -1, called).astype(np.int8)


def dosages(alleles: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the number of alleles that are not the reference, -1 of calls with a missing one: (variants, samples)."""
    return np.where((alleles < 0).any(axis=2), -1, (alleles > 0).sum(axis=2))


def random_sites(variants: int, *, contigs: Sequence[str] = ("1", "2"), alternates: int = 1) -> Sites:
    """Return sites of contigs of about equal length, sorted."""
    number = [row * len(contigs) // variants for row in range(variants)]
    reference = [BASES[row % 4] for row in range(variants)]
    alternate = [",".join(BASES[(row + each) % 4] for each in range(1, alternates + 1)) for row in range(variants)]
    position = [100 + 10 * row for row in range(variants)]
    return Sites([contigs[each] for each in number], position, [f"rs{row}" for row in range(variants)], reference,
                 alternate)  # fmt: skip


def numbered_sites(variants: int, *, contigs: Sequence[str] | None = None) -> Sites:
    """Return the sites that `tests.helpers.genotype_folders.make_folder` makes up."""
    positions = list(range(1, variants + 1))
    return Sites(list(contigs or ["1"] * variants), positions, [f"v{row}" for row in range(variants)],
                 ["G"] * variants, ["A"] * variants)  # fmt: skip


def read_dosages(folder: Path) -> npt.NDArray[np.int8]:
    """Return the dosages of a folder of genotypes, int8 (variants, samples), -1 where missing."""
    codes, shape = np.load(folder / "calls.npy"), json.loads((folder / "genotypes.json").read_text())
    if shape["encoding"] == "int8":
        return np.asarray(codes, np.int8)
    unpacked = (codes[:, :, None] >> np.array([0, 2, 4, 6], np.uint8)) & 3
    dosage = np.array([0, 1, 2, -1], np.int8)
    return np.asarray(dosage[unpacked.reshape(len(codes), -1)[:, : shape["samples"]]])


def sample_names(samples: int) -> list[str]:
    return [f"S{number}" for number in range(samples)]


def write_vcz(
    path: Path,
    alleles: npt.NDArray[Any],
    *,
    sites: Sites | None = None,
    samples: Sequence[str] | None = None,
    chunks: tuple[int, int] = (1000, 1000),
    shards: tuple[int, int] | None = None,
    site_chunk: int = 1000,
    zarr_format: Literal[2, 3] = 3,
) -> Path:
    """Write a store of VCF Zarr; ``chunks`` and ``shards`` count variants and samples, ``site_chunk`` variants."""
    sites = sites or random_sites(len(alleles), alternates=max(1, int(alleles.max(initial=1))))
    contigs = list(dict.fromkeys(sites.contig))
    width = 1 + max((alternate.count(",") + 1 for alternate in sites.alternate), default=1)
    rows = np.full((len(alleles), width), "", object)
    for row, (reference, alternate) in enumerate(zip(sites.reference, sites.alternate, strict=True)):
        listed = [reference, *alternate.split(",")]
        rows[row, : len(listed)] = listed
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format, attributes={"vcf_zarr_version": "0.4"})
    call_chunks = (*chunks, *alleles.shape[2:])
    call_shards = None if shards is None else (*shards, *alleles.shape[2:])
    write_array(group, "call_genotype", alleles, call_chunks, shards=call_shards)
    write_array(group, "sample_id", list(samples or sample_names(alleles.shape[1])), (chunks[1],))
    write_array(group, "contig_id", contigs, (1,))
    write_array(
        group, "variant_contig", np.array([contigs.index(each) for each in sites.contig], np.int8), (site_chunk,)
    )
    write_array(group, "variant_position", np.array(sites.position, np.int32), (site_chunk,))
    write_array(group, "variant_id", sites.id, (site_chunk,))
    write_array(group, "variant_allele", rows, (site_chunk, width))
    return path


def write_malariagen(
    path: Path,
    alleles: npt.NDArray[Any],
    *,
    sites: Sites | None = None,
    site_store: Path | None = None,
    chunks: tuple[int, int] = (1000, 1000),
) -> Path:
    """Write stores of calls by contig and of sites, which list all three alternates; Zarr format 2."""
    sites = sites or random_sites(len(alleles), contigs=("2R", "3L"), alternates=3)
    group = zarr.open_group(path, mode="w", zarr_format=2)
    listed = zarr.open_group(site_store, mode="w", zarr_format=2) if site_store else group
    write_array(group, "samples", np.array(sample_names(alleles.shape[1]), "S24"), (chunks[1],))
    for contig in dict.fromkeys(sites.contig):
        rows = [row for row, name in enumerate(sites.contig) if name == contig]
        write_array(group, f"{contig}/calldata/GT", alleles[rows], (*chunks, alleles.shape[2]))
        write_array(listed, f"{contig}/variants/POS", np.array(sites.position, np.int32)[rows], (chunks[0],))
        write_array(listed, f"{contig}/variants/REF", np.array(sites.reference, "S1")[rows], (chunks[0],))
        alternates = np.array([sites.alternate[row].split(",") for row in rows], "S1")
        write_array(listed, f"{contig}/variants/ALT", alternates, (chunks[0], alternates.shape[1]))
    for store in {path, site_store or path}:
        zarr.consolidate_metadata(str(store), zarr_format=2)
    return path


def write_plink(
    prefix: Path, dosages: npt.NDArray[Any], *, sites: Sites | None = None, samples: Sequence[str] | None = None
) -> Path:
    """Write .bed, .bim and .fam of dosages of A1, the alternate, (variants, samples), -1 where the call is missing."""
    variants, size = dosages.shape
    sites = sites or numbered_sites(variants)
    padded = np.zeros((variants, -(-size // 4) * 4), np.uint8)
    padded[:, :size] = np.array([3, 2, 0, 1], np.uint8)[dosages]  # by dosage 0, 1, 2 and -1
    fours = padded.reshape(variants, -1, 4) << np.array([0, 2, 4, 6], np.uint8)
    prefix.with_name(prefix.name + ".bed").write_bytes(b"\x6c\x1b\x01" + fours.sum(axis=2, dtype=np.uint8).tobytes())
    columns = (sites.contig, sites.id, sites.position, sites.alternate, sites.reference)
    lines = [f"{contig}\t{name}\t0\t{at}\t{a1}\t{a2}\n" for contig, name, at, a1, a2 in zip(*columns, strict=True)]
    prefix.with_name(prefix.name + ".bim").write_text("".join(lines))
    names = samples or sample_names(size)
    prefix.with_name(prefix.name + ".fam").write_text("".join(f"F{name}\t{name}\t0\t0\t0\t-9\n" for name in names))
    return prefix


def vcf_header(*, samples: Sequence[str] = ("a", "b", "c"), contigs: Sequence[str] = ("1", "2")) -> str:
    """Return the header of a VCF file whose only filter is PASS."""
    lines = [
        "##fileformat=VCFv4.3",
        '##FILTER=<ID=PASS,Description="All filters passed">',
        *(f"##contig=<ID={contig}>" for contig in contigs),
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
        "\t".join(["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", *samples]),
    ]
    return "".join(f"{line}\n" for line in lines)


def vcf_record(
    position: int | str,
    *,
    contig: str = "1",
    filters: str = "PASS",
    calls: Sequence[str] = ("0/0", "0/1", "1/1"),
) -> str:
    """Return a line of a VCF file: a variant A to C."""
    return "\t".join([contig, str(position), f"rs{position}", "A", "C", ".", filters, ".", "GT", *calls]) + "\n"


def vcf_records(variants: int, *, samples: int = 3) -> str:
    """Return lines of variants of contig 1, each with the same calls."""
    calls = [("0/0", "0/1", "1/1")[number % 3] for number in range(samples)]
    return "".join(vcf_record(10 * number, calls=calls) for number in range(1, variants + 1))


def bgzipped(data: bytes) -> bytes:
    """Return a block of bgzip: gzip with the size of the block in an extra field (SAM specification, section 4.1)."""
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(data) + packer.flush()
    head = b"\x1f\x8b\x08\x04" + bytes(4) + b"\x00\xff\x06\x00BC\x02\x00"
    return head + struct.pack("<H", len(packed) + 25) + packed + struct.pack("<II", zlib.crc32(data), len(data))


def write_array(
    group: zarr.Group,
    name: str,
    values: Any,
    chunks: tuple[int, ...],
    *,
    shards: tuple[int, ...] | None = None,
) -> None:
    """Write an array of which every chunk is stored, also one that holds the fill value only."""
    data = np.array(values, object) if isinstance(values, list) else np.asarray(values)
    array = group.create_array(
        name,
        shape=data.shape,
        dtype=str if data.dtype == object else data.dtype,
        chunks=tuple(min(size, max(1, length)) for size, length in zip(chunks, data.shape, strict=True)),
        shards=shards,
        config={"write_empty_chunks": True},
    )
    array[...] = data
