"""Step `ingest`: genotypes of any source become one folder of dosages; every variant of the source is a row of it."""

import csv
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater import lazy_pandas as pd
from whitewater.engines import memory
from whitewater.errors import InputError, IntegrityError, redact, shorten_list
from whitewater.genotypes.genotypes import Encoding, GenotypeFolder, create_genotypes
from whitewater.genotypes.sources.opening import named_places, open_source, simulated_file
from whitewater.genotypes.sources.source import Source, Tally, only_seen
from whitewater.io.download import Downloads
from whitewater.io.places import refuse_changes, try_files
from whitewater.io.remote import local_path
from whitewater.io.store import digests, size_of, write_json
from whitewater.script import main
from whitewater.step import Inputs, Output, Run
from whitewater_apps.genomics.config import Ingest, Labels

logger = logging.getLogger(__name__)

# Measured at most: 160 bytes a variant of the table as it is made and written, more where alleles are long; 60 MB.
TABLE_BYTES = 200
WORKERS_BYTES = 100_000_000
TASKS = 64
# Of tables of labels: where downloaded ones go, and how fields are separated, in a header by what.
DATA = Path("data/genomics")
PARQUET = (".parquet", ".pq")
SEPARATORS = {",": ",", "\t": "\t", ";": ";", r"\s+": None}
QUOTED = r'^\s*"(.*)"\s*$'
FORMS = "Save it as Parquet, or as uncompressed UTF-8 text with a name for every column."


def ingest(run: Run[Ingest], *, simulated: Inputs, genotypes: Output, inputs: Output) -> None:
    """Read the genotypes of section ``genomics.ingest`` into a folder, count them, and label the samples.

    Raises InputError if the source is not of the form that its format demands, is empty or out of order, or a label
    table fits none of its samples; ResourceError if it needs more memory than there is; and IntegrityError if a local
    file changes while it is read.
    """
    settings, labeled, scratch = run.settings, run.settings.labels, genotypes / "converted"
    if settings.source == "generated" and not labeled.table:
        labeled = Labels(table=str(simulated_file(simulated, "simulated_labels.csv")))
    with refuse_changes([*named_places(settings), labeled.table]):
        source = open_source(settings, simulated, scratch=scratch, threads=run.threads)
        memory.forecast(
            forecast(source, threads=run.threads),
            what=f"reading {source.variants:,} variants of {len(source.samples):,} samples",
            remedy="Use fewer threads, or a store of smaller chunks.",
        )
        table = source.variants_table()
        check_order(table, place=redact(source.origins[0]))
        labels = sample_labels(source.samples, labeled, refresh=run.refresh) if labeled.table else None
        folder, tally = _encode(run, source, genotypes)
        source.check_ploidy(table, tally, key=f"genomics.ingest.{settings.source}.ploidy")
        table = only_seen(table, tally.seen) if source.lists_all else table
        excluded = (table["alleles"] > 2) & (settings.multiallelic == "exclude")
        names = [*(f"count_{dosage}" for dosage in range(source.ploidy + 1)), "count_missing"]
        counts = dict(zip(names, tally.counts.T, strict=True))
        variants = table.assign(multiallelic=excluded, filter_pass=table.pop("filter_pass"), **counts)
        samples = pd.DataFrame({"sample": source.samples, "label": labels}, dtype="str")
        folder.finish(variants=variants, samples=samples.assign(count_missing=tally.missing))
        files = describe_origins([*source.origins, *filter(None, [labeled.table])], threads=run.threads)
    write_json(inputs, {"source": settings.source, "files": files})
    if scratch.exists():
        shutil.rmtree(scratch)
    facts = {"variants": source.variants, "samples": len(source.samples), "ploidy": source.ploidy}
    facts["missing_calls"] = int(variants["count_missing"].sum())
    facts["multiallelic"] = int((variants["alleles"] > 2).sum())
    run.note(**facts, local_bytes=sum(each.get("bytes", 0) for each in files))
    logger.info("%(variants)d variants of %(samples)d samples, ploidy %(ploidy)d: %(missing_calls)d calls are missing, "
                "%(multiallelic)d variants are multiallelic", facts)  # fmt: skip


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
    rows, counts = max(stop - start for start, stop in source.ranges()), 4 * (source.ploidy + 2)
    a_thread = 2 * source.block_bytes + rows * (source.row_bytes + counts) + 8 * len(source.samples)
    return WORKERS_BYTES + threads * a_thread + source.variants * (TABLE_BYTES + counts + 8)


def _encode(run: Run[Ingest], source: Source, path: Path) -> tuple[GenotypeFolder, Tally]:
    """Write the calls of all variants, and check that each was counted."""
    encoding: Encoding = "two_bit" if source.ploidy == 2 else "int8"
    ploidy, variants, samples = source.ploidy, source.variants, len(source.samples)
    folder = create_genotypes(path, encoding=encoding, ploidy=ploidy, variants=variants, samples=samples)
    shared, ranges = {"source": source, "folder": folder}, source.ranges()
    # Each range takes milliseconds where chunks are small, which is less than a task of its own would cost.
    size = -(-len(ranges) // TASKS)
    tasks = [ranges[first : first + size] for first in range(0, len(ranges), size)]
    with run.workers() as workers:
        tally = source.tally(0, variants)
        for part in workers.map(encode_ranges, tasks, label="ingest", shared=shared):
            tally.add(part)
    check_counts(tally, samples=samples)
    return folder, tally


def encode_ranges(ranges: Sequence[tuple[int, int]], *, source: Source, folder: GenotypeFolder) -> Tally:
    """Write the codes of consecutive ranges at their places; run twice, it leaves the same bytes."""
    tally = source.tally(ranges[0][0], ranges[-1][1])
    for start, stop in ranges:
        codes, counted = source.encode(start, stop)
        folder.write(start, codes)
        tally.add(counted)
    return tally


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


def describe_origins(origins: Sequence[str], *, threads: int) -> list[dict[str, Any]]:
    """Describe what was read: the path, size and SHA-256 of local files and directories, and the URL of others."""
    paths = [local_path(origin) for origin in origins]
    hashes = digests([path for path in paths if path], threads=threads)
    return [
        {"path": str(path), "bytes": size_of(path), "sha256": hashes[path]} if path else {"url": redact(origin)}
        for origin, path in zip(origins, paths, strict=True)
    ]


def sample_labels(samples: Sequence[str], settings: Labels, *, refresh: bool = False) -> list[str | None]:
    """Return the label of each sample, None of one that has none; how many these are is logged.

    Raises InputError if the table cannot be downloaded or read, or labels no sample: its names are of another kind.
    """
    path = local_path(settings.table) or Path(Downloads(DATA, refresh=refresh).get([settings.table])[0].path)
    labels, table = read_labels(path, settings), redact(settings.table)
    unlabeled = [sample for sample in samples if sample not in labels]
    if len(unlabeled) == len(samples):
        raise InputError(
            f"{table} labels none of the samples: it names {shorten_list(list(labels)) or 'none'}, the genotypes' "
            f"samples are {shorten_list(samples)}. Check genomics.ingest.labels.sample_column."
        )
    if unlabeled:
        names = shorten_list(unlabeled)
        logger.warning("%d of %d samples have no label in %s: %s", len(unlabeled), len(samples), table, names)
    return [labels.get(sample) for sample in samples]


def read_labels(path: Path, settings: Labels) -> dict[str, str]:
    """Read a table of labels: Parquet, or text with a header, separated by commas, tabs, semicolons or spaces.

    Returns the label of each sample that has one, without blanks around it. Raises InputError if the table is missing
    or unreadable, lacks a column, or gives a sample two labels.
    """
    if not path.is_file():
        raise InputError(f"{path} does not exist. Check genomics.ingest.labels.table.")
    columns = [settings.sample_column, settings.label_column]
    try:
        if path.suffix.lower() in PARQUET:
            stored = pq.read_table(path)
            stored.validate(full=True)  # of text, that it is UTF-8
            table: pd.DataFrame = stored.to_pandas()
        else:
            table = _read_text(path, columns)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a readable table of labels: {str(error).strip()}. {FORMS}") from error
    names = list(table.columns)
    if repeated := [name for name in dict.fromkeys(columns) if names.count(name) > 1]:
        raise InputError(f"{path} has more than one column {' and '.join(repeated)}. Rename or remove all but one.")
    if absent := [name for name in columns if name not in names]:
        raise InputError(
            f"{path} has no column {' and '.join(absent)}; it has {', '.join(map(str, names))}. Set "
            "genomics.ingest.labels.sample_column and label_column."
        )
    # Whole numbers that a missing one has made real ones are whole again: 7, not 7.0.
    pairs = table[columns].convert_dtypes().dropna().astype("str").set_axis(["sample", "label"], axis=1)
    pairs = pairs.assign(sample=pairs["sample"].str.strip(), label=pairs["label"].str.strip()).drop_duplicates()
    pairs = pairs[(pairs != "").all(axis=1)]
    twice = pairs[pairs["sample"].duplicated(keep=False)]
    if len(twice):
        labels = twice.groupby("sample", sort=False)["label"].agg(" and ".join)
        listed = shorten_list([f"{sample} ({both})" for sample, both in labels.items()])
        raise InputError(f"{path} gives {len(labels)} samples more than one label: {listed}. Keep one row for each.")
    return dict(zip(pairs["sample"], pairs["label"], strict=True))


def _read_text(path: Path, columns: Sequence[str]) -> "pd.DataFrame":
    with path.open(encoding="utf-8-sig") as file:
        header = file.readline().rstrip("\r\n")
    fields = {pattern: [name.strip().strip('"') for name in header.split(by)] for pattern, by in SEPARATORS.items()}
    separator = max(fields, key=lambda pattern: (set(columns) <= set(fields[pattern]), len(fields[pattern])))
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if separator in (",", ";") else csv.QUOTE_NONE
    table = pd.read_csv(
        path, sep=separator, header=None, skiprows=1, dtype=str, na_filter=False, encoding="utf-8-sig", quoting=quoting
    )
    # Quotes between tabs or blanks are not syntax, because of labels like 5"; those around a field are not part of it.
    table = table.replace(QUOTED, r"\1", regex=True) if quoting == csv.QUOTE_NONE else table
    return table.set_axis(fields[separator], axis=1)


def check(settings: Any, downloads: Downloads) -> str:
    """Say how many samples and variants the data sets have; of VCF, which would have to be read whole, which files."""
    ingest, second, parts = settings.ingest, settings.project.second, []
    for what, key, given in (("", "genomics.ingest", ingest), ("second: ", "genomics.project.second", second)):
        if given.source == "vcf":
            found = try_files(given.vcf.paths, downloads=downloads, key=f"{key}.vcf")
            parts.append(f"{what}files of VCF: {len(found)}")
        elif given.source not in ("generated", "none"):
            source = open_source(given, {}, scratch=Path())
            parts.append(f"{what}{source.variants:,} variants of {len(source.samples):,} samples")
    if ingest.labels.table:
        try_files([ingest.labels.table], downloads=downloads, key="genomics.ingest.labels.table")
        parts.append("a table of labels")
    return "; ".join(parts)


if __name__ == "__main__":
    main(ingest)
