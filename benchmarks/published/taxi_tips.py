"""R17: how people tip by hour of the day, over all months of yellow taxis.

The source plots it from all months in cloud storage, and gives no time; here they are files, and the answer is the
table behind the plot. Scale 1.0 is 1.5e9 trips, about those of 2009 to 2018; they are simulated, in the layout of
2019, in 12 to 60 months. See benchmarks/README.md, case A of taxi, for which trips count, the groups and the answer.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks import measure
from benchmarks.placement import Placement
from benchmarks.published.row import SEED, ProcessCase, Row, Work, missing_packages
from benchmarks.report import Size
from benchmarks.taxi.commands import variant
from benchmarks.taxi.simulated_months import Months
from benchmarks.taxi.simulated_months import prepare as prepare_months

TRIPS = 1_500_000_000
# Trips of a usual month; the layout is that of the months of five years only.
MONTH_TRIPS = 3_000_000
FEWEST_MONTHS, MOST_MONTHS = 12, 60
ORACLE = "duckdb"
# Name here, of the program, and the module that it needs.
PEERS = (
    ("as_published", "dask_dataframe", "dask"),
    ("polars", "polars", "polars"),
    ("duckdb", "duckdb", "duckdb"),
    ("pandas", "pandas", "pandas"),
)


def prepared(work: Work) -> Months:
    """Return the months, which are made unless they are there."""
    trips = round(TRIPS * work.scale)
    months = min(max(round(trips / MONTH_TRIPS), FEWEST_MONTHS), MOST_MONTHS)
    return prepare_months(
        work.folder,
        months=months,
        rows=max(1, round(trips / months)),
        seed=SEED,
        with_csv=False,
        processes=work.threads,
    )


def prepare(work: Work) -> None:
    """Make the months, unless they are there."""
    prepared(work)


def size(work: Work) -> Size:
    """Return trips, and bytes of all files."""
    months = prepared(work)
    return Size(rows=months.rows, bytes=sum(file.stat().st_size for file in months.parquet), basis="file")


def variants(work: Work) -> list[measure.Variant]:
    """Return ours on the device and, on the CPU, the peers; the oracle always."""
    months = prepared(work)
    placement = Placement(work.device.name, work.cluster.model_dump_json(exclude_defaults=True))
    ours = variant("whitewater", months.parquet, months, threads=work.threads, placement=placement)
    theirs = [
        replace(
            variant(tool, months.parquet, months, threads=work.threads),
            name=name,
            missing=missing_packages((package,)),
        )
        for name, tool, package in PEERS
        if work.device.name == "cpu" or name == ORACLE
    ]
    return [ours, *theirs]


ROW = Row(
    id="R17",
    name="taxi_tips",
    title="tip fraction by hour of the day over all months of yellow taxis",
    cases=(ProcessCase(name="", variants=variants, oracle=ORACLE, size=size, prepare=prepare),),
)
