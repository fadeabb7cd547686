"""Writing VCF Zarr (Czech et al. 2025, GigaScience 14:giaf049), in Zarr format 3, chunk of variants by chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import zarr

VERSION = "0.5"
# Chunks and codecs are bio2zarr's.
CHUNK_VARIANTS = 10_000
CHUNK_SAMPLES = 1_000
COMPRESSION_LEVEL = 7
FILTERS = {"PASS": "All filters passed", "LOW_QUALITY": "Quality is low"}
TEXT = np.dtypes.StringDType()


@dataclass(frozen=True)
class VariantBlock:
    """Consecutive variants.

    Attributes
    ----------
    contig
        int32 (variants,): index of the contig.
    positions
        int64 (variants,), 1-based.
    alleles
        Text (variants, alleles): the reference first, "" behind the last.
    low_quality
        bool (variants,): the filter LOW_QUALITY has failed.
    genotypes
        int8 (variants, samples, ploidy): numbers of alleles, -1 missing.
    """

    contig: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int64]
    alleles: npt.NDArray[Any]
    low_quality: npt.NDArray[np.bool_]
    genotypes: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, rows: slice) -> VariantBlock:
        return VariantBlock(**{name: array[rows] for name, array in vars(self).items()})


def write_vcz(
    path: Path,
    blocks: Iterable[VariantBlock],
    *,
    contigs: Mapping[str, int],
    samples: Sequence[str],
    alleles: int = 4,
    ploidy: int = 2,
    chunk_variants: int = CHUNK_VARIANTS,
) -> int:
    """Write a store; a chunk of variants and a block at most are in memory.

    Every chunk is written, also one that holds nothing but the fill value, so that an absent one is a lost one.

    Parameters
    ----------
    path
        Directory that does not exist yet.
    blocks
        The variants, in the order of contig and position; any number a block.
    contigs
        Name and length of each contig.
    samples
        Names of the samples.
    alleles, ploidy
        Sizes of these dimensions.
    chunk_variants
        Variants of a chunk.

    Returns
    -------
    int
        Number of variants.
    """
    import zarr

    root = zarr.open_group(
        path, mode="w-", zarr_format=3, attributes={"vcf_zarr_version": VERSION, "source": "whitewater"}
    )
    names = np.array(list(contigs), dtype=TEXT)
    _describe(root, contigs=contigs, samples=samples)
    variants = _create(root, samples=len(samples), alleles=alleles, ploidy=ploidy, chunk=chunk_variants)
    written = 0
    for block in _rechunk(blocks, rows=chunk_variants):
        for name, values in _columns(block, names).items():
            array = variants[name]
            array.resize((written + len(block), *array.shape[1:]))
            array[written:] = values
        written += len(block)
    return written


def _describe(root: zarr.Group, *, contigs: Mapping[str, int], samples: Sequence[str]) -> None:
    """Write what does not go by variant."""
    for name, dimension, values in (
        ("sample_id", "samples", np.array(samples, dtype=TEXT)),
        ("contig_id", "contigs", np.array(list(contigs), dtype=TEXT)),
        ("contig_length", "contigs", np.array(list(contigs.values()), dtype=np.int64)),
        ("filter_id", "filters", np.array(list(FILTERS), dtype=TEXT)),
        ("filter_description", "filters", np.array(list(FILTERS.values()), dtype=TEXT)),
    ):
        rows = min(len(values), CHUNK_SAMPLES) if dimension == "samples" else len(values)
        _array(root, name, values.dtype, {dimension: (len(values), rows)})[:] = values


def _create(root: zarr.Group, *, samples: int, alleles: int, ploidy: int, chunk: int) -> dict[str, zarr.Array[Any]]:
    """Make the arrays that go by variant, without any variant yet."""
    size = {
        "variants": (0, chunk),
        "samples": (samples, min(samples, CHUNK_SAMPLES)),
        "ploidy": (ploidy, ploidy),
        "alleles": (alleles, alleles),
        "filters": (len(FILTERS), len(FILTERS)),
    }
    described: dict[str, tuple[Any, tuple[str, ...]]] = {
        "variant_contig": (np.int32, ()),
        "variant_position": (np.int32, ()),
        "variant_length": (np.int32, ()),
        "variant_id": (TEXT, ()),
        "variant_id_mask": (np.bool_, ()),
        "variant_allele": (TEXT, ("alleles",)),
        "variant_filter": (np.bool_, ("filters",)),
        "call_genotype": (np.int8, ("samples", "ploidy")),
        "call_genotype_mask": (np.bool_, ("samples", "ploidy")),
        "call_genotype_phased": (np.bool_, ("samples",)),
    }
    return {
        name: _array(root, name, dtype, {"variants": size["variants"], **{each: size[each] for each in dimensions}})
        for name, (dtype, dimensions) in described.items()
    }


def _array(root: zarr.Group, name: str, dtype: Any, dimensions: Mapping[str, tuple[int, int]]) -> zarr.Array[Any]:
    """Make an array of named dimensions, each with its size and its chunk."""
    from zarr.codecs import BloscCodec

    bits = name.startswith("call_genotype") or np.dtype(dtype) == np.bool_
    codec = BloscCodec(cname="zstd", clevel=COMPRESSION_LEVEL, shuffle="bitshuffle" if bits else "shuffle")
    return root.create_array(
        name,
        shape=tuple(size for size, _ in dimensions.values()),
        chunks=tuple(max(1, chunk) for _, chunk in dimensions.values()),
        dtype=dtype,
        compressors=codec,
        dimension_names=list(dimensions),
        config={"write_empty_chunks": True},
    )


def _rechunk(blocks: Iterable[VariantBlock], *, rows: int) -> Iterator[VariantBlock]:
    """Yield the same variants in blocks of ``rows``; the last may be shorter."""
    waiting: list[VariantBlock] = []
    for block in blocks:
        waiting.append(block)
        if sum(map(len, waiting)) >= rows:
            joined = _join(waiting)
            whole = len(joined) // rows * rows
            yield from (joined[start : start + rows] for start in range(0, whole, rows))
            waiting = [joined[whole:]]
    if sum(map(len, waiting)):
        yield _join(waiting)


def _join(blocks: Sequence[VariantBlock]) -> VariantBlock:
    return VariantBlock(**{name: np.concatenate([vars(block)[name] for block in blocks]) for name in vars(blocks[0])})


def _columns(block: VariantBlock, contigs: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Return the values of the arrays that go by variant; variants are named contig:position."""
    missing = block.genotypes < 0
    return {
        "variant_contig": block.contig,
        "variant_position": block.positions,
        "variant_length": np.strings.str_len(block.alleles[:, 0]),
        "variant_id": contigs[block.contig] + ":" + block.positions.astype(TEXT),
        "variant_id_mask": np.zeros(len(block), bool),
        "variant_allele": block.alleles,
        "variant_filter": np.stack([~block.low_quality, block.low_quality], axis=1),
        "call_genotype": block.genotypes,
        "call_genotype_mask": missing,
        "call_genotype_phased": ~missing.any(axis=2),
    }
