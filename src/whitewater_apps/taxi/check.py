"""What there is of the source of trips, for ``whitewater doctor``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from whitewater.io.download import Downloads
from whitewater.io.places import try_files
from whitewater.tables.raw_files import open_all
from whitewater_apps.taxi.config import Taxi
from whitewater_apps.taxi.schema import SOURCE
from whitewater_apps.taxi.steps.fetch import KEY, tlc_urls
from whitewater_apps.taxi.zones import read_zones


def check(settings: Taxi, downloads: Downloads) -> str:
    """Say which files of trips there are; the columns of those on this machine are recognized."""
    fetch = settings.fetch
    if fetch.source == "generated":
        return ""
    if fetch.source == "tlc":
        return f"files of TLC: {len(try_files(tlc_urls(fetch.tlc), downloads=downloads, key='taxi.fetch.tlc'))}"
    downloads = replace(downloads, anonymous=fetch.files.anonymous)
    trips = try_files(fetch.files.paths, downloads=downloads, key=KEY, example="*.parquet")
    open_all([Path(place) for place in trips if "://" not in place], SOURCE)
    for place in try_files(filter(None, [fetch.files.zones]), downloads=downloads, key=KEY):
        if "://" not in place:
            read_zones(Path(place))
    return f"files of trips: {len(trips)}" + ("" if fetch.files.zones else "; no table of zones")
