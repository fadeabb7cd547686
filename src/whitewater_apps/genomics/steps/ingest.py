"""Step `ingest`: genotypes of any source become one folder of dosages; every variant of the source is a row of it."""

import logging
import shutil
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater.engines import memory
from whitewater.errors import InputError, IntegrityError, redact
from whitewater.genotypes.genotypes import GENOTYPES_A_BYTE, Encoding, GenotypeFolder, create_genotypes
from whitewater.genotypes.sources.opening import named_places, open_source, simulated_file
from whitewater.genotypes.sources.source import Source, Tally, only_seen
from whitewater.io.places import refuse_changes
from whitewater.io.remote import local_path
from whitewater.io.store import digests, size_of, write_json
from whitewater.script import main
from whitewater.step import Inputs, Output, Run
from whitewater_apps.genomics.config import Ingest, Labels
from whitewater_apps.genomics.labels import labels_of, local_table, read_labels

if TYPE_CHECKING:
    import pandas as pd


logger = logging.getLogger(__name__)

DIPLOID = BIALLELIC = 2
UNWRITTEN = 0xFF  # all bits set is a missing call: code 3 of two bits, and -1 of int8
# Measured at most: 160 bytes a variant of the table as it is made and written, more where alleles are long; 60 MB.
TABLE_BYTES = 200
WORKERS_BYTES = 100_000_000
TASKS = 64


def ingest(run: Run[Ingest], *, simulated: Inputs, genotypes: Output, inputs: Output) -> None:
    """Read the genotypes of section ``genomics.ingest`` into a folder, count them, and label the samples.

    Raises InputError if the source is not of the form that its format demands, is empty or out of order, or a label
    table fits none of its samples; ResourceError if it needs more memory than there is; and IntegrityError if a local
    file changes while it is read.
    """
    import pandas as pd

    settings, scratch = run.settings, genotypes / "converted"
    with refuse_changes([*named_places(settings), settings.labels.table]):
        source = open_source(settings, simulated, scratch=scratch, threads=run.threads)
        memory.forecast(
            forecast(source, threads=run.threads),
            what=f"reading {source.variants:,} variants of {len(source.samples):,} samples",
            remedy="Use fewer threads, or a store of smaller chunks.",
        )
        table = source.variants_table()
        check_order(table, place=redact(source.origins[0]))
        labels, tables = sample_labels(source.samples, settings, simulated, refresh=run.refresh)
        folder, tally = _encode(run, source, genotypes)
        source.check_ploidy(table, tally, key=f"genomics.ingest.{settings.source}.ploidy")
        table = only_seen(table, tally.seen) if source.lists_all else table
        variants = counted(table, tally, exclude=settings.multiallelic == "exclude")
        samples = pd.DataFrame({"sample": source.samples, "label": labels}, dtype="str")
        folder.finish(variants=variants, samples=samples.assign(count_missing=tally.missing))
        files = describe_origins([*source.origins, *tables], threads=run.threads)
    write_json(inputs, {"source": settings.source, "files": files})
    if scratch.exists():
        shutil.rmtree(scratch)
    facts = {
        "variants": source.variants,
        "samples": len(source.samples),
        "ploidy": source.ploidy,
        "missing_calls": int(variants["count_missing"].sum()),
        "multiallelic": int((variants["alleles"] > BIALLELIC).sum()),
        "local_bytes": sum(each.get("bytes", 0) for each in files),
    }
    run.note(**facts)
    logger.info(
        "%(variants)d variants of %(samples)d samples, ploidy %(ploidy)d: %(missing_calls)d calls are missing, "
        "%(multiallelic)d variants are multiallelic",
        facts,
    )


def check_order(table: "pd.DataFrame", *, place: str) -> None:
    """Refuse variants whose contigs are not contiguous, or whose positions decrease within one, naming the first."""
    contig, names = table["contig"].factorize()
    position = table["position"].to_numpy()
    new = np.diff(contig, prepend=-1) != 0
    # Codes are numbered as they appear, so a contig that begins is new only with the highest code so far.
    again = new & (contig < np.maximum.accumulate(contig))
    back = ~new & (np.diff(position, prepend=position[:1]) < 0)
    if (misplaced := np.flatnonzero(again | back)).size:
        row = misplaced[0]
        variant = f"{place}: variant {row} ({table['id'].iloc[row]}, {names[contig[row]]}:{position[row]})"
        fault = f"stands behind position {position[row - 1]}. Sort the variants of each contig by position."
        if again[row]:
            fault = f"is of contig {names[contig[row]]}, which ended before. Sort the variants by contig."
        raise InputError(f"{variant} {fault}")


def forecast(source: Source, *, threads: int) -> int:
    """Return about how many bytes the step takes: in each thread a block, its chunks and its codes; and the tables."""
    rows, samples = max(stop - start for start, stop in source.ranges()), len(source.samples)
    counts = 4 * (source.ploidy + 2)
    codes = -(-samples // GENOTYPES_A_BYTE) if source.ploidy == DIPLOID else samples
    a_thread = 2 * source.block_bytes + rows * (codes + counts) + 8 * samples
    return WORKERS_BYTES + threads * a_thread + source.variants * (TABLE_BYTES + counts + 8)


def _encode(run: Run[Ingest], source: Source, path: Path) -> tuple[GenotypeFolder, Tally]:
    """Write the calls of all variants, and check that each was counted."""
    encoding: Encoding = "two_bit" if source.ploidy == DIPLOID else "int8"
    ploidy, variants, samples = source.ploidy, source.variants, len(source.samples)
    folder = create_genotypes(path, encoding=encoding, ploidy=ploidy, variants=variants, samples=samples)
    shared, ranges = {"source": source, "folder": folder}, source.ranges()
    # Each range takes milliseconds where chunks are small, which is less than a task of its own would cost.
    size = -(-len(ranges) // TASKS)
    tasks = [ranges[first : first + size] for first in range(0, len(ranges), size)]
    with run.workers() as workers:
        tallies = workers.map(encode_ranges, tasks, label="ingest", shared=shared)
        tally = source.tally(0, variants)
        for part in chain.from_iterable(tallies):
            tally.add(part)
    check_counts(tally, samples=samples)
    return folder, tally


def encode_ranges(ranges: Sequence[tuple[int, int]], *, source: Source, folder: GenotypeFolder) -> list[Tally]:
    """Write the codes of ranges of variants at their places; run twice, it leaves the same bytes."""
    tallies = []
    for start, stop in ranges:
        codes = np.full((stop - start, folder.row_bytes), UNWRITTEN, np.uint8).view(folder.dtype)
        tallies.append(source.encode(start, stop, codes))
        folder.write(start, codes)
    return tallies


def check_counts(tally: Tally, *, samples: int) -> None:
    """Check that every call was counted once, or name the first variant of which calls were lost or counted twice."""
    calls = tally.counts.sum(axis=1, dtype=np.int64)
    if (wrong := np.flatnonzero(calls != samples)).size:
        row = wrong[0]
        raise IntegrityError(f"variant {row} has {calls[row]} calls counted, not {samples}. Report this as a bug.")
    by_sample, by_variant = tally.missing.sum(), tally.counts[:, -1].sum(dtype=np.int64)
    if by_sample != by_variant:
        raise IntegrityError(
            f"{by_sample} calls are missing by sample, but {by_variant} by variant. Report this as a bug."
        )


def counted(table: "pd.DataFrame", tally: Tally, *, exclude: bool) -> "pd.DataFrame":
    """Return the table of the variants with their counts, and whether they are to be excluded as multiallelic."""
    columns = [*(f"count_{dosage}" for dosage in range(tally.counts.shape[1] - 1)), "count_missing"]
    counts = dict(zip(columns, tally.counts.T, strict=True))
    filter_pass = table.pop("filter_pass")
    return table.assign(multiallelic=exclude & (table["alleles"] > BIALLELIC), filter_pass=filter_pass, **counts)


def sample_labels(
    samples: Sequence[str], settings: Ingest, simulated: Mapping[str, Path], *, refresh: bool = False
) -> tuple[list[str | None], list[str]]:
    """Return the label of each sample, None without one, and the table that they are from, if there is one."""
    labels = settings.labels
    if settings.source == "generated" and not labels.table:
        labels = Labels(table=str(simulated_file(simulated, "simulated_labels.csv")))
    if not labels.table:
        return [None] * len(samples), []
    path = local_table(labels.table, refresh=refresh)
    return labels_of(samples, read_labels(path, labels), table=redact(labels.table)), [labels.table]


def describe_origins(origins: Sequence[str], *, threads: int) -> list[dict[str, Any]]:
    """Describe what was read: the path, size and SHA-256 of local files and directories, and the URL of others."""
    local = {origin: path for origin in origins if (path := local_path(origin)) is not None}
    hashes = digests(list(local.values()), threads=threads)
    return [
        {"path": str(local[origin]), "bytes": size_of(local[origin]), "sha256": hashes[local[origin]]}
        if origin in local
        else {"url": redact(origin)}
        for origin in origins
    ]


if __name__ == "__main__":
    main(ingest)
