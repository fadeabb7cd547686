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
from whitewater.genotypes.sources.source import BLOCK_BYTES, Part, Source, Tally, check_unique, make_variants

MAGIC, VARIANT_MAJOR = b"\x6c\x1b", 1
HEADER = 3
COLUMNS = {
    ".bim": ["chromosome", "identifier", "centimorgans", "position", "A1", "A2"],
    ".fam": ["family", "individual", "father", "mother", "sex", "phenotype"],
}


def open_plink(prefix: str) -> Source:
    """Open PLINK files by their path without suffix. The alternate allele, whose dosage is counted, is A1.

    Raises InputError if a file is missing or malformed, a sample is listed twice, or the sizes of the files disagree.
    """
    if "://" in prefix:
        raise InputError(f"{redact(prefix)}: PLINK files are read from local paths only. Download them first.")
    path = Path(prefix).expanduser()
    bed, bim, fam = files = [path.with_name(path.name + suffix) for suffix in (".bed", ".bim", ".fam")]
    _check_files_exist(path, files)
    people, variants = _read(fam), len(_read(bim))
    # If the names of individuals are not unique, prefix them with their family's.
    names = people["individual"] if people["individual"].is_unique else people["family"] + ":" + people["individual"]
    check_unique(names, place=str(fam))
    _check_bed(bed, variants=variants, samples=len(names))
    row_bytes = -(-len(names) // GENOTYPES_A_BYTE)
    rows = min(max(1, BLOCK_BYTES // max(1, row_bytes)), max(1, variants))
    encode = partial(_encode, bed=bed, samples=len(names))
    part = Part(variants, 2, 2, rows, rows * row_bytes, [partial(_read_variants, bim)], encode)
    return Source((part,), tuple(names), tuple(map(str, files)))


def _read_variants(bim: Path) -> "pd.DataFrame":
    """Return the variants table. Allele 0 is a missing one; every variant passes the filter."""
    table = _read(bim)
    valid = table["position"].str.fullmatch(r"\d{1,18}")
    if not valid.all():
        line = int((~valid).argmax())
        raise InputError(f"{bim}: line {line + 1} has the position {table['position'].iloc[line]!r}. It should be "
                         "the number of a base, or 0 if unknown. Correct it; `plink --make-bed` drops variants of "
                         "negative positions.")  # fmt: skip
    alleles = table[["A2", "A1"]].to_numpy(object)
    alleles[alleles == "0"] = ""
    contig, position, ids = (table[name].to_numpy(object) for name in ("chromosome", "position", "identifier"))
    filter_pass = np.ones(len(table), bool)
    return make_variants(contig=contig, position=position, ids=ids, alleles=alleles, filter_pass=filter_pass)


def _encode(start: int, stop: int, codes: npt.NDArray[Any], _: Tally, *, bed: Path, samples: int) -> None:
    """Encode a range of variants; every call is diploid."""
    from whitewater.genotypes.codes import encode_bed

    row_bytes = codes.shape[1]
    data = np.fromfile(bed, np.uint8, (stop - start) * row_bytes, offset=HEADER + start * row_bytes)
    if len(data) != codes.size:
        raise IntegrityError(f"{bed} ends before variant {stop}: it was changed while it was read. Run again.")
    rows = data.reshape(codes.shape)
    used = samples % GENOTYPES_A_BYTE
    if used and (rows[:, -1] >> (2 * used)).any():  # PLINK leaves these bits 0
        raise InputError(f"{bed} holds genotypes of more samples than the {samples:,} in the .fam: it lacks lines, or "
                         "these files are not of one data set.")  # fmt: skip
    codes[:] = encode_bed(rows, samples=samples)


def _check_files_exist(prefix: Path, files: list[Path]) -> None:
    """Raise InputError if a file is missing, and suggest similar prefixes in the folder."""
    if not (missing := [file.name for file in files if not file.is_file()]):
        return
    stems = sorted({bed.stem for bed in prefix.parent.glob("*.bed")} - {prefix.name})
    similar = [str(prefix.with_name(name)) for name in difflib.get_close_matches(prefix.name, stems)]
    hint = f" Did you mean {' or '.join(similar)}?" if similar else ""
    raise InputError(f"{prefix}, the prefix of PLINK files, lacks {', '.join(missing)} in {prefix.parent}.{hint} Give "
                     "the path of three files without their suffixes.")  # fmt: skip


def _read(path: Path) -> "pd.DataFrame":
    """Read a text table with six fields per line."""
    names = COLUMNS[path.suffix]
    try:
        table = pd.read_csv(path, sep=r"\s+", header=None, dtype=str, na_filter=False, quoting=csv.QUOTE_NONE)
    except pd.errors.EmptyDataError as error:
        raise InputError(f"{path} is empty. Give the file that belongs to the .bed.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}. It should be UTF-8 text of six fields per line.") from error
    if len(table.columns) != len(names):
        raise InputError(f"{path} has {len(table.columns)} fields per line, but should have {', '.join(names)}.")
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
        raise InputError(f"{path} is in the sample-major order of PLINK before 2008. Rewrite it with "
                         "`plink1.9 --make-bed`.")  # fmt: skip
    row_bytes = -(-samples // GENOTYPES_A_BYTE)
    if size == HEADER + variants * row_bytes:
        return
    hint = ""
    bytes_a_variant, rest = divmod(size - HEADER, max(1, variants))
    variants_by_size, rest_of_row = divmod(size - HEADER, max(1, row_bytes))
    if bytes_a_variant and not rest:
        most = GENOTYPES_A_BYTE * bytes_a_variant
        hint = f" For as many variants it holds {most - 3:,} to {most:,} samples: check the .fam for missing lines."
    elif not rest_of_row:
        hint = f" For as many samples it holds {variants_by_size:,} variants: check the .bim for missing lines."
    raise InputError(f"{path} has {size:,} bytes, but {variants:,} variants in the .bim and {samples:,} samples in the "
                     f".fam make {HEADER + variants * row_bytes:,}.{hint} The file is truncated, or these files are "
                     "not of one data set.")  # fmt: skip
