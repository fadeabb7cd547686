"""The taxi benchmark in pandas: month by month, so that one month is in memory, on one core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.taxi.variant import CARD, MAXIMUM_FARE, MAXIMUM_HOURS, MAXIMUM_MILES, NEEDED, Answer, Work, answer, main


def compute(work: Work) -> Answer:
    """Aggregate, and write the cleaned trips where that is asked for."""
    if work.output is not None:
        work.output.mkdir(parents=True)
    zones = pd.read_csv(work.zones, usecols=["LocationID", "Borough"], keep_default_na=False)
    groups = pd.concat([_tips_by_hour_and_zone(_month(work, file)) for file in work.files])
    keyed = groups.groupby(level=[0, 1, 2]).sum().reset_index().merge(zones, "left", on="LocationID")
    by_hour, by_weekday_hour, by_borough = (
        _means(keyed, keys) for keys in (["hour"], ["weekday", "hour"], ["Borough"])
    )
    return answer(by_hour, by_weekday_hour, by_borough)


def _month(work: Work, file: Path) -> pd.DataFrame:
    """Return the cleaned trips of a month, with the columns that the aggregates need."""
    if work.csv:
        return _clean(pd.read_csv(file, usecols=list(NEEDED), parse_dates=list(NEEDED[:2]), engine="pyarrow"))
    if work.output is None:
        return _clean(pd.read_parquet(file, columns=list(NEEDED)))
    cleaned = _clean(pd.read_parquet(file))
    cleaned.to_parquet(work.output / file.name, compression="snappy", index=False)
    return cleaned


def _clean(trips: pd.DataFrame) -> pd.DataFrame:
    duration = trips["tpep_dropoff_datetime"] - trips["tpep_pickup_datetime"]
    kept = (
        (trips["fare_amount"] > 0)
        & (trips["fare_amount"] <= MAXIMUM_FARE)
        & (trips["tip_amount"] >= 0)
        & trips["trip_distance"].between(0, MAXIMUM_MILES)
        & (duration > pd.Timedelta(0))
        & (duration <= pd.Timedelta(hours=MAXIMUM_HOURS))
    )
    return trips.loc[kept]


def _tips_by_hour_and_zone(cleaned: pd.DataFrame) -> pd.DataFrame:
    card = cleaned[cleaned["payment_type"] == CARD]
    pickup = card["tpep_pickup_datetime"].dt
    fraction = card["tip_amount"] / card["fare_amount"]
    keys = [pickup.weekday.rename("weekday"), pickup.hour.rename("hour"), card["PULocationID"].rename("LocationID")]
    return fraction.groupby(keys).agg(["count", "sum"]).set_axis(["trips", "total"], axis=1)


def _means(keyed: pd.DataFrame, keys: list[str]) -> list[Any]:
    sums = keyed.groupby(keys, dropna=False)[["trips", "total"]].sum().reset_index()
    sums["total"] /= sums["trips"]
    rows: list[Any] = sums.to_dict("split")["data"]
    return rows


if __name__ == "__main__":
    main(compute)
