"""VCF and BCF files, read once by cyvcf2, in processes that end with the reading, however that ends.

Blocks of records, a `Part` of the source each, go to files, from which any number of workers read them then.
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
    part_of_calls,
    sites,
)
from whitewater.io.text_files import GZIP, open_text

# How a file of bgzip begins, and the empty block that it ends with (SAM specification, section 4.1.2).
BGZIP = b"\x1f\x8b\x08\x04"
BGZIP_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
# What htslib prints where it finds a fault: the function's name in brackets, and the fault in words.
HTSLIB = re.compile(rb"^\[E::\w+\] *(.+?)\.?$", re.MULTILINE)
NAMED_COLUMNS = 9  # before the samples
PASS = "PASS"  # noqa: S105 - the name of a filter
# What is read of a record: contig, position, name, alleles, whether it passed, and calls, integers (samples, ploidy).
Record = tuple[str, int, str, list[str], bool, npt.NDArray[Any]]


def open_vcf(settings: Vcf, *, scratch: Path, threads: int) -> Source:
    """Read VCF or BCF files, of the same samples; one of several contigs must be compressed by bgzip and indexed.

    What is read goes to the directory ``scratch``, which the source needs as long as it is used. So many ``threads``
    are the processes that read files, and the contigs of those that are indexed; with 1, only this one.

    Raises InputError if a file is missing, unreadable, cut off, without genotypes, or not indexed although it must be,
    naming it and, where it is one, the record.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    files = [Path(path).expanduser() for path in settings.paths]
    headers = {file: _header(file) for file in files}
    if twice := [file for file, count in Counter(files).items() if count > 1]:
        raise InputError(f"{twice[0]} is named twice in the paths of the source vcf. Name it once.")
    samples = headers[files[0]][0]
    for file, (names, _, _) in headers.items():
        if names != samples:
            apart = sorted({*samples} ^ {*names})
            differ = f"{shorten_list(apart)} in one of them only" if apart else "in another order"
            raise InputError(f"{file} and {files[0]} are not of the same samples: {len(names)} and {len(samples)}, "
                             f"{differ}. `bcftools view --samples-file` writes those of a list, in its "
                             "order.")  # fmt: skip
    tasks: list[tuple[Path, str]] = []
    for file, (_, contigs, count) in headers.items():
        tasks += [(file, contig) for contig in ([""] if count is None else contigs)]
    with _workers(threads) as apply:
        regions = [region for region in apply(partial(_read, scratch=scratch), tasks) if region]
    order = [*dict.fromkeys(chain.from_iterable(contigs for _, contigs, _ in headers.values()))]
    regions.sort(key=lambda region: (order.index(region[0].contig), region[0].first))
    blocks = [*chain.from_iterable(regions)]
    _check({file: count for file, (_, _, count) in headers.items()}, regions)
    widest = max((block.shape[2] for block in blocks), default=1)
    parts = [
        part_of_calls(
            replace(block, shape=(*block.shape[:2], widest)),
            [partial(pd.read_parquet, block.path.with_suffix(".parquet"))],
            alleles=block.alleles,
            ploidy=settings.ploidy,
        )
        for block in blocks
    ]
    return Source(tuple(parts), samples, tuple(map(str, files)))


def _header(file: Path) -> tuple[tuple[str, ...], list[str], int | None]:
    """Return the samples and the contigs that a file declares, and how many records its index counts, if it has one."""
    if not file.is_file():
        raise InputError(f"{file} does not exist. Check the paths of the source vcf.")
    # Of a file of bgzip that lacks its last block htslib only warns, and reads the records until there.
    if _begins_with(file, BGZIP):
        with file.open("rb") as compressed:
            compressed.seek(-min(len(BGZIP_END), file.stat().st_size), os.SEEK_END)
            if compressed.read() != BGZIP_END:
                raise InputError(f"{file} is cut off: the block that bgzip writes last is not there. Copy it again.")
    columns = "".join(line.decode(errors="replace").rstrip("\r\n") for line in _header_lines(file)[-1:]).split("\t")
    check_unique(columns[NAMED_COLUMNS:], place=str(file))
    indexed = any(Path(f"{file}{suffix}").is_file() for suffix in (".tbi", ".csi"))
    with _htslib_errors() as errors:
        try:
            opened = cyvcf2.VCF(file)
            count = opened.num_records if indexed else None
        except Exception as error:  # cyvcf2 raises nothing more specific
            raise InputError(f"{file} cannot be read: {errors() or error}. Check that it is a VCF or BCF file, and its "
                             "index, which `bcftools index --force` makes again.") from error  # fmt: skip
    if not opened.samples or not opened.contains("GT"):
        raise InputError(f"{file} holds no genotypes: {'no field GT' if opened.samples else 'no sample'} in its header."
                         " Give the file with the calls.")  # fmt: skip
    return tuple(opened.samples), opened.seqnames, count


def _header_lines(file: Path) -> list[bytes]:
    """Return the lines of the header of a VCF file, compressed or not; none of a BCF file."""
    with open_text(file) as opened:
        return list(takewhile(lambda line: line.startswith(b"#"), opened))


def _begins_with(file: Path, magic: bytes) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(magic)) == magic


def _check(counted: dict[Path, int | None], regions: Sequence[Sequence[Block]]) -> None:
    """Refuse files whose index counts other records than they hold, and files that overlap."""
    for file, count in counted.items():
        read = sum(block.shape[0] for region in regions for block in region if block.place == str(file))
        if count not in (None, read):
            raise InputError(f"{file}: an index counts other records than its file holds, {count:,} and not {read:,}, "
                             "so it is of another version, or of contigs that the header does not declare. Make it "
                             "again with `bcftools index --force`.")  # fmt: skip
    for (*_, one), (other, *_) in pairwise(regions):
        if one.contig == other.contig and one.last >= other.first:
            raise InputError(f"{one.place} and {other.place} both hold contig {one.contig} at {other.first}. Give "
                             "files that share no region.")  # fmt: skip


def _read(task: tuple[Path, str], *, scratch: Path) -> list[Block]:
    """Write the calls and the tables of a file, or of a contig of one that is indexed."""
    folder, blocks = Path(tempfile.mkdtemp(dir=scratch)), list[Block]()
    with _htslib_errors() as errors:
        opened = cyvcf2.VCF(task[0])
        size = min(max(1, BLOCK_BYTES // (2 * len(opened.samples))), BLOCK_ROWS)
        records = _records(opened, *task, errors)
        while block := list(islice(records, size)):
            blocks.append(_write(block, task[0], folder / str(len(blocks))))
    return blocks


def _write(records: Sequence[Record], file: Path, path: Path) -> Block:
    contig, position, names, listed, passed, each = zip(*records, strict=True)
    calls = np.full((len(records), len(each[0]), max(call.shape[1] for call in each)), NOT_CALLED, np.int8)
    for row, call in zip(calls, each, strict=True):
        # A dosage depends on the sign of an allele only, so that the cut loses nothing.
        row[:, : call.shape[1]] = call.clip(NOT_CALLED, np.iinfo(np.int8).max)
    alleles = np.array([*zip_longest(*listed, fillvalue="")], object).T
    with pa.output_stream(path, compression=CODEC) as stored:
        stored.write(calls)
    table = sites(contig=contig, position=position, names=names, alleles=alleles, filter_pass=passed)
    table.to_parquet(path.with_suffix(".parquet"))
    return Block(str(file), path, contig[0], position[0], position[-1], max(2, alleles.shape[1]), calls.shape)


def _records(opened: Any, file: Path, contig: str, errors: Callable[[], str]) -> Iterator[Record]:
    """Yield the records of a file, or of a contig of it. Raises InputError, saying which of them cannot be used."""
    declared, count, last = set(opened.seqnames), 0, ""
    filters = {PASS, *(line["ID"] for line in opened.header_iter() if line["HeaderType"] == "FILTER")}
    no_calls = np.full((len(opened.samples), 1), MISSING_ALLELE)
    records, indexed = opened(contig) if contig else opened, bool(contig)
    while True:
        try:
            record = next(records, None)
            genotype = record and record.genotype
            calls = genotype.array()[:, :-1] if genotype else no_calls
        except Exception as error:  # cyvcf2 raises nothing more specific
            where = f"the record after the one at {last}" if last else "the first record"
            where += "" if indexed else f", in line {len(_header_lines(file)) + count + 1},"
            raise InputError(f"{file}: {where} cannot be read: {errors() or 'it is damaged or incomplete'}. Correct or "
                             "remove it.") from error  # fmt: skip
        if record is None:
            return
        contig, count, last = contig or record.CHROM, count + 1, f"{record.CHROM}:{record.POS}"
        _check_record(record, contig, declared, filters, file)
        passed = all(name == PASS for name in record.FILTERS)
        yield contig, record.POS, record.ID or "", [record.REF, *record.ALT], passed, calls


def _check_record(record: Any, contig: str, declared: set[str], filters: set[str], file: Path) -> None:
    place = f"{record.CHROM}:{record.POS}"
    if record.CHROM not in declared:
        raise InputError(f"{file}: the header does not declare the contig {record.CHROM} of its records. Add the "
                         f"line ##contig=<ID={record.CHROM}>, as `bcftools reheader --fai` does.")  # fmt: skip
    if unknown := set(record.FILTERS) - filters:
        raise InputError(f"{file}: the record at {place} has a filter that the header does not declare. Add a line "
                         f"##FILTER=<ID={unknown.pop()}...> to the header, as `bcftools annotate --header-lines` "
                         "does.")  # fmt: skip
    if contig != record.CHROM:
        remedy, fault = f"`bgzip {file.name}` and then `bcftools index {file.name}.gz`", "has no index"
        if _begins_with(file, BGZIP):
            remedy = f"`bcftools index {file.name}`"
        elif _begins_with(file, GZIP):
            fault = "is compressed by gzip, not bgzip, so it can have no index"
            remedy = f"`gunzip {file.name}`, `bgzip {file.stem}` and then `bcftools index {file.stem}.gz`"
        raise InputError(f"{file} holds several contigs, such as contig {record.CHROM} at {place}, but {fault}. Run "
                         f"{remedy}.")  # fmt: skip


@contextmanager
def _htslib_errors() -> Iterator[Callable[[], str]]:
    """Yield a function that returns the faults that htslib has printed; at the end all goes to the standard error."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:

        def printed() -> bytes:
            return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)

        stderr = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: "; ".join(fault.decode(errors="replace") for fault in HTSLIB.findall(printed()))
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            os.write(2, printed())


@contextmanager
def _workers(threads: int) -> Iterator[Callable[..., Iterator[list[Block]]]]:
    """Start processes, yield what maps tasks to them, and kill them at the end, whatever it is; 1: there are none."""
    if threads == 1:
        yield map
        return
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(threads, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_parent)
    try:
        yield pool.map
    except BrokenProcessPool as error:
        raise ResourceError(f"a process that converts VCF files died, as where memory runs out: {error} "
                            "Use fewer threads, or convert the files with `vcf2zarr` before.") from error  # fmt: skip
    finally:
        started = set(multiprocessing.active_children()) - others
        for process in started:
            process.kill()
        for process in started:
            process.join()
        # Ctrl-C may come before the pool's own thread is started, which can then not be waited for.
        pool.shutdown(wait=False, cancel_futures=True)


def _end_with_parent() -> None:
    """End this process when the one that started it does, were it by `kill -9`."""

    def wait() -> None:
        if (parent := multiprocessing.parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
