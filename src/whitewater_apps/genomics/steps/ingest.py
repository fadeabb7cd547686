"""Step `ingest`: convert genotypes of any source to one folder of dosages, with a row for each variant."""

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
from whitewater.genotypes.sources.opening import list_paths, open_source, simulated_file
from whitewater.genotypes.sources.source import Source, Tally, drop_unseen_alleles
from whitewater.io.download import Downloads
from whitewater.io.places import check_readable, refuse_changes
from whitewater.io.remote import local_path
from whitewater.io.store import digests, size_of, write_json
from whitewater.script import main
from whitewater.step import Inputs, Output, Run
from whitewater_apps.genomics.config import Ingest, Labels

logger = logging.getLogger(__name__)

# At most 160 bytes per row of the variants table were measured, while it is made and written; long alleles take more.
TABLE_BYTES = 200
WORKERS_BYTES = 100_000_000
TASKS = 64
# Tables of labels: the folder of downloads, and the separators of fields, as patterns and in a header.
DATA = Path("data/genomics")
PARQUET = (".parquet", ".pq")
SEPARATORS = {",": ",", "\t": "\t", ";": ";", r"\s+": None}
QUOTED = r'^\s*"(.*)"\s*$'
FORMATS = "Save it as Parquet, or as uncompressed UTF-8 text with a name for every column."


def ingest(run: Run[Ingest], *, simulated: Inputs, genotypes: Output, inputs: Output) -> None:
    """Read the genotypes of section ``genomics.ingest`` into a folder, count them, and label the samples.

    Raises InputError if the source is malformed, empty or not in order, or the labels are of other samples;
    ResourceError if memory is too small; and IntegrityError if a local file changes while it is read.
    """
    settings, label_settings, scratch = run.settings, run.settings.labels, genotypes / "converted"
    if settings.source == "generated" and not label_settings.table:
        label_settings = Labels(table=str(simulated_file(simulated, "simulated_labels.csv")))
    label_files = [label_settings.table] if label_settings.table else []
    with refuse_changes([*list_paths(settings), *label_files]):
        source = open_source(settings, simulated, scratch=scratch, threads=run.threads)
        memory.forecast(
            forecast(source, threads=run.threads),
            what=f"reading {source.variants:,} variants of {len(source.samples):,} samples",
            remedy="Use fewer threads, or a store of smaller chunks.",
        )
        table = source.variants_table()
        check_order(table, place=redact(source.origins[0]))
        labels = sample_labels(source.samples, label_settings, refresh=run.refresh) if label_files else None
        folder, tally = _encode(run, source, genotypes)
        source.check_ploidy(table, tally, key=f"genomics.ingest.{settings.source}.ploidy")
        table = drop_unseen_alleles(table, tally.seen_alleles) if source.lists_all_alleles else table
        excluded = (table["alleles"] > 2) & (settings.multiallelic == "exclude")
        names = [*(f"count_{dosage}" for dosage in range(source.ploidy + 1)), "count_missing"]
        counts = dict(zip(names, tally.counts.T, strict=True))
        variants = table.assign(multiallelic=excluded, filter_pass=table.pop("filter_pass"), **counts)
        samples = pd.DataFrame({"sample": source.samples, "label": labels}, dtype="str")
        folder.finish(variants=variants, samples=samples.assign(count_missing=tally.missing))
        files = describe_origins([*source.origins, *label_files], threads=run.threads)
    write_json(inputs, {"source": settings.source, "files": files})
    if scratch.exists():
        shutil.rmtree(scratch)
    facts = {"variants": source.variants, "samples": len(source.samples), "ploidy": source.ploidy}
    facts["missing_calls"] = int(variants["count_missing"].sum())
    facts["multiallelic"] = int((variants["alleles"] > 2).sum())
    run.note(**facts, local_bytes=sum(file.get("bytes", 0) for file in files))
    logger.info("%(variants)d variants of %(samples)d samples, ploidy %(ploidy)d: %(missing_calls)d calls are missing, "
                "%(multiallelic)d variants are multiallelic", facts)  # fmt: skip


def check_order(table: "pd.DataFrame", *, place: str) -> None:
    """Raise InputError with the first variant out of order: contigs must be contiguous, and positions must not fall."""
    contig, names = table["contig"].factorize()
    position = table["position"].to_numpy()
    is_first = np.diff(contig, prepend=-1) != 0
    # Codes are numbered by first appearance, so a contig that starts with a code below the maximum starts again.
    resumes = is_first & (contig < np.maximum.accumulate(contig))
    falls = ~is_first & (np.diff(position, prepend=position[:1]) < 0)
    if (misplaced := np.flatnonzero(resumes | falls)).size:
        row = misplaced[0]
        variant = f"{place}: variant {row} ({table['id'].iloc[row]}, {names[contig[row]]}:{position[row]})"
        problem = f"comes after position {position[row - 1]}. Sort the variants of each contig by position."
        if resumes[row]:
            problem = f"is of contig {names[contig[row]]}, which ended before. Sort the variants by contig."
        raise InputError(f"{variant} {problem}")


def forecast(source: Source, *, threads: int) -> int:
    """Return the approximate bytes that the step takes: a block, its chunks and codes per thread, and the tables."""
    rows, counts = max(stop - start for start, stop in source.ranges()), 4 * (source.ploidy + 2)
    block_bytes = max(part.block_bytes for part in source.parts)
    a_thread = 2 * block_bytes + rows * (source.row_bytes + counts) + 8 * len(source.samples)
    return WORKERS_BYTES + threads * a_thread + source.variants * (TABLE_BYTES + counts + 8)


def _encode(run: Run[Ingest], source: Source, path: Path) -> tuple[GenotypeFolder, Tally]:
    """Write the calls of all variants, and check that each is counted."""
    encoding: Encoding = "two_bit" if source.ploidy == 2 else "int8"
    ploidy, variants, samples = source.ploidy, source.variants, len(source.samples)
    folder = create_genotypes(path, encoding=encoding, ploidy=ploidy, variants=variants, samples=samples)
    shared, ranges = {"source": source, "folder": folder}, source.ranges()
    # A range of small chunks takes milliseconds, less than the overhead of a task, so tasks are of many ranges.
    size = -(-len(ranges) // TASKS)
    tasks = [ranges[first : first + size] for first in range(0, len(ranges), size)]
    with run.workers() as workers:
        tally = source.tally(0, variants)
        for part in workers.map(encode_ranges, tasks, label="ingest", shared=shared):
            tally.add(part)
    check_counts(tally, samples=samples)
    return folder, tally


def encode_ranges(ranges: Sequence[tuple[int, int]], *, source: Source, folder: GenotypeFolder) -> Tally:
    """Write the codes of consecutive ranges. Running twice leaves the same bytes."""
    tally = source.tally(ranges[0][0], ranges[-1][1])
    for start, stop in ranges:
        codes, part = source.encode(start, stop)
        folder.write(start, codes)
        tally.add(part)
    return tally


def check_counts(tally: Tally, *, samples: int) -> None:
    """Raise IntegrityError unless every call was counted exactly once."""
    calls = tally.counts.sum(axis=1, dtype=np.int64)
    if (wrong := np.flatnonzero(calls != samples)).size:
        row = wrong[0]
        raise IntegrityError(f"variant {row} has {calls[row]} calls counted, not {samples}. Report this as a bug.")
    by_sample, by_variant = tally.missing.sum(), tally.counts[:, -1].sum(dtype=np.int64)
    if by_sample != by_variant:
        raise IntegrityError(f"{by_sample} calls are missing by sample, but {by_variant} by variant. Report a bug.")


def describe_origins(origins: Sequence[str], *, threads: int) -> list[dict[str, Any]]:
    """Return the path, size and SHA-256 of local files and directories, and the URL of others."""
    paths = [local_path(origin) for origin in origins]
    hashes = digests([path for path in paths if path], threads=threads)
    return [
        {"path": str(path), "bytes": size_of(path), "sha256": hashes[path]} if path else {"url": redact(origin)}
        for origin, path in zip(origins, paths, strict=True)
    ]


def sample_labels(samples: Sequence[str], settings: Labels, *, refresh: bool = False) -> list[str | None]:
    """Return the label of each sample, or None, and log how many have none. Raises InputError if none has one."""
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

    Returns the label of each labeled sample, stripped. Raises InputError if the table is missing or unreadable, lacks a
    column, or gives a sample two labels.
    """
    if not path.is_file():
        raise InputError(f"{path} does not exist. Check genomics.ingest.labels.table.")
    columns = [settings.sample_column, settings.label_column]
    try:
        if path.suffix.lower() in PARQUET:
            parquet = pq.read_table(path)
            parquet.validate(full=True)  # checks that text is UTF-8
            table: pd.DataFrame = parquet.to_pandas()
        else:
            table = _read_text(path, columns)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a readable table of labels: {str(error).strip()}. {FORMATS}") from error
    names = list(table.columns)
    if repeated := [name for name in dict.fromkeys(columns) if names.count(name) > 1]:
        raise InputError(f"{path} has more than one column {' and '.join(repeated)}. Rename or remove all but one.")
    if missing := [name for name in columns if name not in names]:
        raise InputError(
            f"{path} has no column {' and '.join(missing)}; it has {', '.join(map(str, names))}. Set "
            "genomics.ingest.labels.sample_column and label_column."
        )
    # convert_dtypes turns integers that missing values have made floats into integers again: 7, not 7.0.
    pairs = table[columns].convert_dtypes().dropna().astype("str").set_axis(["sample", "label"], axis=1)
    pairs = pairs.assign(sample=pairs["sample"].str.strip(), label=pairs["label"].str.strip()).drop_duplicates()
    pairs = pairs[(pairs != "").all(axis=1)]
    twice = pairs[pairs["sample"].duplicated(keep=False)]
    if len(twice):
        labels = twice.groupby("sample", sort=False)["label"].agg(" and ".join)
        examples = shorten_list([f"{sample} ({both})" for sample, both in labels.items()])
        raise InputError(f"{path} gives {len(labels)} samples more than one label: {examples}. Keep one row for each.")
    return dict(zip(pairs["sample"], pairs["label"], strict=True))


def _read_text(path: Path, columns: Sequence[str]) -> "pd.DataFrame":
    with path.open(encoding="utf-8-sig") as file:
        header = file.readline().rstrip("\r\n")
    fields = {pattern: [name.strip().strip('"') for name in header.split(by)] for pattern, by in SEPARATORS.items()}
    last = r"\s+" if "\t" in header else ""  # a space may be part of a name
    separator = max(fields, key=lambda by: (set(columns) <= set(fields[by]), by != last, len(fields[by])))
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if separator in (",", ";") else csv.QUOTE_NONE
    table = pd.read_csv(
        path, sep=separator, header=None, skiprows=1, dtype=str, na_filter=False, encoding="utf-8-sig", quoting=quoting
    )
    # Between tabs or spaces a quote may be part of a label, such as 5"; only quotes around a field are removed.
    table = table.replace(QUOTED, r"\1", regex=True) if quoting == csv.QUOTE_NONE else table
    names = fields[separator]
    while len(names) > len(table.columns) and not names[-1]:
        names.pop()  # of a separator at the end of the header alone
    return table.set_axis(names, axis=1)


def check(settings: Any, downloads: Downloads) -> str:
    """Return the numbers of samples and variants of the data sets; for VCF, which it does not read, of the files."""
    ingest, second, parts = settings.ingest, settings.project.second, []
    for prefix, key, section in (("", "genomics.ingest", ingest), ("second: ", "genomics.project.second", second)):
        if section.source == "vcf":
            files = check_readable(section.vcf.paths, downloads=downloads, key=f"{key}.vcf")
            parts.append(f"{prefix}files of VCF: {len(files)}")
        elif section.source not in ("generated", "none"):
            source = open_source(section, {}, scratch=Path())
            parts.append(f"{prefix}{source.variants:,} variants of {len(source.samples):,} samples")
    if ingest.labels.table:
        check_readable([ingest.labels.table], downloads=downloads, key="genomics.ingest.labels.table")
        parts.append("a table of labels")
    return "; ".join(parts)


if __name__ == "__main__":
    main(ingest)
