"""Step `fetch`: the trips are simulated, found here, or downloaded; what was found is written down with checksums."""

import logging
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from whitewater.errors import InputError
from whitewater.io.download import Downloads, Input
from whitewater.io.places import find, refuse_changes, try_files
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.raw_files import open_all
from whitewater_apps.taxi.config import Fetch, Tlc
from whitewater_apps.taxi.schema import SOURCE
from whitewater_apps.taxi.synthetic.months import ZONES, write_generated
from whitewater_apps.taxi.zones import read_zones, write_unknown_zones, zones_csv

logger = logging.getLogger(__name__)

KEY = "taxi.fetch.files"


def fetch(run: Run[Fetch], *, inputs: Output, zones: Output) -> None:
    """Write a catalog of the files of trips, and the table of zones in one layout, each zone once.

    Simulated files are kept beside the outputs. Downloads are shared by all runs, and one that was broken off goes on
    where it stopped. Files of the user are read where they are.
    """
    downloads = Downloads(run.downloads, refresh=run.refresh)
    *trips, table_of_zones = resolve(run.settings, downloads, place=inputs.parent, threads=run.threads)
    with refuse_changes([table_of_zones.path]):
        table = read_zones(Path(table_of_zones.path))
    if table.duplicates:
        logger.warning("%s repeats %d rows, which were dropped", table_of_zones.origin, table.duplicates)
    zones.write_text(zones_csv(table), encoding="utf-8")
    files = list(map(asdict, trips))
    write_json(inputs, {"source": run.settings.source, "files": files, "zones": asdict(table_of_zones)})
    run.note(files=len(trips), bytes=sum(file.bytes for file in trips), zones_repeated=table.duplicates)


def resolve(settings: Fetch, downloads: Downloads, *, place: Path, threads: int) -> list[Input]:
    """Simulate, find or download what the settings name: files of trips in a stated order, and the table of zones last.

    Simulated files are kept in ``place / "generated"``.

    Raises InputError if a file is missing, a glob matches nothing, or a download fails or is not what it was, and
    ConfigError if a service is not simulated in a month.
    """
    files, folder = settings.files, place / "generated"
    own = replace(downloads, anonymous=files.anonymous)
    get = partial(find, downloads=own, threads=threads, key=KEY, example="*.parquet")
    if settings.source == "generated":
        simulated = map(str, [*write_generated(folder, settings.generated), folder / ZONES])
        return [replace(each, origin="simulated") for each in get(simulated).values()]
    if settings.source == "tlc":
        patient = replace(downloads, retries=settings.tlc.retries, timeout=settings.tlc.timeout)
        return patient.get(tlc_urls(settings.tlc))
    if not files.zones:
        logger.warning("taxi.fetch.files.zones is empty: every location is in the borough Unknown. Name TLC's table, "
                       "taxi_zone_lookup.csv, to learn boroughs and zones.")  # fmt: skip
    zones = get([files.zones or str(write_unknown_zones(folder / "unknown_zones.csv"))])
    if len(zones) > 1:
        raise InputError(f"{files.zones} matches {len(zones)} files. Name one table in taxi.fetch.files.zones.")
    trips = get(files.paths)
    # Sorted, so that the order in which they are named does not matter.
    return [*(trips[name] for name in sorted(trips)), *zones.values()]


def tlc_urls(settings: Tlc) -> list[str]:
    """Return the addresses of the files of trips, by service and month, and of the table of zones, which is last."""
    base = settings.base_url.rstrip("/")
    trips = [
        f"{base}/trip-data/{service}_tripdata_{month}.parquet"
        for service in dict.fromkeys(settings.services)
        for month in dict.fromkeys(settings.months)
    ]
    return [*trips, f"{base}/misc/taxi_zone_lookup.csv"]


def check(settings: Any, downloads: Downloads) -> str:
    """Say for ``whitewater doctor`` which files of trips there are; those on this machine are recognized."""
    fetch: Fetch = settings.fetch  # a type of all settings would make the step depend on all of them
    if fetch.source == "generated":
        return ""
    if fetch.source == "tlc":
        return f"files of TLC: {len(try_files(tlc_urls(fetch.tlc), downloads=downloads, key='taxi.fetch.tlc'))}"
    find_files = partial(try_files, downloads=replace(downloads, anonymous=fetch.files.anonymous), key=KEY)
    trips = find_files(fetch.files.paths, example="*.parquet")
    open_all([Path(place) for place in trips if "://" not in place], SOURCE)
    for place in find_files(filter(None, [fetch.files.zones])):
        if "://" not in place:
            read_zones(Path(place))
    return f"files of trips: {len(trips)}" + ("" if fetch.files.zones else "; no table of zones")


if __name__ == "__main__":
    main(fetch)
