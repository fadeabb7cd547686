"""R19: features for recommenders, encoded, filled, normalized and shuffled, and loaded in batches.

The source claims 50 times the speed of a CPU once loading, shuffling and access order were fixed, and gives neither
code nor seconds, so that nothing is listed as published. `as_published` of loading is what had to be fixed: a row at a
time, by its number. Scale 1.0 is the size of the Criteo data of 2014 (Kaggle's display advertising challenge), 45.8
million rows of 13 numbers and 26 categories, of which the largest column has 10 million values; the click log is
simulated. Making features is measured as whole processes; loading is a call, an epoch of batches. See
benchmarks/README.md, recsys, for the definitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import count

from pydantic import JsonValue

from benchmarks import measure
from benchmarks.placement import Placement
from benchmarks.published.row import (
    BOTH,
    SEED,
    CallCase,
    ProcessCase,
    Row,
    Timed,
    Variant,
    Work,
    missing_packages,
)
from benchmarks.recsys import click_log, feature_rows, load_variant
from benchmarks.recsys.commands import features_variant_of
from benchmarks.report import Size

ROWS, FEWEST_ROWS = 45_840_617, 100
LARGEST_CARDINALITY, SMALLEST_CARDINALITY = 10_000_000, 1000
# Statistics in float64, written as float32.
TOLERANCE = 1e-5
# Name here, of the program, and the module that it needs.
PEERS = (
    ("polars", "polars", "polars"),
    ("duckdb", "duckdb", "duckdb"),
    ("scikit_learn", "sklearn", "sklearn"),
)
ORACLE = "duckdb"


def log(work: Work) -> click_log.ClickLog:
    """Return the click log, which is made unless it is there."""
    return click_log.prepare(
        work.folder,
        rows=max(FEWEST_ROWS, round(ROWS * work.scale)),
        largest_cardinality=max(SMALLEST_CARDINALITY, round(LARGEST_CARDINALITY * work.scale)),
        seed=SEED,
        threads=work.threads,
    )


def rows(work: Work) -> feature_rows.FeatureRows:
    """Return the features to load, which are made unless they are there."""
    return feature_rows.prepare(work.folder, log(work), threads=work.threads)


def features(work: Work) -> list[measure.Variant]:
    """Return the commands that make features: ours on the device and, on the CPU, the peers; the oracle always."""
    events, written = log(work), work.folder / "written"
    ours = features_variant_of(
        "whitewater", events, written / "whitewater", threads=work.threads, placement=_placement(work)
    )
    theirs = [
        replace(
            features_variant_of(tool, events, written / name, threads=work.threads),
            name=name,
            missing=missing_packages((package,)),
        )
        for name, tool, package in PEERS
        if work.device.name == "cpu" or name == ORACLE
    ]
    return [ours, *theirs]


@contextmanager
def loading(tool: str, work: Work) -> Iterator[Timed]:
    """Load epochs of batches as the program of a tool does; each call is another epoch, in another order."""
    made, placement = rows(work), _placement(work)
    epoch = import_module(f"benchmarks.recsys.load_with_{tool}").open_batches(
        load_variant.Work(made.folder, work.threads, placement)
    )
    numbers = count()

    def load() -> tuple[int, int]:
        number = next(numbers)
        return number, sum(len(batch["row_id"]) for batch in epoch(number))

    def answer(loaded: tuple[int, int]) -> JsonValue:
        number, rows_loaded = loaded
        return {"rows": rows_loaded, "sums": load_variant.sums(load_variant.on_host(epoch, work.device), number)}

    yield Timed(load, answer=answer)


def _placement(work: Work) -> Placement:
    return Placement(work.device.name, work.cluster.model_dump_json(exclude_defaults=True))


def _prepare_log(work: Work) -> None:
    log(work)


def _prepare_rows(work: Work) -> None:
    rows(work)


ROW = Row(
    id="R19",
    name="recsys_features",
    title="features of 45.8 million rows of 39 columns, and an epoch of their batches (50 x a CPU claimed)",
    cases=(
        ProcessCase(
            name="features",
            variants=features,
            oracle=ORACLE,
            size=lambda work: Size(rows=log(work).rows, bytes=log(work).file_bytes, basis="file"),
            prepare=_prepare_log,
            tolerance=TOLERANCE,
        ),
        CallCase(
            name="load",
            variants=(
                Variant("whitewater", partial(loading, "whitewater"), devices=BOTH),
                Variant("as_published", partial(loading, "rows")),
                Variant("pyarrow", partial(loading, "pyarrow")),
            ),
            oracle="pyarrow",
            size=lambda work: Size(rows=rows(work).rows, bytes=rows(work).file_bytes, basis="file"),
            prepare=_prepare_rows,
            tolerance=TOLERANCE,
        ),
    ),
)
