"""Headers of VCF and BCF files, checked before anything is converted: bio2zarr would not say which file is at fault."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from whitewater.check import few
from whitewater.errors import InputError
from whitewater.genomics.sources.sites import check_unique
from whitewater.text_files import open_text

# How a file of bgzip begins, and the empty block that it ends with (SAM specification, section 4.1.2).
BGZIP = b"\x1f\x8b\x08\x04"
BGZIP_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
BCF, BCF_VERSION_BYTES, BCF_LENGTH_BYTES = b"BCF", 2, 4
FORMAT = b"##fileformat=VCF"
GENOTYPE = re.compile(r"##FORMAT=<(.*,)?ID=GT[,>]")
COLUMNS = ("#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT")
SHOWN = 16


def check_headers(files: Sequence[Path]) -> None:
    """Refuse files without a complete header, and files of other samples than those of the first.

    Raises
    ------
    InputError
        Naming the file, and the line or the samples.
    """
    for file in files:
        if not file.is_file():
            raise InputError(f"{file} does not exist. Check the paths of the source vcf.")
        if files.count(file) > 1:
            raise InputError(f"{file} is named twice in the paths of the source vcf. Name it once.")
        _check_end(file)
    first, *others = [_samples(file) for file in files]
    for file, samples in zip(files[1:], others, strict=True):
        if samples != first:
            apart = sorted({*samples} ^ {*first})
            differ = f"{few(apart)} in one of them only" if apart else "in another order"
            raise InputError(
                f"{file} and {files[0]} are not of the same samples: {len(samples)} and {len(first)}, {differ}. "
                "`bcftools view --samples-file` writes those of a list, in its order."
            )


def begins_with(file: Path, magic: bytes) -> bool:
    """Return whether the first bytes of a file are these."""
    with file.open("rb") as opened:
        return opened.read(len(magic)) == magic


def header_lines(file: Path) -> list[bytes]:
    """Return the lines of the header of a VCF or BCF file, compressed or not.

    Raises
    ------
    InputError
        If it begins like no such file, or its compression is damaged.
    """
    with open_text(file) as opened:
        start = opened.read(len(FORMAT))
        if start.startswith(BCF):
            opened.seek(len(BCF) + BCF_VERSION_BYTES)
            size = int.from_bytes(opened.read(BCF_LENGTH_BYTES), "little")
            return opened.read(size).rstrip(b"\0").splitlines()
        opened.seek(0)
        lines = list(takewhile(lambda line: line.startswith(b"#"), opened)) if start == FORMAT else []
    if not lines:
        raise InputError(f"{file} is not a VCF or BCF file: it begins with {start[:SHOWN]!r}, not with "
                         f"{FORMAT.decode()!r}. Check the paths of the source vcf.")  # fmt: skip
    return lines


def _samples(file: Path) -> list[str]:
    """Return the names of the samples of a file with genotypes."""
    *declared, last = _decoded(header_lines(file), file)
    columns = last.rstrip("\r\n").split("\t")
    if tuple(columns[: len(COLUMNS)]) not in (COLUMNS, COLUMNS[:-1]):
        raise InputError(f"{file}: line {len(declared) + 1}, the last of the header, should name the columns "
                         f"{' '.join(COLUMNS)} and of the samples, separated by tabs. Correct it.")  # fmt: skip
    samples = columns[len(COLUMNS) :]
    if not samples or not any(GENOTYPE.match(line) for line in declared):
        raise InputError(f"{file} holds no genotypes: {'no field GT' if samples else 'no sample'} in its header. Give "
                         "the file with the calls.")  # fmt: skip
    check_unique(samples, place=str(file))
    return samples


def _decoded(lines: Sequence[bytes], file: Path) -> list[str]:
    text = []
    for number, line in enumerate(lines, start=1):
        try:
            text.append(line.decode())
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: line {number} of the header is not UTF-8: {line[error.start :][:SHOWN]!r}. "
                             "Convert the file with `iconv`.") from error  # fmt: skip
    return text


def _check_end(file: Path) -> None:
    """Refuse a file of bgzip without its last block: htslib only warns, and reads the records until there."""
    if not begins_with(file, BGZIP):
        return
    with file.open("rb") as opened:
        opened.seek(-min(len(BGZIP_END), file.stat().st_size), os.SEEK_END)
        if opened.read() != BGZIP_END:
            raise InputError(f"{file} is cut off: the block that bgzip writes last is not there. Copy it again.")
