"""The operations on tables of trips in Polars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import polars as pl
import polars.selectors as cs

from whitewater.engines import Device
from whitewater.engines.workers import Workers
from whitewater.errors import InputError
from whitewater.learn.sample import Sample
from whitewater.tables.partitions import write_table
from whitewater_apps.taxi.features import Columns
from whitewater_apps.taxi.prediction import FILE_ROWS, Counts, Prediction, count
from whitewater_apps.taxi.sample import Sampling
from whitewater_apps.taxi.trip_files import TRIPS, RowGroup, services


def sample(groups: Sequence[RowGroup], sampling: Sampling, *, device: Device, workers: Workers) -> Iterable[Sample]:
    """Return samples of the trips of row groups; see `Operations.sample`."""
    work = partial(_sample_row_group, sampling=sampling, device=device)
    return workers.map(work, groups, label=f"{sampling.service}: sample")


def _sample_row_group(group: RowGroup, *, sampling: Sampling, device: Device) -> Sample:
    trips = _of_service(_read(group, sampling.columns), sampling.service, group)
    slices = trips.iter_slices(device.slice_rows)
    return sampling.join(sampling.take(_numbers(rows, sampling.columns, device), device) for rows in slices)


def predict(
    groups: Sequence[RowGroup], prediction: Prediction, *, device: Device, workers: Workers
) -> Iterable[list[Counts]]:
    """Write files of predictions; see `Operations.predict`."""
    work = partial(_predict_row_group, device=device)
    return workers.map(work, groups, label="predict", shared={"prediction": prediction})


def _predict_row_group(group: RowGroup, *, prediction: Prediction, device: Device) -> list[Counts]:
    trips, counts = _read(group, prediction.columns), []
    for start in range(0, group.rows, FILE_ROWS):
        for service in services([group]):
            rows = _of_service(trips[start : start + FILE_ROWS], service, group)
            if len(rows):
                fractions = prediction.of(_numbers(rows, prediction.columns, device), service, device)
                counts.append(count(fractions, service, device))
                times = rows.select(pl.col("pickup_datetime").cast(pl.Datetime("us")))
                on_host = {name: device.to_host(values) for name, values in fractions.items()}
                table = times.hstack(pl.DataFrame(on_host, nan_to_null=True)).to_arrow()
                write_table(table, prediction.file(group, start, service))
    return counts


def _read(group: RowGroup, names: Sequence[str]) -> pl.DataFrame:
    """Return those of the columns that a row group has, and the service where it is told of each trip."""
    columns = [name for name in (*names, "service") if name in group.names]
    try:
        return pl.scan_parquet(group.path).select(columns).slice(group.first_row, group.rows).collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{group.path} cannot be read: {error}. {TRIPS.remedy}") from error


def _of_service(trips: pl.DataFrame, service: str, group: RowGroup) -> pl.DataFrame:
    return trips if group.service else trips.filter(pl.col("service") == service)


def _numbers(trips: pl.DataFrame, names: Sequence[str], device: Device) -> Columns:
    """Return columns as arrays; one that the era lacks is null throughout."""
    present = trips.select(cs.by_name(*names, require_all=False))
    numbers = present.with_columns(cs.temporal().dt.timestamp("us")).cast(pl.Float64)
    null = device.xp.full(len(trips), float("nan"))
    return {name: device.to_device(numbers[name].to_numpy()) if name in numbers.columns else null for name in names}
