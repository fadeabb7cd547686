"""Configuration of the recsys application: one section for each step, which gets exactly its section."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from whitewater.config.base import Section, Sourced
from whitewater.features.config import Fit, Role

Source = Literal["generated", "criteo", "movielens", "files"]
# The columns that `whitewater.features.log_folder` puts before those of a source.
LOG_COLUMNS = ("row_id", "day", "time", "label")
# Units of times that are numbers, in parts of a second.
UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Simulate(Section):
    """A click log by day: long-tailed numbers, categories of Zipf's law, a label that depends on them, drift, dirt."""

    rows: int = Field(40_000, ge=100, description="Rows of all days.")
    days: int = Field(7, ge=3, le=366, description="Days.")
    continuous: int = Field(13, ge=1, le=200, description="Columns of numbers, I1 and following.")
    categorical: int = Field(26, ge=2, le=200, description="Columns of categories, C1 and following.")
    largest_cardinality: int = Field(
        20_000, ge=10, description="Values of the largest column of categories; the others have fewer, down to 3."
    )
    click_rate: float = Field(0.25, gt=0, lt=1, description="Share of the rows whose label is 1, about.")
    drift: float = Field(0.5, ge=0, description="How fast popularity and numbers change from day to day; 0: not.")
    seed: int = Field(2014, ge=0, lt=2**31, description="Seed; equal seeds give equal files.")


class Criteo(Section):
    """Click logs as Criteo publishes them: label, 13 integers and 26 hexadecimal texts a line, tab-separated."""

    files: tuple[str, ...] = Field(
        (), description="Paths, globs or URLs, one a day in ascending order; .gz too; with or without a header."
    )
    delimiter: Literal["tab", "comma"] = Field("tab", description="What separates fields.")


class Movielens(Section):
    """A MovieLens release: 100K, 1M, 10M, 20M, 25M, 32M or latest."""

    path: str = Field("", description="The release's zip file, its folder, or the URL of its zip file.")
    positive: float = Field(4.0, description="A rating of at least this is a positive label.")


def _has_year(format_: str) -> bool:
    time = datetime(2001, 2, 3, 16, 5, 6, tzinfo=UTC)
    try:
        return datetime.strptime(time.strftime(format_), format_).year == time.year
    except ValueError:
        return False


class FileColumn(Section):
    """A column of the files."""

    name: str = Field(min_length=1, description="Its name in the files.")
    role: Role = Field(description="What it is for; exactly one label, and at most one time.")
    unit: str | None = Field(
        None,
        description="Of a time that is a number: `s`, `ms`, `us` or `ns` since 1970 in UTC; or, of digits or text, its "
        "format as Python's strptime takes it, such as `%Y%m%d%H`. Null: dates and timestamps.",
    )

    @model_validator(mode="after")
    def _check_unit(self) -> Self:
        if self.unit is not None and self.unit not in UNITS_PER_SECOND and not _has_year(self.unit):
            raise ValueError(
                f"unit of {self.name!r} is {self.unit!r}, which is not one of {', '.join(UNITS_PER_SECOND)}, nor a "
                "format of a time with its year, such as %Y%m%d%H%M%S or %y%m%d%H"
            )
        if self.unit is not None and self.role != "time":
            raise ValueError(f"{self.name!r} has a unit, but its role is {self.role}: only a time has one")
        return self


class Files(Section):
    """Parquet or CSV files with a schema that is declared here."""

    files: tuple[str, ...] = Field((), description="Paths, globs or URLs of .parquet, .csv, .csv.gz, in order of time.")
    columns: tuple[FileColumn, ...] = Field((), description="The columns to read; others are left out.")
    delimiter: str = Field(",", min_length=1, max_length=1, description="CSV: what separates fields.")
    positive: float | None = Field(
        None, description="A label of at least this is 1, below it 0; null: it is 0 or 1 already."
    )

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        if not self.delimiter.isascii():
            raise ValueError(f"delimiter is {self.delimiter!r}, which is not ASCII")
        roles = [column.role for column in self.columns]
        names = [column.name for column in self.columns]
        own = [column.name for column in self.columns if column.name in LOG_COLUMNS and column.name != column.role]
        if self.columns and (roles.count("label") != 1 or roles.count("time") > 1):
            raise ValueError("columns must have exactly one with the role label, and at most one with the role time")
        if len(set(names)) < len(names) or own:
            raise ValueError(
                f"columns must have each name once, and none of {', '.join(LOG_COLUMNS)}, which a log has itself "
                "(but for a label named label, and a time named time): rename them in the files"
            )
        return self


class Fetch(Sourced):
    """Where the log comes from."""

    source: Source = Field("generated", description="generated: simulated; criteo, movielens, files: sections below.")
    criteo: Criteo = Criteo()
    movielens: Movielens = Movielens()
    files: Files = Files()
    row_group_rows: int = Field(524_288, ge=1000, description="Rows of a row group, which is the unit of work.")
    anonymous: bool = Field(True, description="Read gs:// and s3:// without credentials.")

    needed: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "criteo": ("criteo.files",), "movielens": ("movielens.path",), "files": ("files.files", "files.columns")
    }  # fmt: skip


class Split(Section):
    """Training, validation and test rows, by time: nothing learned comes from after what it is tried on."""

    valid_share: float = Field(0.15, ge=0, lt=1, description="Share of the rows, the later ones, that validate.")
    test_share: float = Field(0.15, ge=0, lt=1, description="Share of the rows, the latest, that test.")
    whole_days: bool = Field(
        True,
        description="Begin each part with a new day (or period, or file), where there are enough; else at the row.",
    )

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        if self.valid_share + self.test_share >= 1:
            raise ValueError("valid_share and test_share leave no rows to train on: their sum must be below 1")
        return self


class Features(Section):
    """The three parts of the log through the fitted workflow, shuffled, for training."""

    seed: int = Field(7, ge=0, lt=2**31, description="Seed of the order of the training rows.")
    row_group_rows: int = Field(131_072, ge=100, description="Rows of a row group of the training rows.")


class Drift(Section):
    """How the columns change from day to day."""

    bins: int = Field(10, ge=2, le=1000, description="Bins of a column of numbers: quantiles of the reference.")
    categories: int = Field(1000, ge=2, description="Most frequent categories of the reference; the others are one.")
    psi: float = Field(0.25, gt=0, description="Population stability index that is reported as drift.")
    ks: float = Field(0.1, gt=0, le=1, description="Kolmogorov-Smirnov distance that is reported as drift.")
    jensen_shannon: float = Field(0.1, gt=0, le=1, description="Jensen-Shannon distance that is reported as drift.")
    new_categories: float = Field(
        0.05, gt=0, le=1, description="Share of rows with a category unseen in the reference that is reported as drift."
    )


class Train(Section):
    """A baseline, to see what the features are worth."""

    maximum_rows: int = Field(2_000_000, ge=1000, description="Training rows at most, drawn evenly; said if fewer.")
    trees: int = Field(80, ge=1, description="Boosted trees at most; they stop where validation no longer improves.")
    depth: int = Field(4, ge=1, le=16, description="Depth of a tree.")
    learning_rate: float = Field(0.3, gt=0, le=1, description="Learning rate of the trees.")
    penalty: float = Field(1.0, gt=0, description="L2 penalty of the logistic regression (1 / C).")
    without_each_group: bool = Field(True, description="Train again without each group of features.")
    seed: int = Field(42, ge=0, lt=2**31, description="Seed of the trees.")


class Plot(Section):
    """Pictures."""

    formats: tuple[Literal["png", "svg"], ...] = Field(("png", "svg"), min_length=1, description="File formats.")


class Recsys(Section):
    """Features for recommenders, the same in training and in serving."""

    simulate: Simulate = Simulate()
    fetch: Fetch = Fetch()
    split: Split = Split()
    fit: Fit = Fit()
    features: Features = Features()
    drift: Drift = Drift()
    train: Train = Train()
    plot: Plot = Plot()
