"""Step `fetch`: the trips are simulated, found here, or downloaded; what was found is written down with checksums."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from whitewater.config.taxi import Fetch, Files, Tlc
from whitewater.download import Access, Expected, read_registry
from whitewater.errors import InputError
from whitewater.local_files import steady
from whitewater.places import Downloads, Input, distinct, expand, obtain
from whitewater.step import Output, Run
from whitewater.store import exclusive, write_json
from whitewater.taxi.simulate import write_generated, write_zones
from whitewater.taxi.zones import read_zones, write_unknown_zones, zones_csv

logger = logging.getLogger(__name__)

DATA = Path("data/taxi")
REGISTRY = Path("config/datasets.csv")
KEY = "taxi.fetch.files"


@dataclass(frozen=True)
class Catalogue:
    """All files of trips, in a stated order, and the table of zones."""

    source: str
    files: tuple[Input, ...]
    zones: Input


def fetch(run: Run[Fetch], *, inputs: Output, zones: Output) -> None:
    """Write a catalogue of the files of trips, and the table of zones in one layout, each zone once.

    Simulated and downloaded files are kept in ``data/taxi``, beside the outputs, so that a run that was broken off goes
    on where it stopped. Files of the user are read where they are.
    """
    DATA.mkdir(parents=True, exist_ok=True)
    with exclusive(DATA / ".fetch.lock"):
        catalogue = resolve(run.settings, directory=DATA, registry=read_registry(REGISTRY), threads=run.threads,
                            refresh=run.refresh)  # fmt: skip
    with steady([catalogue.zones.path]):
        table = read_zones(Path(catalogue.zones.path))
    if table.duplicates:
        logger.warning("%s repeats %d rows, which were dropped", catalogue.zones.origin, table.duplicates)
    zones.write_text(zones_csv(table), encoding="utf-8")
    write_json(inputs, asdict(catalogue))
    run.note(files=len(catalogue.files), bytes=sum(file.bytes for file in catalogue.files),
             zones_repeated=table.duplicates)  # fmt: skip


def resolve(
    settings: Fetch, *, directory: Path, registry: Mapping[str, Expected], threads: int, refresh: bool = False
) -> Catalogue:
    """Get the files that the settings name: simulate, find or download them.

    Simulated files (``generated``) and downloads (``downloads``, ``registry.json``) are kept in ``directory``;
    ``registry`` says what downloads should be, by URL.

    Raises
    ------
    InputError
        If a file is missing, a glob matches nothing, or a download fails or is not what it was.
    ConfigError
        If there were no trips of a simulated service in a month.
    """
    downloads = Downloads(directory, registry, refresh)
    if settings.source == "generated":
        paths = write_generated(directory / "generated", settings.generated)
        paths.append(write_zones(directory / "generated" / "zones.csv"))
        names = list(map(str, paths))
        here = obtain(names, downloads=downloads, access=Access(), threads=threads, key=KEY)
        found = [replace(here[name], origin="simulated") for name in names]
        return Catalogue("generated", tuple(found[:-1]), found[-1])
    if settings.source == "tlc":
        access = Access(retries=settings.tlc.retries, timeout=settings.tlc.timeout)
        found = downloads.get(tlc_urls(settings.tlc), access)
        return Catalogue("tlc", tuple(found[:-1]), found[-1])
    return _files(settings.files, downloads=downloads, threads=threads)


def tlc_urls(settings: Tlc) -> list[str]:
    """Return the addresses of the files of trips, by service and month, and of the table of zones, which is last."""
    base = settings.base_url.rstrip("/")
    trips = [
        f"{base}/trip-data/{service}_tripdata_{month}.parquet"
        for service in dict.fromkeys(settings.services)
        for month in dict.fromkeys(settings.months)
    ]
    return [*trips, f"{base}/misc/taxi_zone_lookup.csv"]


def _files(settings: Files, *, downloads: Downloads, threads: int) -> Catalogue:
    trips = sorted(distinct([each for place in settings.paths for each in _expanded(place, settings)]))
    if settings.zones:
        zones = _expanded(settings.zones, settings)
        if len(zones) > 1:
            raise InputError(f"{settings.zones} matches {len(zones)} files. Name one table in taxi.fetch.files.zones.")
    else:
        logger.warning("taxi.fetch.files.zones is empty: every location is in the borough Unknown. Name TLC's table, "
                       "taxi_zone_lookup.csv, to learn boroughs and zones.")  # fmt: skip
        zones = [str(write_unknown_zones(downloads.directory / "unknown_zones.csv"))]
    access = Access(anonymous=settings.anonymous)
    found = obtain([*trips, *zones], downloads=downloads, access=access, threads=threads, key=KEY)
    return Catalogue("files", tuple(found[place] for place in trips), found[zones[0]])


def _expanded(place: str, settings: Files) -> list[str]:
    return expand(place, anonymous=settings.anonymous, key=KEY, example="*.parquet")
