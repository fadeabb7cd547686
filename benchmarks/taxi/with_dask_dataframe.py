"""The taxi benchmark in Dask DataFrame as its documentation teaches it, on threads of one process."""

from __future__ import annotations

from typing import Any

import dask
import dask.dataframe as dd
import pandas as pd

from benchmarks.taxi.variant import CARD, MAXIMUM_FARE, MAXIMUM_HOURS, MAXIMUM_MILES, NEEDED, Answer, Work, answer, main


def compute(work: Work) -> Answer:
    """Aggregate, and write the cleaned trips where that is asked for."""
    with dask.config.set(scheduler="threads", num_workers=work.threads):
        cleaned = _clean(_read(work))
        if work.output is not None:
            cleaned.to_parquet(work.output, compression="snappy", write_index=False)
        return _tips(cleaned, work)


def _read(work: Work) -> Any:
    files = [str(file) for file in work.files]
    if work.csv:
        return dd.read_csv(files, usecols=list(NEEDED), parse_dates=list(NEEDED[:2]))
    columns = list(NEEDED) if work.output is None else None
    return dd.read_parquet(files, columns=columns, split_row_groups=True)


def _clean(trips: Any) -> Any:
    duration = trips["tpep_dropoff_datetime"] - trips["tpep_pickup_datetime"]
    return trips[
        (trips["fare_amount"] > 0)
        & (trips["fare_amount"] <= MAXIMUM_FARE)
        & (trips["tip_amount"] >= 0)
        & trips["trip_distance"].between(0, MAXIMUM_MILES)
        & (duration > pd.Timedelta(0))
        & (duration <= pd.Timedelta(hours=MAXIMUM_HOURS))
    ]


def _tips(cleaned: Any, work: Work) -> Answer:
    zones = pd.read_csv(work.zones, usecols=["LocationID", "Borough"], keep_default_na=False)
    card = cleaned[cleaned["payment_type"] == CARD]
    keyed = card.assign(
        fraction=card["tip_amount"] / card["fare_amount"],
        hour=card["tpep_pickup_datetime"].dt.hour,
        weekday=card["tpep_pickup_datetime"].dt.weekday,
    ).merge(zones, "left", left_on="PULocationID", right_on="LocationID")
    keys = (["hour"], ["weekday", "hour"], ["Borough"])
    lazy = [keyed.groupby(each, dropna=False)["fraction"].agg(["count", "mean"]) for each in keys]
    return answer(*(mean.reset_index().to_dict("split")["data"] for mean in dask.base.compute(*lazy)))


if __name__ == "__main__":
    main(compute)
