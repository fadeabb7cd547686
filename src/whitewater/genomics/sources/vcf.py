"""VCF files, converted to VCF Zarr by bio2zarr, which reads them with cyvcf2."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from whitewater.config.genomics import Vcz
from whitewater.errors import InputError
from whitewater.genomics.sources.vcz import CALLS, VczSource, open_vcz

# Fields of the header's INFO and FORMAT are not needed, and often many times as large as the calls.
POSITION = "POS"
VARIABLE = "ZARR_ARRAY__WRITE_EMPTY_CHUNKS"
# How a file of bgzip begins, and the empty block that it ends with (SAM specification, section 4.1.2).
BGZIP = b"\x1f\x8b\x08\x04"
BGZIP_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


@dataclass(frozen=True)
class VcfSource(VczSource):
    """Converted VCF files, see `Source`."""

    paths: tuple[str, ...] = ()

    def origins(self) -> tuple[str, ...]:
        """Return the VCF files."""
        return self.paths


def open_vcf(paths: Sequence[str], *, scratch: Path, threads: int) -> VcfSource:
    """Convert VCF or BCF files to VCF Zarr, and open that.

    Parameters
    ----------
    paths
        Files of the same samples. A file of several contigs must be compressed by bgzip and indexed (.tbi or .csi).
    scratch
        Directory for the conversion; the source needs it as long as it is read.
    threads
        Processes that convert.

    Raises
    ------
    InputError
        If a file is missing, unreadable, cut off, without genotypes, or not indexed although it must be.
    """
    files = [Path(path).expanduser() for path in paths]
    for file in files:
        if not file.is_file():
            raise InputError(f"{file} does not exist. Check genomics.ingest.vcf.paths.")
        _check_end(file)
    scratch.mkdir(parents=True, exist_ok=True)
    names = ", ".join(map(str, files))
    try:
        _convert(files, scratch, processes=threads if threads > 1 else 0)
    except Exception as error:  # cyvcf2 raises nothing more specific where a record is damaged
        raise InputError(f"{names} cannot be converted: {error}. {_remedy(files)}") from error
    if not (scratch / "calls.vcz" / CALLS).exists():
        raise InputError(f"{names} holds no genotypes: no sample, or no field GT. Give the file with the calls.")
    source = open_vcz(Vcz(store=str(scratch / "calls.vcz")))
    return VcfSource(**{**vars(source), "paths": tuple(map(str, files))})


def _check_end(file: Path) -> None:
    """Refuse a file of bgzip without its last block: htslib only warns, and reads the records until there."""
    with file.open("rb") as opened:
        if opened.read(len(BGZIP)) != BGZIP:
            return
        opened.seek(-min(len(BGZIP_END), file.stat().st_size), os.SEEK_END)
        if opened.read() != BGZIP_END:
            raise InputError(f"{file} is cut off: the block that bgzip writes last is not there. Copy it again.")


def _convert(files: Sequence[Path], scratch: Path, *, processes: int) -> None:
    from bio2zarr import vcf

    columns, schema = scratch / "columns", scratch / "schema.json"
    with warnings.catch_warnings(), _every_chunk_stored():
        warnings.simplefilter("ignore")
        vcf.explode(columns, files, worker_processes=processes)
        described = vcf.IntermediateColumnarFormat(columns).generate_schema()
        described.fields = [field for field in described.fields if field.source in (None, POSITION)]
        schema.write_text(described.asjson(), encoding="utf-8")
        vcf.encode(columns, scratch / "calls.vcz", schema_path=schema, worker_processes=processes)


@contextmanager
def _every_chunk_stored() -> Iterator[None]:
    """Let Zarr store chunks of zeros too, in this process and those that it starts.

    It leaves them out by default, such as the contigs' numbers of a file of one contig; we take absent chunks for lost.
    """
    import zarr

    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "True"
    try:
        with zarr.config.set({"array.write_empty_chunks": True}):
            yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def _remedy(files: Sequence[Path]) -> str:
    bare = [
        file.name
        for file in files
        if not any(file.with_name(file.name + suffix).exists() for suffix in (".tbi", ".csi"))
    ]
    if not bare:
        return "Check that they are whole, and of the same samples."
    return f"{', '.join(bare)} has no index: compress with `bgzip` and make one with `bcftools index` or `tabix`."
