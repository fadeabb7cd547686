"""Settings of the minimal application: one section for each step."""

from typing import Literal

from pydantic import Field

from whitewater.config.base import Section
from whitewater.tables.config import RawFiles


class Fetch(Section):
    """Source of the readings: your own files, or two simulated weeks, one as CSV and one as Parquet."""

    files: tuple[str, ...] = Field(
        (), description="Paths, globs or URLs of CSV (plain, gzip, zip) or Parquet; empty: readings are simulated."
    )
    anonymous: bool = Field(True, description="Read gs:// and s3:// without credentials.")
    stations: int = Field(6, ge=1, le=1000, description="Stations to simulate.")
    seed: int = Field(2025, ge=0, description="Seed of the simulation; equal seeds give equal files.")


class Read(RawFiles):
    """Limits of valid readings; all others go to quarantine, with their reasons."""

    fastest: float = Field(113.0, gt=0, lt=2**20, description="Largest plausible wind speed, in m/s.")


class Aggregate(Section):
    """Wind speed by station and hour of the day."""

    minimum_readings: int = Field(10, ge=1, description="Readings that an hour of a station needs to be listed.")


class Plot(Section):
    """How the picture is drawn."""

    formats: tuple[Literal["png", "svg"], ...] = Field(("png", "svg"), min_length=1, description="File formats.")
    stations: int = Field(6, ge=1, le=6, description="Stations shown: those with the most readings.")


class Minimal(Section):
    """When and where the wind blows."""

    fetch: Fetch = Fetch()
    read: Read = Read()
    aggregate: Aggregate = Aggregate()
    plot: Plot = Plot()
