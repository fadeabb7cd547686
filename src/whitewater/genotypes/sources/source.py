"""A source of genotypes in any format: a list of parts with the same samples."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, compress, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater import lazy_pandas as pd
from whitewater.engines import Device
from whitewater.errors import InputError, redact, shorten_list
from whitewater.genotypes.genotypes import GENOTYPES_A_BYTE, Genotypes, extract_dosages

if TYPE_CHECKING:
    from whitewater.io.zarr_arrays import Array

logger = logging.getLogger(__name__)
# Bytes of a block of calls that is read at once, and approximately of a range's codes, unless a chunk is larger.
BLOCK_BYTES = 8 << 20
# Text is read in blocks, because Python strings take many times the memory of a table.
BLOCK_ROWS = 1 << 17
NO_NAME = ("", ".")
ALL_MISSING = 0xFF  # all bits set is a missing call: code 3 of two bits, and -1 of int8
LARGEST_PLOIDY = 127
MISSING_ALLELE, NOT_CALLED = -1, -2
CODEC = "lz4"
Text = npt.NDArray[np.object_]


@dataclass(frozen=True)
class Tally:
    """Counts over a range of variants."""

    start: int  # the first variant
    counts: npt.NDArray[np.int32]  # (variants, ploidy + 2): samples of each dosage, then missing calls
    missing: npt.NDArray[np.int64]  # (samples,): missing calls
    other_ploidy: npt.NDArray[np.int64]  # (variants,): calls that are missing only because of their ploidy
    seen_alleles: npt.NDArray[np.bool_]  # (variants, alleles): whether an allele occurs in calls

    def add(self, part: "Tally") -> None:
        """Add the counts of a range within this one."""
        rows = slice(part.start - self.start, part.start - self.start + len(part.counts))
        self.counts[rows] += part.counts
        self.other_ploidy[rows] += part.other_ploidy
        self.seen_alleles[rows] |= part.seen_alleles
        self.missing[:] += part.missing


@dataclass(frozen=True)
class Part:
    """Consecutive variants, which any number of workers read a range at a time.

    They are all of a store or of PLINK files, or those of a contig, or of a region of a VCF file. A range has ``rows``
    variants and is read in blocks of at most ``block_bytes``. ``alleles`` is the most that a variant has. ``tables``
    return successive rows of the table of `make_variants`. ``encode`` takes the start and the stop of a range, its
    codes, which it fills (all are missing before), and its tally, to which it adds what cannot be counted in codes.
    """

    variants: int
    ploidy: int
    alleles: int
    rows: int
    block_bytes: int
    tables: Sequence[Callable[[], "pd.DataFrame"]]
    encode: Callable[[int, int, npt.NDArray[Any], Tally], None]


@dataclass(frozen=True)
class Source:
    """Genotypes of many samples."""

    parts: tuple[Part, ...]
    samples: tuple[str, ...]  # their names, in the order of the calls
    origins: tuple[str, ...]  # the files, directories and URLs that are read
    lists_all_alleles: bool = False  # whether the variants table lists alleles that may occur in no call

    @cached_property
    def starts(self) -> list[int]:
        """The first variant of each part, then the number of all variants."""
        return [*accumulate((part.variants for part in self.parts), initial=0)]

    @property
    def variants(self) -> int:
        return self.starts[-1]

    @property
    def ploidy(self) -> int:
        return self.parts[0].ploidy

    @property
    def row_bytes(self) -> int:
        return -(-len(self.samples) // GENOTYPES_A_BYTE) if self.ploidy == 2 else len(self.samples)

    def variants_table(self) -> "pd.DataFrame":
        return pd.concat([read() for part in self.parts for read in part.tables], ignore_index=True)

    def ranges(self) -> list[tuple[int, int]]:
        """Split the variants into ranges to read at once, none of which spans two parts."""
        return [
            (first, min(first + part.rows, stop))
            for part, (start, stop) in zip(self.parts, pairwise(self.starts), strict=True)
            for first in range(start, stop, part.rows)
        ]

    def encode(self, start: int, stop: int) -> tuple[npt.NDArray[Any], Tally]:
        """Return the codes of one of the `ranges`, in the layout of a folder of genotypes, and its tally."""
        from whitewater.genotypes.codes import count_genotypes, count_missing

        number = int(np.searchsorted(self.starts, start, side="right")) - 1
        missing = np.full((stop - start, self.row_bytes), ALL_MISSING, np.uint8)
        codes, tally = missing.view(np.uint8 if self.ploidy == 2 else np.int8), self.tally(start, stop)
        self.parts[number].encode(start - self.starts[number], stop - self.starts[number], codes, tally)
        genotypes = Genotypes(codes, len(self.samples), self.ploidy)
        tally.counts[:], tally.missing[:] = count_genotypes(Device(), genotypes), count_missing(genotypes)
        return codes, tally

    def read_dosages(self, start: int, stop: int) -> tuple[npt.NDArray[np.int8], Tally]:
        """Return the dosages of all samples, int8 (variants, samples), -1 if missing; see `encode`."""
        (codes, tally), samples = self.encode(start, stop), len(self.samples)
        return extract_dosages(Genotypes(codes, samples, self.ploidy), np.arange(samples)), tally

    def check_ploidy(self, variants: "pd.DataFrame", tally: Tally, *, key: str) -> None:
        """Warn about calls of another ploidy. Raises InputError if they are the majority.

        A single triploid call sets the ploidy to 3, so that all diploid calls would be missing. The error names the
        first such call. ``tally`` covers all variants; ``key`` is the setting of the ploidy.
        """
        other, same = int(tally.other_ploidy.sum()), int(tally.counts[:, :-1].sum(dtype=np.int64))
        if not other:
            return
        problem = f"{redact(self.origins[0])}: {other:,} of {other + same:,} calls do not have {self.ploidy} alleles"
        affected = tally.other_ploidy > 0 if other <= same else tally.counts[:, :-1].any(axis=1)
        row = int(affected.argmax())
        contig, position, name = variants.loc[row, ["contig", "position", "id"]]
        variant = f"{contig}:{position} ({name})"
        if other <= same:
            logger.warning("%s and count as missing, the first at %s", problem, variant)
            return
        first = ""
        if same:
            sample = self.samples[int((self.read_dosages(row, row + 1)[0][0] >= 0).argmax())]
            first = f"; the first call with {self.ploidy} is that of sample {sample} at {variant}"
        raise InputError(f"{problem} and would count as missing{first}. Correct the calls, or set {key} to the number "
                         "of alleles that a call should have; calls with another number are then missing.")  # fmt: skip

    def tally(self, start: int, stop: int) -> Tally:
        """Return a tally of zeros for a range of variants."""
        variants = stop - start
        alleles = max(part.alleles for part in self.parts) if self.lists_all_alleles else 0
        return Tally(
            start,
            np.zeros((variants, self.ploidy + 2), np.int32),
            np.zeros(len(self.samples), np.int64),
            np.zeros(variants, np.int64),
            np.zeros((variants, alleles), bool),
        )


def row_blocks(rows: int, *, chunk: int) -> Iterator[slice]:
    """Split rows into blocks of whole chunks."""
    size = chunk * max(1, -(-BLOCK_ROWS // chunk))
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def make_variants(
    *, contig: Text | Sequence[str], position: npt.NDArray[Any] | Sequence[int], ids: Text | Sequence[str] | None,
    alleles: Text, filter_pass: npt.NDArray[np.bool_] | Sequence[bool],
) -> "pd.DataFrame":  # fmt: skip
    """Return rows of the variants table.

    ``alleles``, (variants, alleles), are the reference, then the alternates, padded with empty text or ``.``. Variants
    whose id is empty or ``.``, or all if ``ids`` is None, get the id contig:position:reference:alternate. The columns
    are contig, position (int64), id, reference, alternate (joined by commas), alleles (int32: their number) and
    filter_pass.
    """
    used = np.logical_and.reduce([alleles != name for name in NO_NAME])
    reference, *alternates = np.where(used, alleles, "").T
    alternate = np.full(len(alleles), "", object)
    for allele in alternates:
        alternate += np.where((alternate != "") & (allele != ""), ",", "") + allele
    table = pd.DataFrame(
        {
            "contig": pd.Series(contig, dtype="str"),
            "position": np.asarray(position, np.int64),
            "id": pd.Series(np.full(len(contig), "", object) if ids is None else ids, dtype="str"),
            "reference": pd.Series(reference, dtype="str"),
            "alternate": pd.Series(alternate, dtype="str"),
            "alleles": used.sum(axis=1, dtype=np.int32),
            "filter_pass": filter_pass,
        }
    )
    unnamed = table["id"].isin(NO_NAME)
    parts = table.loc[unnamed, ["contig", "position", "reference", "alternate"]].astype("str")
    table.loc[unnamed, "id"] = parts["contig"].str.cat(parts[["position", "reference", "alternate"]], sep=":")
    return table


def drop_unseen_alleles(table: "pd.DataFrame", seen: npt.NDArray[np.bool_]) -> "pd.DataFrame":
    """Remove alternates that occur in no call from a variants table; references and ids stay.

    ``seen``, bool (variants, alleles), says which alleles occur.
    """
    alternates = []
    for rows in row_blocks(len(table), chunk=1):
        names = table["alternate"].iloc[rows].str.split(",")
        kept = [",".join(compress(row, used)) for row, used in zip(names, seen[rows, 1:].tolist(), strict=True)]
        alternates.append(pd.Series(kept, dtype="str"))
    alternate = pd.concat(alternates, ignore_index=True)
    alleles = np.where(alternate == "", 1, alternate.str.count(",") + 2)
    return table.assign(alternate=alternate, alleles=alleles.astype(np.int32))


def check_unique(names: Iterable[str], *, place: str) -> None:
    """Raise InputError with the names that occur twice."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(f"{place} names {len(twice)} samples more than once: {shorten_list(twice)}. Results are by "
                         "sample; make the names unique.")  # fmt: skip


@dataclass(frozen=True)
class Block:
    """Consecutive records of a VCF file, written to a file of calls, which reads as an array of one chunk."""

    place: str  # the VCF file
    path: Path  # the file of calls
    contig: str
    first: int
    last: int
    alleles: int
    shape: tuple[int, ...]  # with room for as many alleles per call as any block has
    dtype: ClassVar[np.dtype[np.int8]] = np.dtype(np.int8)

    @property
    def chunks(self) -> tuple[int, ...]:
        return self.shape

    def read(self, selection: tuple[slice, slice]) -> npt.NDArray[np.int8]:
        data = pa.input_stream(self.path, compression=CODEC).read()
        calls = np.frombuffer(data, np.int8).reshape(*self.shape[:2], -1)[selection]
        room = self.shape[2] - calls.shape[2]
        return np.pad(calls, ((0, 0), (0, 0), (0, room)), constant_values=NOT_CALLED) if room else calls


def make_part(
    array: "Array | Block", tables: Sequence[Callable[[], "pd.DataFrame"]], *, alleles: int, ploidy: int
) -> Part:
    """Return an array of called alleles, integers (variants, samples, ploidy), as a part of a source.

    An array of ploidy 1 may be (variants, samples). Allele 0 is the reference, 1 ... are the alternates, -1 is missing,
    and -2 pads a call of a lower ploidy. Calls of another ploidy than ``ploidy`` are missing; 0 stands for the largest
    that the array has room for. ``tables`` and ``alleles`` are those of the `Part`.

    Raises InputError if the array has another type or shape.
    """
    if array.dtype.kind != "i":
        raise InputError(f"{array.place} holds {array.dtype}, not signed integers: it holds no called alleles.")
    variants, width = array.shape[0], array.shape[2] if len(array.shape) == 3 else 1
    if len(array.shape) not in (2, 3) or not 1 <= width <= LARGEST_PLOIDY:
        raise InputError(f"{array.place} has the shape {array.shape}; it should be (variants, samples, ploidy), of "
                         f"ploidy 1 to {LARGEST_PLOIDY}.")  # fmt: skip
    if ploidy > width:
        raise InputError(f"{array.place} holds calls of {width} alleles at most, but the ploidy is set to {ploidy}. "
                         f"Set it to {width} or less.")  # fmt: skip
    rows, samples = block_shape(array.shape[:2], array.chunks[:2], width=width)
    ploidy, block_bytes = ploidy or width, rows * samples * width * array.dtype.itemsize
    encode = partial(_encode, array=array, alleles=alleles, ploidy=ploidy, width=samples)
    return Part(variants, ploidy, alleles, rows, block_bytes, tables, encode)


def block_shape(shape: tuple[int, ...], chunks: tuple[int, ...], *, width: int) -> tuple[int, int]:
    """Return the variants of a range, and the samples per block of it: whole chunks, several if they are small."""
    (variants, samples), (all_variants, all_samples) = np.maximum([chunks, shape], 1).tolist()
    samples = min(samples, all_samples)
    variants *= max(1, min(BLOCK_BYTES // (variants * samples * width), BLOCK_BYTES // (variants * all_samples)))
    samples *= max(1, BLOCK_BYTES // (variants * samples * width))
    return min(variants, all_variants), min(samples, all_samples)


def _encode(
    start: int, stop: int, codes: npt.NDArray[Any], tally: Tally, *, array: "Array | Block", alleles: int, ploidy: int,
    width: int,
) -> None:  # fmt: skip
    """Encode a range, ``width`` samples at a time. Calls of another ploidy or with a missing allele are missing."""
    from whitewater.genotypes.codes import encode_alleles

    for first in range(0, array.shape[1], width):
        called = array.read((slice(start, stop), slice(first, first + width)))
        lowest, highest = called.min(), called.max()
        if highest >= alleles or lowest < NOT_CALLED:
            raise InputError(
                f"{array.place} holds the alleles {lowest} to {highest} in variants {start} to {stop - 1}, but the "
                f"variants have at most {alleles} alleles, and -1 and -2 are missing ones. The store is damaged, or of "
                "another layout."
            )
        # A dosage depends only on the sign of an allele, so clipping to int8 loses nothing.
        called = called.clip(NOT_CALLED, np.iinfo(np.int8).max).astype(np.int8) if called.dtype != np.int8 else called
        called = called.reshape(*called.shape[:2], -1)
        if ploidy < called.shape[2] or lowest == NOT_CALLED:
            # Longer calls become missing here. Shorter ones already are, because -2 pads them.
            used, longer = called[:, :, :ploidy], (called[:, :, ploidy:] != NOT_CALLED).any(axis=2)
            tally.other_ploidy[:] += ((called[:, :, 0] >= 0) & (longer | (used[:, :, -1] == NOT_CALLED))).sum(axis=1)
            called = np.where(longer[:, :, None], np.int8(MISSING_ALLELE), used)
        encode_alleles(called, first_sample=first, codes=codes)
        for allele in range(min(alleles, tally.seen_alleles.shape[1])):
            tally.seen_alleles[:, allele] |= (called == allele).any(axis=(1, 2))
