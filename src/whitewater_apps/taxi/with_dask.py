"""The operations on tables of trips in Dask; option ``dataframe.backend`` makes them run on pandas or cuDF.

Functions on frames use only what pandas and cuDF have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import dask
import pyarrow as pa
import pyarrow.parquet as pq
from dask.delayed import delayed

from whitewater.engines import Array, Device
from whitewater.engines.workers import Workers
from whitewater.io.store import write_whole
from whitewater.learn.sample import Sample
from whitewater.tables import with_dask as tables
from whitewater.tables.partitions import Partition, write_table
from whitewater.tables.quarantine import write_rejected
from whitewater.tables.rules import Rule
from whitewater.tables.with_dask import Frame, Series
from whitewater_apps.taxi.features import Columns
from whitewater_apps.taxi.partitions import (
    FIRST_YEAR,
    LAST_YEAR,
    STANDARDISED,
    TRIP_SCHEMA,
    UNKNOWN_MONTH,
    DataSets,
    directory,
)
from whitewater_apps.taxi.prediction import FILE_ROWS, PREDICTED, Counts, Prediction, count
from whitewater_apps.taxi.quality import Tally
from whitewater_apps.taxi.rules import ISSUES_BIT, RULES_BIT, file_month
from whitewater_apps.taxi.sample import Sampling
from whitewater_apps.taxi.trip_files import TRIPS, RowGroup, services


def clean(partitions: Sequence[Partition], rules: Sequence[Rule], *, into: DataSets, workers: Workers) -> Tally:
    """Write kept trips, and rejected ones with all their reasons; see `operations.Operations`."""
    if not partitions:
        return Tally()
    trips = tables.read(partitions, STANDARDISED).map_partitions(_flag, rules)
    write = delayed(partial(_write_cleaned, into=into))
    names = [partition[0].path.name for partition in partitions]
    written = [write(frame, name) for frame, name in zip(trips.to_delayed(), names, strict=True)]
    return sum(workers.compute(*written), Tally())


def _flag(trips: Frame, rules: Sequence[Rule]) -> Frame:
    """Return the trips with the month of pickup and the mask of the reasons to reject each."""
    return trips.assign(month=month(trips["pickup_datetime"]), mask=broken(trips, rules))


def _write_cleaned(trips: Frame, name: str, *, into: DataSets) -> Tally:
    counts = Tally(
        tables.count_rows(trips, "file", "service", "month", "mask"),
        tables.count_rows(trips, "file", "pickup_location_id"),
        tables.count_rows(trips, "file", "dropoff_location_id"),
    )
    kept = trips["mask"] == 0
    for service, number in counts.places(kept=True):
        tables.write_frame(
            trips[kept & _is_at(trips, service, number)], into.trips / directory(service, number) / name, TRIP_SCHEMA
        )
    bad = trips[~kept]
    for service, number in counts.places(kept=False):
        rows = bad[_is_at(bad, service, number)]
        write_rejected(
            tables.to_arrow(rows, TRIP_SCHEMA),
            rows["mask"].to_numpy(),
            rows["file"].to_numpy(),
            into.quarantine / directory(service, number) / name,
            reasons=into.reasons,
            origins=into.origins,
        )
    return counts


def broken(trips: Frame, rules: Sequence[Rule]) -> Series:
    """Return an int64 mask of the reasons to reject each trip; its bits are those of `rules.reasons`."""
    return trips["issues"].astype("int64") * (1 << ISSUES_BIT) + tables.broken(rules, partial(quantity, trips)) * (
        1 << RULES_BIT
    )


def quantity(trips: Frame, name: str) -> Series:
    """Return a column, or a quantity that follows from columns; null where it is not known."""
    if name == "duration":  # seconds
        return (trips["dropoff_datetime"] - trips["pickup_datetime"]).dt.total_seconds()
    if name == "speed":  # miles an hour
        return _ratio(trips["trip_distance"], quantity(trips, "duration") / 3600)
    if name == "tip_fraction":
        return _ratio(trips["tip_amount"], trips["fare_amount"])
    if name == "file_month":
        pickup = trips["pickup_datetime"]
        return file_month(trips["file"], trips["service"], month(pickup)).where(pickup.notna())
    return trips[name]


def month(time: Series) -> Series:
    """Return the number of the month, see `whitewater_apps.taxi.partitions`, as int32."""
    year, of_year = (part.fillna(0).astype("int32") for part in (time.dt.year, time.dt.month))
    return (year * 12 + of_year - 1).where((year >= FIRST_YEAR) & (year <= LAST_YEAR), UNKNOWN_MONTH)


def _ratio(numerator: Series, denominator: Series) -> Series:
    """Return the quotient, null where the denominator is not above 0."""
    return (numerator / denominator).where((denominator > 0).fillna(False))


def _is_at(trips: Frame, service: int, number: int) -> Series:
    return (trips["service"].fillna(0) == service) & (trips["month"] == number)


def sample(groups: Sequence[RowGroup], sampling: Sampling, *, device: Device, workers: Workers) -> Iterable[Sample]:
    """Return samples of the trips of row groups; see `Operations.sample`."""
    work = delayed(partial(_sample_row_group, sampling=sampling, device=device, backend=_backend()))
    return workers.compute(*map(work, groups))


def _sample_row_group(group: RowGroup, *, sampling: Sampling, device: Device, backend: str) -> Sample:
    trips = _of_service(_read(group, sampling.columns, backend), sampling.service, group)
    slices = (trips.iloc[start : start + device.slice_rows] for start in range(0, len(trips), device.slice_rows))
    return sampling.join(sampling.take(_numbers(rows, sampling.columns, device), device) for rows in slices)


def predict(
    groups: Sequence[RowGroup], prediction: Prediction, *, device: Device, workers: Workers
) -> Iterable[list[Counts]]:
    """Write files of predictions; see `Operations.predict`."""
    work, placed = delayed(partial(_predict_row_group, device=device, backend=_backend())), workers.place(prediction)
    return workers.compute(*(work(group, placed) for group in groups))


def _predict_row_group(group: RowGroup, prediction: Prediction, *, device: Device, backend: str) -> list[Counts]:
    trips, counts = _read(group, prediction.columns, backend), []
    for start in range(0, group.rows, FILE_ROWS):
        for service in services([group]):
            rows = _of_service(trips.iloc[start : start + FILE_ROWS], service, group)
            if len(rows):
                fractions = prediction.of(_numbers(rows, prediction.columns, device), service, device)
                counts.append(count(fractions, service, device))
                path = prediction.file(group, start, service)
                _write(rows[["pickup_datetime"]], fractions, path, backend=backend)
    return counts


def _backend() -> str:
    """Return the library of data frames; Dask's option does not reach the processes of workers."""
    backend: str = dask.config.get("dataframe.backend")
    return backend


def _read(group: RowGroup, names: Sequence[str], backend: str) -> Frame:
    """Return those of the columns that a row group has, and the service where it is told of each trip."""
    columns = [name for name in (*names, "service") if name in group.names]
    with TRIPS.explained(group.path):
        if backend == "cudf":
            import cudf

            return cudf.read_parquet(
                group.path,
                columns=columns,
                row_groups=[group.index],
                use_pandas_metadata=False,
                dataset_kwargs={"partitioning": None},
            )
        with pq.ParquetFile(group.path) as file:
            table = file.read_row_group(group.index, columns, use_threads=False)
        return table.to_pandas(ignore_metadata=True)


def _of_service(trips: Frame, service: str, group: RowGroup) -> Frame:
    return trips if group.service else trips[trips["service"] == service]


def _numbers(trips: Frame, names: Sequence[str], device: Device) -> Columns:
    """Return columns as arrays; one that the era lacks is null throughout."""
    null = device.xp.full(len(trips), float("nan"))
    return {name: _as_float(trips[name]) if name in trips.columns else null for name in names}


def _as_float(column: Frame) -> Array:
    """Return a column as float64 with NaN for null; times are microseconds."""
    if column.dtype.kind == "M":
        # pandas has a number for a time that is missing.
        column = column.astype("datetime64[us]").astype("int64").where(column.notna())
    values: Array = column.astype("float64").fillna(float("nan")).values
    return values


def _write(times: Frame, fractions: dict[str, Array], path: Path, *, backend: str) -> None:
    predicted = times.astype("datetime64[us]").assign(**fractions)
    if backend == "cudf":
        # Columns that have no null are required ones otherwise.
        write_whole(path, partial(predicted.to_parquet, index=False, force_nullable_schema=True))
    else:
        write_table(pa.Table.from_pandas(predicted, PREDICTED, preserve_index=False), path)
