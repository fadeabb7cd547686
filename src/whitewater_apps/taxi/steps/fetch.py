"""Step `fetch`: simulate, find or download files of trips, and list them with checksums."""

import logging
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from whitewater.errors import InputError
from whitewater.io.download import Downloads, Input
from whitewater.io.places import check_readable, find, refuse_changes
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
    """Write a list of the files of trips, and the table of zones in TLC's layout, each zone once.

    Simulated files are beside the outputs, and downloads are shared by all runs. The user's files stay where they are.
    """
    downloads = Downloads(run.downloads, refresh=run.refresh)
    *trips, zones_file = find_inputs(run.settings, downloads, place=inputs.parent, threads=run.threads)
    with refuse_changes([zones_file.path]):
        table = read_zones(Path(zones_file.path))
    if table.duplicates:
        logger.warning("%s repeats %d rows, which were dropped", zones_file.origin, table.duplicates)
    zones.write_text(zones_csv(table), encoding="utf-8")
    files = list(map(asdict, trips))
    write_json(inputs, {"source": run.settings.source, "files": files, "zones": asdict(zones_file)})
    run.note(files=len(trips), bytes=sum(file.bytes for file in trips), zones_repeated=table.duplicates)


def find_inputs(settings: Fetch, downloads: Downloads, *, place: Path, threads: int) -> list[Input]:
    """Simulate (in ``place / "generated"``), find or download the files of trips, and last the table of zones.

    Raises InputError if a file is missing, a glob matches nothing, or a download fails or has changed, and ConfigError
    if a service is not simulated in a month.
    """
    files, folder = settings.files, place / "generated"
    user_downloads = replace(downloads, anonymous=files.anonymous)
    get = partial(find, downloads=user_downloads, threads=threads, key=KEY, example="*.parquet")
    if settings.source == "generated":
        paths = map(str, [*write_generated(folder, settings.generated), folder / ZONES])
        return [replace(file, origin="simulated") for file in get(paths).values()]
    if settings.source == "tlc":
        downloads = replace(downloads, retries=settings.tlc.retries, timeout=settings.tlc.timeout)
        return downloads.get(tlc_urls(settings.tlc))
    if not files.zones:
        logger.warning("taxi.fetch.files.zones is empty: every location is in the borough Unknown. Name TLC's table, "
                       "taxi_zone_lookup.csv, to have boroughs and zones.")  # fmt: skip
    zones = get([files.zones or str(write_unknown_zones(folder / "unknown_zones.csv"))])
    if len(zones) > 1:
        raise InputError(f"{files.zones} matches {len(zones)} files. Name one table in taxi.fetch.files.zones.")
    trips = get(files.paths)
    # Sorted, so that the order in the configuration does not matter.
    return [*(trips[name] for name in sorted(trips)), *zones.values()]


def tlc_urls(settings: Tlc) -> list[str]:
    """Return the URLs of the files of trips, by service and month, and last that of the table of zones."""
    base = settings.base_url.rstrip("/")
    trips = [
        f"{base}/trip-data/{service}_tripdata_{month}.parquet"
        for service in dict.fromkeys(settings.services)
        for month in dict.fromkeys(settings.months)
    ]
    return [*trips, f"{base}/misc/taxi_zone_lookup.csv"]


def check(settings: Any, downloads: Downloads) -> str:
    """Say for ``whitewater doctor`` how many files of trips there are; check the local ones."""
    fetch: Fetch = settings.fetch  # annotated here, so that the digest of the step does not cover all settings
    if fetch.source == "generated":
        return ""
    if fetch.source == "tlc":
        return f"files of TLC: {len(check_readable(tlc_urls(fetch.tlc), downloads=downloads, key='taxi.fetch.tlc'))}"
    find_files = partial(check_readable, downloads=replace(downloads, anonymous=fetch.files.anonymous), key=KEY)
    trips = find_files(fetch.files.paths, example="*.parquet")
    open_all([Path(place) for place in trips if "://" not in place], SOURCE)
    for place in find_files(filter(None, [fetch.files.zones])):
        if "://" not in place:
            read_zones(Path(place))
    return f"files of trips: {len(trips)}" + ("" if fetch.files.zones else "; no table of zones")


if __name__ == "__main__":
    main(fetch)
