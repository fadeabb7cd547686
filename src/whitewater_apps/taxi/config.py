"""Configuration of the taxi application: one section for each step, which gets exactly its section."""

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

    scale: float = Field(0.02, gt=0, description="Size: 1.0 gives about 3 million trips for each yellow month.")
    seed: int = Field(2019, ge=0, description="Seed of the simulation; equal seeds give equal files.")
    services: tuple[Service, ...] = Field(
        ("yellow", "green", "fhvhv"), min_length=1, description="Services to simulate."
    )
    months: tuple[Month, ...] = Field(
        ("2019-03", "2019-06", "2019-09", "2019-12"), min_length=1, description="Months to simulate, as YYYY-MM."
    )


class Files(Section):
    """Files of your own: paths, globs or URLs (file, http, https, gs, s3) of CSV, plain, gzip or zip, or Parquet."""

    paths: tuple[str, ...] = Field((), description="Paths, globs or URLs.")
    zones: str = Field(
        "",
        description="Path or URL of the table of zones, such as TLC's taxi_zone_lookup.csv; empty: every borough is "
        "Unknown.",
    )
    anonymous: bool = Field(True, description="Read gs:// and s3:// without credentials.")


class Tlc(Section):
    """The files of the Taxi and Limousine Commission, downloaded from its official location."""

    base_url: str = Field("https://d37ci6vzurychx.cloudfront.net", description="Server of trip-data/ and misc/.")
    services: tuple[Service, ...] = Field(("yellow",), min_length=1, description="Services to download.")
    months: tuple[Month, ...] = Field(("2019-03",), min_length=1, description="Months to download, as YYYY-MM.")
    retries: int = Field(
        5, ge=0, description="Further tries of a download that broke; each resumes where the last stopped."
    )
    timeout: float = Field(60.0, gt=0, description="Seconds without data after which a try is given up.")


class Fetch(Sourced):
    """Where the trips come from."""

    source: Literal["generated", "files", "tlc"] = Field("generated", description="Which of the sources below is used.")
    generated: Generated = Generated()
    files: Files = Files()
    tlc: Tlc = Tlc()

    needed: ClassVar[Mapping[str, tuple[str, ...]]] = {"files": ("files.paths",)}


def _tells_times(form: str) -> str:
    moment = datetime(2019, 3, 31, 20, 5, tzinfo=UTC)
    parsed = datetime.strptime(moment.strftime(form), form) if form else moment
    if parsed.date() != moment.date() or parsed.hour not in (0, moment.hour):
        raise ValueError("does not tell the day, or tells an hour of twelve without %p")
    return form


class Standardize(RawFiles):
    """How raw files become one schema."""

    datetime_format: Annotated[str, AfterValidator(_tells_times)] = Field(
        "",
        description="How times are written that are stored as text, such as `%m/%d/%Y %I:%M:%S %p`; empty: as "
        "2019-03-01 08:00:00.",
    )


class Ranges(Section):
    """Bounds by quantity; null switches a rule off.

    A bound that is not given keeps its default, unless the other lower or upper one is given; null removes it, as in
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
    """Which trips are kept; every other trip goes to quarantine with all its reasons."""

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
        description="A trip is rejected when its pickup month holds less than this share of its file's trips, or is "
        "more than a year from the months that hold nine tenths of them (a clock that was wrong); 0 switches the rule "
        "off.",
    )
    duplicates: Literal["keep", "quarantine"] = Field(
        "keep",
        description="What to do with trips that equal an earlier one of the same file in every column: `keep` them, or "
        "send them to `quarantine`, which reads all trips once more.",
    )
    max_unknown_zone_fraction: float = Field(
        0.05,
        ge=0,
        le=1,
        description="Share of the pickup or drop-off ids that the table of zones lacks above which the run stops: the "
        "table is not that of the trips.",
    )


class Tips(Section):
    """How tips are summarized."""

    confidence: float = Field(0.95, gt=0, lt=1, description="Level of the interval around each mean.")


def _without_tip(value: object) -> object:
    if isinstance(value, str) and (value == "total_amount" or value.startswith("tip")):
        raise ValueError("contains the tip, which the model is to predict; remove it from the features")
    return value


class Model(Search):
    """How the tip fraction of card trips is predicted."""

    features: tuple[Annotated[Feature, BeforeValidator(_without_tip)], ...] = Field(
        (
            "hour", "weekday", "passenger_count", "trip_distance", "duration", "speed", "fare_amount", "extra",
            "tolls_amount", "rate_code", "pickup_borough", "dropoff_borough",
        ),
        min_length=1,
        description="Columns that predict. Columns that contain the tip, such as total_amount, are refused.",
    )  # fmt: skip
    max_rows: int = Field(
        200_000, ge=100, description="Trips of each service used at most, sampled by a hash of the row."
    )
    test_fraction: float = Field(0.2, gt=0, lt=1, description="Share of the trips, the latest, that is held out.")

    @field_validator("features")
    @classmethod
    def _features_differ(cls, features: tuple[Feature, ...]) -> tuple[Feature, ...]:
        if len(set(features)) < len(features):
            raise ValueError("names a feature twice")
        return features


class Predict(Section):
    """Prediction by a stored model has nothing to set."""


class Plot(Section):
    """How the pictures are drawn."""

    formats: tuple[Literal["png", "svg"], ...] = Field(("png", "svg"), min_length=1, description="File formats.")
    zones: int = Field(20, ge=1, le=265, description="Zones shown in the ranking.")
    minimum_trips: int = Field(30, ge=1, description="Card trips a zone or cell needs to be drawn.")


class Taxi(Section):
    """When do New Yorkers tip, and how much."""

    fetch: Fetch = Fetch()
    standardize: Standardize = Standardize()
    clean: Clean = Clean()
    tips: Tips = Tips()
    model: Model = Model()
    predict: Predict = Predict()
    plot: Plot = Plot()

    @model_validator(mode="after")
    def _boroughs_are_known(self) -> Self:
        excluded = self.clean.exclude_pickup_boroughs or self.clean.exclude_dropoff_boroughs
        if excluded and self.fetch.source == "files" and not self.fetch.files.zones:
            raise ValueError("clean excludes boroughs, but every borough is Unknown without a table of zones: name one "
                             "in fetch.files.zones")  # fmt: skip
        return self
