"""VCF files, converted to VCF Zarr by bio2zarr, in processes that end with the conversion, however that ends."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

from whitewater.check import few
from whitewater.config.genomics import Vcf, Vcz
from whitewater.errors import InputError, ResourceError, WhitewaterError
from whitewater.genomics.sources.source import Source
from whitewater.genomics.sources.vcf_header import BGZIP, begins_with, check_headers, header_lines
from whitewater.genomics.sources.vcz import open_vcz
from whitewater.text_files import GZIP

# Fields of the header's INFO and FORMAT are not needed, and often many times as large as the calls.
POSITION = "POS"
VARIABLE = "ZARR_ARRAY__WRITE_EMPTY_CHUNKS"
# What htslib prints where it finds a fault: the function's name in brackets, and the fault in words.
HTSLIB = re.compile(r"^\[E::\w+\] *(.+?)\.?$", re.MULTILINE)
# Parts of the files, and of the store, for each process: they are of unequal size.
PARTS = 4


class Apply(Protocol):
    """Calls a function with each of the numbers below ``count``."""

    def __call__(self, function: Callable[[int], None], count: int) -> None: ...


def open_vcf(settings: Vcf, *, scratch: Path, threads: int) -> Source:
    """Convert VCF or BCF files to VCF Zarr, and open that.

    Parameters
    ----------
    settings
        Paths of files of the same samples, and their ploidy. A file of several contigs must be compressed by bgzip and
        indexed (.tbi or .csi).
    scratch
        Directory for the conversion; the source needs it as long as it is read.
    threads
        Processes that convert.

    Raises
    ------
    InputError
        If a file is missing, unreadable, cut off, without genotypes, or not indexed although it must be: see
        `check_headers` and `convert`.
    """
    files = [Path(path).expanduser() for path in settings.paths]
    check_headers(files)
    source = open_vcz(Vcz(store=str(convert(files, scratch, threads=threads)), ploidy=settings.ploidy))
    return replace(source, origins=tuple(map(str, files)))


def convert(files: Sequence[Path], scratch: Path, *, threads: int) -> Path:
    """Convert VCF or BCF files to VCF Zarr, and return the store.

    Parameters
    ----------
    files
        Files whose headers were checked, see `vcf_header.check_headers`.
    scratch
        Directory of the store and of what the conversion needs.
    threads
        Processes that convert; with 1, only this one.

    Raises
    ------
    InputError
        Naming the file that cannot be converted and, where it is one, the record.
    """
    from bio2zarr import vcf

    columns, schema, store = scratch / "columns", scratch / "schema.json", scratch / "calls.vcz"
    scratch.mkdir(parents=True, exist_ok=True)
    parts = PARTS * threads if threads > 1 else 1
    with warnings.catch_warnings(), _every_chunk_stored(), _workers(threads) as apply:
        warnings.simplefilter("ignore")
        with _explained(lambda error: _fault_of_headers(files, error)):
            count = vcf.explode_init(columns, files, target_num_partitions=parts).num_partitions
        apply(partial(_explode, columns=columns), count)
        with _explained(lambda error: _fault_of_index(files, error)):
            vcf.explode_finalise(columns)
        described = vcf.IntermediateColumnarFormat(columns).generate_schema()
        described.fields = [field for field in described.fields if field.source in (None, POSITION)]
        schema.write_text(described.asjson(), encoding="utf-8")
        with _explained(lambda error: _fault_of_columns(columns, error)):
            count = vcf.encode_init(columns, store, parts, schema_path=schema).num_partitions
            apply(partial(vcf.encode_partition, store), count)
            vcf.encode_finalise(store)
    return store


# ---- processes


@contextmanager
def _workers(threads: int) -> Iterator[Apply]:
    """Start processes, and kill them at the end, whatever it is; with one thread there are none.

    Those of bio2zarr would go on after an error, and Python would wait for them for ever.
    """
    if threads == 1:
        yield _apply_here
        return
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(threads, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_parent)
    try:
        yield partial(_apply, pool=pool)
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


def _apply_here(function: Callable[[int], None], count: int) -> None:
    for number in range(count):
        function(number)


def _apply(function: Callable[[int], None], count: int, *, pool: ProcessPoolExecutor) -> None:
    for done in as_completed([pool.submit(function, number) for number in range(count)]):
        done.result()


def _end_with_parent() -> None:
    """End this process when the one that started it does, were it by `kill -9`."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


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


def _explode(number: int, *, columns: Path) -> None:
    """Read a part of the files."""
    from bio2zarr import vcf

    def fault(error: Exception) -> InputError:
        writer = vcf.IntermediateColumnarFormatWriter(columns)
        writer.load_metadata()
        part = writer.metadata.partitions[number]
        return _fault_of_records(Path(part.vcf_path), part.region, error)

    with _explained(fault):
        vcf.explode_partition(columns, number)


# ---- what is wrong, which bio2zarr and cyvcf2 do not say


@contextmanager
def _explained(explain: Callable[[Exception], InputError]) -> Iterator[None]:
    """Turn an error of bio2zarr or cyvcf2 into one that says which file is at fault, and where."""
    try:
        yield
    except (WhitewaterError, BrokenProcessPool, MemoryError):
        raise
    except Exception as error:  # cyvcf2 raises nothing more specific
        if isinstance(error, OSError) and error.errno is not None:  # such as a full disk
            raise
        raise explain(error) from error


def _fault_of_headers(files: Sequence[Path], error: Exception) -> InputError:
    """Say which of the files cannot be opened, or what sets them apart."""
    from bio2zarr import vcf

    found = []
    for file in files:
        try:
            with _htslib_errors() as said:
                metadata, _ = vcf.scan_vcf(file, 1)
        except Exception as fault:
            return InputError(f"{file} cannot be read: {'; '.join(said) or fault}. Check the file and its index, which "
                              "`bcftools index --force` makes again.")  # fmt: skip
        contigs = {contig.id for contig in metadata.contigs}
        for contig in [part.region.contig for part in metadata.partitions if part.region.contig not in contigs]:
            return InputError(f"{file}: the header does not declare the contig {contig} of its records. Add the line "
                              f"##contig=<ID={contig}>, as `bcftools reheader --fai` does.")  # fmt: skip
        found.append({f"FILTER {each.id}" for each in metadata.filters} | {each.full_name for each in metadata.fields})
    apart = sorted(set.union(*found) - set.intersection(*found))
    return InputError(
        f"{', '.join(map(str, files))} cannot be converted together: {error}. "
        + (f"Not all of their headers declare {few(apart)}. " if apart else "")
        + "`bcftools concat` makes one file of them."
    )


def _fault_of_index(files: Sequence[Path], error: Exception) -> InputError:
    """Say that files and their indexes do not belong together, or that files hold the same regions."""
    listed = ", ".join(map(str, files))
    if isinstance(error, AssertionError):  # without a message
        return InputError(f"{listed}: an index counts other records than its file holds, so it is of another version. "
                          "Make the indexes again with `bcftools index --force`.")  # fmt: skip
    return InputError(f"{listed} cannot be converted: {error}. Give files that share no region.")


def _fault_of_records(file: Path, region: Any, error: Exception) -> InputError:
    """Say which record of a file cannot be read: it is looked for by reading again."""
    from bio2zarr.vcf_utils import VcfFile

    last, count, other, failed = None, 0, None, False
    with _htslib_errors() as said, VcfFile(file) as opened:
        try:
            for record in opened.variants(region) if opened.index else opened.vcf:
                count += 1
                if opened.index is None and region.contig != record.CHROM:
                    other = record
                    break
                last = f"{record.CHROM}:{record.POS}"
        except Exception:  # the fault that is looked for, reported by the caller
            failed = True
    if other is not None:
        return _fault_of_contigs(file, begun=f"contig {other.CHROM} at {other.CHROM}:{other.POS}")
    where = f"the record after the one at {last}" if last else "the first record"
    if opened.index is None:
        where += f", in line {len(header_lines(file)) + count + 1},"
    words = "; ".join(said) or ("it is damaged or incomplete" if failed else str(error))
    return InputError(f"{file}: {where} cannot be read: {words}. Correct or remove it.")


def _fault_of_contigs(file: Path, *, begun: str) -> InputError:
    remedy = f"`bgzip {file.name}` and then `bcftools index {file.name}.gz`"
    told = "has no index"
    if begins_with(file, BGZIP):
        remedy = f"`bcftools index {file.name}`"
    elif begins_with(file, GZIP):
        told = "is compressed by gzip, not bgzip, so it can have no index"
        remedy = f"`gunzip {file.name}`, `bgzip {file.stem}` and then `bcftools index {file.stem}.gz`"
    return InputError(f"{file} holds several contigs, such as {begun}, but {told}. Run {remedy}.")


def _fault_of_columns(columns: Path, error: Exception) -> InputError:
    """Say which record has a filter or a contig that the header does not declare."""
    from bio2zarr import vcf

    read = vcf.IntermediateColumnarFormat(columns)
    filters, contigs = ({each.id for each in listed} for listed in (read.metadata.filters, read.metadata.contigs))
    parts = read.metadata.partitions
    ends = list(accumulate(part.num_records for part in parts))
    rows = zip(*(read.fields[name].iter_values() for name in ("CHROM", "POS", "FILTERS")), strict=True)
    for row, ((contig,), (position,), applied) in enumerate(rows):
        unknown = [f"##FILTER=<ID={each}" for each in (applied if applied is not None else ()) if each not in filters]
        unknown += [f"##contig=<ID={contig}"] if contig not in contigs else []
        if unknown:
            file = parts[next(part for part, end in enumerate(ends) if row < end)].vcf_path
            return InputError(f"{file}: the record at {contig}:{position} has a filter or contig that the header does "
                              f"not declare. Add a line {unknown[0]}...> to the header, as `bcftools annotate "
                              "--header-lines` does.")  # fmt: skip
    listed = ", ".join(dict.fromkeys(part.vcf_path for part in parts))
    return InputError(f"{listed} cannot be converted: {error}. Check that they are whole, and of the same samples.")


@contextmanager
def _htslib_errors() -> Iterator[list[str]]:
    """Collect the faults that htslib prints to the standard error; once it ends, they are in the list, and printed."""
    said: list[str] = []
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            text = file.read()
            said += HTSLIB.findall(text.decode(errors="replace"))
            os.write(2, text)
