"""VCF and BCF files, read once by cyvcf2, in processes that end with the reading.

Each block of records becomes a file and a `Part` of the source, which any number of workers can read.
"""

import multiprocessing
import os
import re
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, islice, pairwise, takewhile, zip_longest
from pathlib import Path
from typing import Any

import cyvcf2
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from whitewater.errors import InputError, ResourceError, shorten_list
from whitewater.genotypes.config import Vcf
from whitewater.genotypes.sources.source import (
    BLOCK_BYTES,
    BLOCK_ROWS,
    CODEC,
    MISSING_ALLELE,
    NOT_CALLED,
    Block,
    Source,
    check_unique,
    make_part,
    make_variants,
)
from whitewater.io.text_files import GZIP, open_text

# The first bytes of a bgzip file, and the empty block at its end (SAM specification, section 4.1.2).
BGZIP = b"\x1f\x8b\x08\x04"
BGZIP_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
# An error printed by htslib: the function in brackets, then the message.
HTSLIB_ERROR = re.compile(rb"^\[E::\w+\] *(.+?)\.?$", re.MULTILINE)
FIXED_COLUMNS = 9  # before the samples
PASS = "PASS"  # noqa: S105 - the name of a filter
# Contig, position, id, alleles, whether it passed the filters, and calls, integers (samples, ploidy).
Record = tuple[str, int, str, list[str], bool, npt.NDArray[Any]]


def open_vcf(settings: Vcf, *, scratch: Path, threads: int) -> Source:
    """Read VCF or BCF files of the same samples. A file of several contigs must be compressed by bgzip and indexed.

    The source reads its data from ``scratch``. ``threads`` is the number of processes that read files, and contigs of
    indexed files; 1 reads in this process.

    Raises InputError if a file is missing, unreadable, truncated, without genotypes, or lacks an index that it needs.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    files = [Path(path).expanduser() for path in settings.paths]
    headers = {file: _read_header(file) for file in files}
    if twice := [file for file, count in Counter(files).items() if count > 1]:
        raise InputError(f"{twice[0]} is named twice in the paths of the source vcf. Name it once.")
    samples = headers[files[0]][0]
    for file, (names, _, _) in headers.items():
        if names != samples:
            unshared = sorted({*samples} ^ {*names})
            difference = f"{shorten_list(unshared)} in one of them only" if unshared else "in another order"
            raise InputError(f"{file} and {files[0]} are not of the same samples: {len(names)} and {len(samples)}, "
                             f"{difference}. `bcftools view --samples-file` writes those of a list, in its "
                             "order.")  # fmt: skip
    tasks: list[tuple[Path, str]] = []
    for file, (_, contigs, count) in headers.items():
        tasks += [(file, contig) for contig in ([""] if count is None else contigs)]
    with _start_processes(threads) as apply:
        regions = [region for region in apply(partial(_convert, scratch=scratch), tasks) if region]
    order = [*dict.fromkeys(chain.from_iterable(contigs for _, contigs, _ in headers.values()))]
    regions.sort(key=lambda region: (order.index(region[0].contig), region[0].first))
    blocks = [*chain.from_iterable(regions)]
    _check_regions({file: count for file, (_, _, count) in headers.items()}, regions)
    widest = max((block.shape[2] for block in blocks), default=1)
    parts = [
        make_part(
            replace(block, shape=(*block.shape[:2], widest)),
            [partial(pd.read_parquet, block.path.with_suffix(".parquet"))],
            alleles=block.alleles,
            ploidy=settings.ploidy,
        )
        for block in blocks
    ]
    return Source(tuple(parts), samples, tuple(map(str, files)))


def _read_header(file: Path) -> tuple[tuple[str, ...], list[str], int | None]:
    """Return the samples and contigs of a file, and the number of records in its index, or None without index."""
    if not file.is_file():
        raise InputError(f"{file} does not exist. Check the paths of the source vcf.")
    # htslib only warns about a truncated bgzip file, and reads the records that are left.
    if _begins_with(file, BGZIP):
        with file.open("rb") as compressed:
            compressed.seek(-min(len(BGZIP_END), file.stat().st_size), os.SEEK_END)
            if compressed.read() != BGZIP_END:
                raise InputError(f"{file} is truncated: it lacks the last block that bgzip writes. Copy it again.")
    columns = "".join(line.decode(errors="replace").rstrip("\r\n") for line in _header_lines(file)[-1:]).split("\t")
    check_unique(columns[FIXED_COLUMNS:], place=str(file))
    indexed = any(Path(f"{file}{suffix}").is_file() for suffix in (".tbi", ".csi"))
    with _htslib_errors() as errors:
        try:
            vcf = cyvcf2.VCF(file)
            samples, count = tuple(vcf.samples), vcf.num_records if indexed else None
        except Exception as error:  # cyvcf2 raises nothing more specific
            raise InputError(f"{file} cannot be read: {errors() or error}. Check that it is a VCF or BCF file, and its "
                             "index, which `bcftools index --force` makes again.") from error  # fmt: skip
    if not samples or not vcf.contains("GT"):
        raise InputError(f"{file} holds no genotypes: {'no field GT' if samples else 'no sample'} in its header."
                         " Give the file with the calls.")  # fmt: skip
    return samples, vcf.seqnames, count


def _header_lines(file: Path) -> list[bytes]:
    """Return the header of a VCF file, compressed or not; nothing for a BCF file."""
    with open_text(file) as lines:
        return list(takewhile(lambda line: line.startswith(b"#"), lines))


def _begins_with(file: Path, magic: bytes) -> bool:
    with file.open("rb") as data:
        return data.read(len(magic)) == magic


def _check_regions(counts: dict[Path, int | None], regions: Sequence[Sequence[Block]]) -> None:
    """Raise InputError if an index counts other records than its file holds, or files overlap."""
    for file, count in counts.items():
        read = sum(block.shape[0] for region in regions for block in region if block.place == str(file))
        if count not in (None, read):
            raise InputError(f"{file} holds {read:,} records, but its index counts {count:,}. The index is of another "
                             "version of the file, or of contigs that the header does not declare. Make it again with "
                             "`bcftools index --force`.")  # fmt: skip
    for (*_, block), (following, *_) in pairwise(regions):
        if block.contig == following.contig and block.last >= following.first:
            raise InputError(f"{block.place} and {following.place} both hold contig {block.contig} at "
                             f"{following.first}. Give files that share no region.")  # fmt: skip


def _convert(task: tuple[Path, str], *, scratch: Path) -> list[Block]:
    """Write the calls and variants of a file, or of one contig of an indexed file."""
    folder, blocks = Path(tempfile.mkdtemp(dir=scratch)), list[Block]()
    with _htslib_errors() as errors:
        vcf = cyvcf2.VCF(task[0])
        size = min(max(1, BLOCK_BYTES // (2 * len(vcf.samples))), BLOCK_ROWS)
        records = _read_records(vcf, *task, errors)
        while block := list(islice(records, size)):
            blocks.append(_write_block(block, task[0], folder / str(len(blocks))))
    return blocks


def _write_block(records: Sequence[Record], file: Path, path: Path) -> Block:
    contig, position, ids, allele_lists, filter_pass, calls_of_records = zip(*records, strict=True)
    ploidy = max(calls.shape[1] for calls in calls_of_records)
    block = np.full((len(records), len(calls_of_records[0]), ploidy), NOT_CALLED, np.int8)
    for row, calls in zip(block, calls_of_records, strict=True):
        # A dosage depends only on the sign of an allele, so clipping to int8 loses nothing.
        row[:, : calls.shape[1]] = calls.clip(NOT_CALLED, np.iinfo(np.int8).max)
    alleles = np.array([*zip_longest(*allele_lists, fillvalue="")], object).T
    with pa.output_stream(path, compression=CODEC) as stream:
        stream.write(block)
    table = make_variants(contig=contig, position=position, ids=ids, alleles=alleles, filter_pass=filter_pass)
    table.to_parquet(path.with_suffix(".parquet"))
    return Block(str(file), path, contig[0], position[0], position[-1], max(2, alleles.shape[1]), block.shape)


def _read_records(vcf: Any, file: Path, contig: str, errors: Callable[[], str]) -> Iterator[Record]:
    """Yield the records of a file, or of one contig. Raises InputError with the first record that cannot be used."""
    contigs, count, last = set(vcf.seqnames), 0, ""
    filters = {PASS, *(line["ID"] for line in vcf.header_iter() if line["HeaderType"] == "FILTER")}
    no_calls = np.full((len(vcf.samples), 1), MISSING_ALLELE)
    records, indexed = vcf(contig) if contig else vcf, bool(contig)
    while True:
        try:
            record = next(records, None)
            genotype = record and record.genotype
            calls = genotype.array()[:, :-1] if genotype else no_calls
        except Exception as error:  # cyvcf2 raises nothing more specific
            where = f"the record after the one at {last}" if last else "the first record"
            where += "" if indexed else f", in line {len(_header_lines(file)) + count + 1},"
            raise InputError(f"{file}: {where} cannot be read: {errors() or 'it has no GT, or is damaged'}. Correct or "
                             "remove it.") from error  # fmt: skip
        if record is None:
            return
        # `start` has 64 bits, `POS` only 32.
        contig, count, last = contig or record.CHROM, count + 1, f"{record.CHROM}:{record.start + 1}"
        _check_record(record, contig, contigs, filters, file)
        filter_pass = all(name == PASS for name in record.FILTERS)
        yield contig, record.start + 1, record.ID or "", [record.REF, *record.ALT], filter_pass, calls


def _check_record(record: Any, contig: str, contigs: set[str], filters: set[str], file: Path) -> None:
    place = f"{record.CHROM}:{record.start + 1}"
    if record.CHROM not in contigs:
        raise InputError(f"{file}: the header does not declare the contig {record.CHROM} of its records. Add the "
                         f"line ##contig=<ID={record.CHROM}>, as `bcftools reheader --fai` does.")  # fmt: skip
    if unknown := set(record.FILTERS) - filters:
        raise InputError(f"{file}: the record at {place} has a filter that the header does not declare. Add a line "
                         f"##FILTER=<ID={unknown.pop()}...> to the header, as `bcftools annotate --header-lines` "
                         "does.")  # fmt: skip
    if contig != record.CHROM:
        remedy, problem = f"`bgzip {file.name}` and then `bcftools index {file.name}.gz`", "has no index"
        if _begins_with(file, BGZIP):
            remedy = f"`bcftools index {file.name}`"
        elif _begins_with(file, GZIP):
            problem = "is compressed by gzip, not bgzip, so it can have no index"
            remedy = f"`gunzip {file.name}`, `bgzip {file.stem}` and then `bcftools index {file.stem}.gz`"
        raise InputError(f"{file} holds several contigs, such as contig {record.CHROM} at {place}, but {problem}. Run "
                         f"{remedy}.")  # fmt: skip


@contextmanager
def _htslib_errors() -> Iterator[Callable[[], str]]:
    """Yield a function that returns the errors of htslib so far. At the end, all output goes to standard error."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:

        def output() -> bytes:
            return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)

        stderr = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: "; ".join(error.decode(errors="replace") for error in HTSLIB_ERROR.findall(output()))
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            os.write(2, output())


@contextmanager
def _start_processes(threads: int) -> Iterator[Callable[..., Iterator[list[Block]]]]:
    """Yield the map of a pool of processes, which are killed at the end; with one thread, the built-in `map`."""
    if threads == 1:
        yield map
        return
    earlier_processes = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(threads, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_parent)
    try:
        yield pool.map
    except BrokenProcessPool as error:
        raise ResourceError(f"a process that converts VCF files died, perhaps for lack of memory: {error} "
                            "Use fewer threads, or convert the files with `vcf2zarr` first.") from error  # fmt: skip
    finally:
        started = set(multiprocessing.active_children()) - earlier_processes
        for process in started:
            process.kill()
        for process in started:
            process.join()
        # After Ctrl-C the pool's own thread may not have started, and waiting for it would fail.
        pool.shutdown(wait=False, cancel_futures=True)


def _end_with_parent() -> None:
    """Make this process end with its parent, even if the parent is killed."""

    def wait() -> None:
        if (parent := multiprocessing.parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
