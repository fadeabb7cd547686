"""PLINK 1 files: .bed, .bim and .fam (https://www.cog-genomics.org/plink/1.9/formats)."""

import csv
import difflib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater import lazy_pandas as pd
from whitewater.errors import InputError, IntegrityError, redact
from whitewater.genotypes.genotypes import GENOTYPES_A_BYTE
from whitewater.genotypes.sources.source import BLOCK_BYTES, Part, Source, Tally, check_unique, sites

MAGIC, VARIANT_MAJOR = b"\x6c\x1b", 1
HEADER = 3
COLUMNS = {
    ".bim": ["chromosome", "identifier", "centimorgans", "position", "A1", "A2"],
    ".fam": ["family", "individual", "father", "mother", "sex", "phenotype"],
}


def open_plink(prefix: str) -> Source:
    """Open PLINK files by their path without suffix. The dosage is that of A1, which is the alternate.

    Raises InputError if one is missing, is not text, or has lines of too few fields or a sample twice, or the .bed is
    not one of variants, or of another size than the others tell.
    """
    if "://" in prefix:
        raise InputError(f"{redact(prefix)}: PLINK files are read from local paths only. Download them first.")
    path = Path(prefix).expanduser()
    bed, bim, fam = files = [path.with_name(path.name + suffix) for suffix in (".bed", ".bim", ".fam")]
    _check_there(path, files)
    people, variants = _read(fam), len(_read(bim))
    # Names of families tell individuals apart where their own do not.
    names = people["individual"] if people["individual"].is_unique else people["family"] + ":" + people["individual"]
    check_unique(names, place=str(fam))
    _check_bed(bed, variants=variants, samples=len(names))
    row_bytes = -(-len(names) // GENOTYPES_A_BYTE)
    rows = min(max(1, BLOCK_BYTES // max(1, row_bytes)), max(1, variants))
    encode = partial(_encode, bed=bed, samples=len(names))
    part = Part(variants, 2, 2, rows, rows * row_bytes, [partial(_table, bim)], encode)
    return Source((part,), tuple(names), tuple(map(str, files)))


def _table(bim: Path) -> "pd.DataFrame":
    """Return the table of the variants; allele 0 is none, and every variant passes."""
    table = _read(bim)
    numbers = table["position"].str.fullmatch(r"\d{1,18}")
    if not numbers.all():
        line = int((~numbers).argmax())
        raise InputError(f"{bim}: line {line + 1} has the position {table['position'].iloc[line]!r}, but should have "
                         "the number of a base, or 0 where it is not known. Correct it; `plink --make-bed` leaves out "
                         "variants of negative positions.")  # fmt: skip
    alleles = table[["A2", "A1"]].to_numpy(object)
    alleles[alleles == "0"] = ""
    contig, position, names = (table[name].to_numpy(object) for name in ("chromosome", "position", "identifier"))
    passed = np.ones(len(table), bool)
    return sites(contig=contig, position=position, names=names, alleles=alleles, filter_pass=passed)


def _encode(start: int, stop: int, codes: npt.NDArray[Any], _: Tally, *, bed: Path, samples: int) -> None:
    """Encode a range; every call is diploid."""
    from whitewater.genotypes.codes import encode_bed

    row_bytes = codes.shape[1]
    read = np.fromfile(bed, np.uint8, (stop - start) * row_bytes, offset=HEADER + start * row_bytes)
    if len(read) != codes.size:
        raise IntegrityError(f"{bed} ends before variant {stop}: it was changed while it was read. Run again.")
    rows = read.reshape(codes.shape)
    used = samples % GENOTYPES_A_BYTE
    if used and (rows[:, -1] >> (2 * used)).any():  # PLINK leaves these bits 0
        raise InputError(f"{bed} holds genotypes of more samples than the {samples:,} in the .fam: it lacks lines, or "
                         "these files are not of one data set.")  # fmt: skip
    codes[:] = encode_bed(rows, samples=samples)


def _check_there(prefix: Path, files: list[Path]) -> None:
    """Refuse a prefix whose files are missing, and suggest prefixes in its folder that look like it."""
    absent = [file.name for file in files if not file.is_file()]
    if not absent:
        return
    stems = sorted({each.stem for each in prefix.parent.glob("*.bed")} - {prefix.name})
    near = [str(prefix.with_name(name)) for name in difflib.get_close_matches(prefix.name, stems)]
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    raise InputError(f"{prefix}, the prefix of PLINK files, lacks {', '.join(absent)} in {prefix.parent}.{meant} Give "
                     "the path of three files without their suffixes.")  # fmt: skip


def _read(path: Path) -> "pd.DataFrame":
    """Read a table of six fields a line, as text."""
    names = COLUMNS[path.suffix]
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
        line = int(short.argmax()) + 1
        raise InputError(f"{path}: line {line} has too few fields; it should have six: {', '.join(names)}.")
    return table


def _check_bed(path: Path, *, variants: int, samples: int) -> None:
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
    row_bytes = -(-samples // GENOTYPES_A_BYTE)
    if size == HEADER + variants * row_bytes:
        return
    fitting = ""
    held_bytes, left = divmod(size - HEADER, max(1, variants))
    held_variants, left_of_row = divmod(size - HEADER, max(1, row_bytes))
    if held_bytes and not left:
        fewest, most = GENOTYPES_A_BYTE * (held_bytes - 1) + 1, GENOTYPES_A_BYTE * held_bytes
        fitting = f" With as many variants it holds {fewest:,} to {most:,} samples: check for lines of the .fam."
    elif not left_of_row:
        fitting = f" With as many samples it holds {held_variants:,} variants: check for lines of the .bim."
    raise InputError(f"{path} has {size:,} bytes, but {variants:,} variants in the .bim and {samples:,} samples in the "
                     f".fam make {HEADER + variants * row_bytes:,}.{fitting} The file is cut off, or these files are "
                     "not of one data set.")  # fmt: skip
