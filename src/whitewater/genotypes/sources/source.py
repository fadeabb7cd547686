"""A source of genotypes as the step `ingest` reads it, whichever format it has: parts that a format tells how to read.

A `Part` is what stands together in a format: all variants of a store or of PLINK files, those of a contig, or of a
region of a VCF file. A `Source` is the parts one behind the other, and the samples, which are the same in all.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError, redact, shorten_list
from whitewater.genotypes.genotypes import GENOTYPES_A_BYTE, MISSING_DOSAGE, Genotypes, dosages_of

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)
# Bytes of a block of calls that is read at once, and about those of a range's codes, unless a chunk is larger.
BLOCK_BYTES = 8 << 20

# Text is read in blocks, because as Python's objects it takes many times the memory that it takes in a table.
BLOCK_ROWS = 1 << 17
NONE = ("", ".")
Dosages = npt.NDArray[np.int8]
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

    def add(self, part: Tally) -> None:
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

    ``tables`` yields tables with a row a variant: contig, position, id, reference, alternate, alleles, filter_pass.
    ``encode`` is given the first variant of a range and the one behind its last, rows of codes of a folder of
    genotypes, where all calls are missing at first, and a tally of nothing yet; it fills both.
    """

    variants: int
    ploidy: int
    alleles: int
    rows: int
    block_bytes: int
    tables: Callable[[], Iterable[pd.DataFrame]]
    encode: Callable[[int, int, npt.NDArray[Any], Tally], None]


@dataclass(frozen=True)
class Source:
    """Genotypes of many samples.

    ``samples`` are their names, in the order of the calls; ``origins`` the files, directories and URLs that are read.
    With ``lists_all`` the table of the variants lists every allele that a variant might have, and `encode` returns
    which of them occur in calls.
    """

    parts: tuple[Part, ...]
    samples: tuple[str, ...]
    origins: tuple[str, ...]
    lists_all: bool = False

    @cached_property
    def starts(self) -> list[int]:
        """The first variant of each part, and the one behind the last."""
        starts: list[int] = np.cumsum([0, *(part.variants for part in self.parts)]).tolist()
        return starts

    @property
    def variants(self) -> int:
        """The number of variants."""
        return self.starts[-1]

    @property
    def ploidy(self) -> int:
        """The number of alleles of a call."""
        return self.parts[0].ploidy

    @property
    def block_bytes(self) -> int:
        """Bytes of the largest block of calls that is read at once."""
        return max(part.block_bytes for part in self.parts)

    def variants_table(self) -> pd.DataFrame:
        """Return the tables of all parts as one, see `Part.tables`."""
        import pandas as pd

        return pd.concat([table for part in self.parts for table in part.tables()], ignore_index=True)

    def ranges(self) -> list[tuple[int, int]]:
        """Cut the variants into the units that are read at once; none spans two parts."""
        return [
            (first, min(first + part.rows, stop))
            for part, (start, stop) in zip(self.parts, pairwise(self.starts), strict=True)
            for first in range(start, stop, part.rows)
        ]

    def encode(self, start: int, stop: int, codes: npt.NDArray[Any]) -> Tally:
        """Write the genotypes of one of the `ranges` into rows of codes, see `Part.encode`, and count them."""
        number = int(np.searchsorted(self.starts, start, side="right")) - 1
        tally = self.tally(start, stop)
        self.parts[number].encode(start - self.starts[number], stop - self.starts[number], codes, tally)
        return tally

    def read_dosages(self, start: int, stop: int) -> tuple[Dosages, Tally]:
        """Return the dosages of all samples, int8 (variants, samples), -1 where missing; see `encode`."""
        samples = len(self.samples)
        if self.ploidy != 2:
            dosages = np.full((stop - start, samples), MISSING_DOSAGE, np.int8)
            return dosages, self.encode(start, stop, dosages)
        codes = np.full((stop - start, -(-samples // GENOTYPES_A_BYTE)), 0xFF, np.uint8)
        tally = self.encode(start, stop, codes)
        return dosages_of(Genotypes(codes, samples), np.arange(samples)), tally

    def check_ploidy(self, variants: pd.DataFrame, tally: Tally, *, key: str) -> None:
        """Refuse a ploidy that is that of the smaller part of the calls; warn of calls of another one.

        One triploid call makes all diploid ones count as missing. ``tally`` is that of all ranges, and ``key`` that of
        the configuration that sets the ploidy.

        Raises
        ------
        InputError
            Naming the first call that makes the ploidy what it is.
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


# ---- the table of the variants, from arrays of text and numbers, and names of samples


def row_blocks(rows: int, *, chunk: int) -> Iterator[tuple[int, int]]:
    """Cut rows into blocks of whole chunks."""
    size = chunk * max(1, -(-BLOCK_ROWS // chunk))
    return ((start, min(start + size, rows)) for start in range(0, rows, size))


def sites(
    *, contig: Text, position: npt.NDArray[Any], names: Text | None, alleles: Text, filter_pass: npt.NDArray[np.bool_]
) -> pd.DataFrame:
    """Make rows of the table of variants.

    Parameters
    ----------
    contig, position, names, filter_pass
        (variants,). A name that is empty or ``.`` is missing: such a variant's id is
        contig:position:reference:alternate; None: all are missing.
    alleles
        (variants, alleles): the reference, then its alternates; those that are empty or ``.`` pad the row.

    Returns
    -------
    DataFrame
        contig, position (int64), id, reference, alternate (several are joined by commas), alleles (int32: the number of
        alleles, padding not counted), filter_pass.
    """
    import pandas as pd

    used = np.logical_and.reduce([alleles != none for none in NONE])
    reference, alternate = np.where(used[:, 0], alleles[:, 0], ""), _joined(alleles[:, 1:], used[:, 1:])
    table = pd.DataFrame(
        {
            "contig": pd.Series(contig, dtype="str"),
            "position": position.astype(np.int64),
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


def only_seen(table: pd.DataFrame, seen: npt.NDArray[np.bool_]) -> pd.DataFrame:
    """Return a table that lists all alleles that a variant might have without the alternates that no call holds.

    ``seen``, bool (variants, alleles), says whether a call holds the allele; the reference, which is first, stays
    either way, and so do ids.
    """
    import pandas as pd

    alternates, numbers = [], []
    for start, stop in row_blocks(len(table), chunk=1):
        listed = table["alternate"].iloc[start:stop].str.split(",", expand=True).fillna("").to_numpy(object)
        occurring = seen[start:stop, 1 : listed.shape[1] + 1] & (listed != "")
        alternates.append(pd.Series(_joined(listed, occurring), dtype="str"))
        numbers.append(1 + occurring.sum(axis=1, dtype=np.int32))
    return table.assign(alternate=pd.concat(alternates, ignore_index=True), alleles=np.concatenate(numbers))


def check_unique(names: Iterable[str], *, place: str) -> None:
    """Refuse duplicate names of samples with an InputError that lists them."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{place} names {len(twice)} samples more than once: {shorten_list(twice)}. Results are by "
                         "sample; make the names unique.")  # fmt: skip


def _joined(alleles: Text, used: npt.NDArray[np.bool_]) -> Text:
    """Join the used alleles of each row with commas."""
    joined = np.full(len(alleles), "", object)
    for column, chosen in zip(alleles.T, used.T, strict=True):
        first, further = chosen & (joined == ""), chosen & (joined != "")
        joined[first] = column[first]
        joined[further] += "," + column[further]
    return joined
