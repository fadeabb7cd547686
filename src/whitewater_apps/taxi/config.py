"""Configuration of the taxi application: one section for each step."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from whitewater.config.base import Section, Sourced
from whitewater.learn.config import Search
from whitewater.tables.config import Range, RawFiles

Service = Literal["yellow", "green", "fhvhv"]
Month = Annotated[str, Field(pattern=r"^20\d\d-(0[1-9]|1[0-2])$")]
Borough = Literal["Bronx", "Brooklyn", "EWR", "Manhattan", "Queens", "Staten Island", "Unknown", "N/A"]
RequiredColumn = Literal["pickup_datetime", "dropoff_datetime", "fare_amount", "tip_amount", "trip_distance"]
Feature = Literal[
    "hour", "weekday", "passenger_count", "trip_distance", "duration", "speed", "fare_amount", "extra", "tolls_amount",
    "congestion_surcharge", "airport_fee", "rate_code", "pickup_borough", "dropoff_borough",
]  # fmt: skip


class Generated(Section):
    """Simulated TLC files with realistic dirt."""

    scale: float = Field(0.02, gt=0, description="Size; 1.0 is about 3 million trips per month of yellow taxis.")
    seed: int = Field(2019, ge=0, description="Random seed; equal seeds give equal files.")
    services: tuple[Service, ...] = Field(("yellow", "green", "fhvhv"), min_length=1, description="Simulated services.")
    months: tuple[Month, ...] = Field(
        ("2019-03", "2019-06", "2019-09", "2019-12"), min_length=1, description="Months to simulate, as YYYY-MM."
    )


class Files(Section):
    """Your own files, CSV (plain, gzip or zip) or Parquet: paths, globs or URLs (file, http, https, gs, s3)."""

    paths: tuple[str, ...] = Field((), description="Paths, globs or URLs.")
    zones: str = Field("", description="Table of zones, like TLC's taxi_zone_lookup.csv. Empty: all boroughs Unknown.")
    anonymous: bool = Field(True, description="Read gs:// and s3:// without credentials.")


class Tlc(Section):
    """Files of the Taxi and Limousine Commission, downloaded from its official server."""

    base_url: str = Field("https://d37ci6vzurychx.cloudfront.net", description="URL that holds trip-data/ and misc/.")
    services: tuple[Service, ...] = Field(("yellow",), min_length=1, description="Services to download.")
    months: tuple[Month, ...] = Field(("2019-03",), min_length=1, description="Months to download, as YYYY-MM.")
    retries: int = Field(5, ge=0, description="Retries of a broken download; each resumes where the last stopped.")
    timeout: float = Field(60.0, gt=0, description="Seconds without data after which a download is broken.")


class Fetch(Sourced):
    """Where the trips come from."""

    source: Literal["generated", "files", "tlc"] = Field("generated", description="Source to use, of those below.")
    generated: Generated = Generated()
    files: Files = Files()
    tlc: Tlc = Tlc()

    needed: ClassVar[Mapping[str, tuple[str, ...]]] = {"files": ("files.paths",)}


def _check_datetime_format(form: str) -> str:
    time = datetime(2019, 3, 31, 20, 5, tzinfo=UTC)
    parsed = datetime.strptime(time.strftime(form), form) if form else time
    if parsed.date() != time.date() or parsed.hour not in (0, time.hour):
        raise ValueError("lacks a part of the date, or has a 12-hour clock without %p")
    return form


class Standardize(RawFiles):
    """How raw files are converted to one schema."""

    datetime_format: Annotated[str, AfterValidator(_check_datetime_format)] = Field(
        "", description="Format of times in text, such as `%m/%d/%Y %I:%M:%S %p`. Empty: as 2019-03-01 08:00:00."
    )


class Ranges(Section):
    """Bounds of quantities; null switches a rule off.

    A bound that is not set keeps its default, unless the other bound of its side is set. Null removes a bound, as in
    ``duration: {at_most: null}``.
    """

    duration: Range | None = Field(Range(above=0, at_most=21_600), description="Seconds from pickup to drop-off.")
    trip_distance: Range | None = Field(Range(at_least=0, at_most=200), description="Miles.")
    speed: Range | None = Field(None, description="Miles an hour.")
    passenger_count: Range | None = Field(None, description="Passengers.")
    fare_amount: Range | None = Field(Range(above=0, at_most=1_000), description="US dollars.")
    tip_amount: Range | None = Field(Range(at_least=0), description="US dollars.")
    tip_fraction: Range | None = Field(Range(at_most=5), description="Tip divided by fare.")
    tolls_amount: Range | None = Field(None, description="US dollars.")
    total_amount: Range | None = Field(None, description="US dollars.")


class Clean(Section):
    """Which trips are kept. All others go to quarantine with all reasons."""

    required: tuple[RequiredColumn, ...] = Field(
        ("pickup_datetime", "dropoff_datetime", "fare_amount"), description="Columns that must not be null."
    )
    ranges: Ranges = Ranges()
    exclude_pickup_boroughs: tuple[Borough, ...] = Field((), description="Boroughs whose pickups are rejected.")
    exclude_dropoff_boroughs: tuple[Borough, ...] = Field((), description="Boroughs whose drop-offs are rejected.")
    minimum_month_share: float = Field(
        0.001,
        ge=0,
        lt=1,
        description="Reject trips with a wrong clock: if their month has less than this share of the file's trips, or "
        "is more than a year from the months with nine tenths of them. 0 switches the rule off.",
    )
    duplicates: Literal["keep", "quarantine"] = Field(
        "keep", description="Exact repeats of an earlier trip of their file. `quarantine` reads all trips once more."
    )
    max_unknown_zone_fraction: float = Field(
        0.05, ge=0, le=1, description="Stop if the table of zones lacks a larger share of the pickup or drop-off ids."
    )


class Tips(Section):
    """How tips are summarized."""

    confidence: float = Field(0.95, gt=0, lt=1, description="Confidence level of the intervals.")


def _refuse_tip(value: object) -> object:
    if isinstance(value, str) and (value == "total_amount" or value.startswith("tip")):
        raise ValueError("contains the tip, which the model is to predict; remove it from the features")
    return value


class Model(Search):
    """How the tip fraction of card trips is predicted."""

    features: tuple[Annotated[Feature, BeforeValidator(_refuse_tip)], ...] = Field(
        (
            "hour", "weekday", "passenger_count", "trip_distance", "duration", "speed", "fare_amount", "extra",
            "tolls_amount", "rate_code", "pickup_borough", "dropoff_borough",
        ),
        min_length=1,
        description="Features. Columns that contain the tip, such as total_amount, are refused.",
    )  # fmt: skip
    max_rows: int = Field(200_000, ge=100, description="Most trips to use per service, sampled by a hash of the row.")
    test_fraction: float = Field(0.2, gt=0, lt=1, description="Share of the trips, the latest ones, that is held out.")

    @field_validator("features")
    @classmethod
    def _features_differ(cls, features: tuple[Feature, ...]) -> tuple[Feature, ...]:
        if len(set(features)) < len(features):
            raise ValueError("names a feature twice")
        return features


class Predict(Section):
    """Prediction by a stored model; it has no settings."""


class Plot(Section):
    """How the pictures are drawn."""

    formats: tuple[Literal["png", "svg"], ...] = Field(("png", "svg"), min_length=1, description="File formats.")
    zones: int = Field(20, ge=1, le=265, description="Zones in the ranking.")
    minimum_trips: int = Field(30, ge=1, description="Fewest card trips of a zone or cell that is drawn.")


class Taxi(Section):
    """When and how much New Yorkers tip."""

    fetch: Fetch = Fetch()
    standardize: Standardize = Standardize()
    clean: Clean = Clean()
    tips: Tips = Tips()
    model: Model = Model()
    predict: Predict = Predict()
    plot: Plot = Plot()

    @model_validator(mode="after")
    def _has_boroughs_to_exclude(self) -> Self:
        excluded = self.clean.exclude_pickup_boroughs or self.clean.exclude_dropoff_boroughs
        if excluded and self.fetch.source == "files" and not self.fetch.files.zones:
            raise ValueError("clean excludes boroughs, but without a table of zones every borough is Unknown: name one "
                             "in fetch.files.zones")  # fmt: skip
        return self
