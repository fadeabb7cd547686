"""The taxi benchmark with what Whitewater's steps are made of, by the engine dask on pandas, which on a GPU is cuDF.

Each unit of the raw files is a partition. Threads of one process compute, as they do for a step with ``engine: dask``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import dask
import dask.dataframe as dd
import pandas as pd
import polars as pl
import pyarrow as pa

from benchmarks.taxi.variant import CARD, Answer, Work, main
from benchmarks.taxi.with_whitewater import CLEAN, HOUR, PARQUET_ROWS, TEXT_ROWS, THURSDAY, ZONES, open_files, roll_up
from whitewater.process import exit_fast, start_fast
from whitewater.tables import with_dask as tables
from whitewater.tables.eras import Rule
from whitewater.tables.group_statistics import VALUE, integers
from whitewater.tables.raw_files import Unit, arrow_blocks, units
from whitewater_apps.taxi.rules import rules
from whitewater_apps.taxi.schema import CODES, TRIP_SCHEMA
from whitewater_apps.taxi.with_dask import quantity, reason_mask
from whitewater_apps.taxi.zones import read_zones

SUMS = dict.fromkeys(("key", "trips", *VALUE), "int64")
NONE = pd.DataFrame(SUMS, index=[]).astype(SUMS)


def compute(work: Work) -> Answer:
    """Aggregate, and write the cleaned trips where that is asked for."""
    if work.output is not None:
        work.output.mkdir(parents=True)
    zones = read_zones(work.zones)
    files = chain.from_iterable(open_files(path, projected=work.output is None) for path in work.files)
    rows = TEXT_ROWS if work.csv else PARQUET_ROWS
    parts = units(files, rows=rows)
    read = partial(_read, rows=rows, every=rules(CLEAN, zones, []), output=work.output)
    with dask.config.set(scheduler="threads", num_workers=work.threads):
        groups = dd.from_map(read, parts, meta=NONE).groupby("key").sum().reset_index().compute()
    total = pl.col("value_0").cast(pl.Int128) * 2**31 + pl.col("value_1")
    return roll_up(pl.from_pandas(groups).with_columns(total=total), zones)


def _read(unit: Unit, *, rows: int, every: Sequence[Rule], output: Path | None) -> pd.DataFrame:
    """Return the sums of a unit by hour of the week and zone, and write its cleaned trips if there is an output."""
    return pd.concat(
        [
            _sums(_clean(table, unit, every, output and output / f"{unit.stem(piece)}.parquet"))
            for piece, (table, _) in enumerate(arrow_blocks(unit, rows=rows))
        ]
    )


def _clean(table: pa.Table, unit: Unit, every: Sequence[Rule], path: Path | None) -> tables.Frame:
    trips = tables.in_schema(tables.from_arrow(table, "pandas"), unit.file.era, CODES).assign(file=0)
    trips = trips[reason_mask(trips, every) == 0]
    if path is not None:
        tables.write_frame(trips, path, pa.schema([each for each in TRIP_SCHEMA if each.name in trips.columns]))
    return trips


def _sums(trips: tables.Frame) -> pd.DataFrame:
    card = trips[(trips["payment_type"] == CARD).fillna(False)]
    hour = (card["pickup_datetime"].astype("datetime64[us]").astype("int64") // HOUR + THURSDAY) % 168
    cut = integers(quantity(card, "tip_fraction"))
    keyed = pd.DataFrame({name: cut[name] for name in VALUE}).assign(
        trips=1, key=hour * ZONES + card["pickup_location_id"].fillna(0).astype("int64")
    )
    sums: pd.DataFrame = keyed.groupby("key", sort=False).sum().reset_index()[list(SUMS)]
    return sums


if __name__ == "__main__":
    start_fast()
    main(compute)
    exit_fast(0)
