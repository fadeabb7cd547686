"""Command `transform`: a stored workflow applied to a file."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from whitewater.engines import resolve
from whitewater.errors import ConfigError, IntegrityError
from whitewater.features.artifact import load
from whitewater.features.dataset import Dataset, arrow_schema
from whitewater.features.transform import tables
from whitewater.features.workflow import run_on
from whitewater.io.store import stage_outputs
from whitewater.process import usable_cores


def main(arguments: Sequence[str]) -> int:
    """Transform a file and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="whitewater recsys transform",
        description="Make the features of a Parquet file with a workflow that was fitted before.",
        allow_abbrev=False,
    )
    parser.add_argument("input", type=Path, help="the Parquet file to transform, or a folder of them")
    parser.add_argument("output", type=Path, help="the Parquet file to write")
    parser.add_argument("--workflow", type=Path, required=True, help="the folder of the fitted workflow")
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"), help="where it computes (cpu)")
    parser.add_argument("--threads", type=int, default=usable_cores(), help="threads (default: all cores)")
    options = parser.parse_args(list(arguments))
    source, output = options.input, options.output
    if output.exists() and not output.is_file():
        # The output replaces what is there, even a folder with its contents.
        raise ConfigError(f"{output} exists and is not a file. Name the file to write.")
    if source.resolve() in (output.resolve(), *output.resolve().parents):
        raise ConfigError(f"{output} is the input {source}, or is in it. Write to another file.")
    run = run_on(resolve(options.device), "transform", threads=options.threads)
    fitted, dataset = load(options.workflow), Dataset(source)
    schema = arrow_schema({field.name: field.type for field in fitted.fields(dataset.schema)})
    rows = 0
    owner = output.with_name(f".{output.name}.owner")
    with stage_outputs({"features": output}, owner=owner) as paths, run.workers() as workers:
        with pq.ParquetWriter(paths["features"], schema, compression="zstd", compression_level=1) as writer:
            for table in tables(fitted, dataset, run=run, workers=workers, training=False):
                writer.write_table(table)
                rows += table.num_rows
        if rows != dataset.rows:
            raise IntegrityError(f"{source} has {dataset.rows} rows, but {rows} were made. Report this as a bug.")
    print(f"{rows:,} rows: {output}")
    return 0
