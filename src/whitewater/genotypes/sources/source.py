"""A source of genotypes as the step `ingest` reads it, whichever format it has: parts that a format tells how to read.

A `Part` is what stands together in a format: all variants of a store or of PLINK files, those of a contig, or of a
region of a VCF file. A `Source` is the parts one behind the other, and the samples, which are the same in all.
"""

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
from whitewater.genotypes.genotypes import GENOTYPES_A_BYTE, Genotypes, dosages_of

if TYPE_CHECKING:
    from whitewater.io.zarr_arrays import Array

logger = logging.getLogger(__name__)
# Bytes of a block of calls that is read at once, and about those of a range's codes, unless a chunk is larger.
BLOCK_BYTES = 8 << 20
# Text is read in blocks, because as Python's objects it takes many times the memory that it takes in a table.
BLOCK_ROWS = 1 << 17
NONE = ("", ".")
UNWRITTEN = 0xFF  # all bits set is a missing call: code 3 of two bits, and -1 of int8
LARGEST_PLOIDY = 127
MISSING_ALLELE, NOT_CALLED = -1, -2
CODEC = "lz4"
Text = npt.NDArray[np.object_]


@dataclass(frozen=True)
class Tally:
    """Counts of a range of variants, added to while it is encoded.

    ``start`` is its first variant. ``counts``, int32 (variants, ploidy + 2): the samples of each dosage, missing ones
    last. ``missing``, int64 (samples,): missing calls. ``uneven``, int64 (variants,): calls that are missing only
    because they have another number of alleles. ``seen``, bool (variants, alleles): which alleles the calls hold.
    """

    start: int
    counts: npt.NDArray[np.int32]
    missing: npt.NDArray[np.int64]
    uneven: npt.NDArray[np.int64]
    seen: npt.NDArray[np.bool_]

    def add(self, part: "Tally") -> None:
        """Add what a range within this one holds."""
        rows = slice(part.start - self.start, part.start - self.start + len(part.counts))
        self.counts[rows] += part.counts
        self.uneven[rows] += part.uneven
        self.seen[rows] |= part.seen
        self.missing[:] += part.missing


@dataclass(frozen=True)
class Part:
    """Variants that stand together, read a range at a time by any number of workers.

    A range has ``rows`` variants, the last one maybe fewer, and is read in blocks of ``block_bytes`` at most. A variant
    has at most so many ``alleles``, and a call as many as the ``ploidy``.

    ``tables`` return tables as `sites` makes them, one behind the other. ``encode`` is given the first variant of a
    range and the one behind its last, rows of codes of a folder of genotypes, where all calls are missing, which it
    fills, and a tally, to which it adds what codes do not tell.
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
    """Genotypes of many samples.

    ``samples`` are their names, in the order of the calls; ``origins`` the files, directories and URLs that are read.
    With ``lists_all`` the table of the variants lists every allele that a variant might have, and `encode` says which
    of them occur in calls.
    """

    parts: tuple[Part, ...]
    samples: tuple[str, ...]
    origins: tuple[str, ...]
    lists_all: bool = False

    @cached_property
    def starts(self) -> list[int]:
        """The first variant of each part, and the one behind the last."""
        return [*accumulate((part.variants for part in self.parts), initial=0)]

    @property
    def variants(self) -> int:
        return self.starts[-1]

    @property
    def ploidy(self) -> int:
        """The number of alleles of a call."""
        return self.parts[0].ploidy

    @property
    def row_bytes(self) -> int:
        return -(-len(self.samples) // GENOTYPES_A_BYTE) if self.ploidy == 2 else len(self.samples)

    @property
    def block_bytes(self) -> int:
        """Bytes of the largest block of calls that is read at once."""
        return max(part.block_bytes for part in self.parts)

    def variants_table(self) -> "pd.DataFrame":
        """Return the tables of all parts as one, see `Part.tables`."""
        return pd.concat([read() for part in self.parts for read in part.tables], ignore_index=True)

    def ranges(self) -> list[tuple[int, int]]:
        """Cut the variants into the units that are read at once; none spans two parts."""
        return [
            (first, min(first + part.rows, stop))
            for part, (start, stop) in zip(self.parts, pairwise(self.starts), strict=True)
            for first in range(start, stop, part.rows)
        ]

    def encode(self, start: int, stop: int) -> tuple[npt.NDArray[Any], Tally]:
        """Return the codes of one of the `ranges`, as a folder of genotypes has them, and the counts of its calls."""
        from whitewater.genotypes.codes import count_genotypes, count_missing

        number = int(np.searchsorted(self.starts, start, side="right")) - 1
        unwritten = np.full((stop - start, self.row_bytes), UNWRITTEN, np.uint8)
        codes, tally = unwritten.view(np.uint8 if self.ploidy == 2 else np.int8), self.tally(start, stop)
        self.parts[number].encode(start - self.starts[number], stop - self.starts[number], codes, tally)
        genotypes = Genotypes(codes, len(self.samples), self.ploidy)
        tally.counts[:], tally.missing[:] = count_genotypes(Device(), genotypes), count_missing(genotypes)
        return codes, tally

    def read_dosages(self, start: int, stop: int) -> tuple[npt.NDArray[np.int8], Tally]:
        """Return the dosages of all samples, int8 (variants, samples), -1 where missing; see `encode`."""
        (codes, tally), samples = self.encode(start, stop), len(self.samples)
        return dosages_of(Genotypes(codes, samples, self.ploidy), np.arange(samples)), tally

    def check_ploidy(self, variants: "pd.DataFrame", tally: Tally, *, key: str) -> None:
        """Refuse a ploidy that is that of the smaller part of the calls; warn of calls of another one.

        One triploid call makes all diploid ones count as missing. ``tally`` is that of all ranges, and ``key`` that of
        the configuration that sets the ploidy. Raises InputError, naming the first call that makes it what it is.
        """
        other, even = int(tally.uneven.sum()), int(tally.counts[:, :-1].sum(dtype=np.int64))
        if not other:
            return
        what = f"{redact(self.origins[0])}: {other:,} of {other + even:,} calls have not {self.ploidy} alleles"
        concerned = tally.uneven > 0 if other <= even else tally.counts[:, :-1].any(axis=1)
        row = int(concerned.argmax())
        contig, position, name = variants.loc[row, ["contig", "position", "id"]]
        place = f"{contig}:{position} ({name})"
        if other <= even:
            logger.warning("%s and count as missing, the first at %s", what, place)
            return
        first = ""
        if even:
            sample = self.samples[int((self.read_dosages(row, row + 1)[0][0] >= 0).argmax())]
            first = f", the first that has them is that of sample {sample} at {place}"
        raise InputError(f"{what} and would be missing{first}. Correct the calls, or set {key} to the number of "
                         "alleles that a call should have: those with another one are missing then.")  # fmt: skip

    def tally(self, start: int, stop: int) -> Tally:
        """Return a tally of nothing yet, of a range of variants."""
        variants = stop - start
        alleles = max(part.alleles for part in self.parts) if self.lists_all else 0
        return Tally(
            start,
            np.zeros((variants, self.ploidy + 2), np.int32),
            np.zeros(len(self.samples), np.int64),
            np.zeros(variants, np.int64),
            np.zeros((variants, alleles), bool),
        )


def row_blocks(rows: int, *, chunk: int) -> Iterator[slice]:
    """Cut rows into blocks of whole chunks."""
    size = chunk * max(1, -(-BLOCK_ROWS // chunk))
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def sites(
    *, contig: Text | Sequence[str], position: npt.NDArray[Any] | Sequence[int], names: Text | Sequence[str] | None,
    alleles: Text, filter_pass: npt.NDArray[np.bool_] | Sequence[bool],
) -> "pd.DataFrame":  # fmt: skip
    """Make rows of the table of variants.

    ``alleles``, (variants, alleles), are the reference, then its alternates; those that are empty or ``.`` pad the row.
    The columns are contig, position (int64), id, reference, alternate (several are joined by commas), alleles (int32:
    their number, padding not counted) and filter_pass. A variant without a name, which is empty or ``.``, gets the id
    contig:position:reference:alternate; all do where ``names`` is None.
    """
    used = np.logical_and.reduce([alleles != none for none in NONE])
    reference, *alternates = np.where(used, alleles, "").T
    alternate = np.full(len(alleles), "", object)
    for further in alternates:
        alternate += np.where((alternate != "") & (further != ""), ",", "") + further
    table = pd.DataFrame(
        {
            "contig": pd.Series(contig, dtype="str"),
            "position": np.asarray(position, np.int64),
            "id": pd.Series(np.full(len(contig), "", object) if names is None else names, dtype="str"),
            "reference": pd.Series(reference, dtype="str"),
            "alternate": pd.Series(alternate, dtype="str"),
            "alleles": used.sum(axis=1, dtype=np.int32),
            "filter_pass": filter_pass,
        }
    )
    unnamed = table["id"].isin(NONE)
    made = table.loc[unnamed, ["contig", "position", "reference", "alternate"]].astype("str")
    table.loc[unnamed, "id"] = made["contig"].str.cat(made[["position", "reference", "alternate"]], sep=":")
    return table


def only_seen(table: "pd.DataFrame", seen: npt.NDArray[np.bool_]) -> "pd.DataFrame":
    """Return a table that lists all alleles that a variant might have without the alternates that no call holds.

    ``seen``, bool (variants, alleles), says whether a call holds the allele; the reference, which is first, stays
    either way, and so do ids.
    """
    alternates = []
    for rows in row_blocks(len(table), chunk=1):
        listed = table["alternate"].iloc[rows].str.split(",")
        kept = [",".join(compress(names, row)) for names, row in zip(listed, seen[rows, 1:].tolist(), strict=True)]
        alternates.append(pd.Series(kept, dtype="str"))
    alternate = pd.concat(alternates, ignore_index=True)
    numbers = np.where(alternate == "", 1, alternate.str.count(",") + 2)
    return table.assign(alternate=alternate, alleles=numbers.astype(np.int32))


def check_unique(names: Iterable[str], *, place: str) -> None:
    """Refuse duplicate names of samples with an InputError that lists them."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{place} names {len(twice)} samples more than once: {shorten_list(twice)}. Results are by "
                         "sample; make the names unique.")  # fmt: skip


@dataclass(frozen=True)
class Block:
    """Records of a VCF file that follow each other: their calls, read as an array of one chunk, and their table.

    Both are in files; ``place`` is that of the records. ``shape`` may have room for more alleles than are in the file.
    """

    place: str
    path: Path
    contig: str
    first: int
    last: int
    alleles: int
    shape: tuple[int, ...]
    dtype: ClassVar[np.dtype[np.int8]] = np.dtype(np.int8)

    @property
    def chunks(self) -> tuple[int, ...]:
        return self.shape

    def read(self, selection: tuple[slice, slice]) -> npt.NDArray[np.int8]:
        data = pa.input_stream(self.path, compression=CODEC).read()
        calls = np.frombuffer(data, np.int8).reshape(*self.shape[:2], -1)[selection]
        room = self.shape[2] - calls.shape[2]
        return np.pad(calls, ((0, 0), (0, 0), (0, room)), constant_values=NOT_CALLED) if room else calls


def part_of_calls(
    array: "Array | Block", tables: Sequence[Callable[[], "pd.DataFrame"]], *, alleles: int, ploidy: int
) -> Part:
    """Return the variants of an array of called alleles, integers (variants, samples, ploidy), as a part of a source.

    An array of ploidy 1 may be (variants, samples). 0 is the reference, 1 ... are its alternates, -1 is a missing
    allele, and -2 pads a call of a lower ploidy. Calls of another ploidy are missing: than ``ploidy``, or, where that
    is 0, than the largest that the array has room for.

    ``tables`` and ``alleles`` are those of the `Part`.

    Raises InputError if the elements of the array are not signed integers, or its shape is not that of calls.
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
    """Return the variants of a range, and the samples of a block of it: whole chunks, several where they are small."""
    (variants, samples), (all_variants, all_samples) = (tuple(max(1, size) for size in of) for of in (chunks, shape))
    samples = min(samples, all_samples)
    variants *= max(1, min(BLOCK_BYTES // (variants * samples * width), BLOCK_BYTES // (variants * all_samples)))
    samples *= max(1, BLOCK_BYTES // (variants * samples * width))
    return min(variants, all_variants), min(samples, all_samples)


def _encode(
    start: int, stop: int, codes: npt.NDArray[Any], tally: Tally, *, array: "Array | Block", alleles: int, ploidy: int,
    width: int,
) -> None:  # fmt: skip
    """Encode a range, ``width`` samples at a time. A call with a missing allele, or of another ploidy, is missing."""
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
        # A dosage depends on the sign of an allele only, so that the cut loses nothing.
        called = called.clip(NOT_CALLED, np.iinfo(np.int8).max).astype(np.int8) if called.dtype != np.int8 else called
        called = called.reshape(*called.shape[:2], -1)
        if ploidy < called.shape[2] or lowest == NOT_CALLED:
            # Calls with more alleles become missing; those with fewer are so as they are.
            used, longer = called[:, :, :ploidy], (called[:, :, ploidy:] != NOT_CALLED).any(axis=2)
            tally.uneven[:] += ((called[:, :, 0] >= 0) & (longer | (used[:, :, -1] == NOT_CALLED))).sum(axis=1)
            called = np.where(longer[:, :, None], np.int8(MISSING_ALLELE), used)
        encode_alleles(called, first_sample=first, codes=codes)
        for allele in range(min(alleles, tally.seen.shape[1])):
            tally.seen[:, allele] |= (called == allele).any(axis=(1, 2))
