"""PLINK 1 files: .bed, .bim and .fam (https://www.cog-genomics.org/plink/1.9/formats)."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError, IntegrityError
from whitewater.genotypes.sources.sites import check_unique, sites
from whitewater.genotypes.sources.source import BLOCK_BYTES, Source, Tally
from whitewater.io.redaction import redact

if TYPE_CHECKING:
    import pandas as pd

MAGIC, VARIANT_MAJOR = b"\x6c\x1b", 1
HEADER = 3
GENOTYPES_A_BYTE = 4
COLUMNS = {
    ".bim": ("chromosome", "identifier", "centimorgans", "position", "A1", "A2"),
    ".fam": ("family", "individual", "father", "mother", "sex", "phenotype"),
}
NO_ALLELE = "0"
SUFFIXES = (".bed", ".bim", ".fam")


@dataclass(frozen=True)
class Bed:
    """The genotypes of PLINK files, a `Part` of a source: the dosage is that of A1, which is the alternate."""

    prefix: str
    samples: int
    variants: int
    ploidy: int = 2
    alleles: int = 2

    @property
    def rows(self) -> int:
        """Variants of a range of some megabytes."""
        return min(max(1, BLOCK_BYTES // max(1, self.row_bytes)), max(1, self.variants))

    @property
    def row_bytes(self) -> int:
        """Bytes of a variant."""
        return -(-self.samples // GENOTYPES_A_BYTE)

    @property
    def block_bytes(self) -> int:
        """Bytes of a range."""
        return self.rows * self.row_bytes

    def tables(self) -> Iterator[pd.DataFrame]:
        """Yield the table of the variants, see `Part.tables`; allele 0 is none, and every variant passes.

        Raises InputError if a position is not an integer.
        """
        bim, path = _read(self.prefix, ".bim"), _file(self.prefix, ".bim")
        numbers = bim["position"].str.fullmatch(r"\d{1,18}")
        if not numbers.all():
            line = int((~numbers).argmax())
            raise InputError(f"{path}: line {line + 1} has the position {bim['position'].iloc[line]!r}, but should "
                             "have the number of a base, or 0 where it is not known. Correct it; `plink --make-bed` "
                             "leaves out variants of negative positions.")  # fmt: skip
        alleles = bim[["A2", "A1"]].to_numpy(object)
        alleles[alleles == NO_ALLELE] = ""
        yield sites(
            contig=bim["chromosome"].to_numpy(object),
            position=bim["position"].to_numpy(object),
            names=bim["identifier"].to_numpy(object),
            alleles=alleles,
            filter_pass=np.ones(len(bim), bool),
        )

    def encode(self, start: int, stop: int, codes: npt.NDArray[Any], tally: Tally) -> None:
        """Encode a range, see `Part.encode`; every call is diploid.

        Raises InputError if the file holds more samples than the .fam names, and IntegrityError if the file has become
        shorter since it was opened.
        """
        from whitewater.genotypes.encode import encode_bed

        path, size = _file(self.prefix, ".bed"), (stop - start) * self.row_bytes
        bed = np.fromfile(path, np.uint8, size, offset=HEADER + start * self.row_bytes)
        if len(bed) != size:
            raise IntegrityError(f"{path} ends before variant {stop}: it was changed while it was read. Run again.")
        bed = bed.reshape(-1, self.row_bytes)
        used = self.samples % GENOTYPES_A_BYTE
        if used and (bed[:, -1] >> (2 * used)).any():  # PLINK leaves these bits 0
            raise InputError(f"{path} holds genotypes of more samples than the {self.samples:,} in the .fam: it "
                             "lacks lines, or these files are not of one data set.")  # fmt: skip
        encode_bed(bed, samples=self.samples, codes=codes, counts=tally.counts, missing=tally.missing)


def open_plink(prefix: str) -> Source:
    """Open PLINK files by their path without suffix.

    Raises InputError if one is missing, is not text, or has lines of too few fields or a sample twice, or the .bed is
    not one of variants, or of another size than the others tell.
    """
    if "://" in prefix:
        raise InputError(f"{redact(prefix)}: PLINK files are read from local paths only. Download them first.")
    _check_there(prefix)
    fam, bim = _read(prefix, ".fam"), _read(prefix, ".bim")
    # Names of families tell individuals apart where their own do not.
    names = fam["individual"] if fam["individual"].is_unique else fam["family"] + ":" + fam["individual"]
    samples = tuple(names)
    check_unique(samples, place=str(_file(prefix, ".fam")))
    bed = Bed(prefix, len(samples), len(bim))
    _check_bed(bed)
    return Source((bed,), samples, tuple(str(_file(prefix, suffix)) for suffix in SUFFIXES))


def _file(prefix: str, suffix: str) -> Path:
    path = Path(prefix).expanduser()
    return path.with_name(path.name + suffix)


def _check_there(prefix: str) -> None:
    """Refuse a prefix whose files are missing, and suggest prefixes in its folder that look like it."""
    absent = [file.name for suffix in SUFFIXES if not (file := _file(prefix, suffix)).is_file()]
    if not absent:
        return
    path = Path(prefix).expanduser()
    near = difflib.get_close_matches(path.name, sorted({each.stem for each in path.parent.glob("*.bed")} - {path.name}))
    meant = f" Did you mean {' or '.join(str(path.with_name(name)) for name in near)}?" if near else ""
    raise InputError(f"{path}, the prefix of PLINK files, lacks {', '.join(absent)} in {path.parent}.{meant} Give the "
                     "path of three files without their suffixes.")  # fmt: skip


def _read(prefix: str, suffix: str) -> pd.DataFrame:
    """Read a table of six fields a line, as text."""
    import pandas as pd

    path, names = _file(prefix, suffix), COLUMNS[suffix]
    try:
        table = pd.read_csv(path, sep=r"\s+", header=None, dtype=str, na_filter=False, quoting=csv.QUOTE_NONE)
    except pd.errors.EmptyDataError as error:
        raise InputError(f"{path} is empty. Give the file that belongs to the .bed.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}. It should have six fields in each line, as UTF-8 "
                         "text.") from error  # fmt: skip
    if len(table.columns) != len(names):
        raise InputError(f"{path} has {len(table.columns)} fields in a line, but should have {', '.join(names)}.")
    table.columns = pd.Index(names)
    short = table[names[-1]] == ""
    if short.any():
        raise InputError(f"{path}: line {int(short.argmax()) + 1} has too few fields; it should have six: "
                         f"{', '.join(names)}.")  # fmt: skip
    return table


def _check_bed(bed: Bed) -> None:
    path = _file(bed.prefix, ".bed")
    try:
        with path.open("rb") as file:
            head = file.read(HEADER)
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}. Check its permissions.") from error
    if head[:2] != MAGIC:
        raise InputError(f"{path} is not a .bed of PLINK 1: it begins with {head!r}. Give the file that PLINK wrote.")
    if head[2] != VARIANT_MAJOR:
        raise InputError(f"{path} holds rows of samples, which PLINK wrote before 2008. Rewrite it with "
                         "`plink1.9 --make-bed`.")  # fmt: skip
    expected = HEADER + bed.variants * bed.row_bytes
    if size == expected:
        return
    row_bytes, left = divmod(size - HEADER, max(1, bed.variants))
    variants, left_of_row = divmod(size - HEADER, max(1, bed.row_bytes))
    fitting = ""
    if row_bytes and not left:
        fewest, most = GENOTYPES_A_BYTE * (row_bytes - 1) + 1, GENOTYPES_A_BYTE * row_bytes
        fitting = f" With as many variants it holds {fewest:,} to {most:,} samples: check for lines of the .fam."
    elif not left_of_row:
        fitting = f" With as many samples it holds {variants:,} variants: check for lines of the .bim."
    raise InputError(f"{path} has {size:,} bytes, but {bed.variants:,} variants in the .bim and {bed.samples:,} "
                     f"samples in the .fam make {expected:,}.{fitting} The file is cut off, or these files are not of "
                     "one data set.")  # fmt: skip
