"""Step `fetch`: the trips are simulated, found here, or downloaded; what was found is written down with checksums."""

from __future__ import annotations

import glob
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from whitewater.config.taxi import Fetch, Files, Tlc
from whitewater.download import Access, Expected, download, read_registry
from whitewater.errors import InputError
from whitewater.redaction import redacted
from whitewater.remote import TransferError, bucket_faults, filesystem_of
from whitewater.step import Output, Run
from whitewater.store import digests, exclusive, write_json
from whitewater.taxi.simulate import write_generated, write_zones
from whitewater.taxi.zones import read_zones, write_unknown_zones, zones_csv

logger = logging.getLogger(__name__)

DATA = Path("data/taxi")
REGISTRY = Path("config/datasets.csv")
LOCAL = ("", "file", "local")


@dataclass(frozen=True)
class Input:
    """A file of trips on this machine, and what the user named to get it, without secrets."""

    path: str
    origin: str
    bytes: int
    sha256: str


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
        catalogue = resolve(run.settings, directory=DATA, registry=read_registry(REGISTRY), threads=run.threads)
    table = read_zones(Path(catalogue.zones.path))
    if table.duplicates:
        logger.warning("%s repeats %d rows, which were dropped", catalogue.zones.origin, table.duplicates)
    zones.write_text(zones_csv(table), encoding="utf-8")
    write_json(inputs, asdict(catalogue))
    run.note(files=len(catalogue.files), bytes=sum(file.bytes for file in catalogue.files),
             zones_repeated=table.duplicates)  # fmt: skip


def resolve(settings: Fetch, *, directory: Path, registry: Mapping[str, Expected], threads: int) -> Catalogue:
    """Get the files that the settings name: simulate, find or download them.

    Parameters
    ----------
    settings
        The source and what it is told.
    directory
        Where simulated files (``generated``) and downloads (``downloads``, ``registry.json``) are kept.
    registry
        What downloads should be, by URL.
    threads
        Threads that compute checksums.

    Raises
    ------
    InputError
        If a file is missing, a glob matches nothing, or a download fails or is not what it was.
    ConfigError
        If there were no trips of a simulated service in a month.
    """
    if settings.source == "generated":
        paths = write_generated(directory / "generated", settings.generated)
        paths.append(write_zones(directory / "generated" / "zones.csv"))
        found = [replace(each, origin="simulated") for each in _local(list(map(str, paths)), threads=threads).values()]
        return Catalogue("generated", tuple(found[:-1]), found[-1])
    if settings.source == "tlc":
        access = Access(retries=settings.tlc.retries, timeout=settings.tlc.timeout)
        found = _downloaded(tlc_urls(settings.tlc), directory, registry, access)
        return Catalogue("tlc", tuple(found[:-1]), found[-1])
    return _files(settings.files, directory=directory, registry=registry, threads=threads)


def tlc_urls(settings: Tlc) -> list[str]:
    """Return the addresses of the files of trips, by service and month, and of the table of zones, which is last."""
    base = settings.base_url.rstrip("/")
    trips = [
        f"{base}/trip-data/{service}_tripdata_{month}.parquet"
        for service in dict.fromkeys(settings.services)
        for month in dict.fromkeys(settings.months)
    ]
    return [*trips, f"{base}/misc/taxi_zone_lookup.csv"]


def expand(place: str, *, anonymous: bool) -> list[str]:
    """Return the local paths or the URLs that a path, a glob or a URL stands for, sorted.

    Globs are those of local paths and ``file://`` (``*``, ``?``, ``[...]``, ``**``) and of buckets (``*``).

    Raises
    ------
    InputError
        If there is no such file, the glob matches none, or it is a directory.
    """
    scheme = urlsplit(place).scheme if "://" in place else ""
    if scheme in LOCAL:
        return _expand_local(url2pathname(urlsplit(place).path) if scheme else place, place)
    if scheme in ("http", "https") or "*" not in place:
        return [place]
    try:
        with bucket_faults(place, anonymous=anonymous):
            filesystem, path = filesystem_of(place, anonymous=anonymous)
            matches = [filesystem.unstrip_protocol(match) for match in filesystem.glob(path)]
    except TransferError as error:
        raise InputError(f"{redacted(place)} cannot be listed: {error}. Check the network and the address.") from error
    if not matches:
        raise InputError(f"{redacted(place)} matches no file. Check taxi.fetch.files.paths.")
    return sorted(matches)


def _expand_local(path: str, place: str) -> list[str]:
    if Path(path).expanduser().exists() or not glob.has_magic(path):
        matches = [str(Path(path).expanduser())]
    else:
        pattern = Path(path).expanduser()
        anchor = Path(pattern.anchor)
        matches = sorted(str(match) for match in anchor.glob(str(pattern.relative_to(anchor))) if _is_plain(match))
    if not matches:
        raise InputError(f"{place} matches no file. Check taxi.fetch.files.paths.")
    for match in matches:
        if Path(match).is_dir():
            raise InputError(f"{place} is a directory. Name its files, such as {match.rstrip('/')}/*.parquet.")
        if not Path(match).is_file():
            raise InputError(f"{place} does not exist. Check taxi.fetch.files.")
    return matches


def _is_plain(path: Path) -> bool:
    """Leave out hidden files: they are unfinished ones, ours or a copying program's."""
    return not path.is_dir() and not path.name.startswith(".")


def _files(settings: Files, *, directory: Path, registry: Mapping[str, Expected], threads: int) -> Catalogue:
    places = [each for place in settings.paths for each in expand(place, anonymous=settings.anonymous)]
    trips = sorted(_distinct(places))
    if settings.zones:
        zones = expand(settings.zones, anonymous=settings.anonymous)
        if len(zones) > 1:
            raise InputError(f"{settings.zones} matches {len(zones)} files. Name one table in taxi.fetch.files.zones.")
    else:
        logger.warning("taxi.fetch.files.zones is empty: every location is in the borough Unknown. Name TLC's table, "
                       "taxi_zone_lookup.csv, to learn boroughs and zones.")  # fmt: skip
        zones = [str(write_unknown_zones(directory / "unknown_zones.csv"))]
    wanted = [*trips, *zones]
    remote = [place for place in wanted if "://" in place]
    access = Access(anonymous=settings.anonymous)
    found = dict(zip(remote, _downloaded(remote, directory, registry, access), strict=True))
    found |= _local([place for place in wanted if "://" not in place], threads=threads)
    return Catalogue("files", tuple(found[place] for place in trips), found[zones[0]])


def _distinct(places: Sequence[str]) -> list[str]:
    """Leave out what was named twice, in whichever way."""
    by_identity = {place if "://" in place else str(Path(place).resolve()): place for place in reversed(places)}
    return list(by_identity.values())


def _local(paths: Sequence[str], *, threads: int) -> dict[str, Input]:
    found = {path: Path(path) for path in paths}
    try:
        hashes = digests(list(found.values()), threads=threads)
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}. Check taxi.fetch.files.") from error
    return {name: Input(name, name, path.stat().st_size, hashes[path]) for name, path in found.items()}


def _downloaded(urls: Sequence[str], directory: Path, registry: Mapping[str, Expected], access: Access) -> list[Input]:
    pins = directory / "registry.json"
    found = download(urls, directory=directory / "downloads", pins=pins, registry=registry, access=access)
    return [Input(str(each.path), each.origin, each.size, each.sha256) for each in found]
