"""Whether the sources that the configuration names are there: the doctor's check of each application's data."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whitewater.check import Check, few
from whitewater.config.genomics import Genomics, Vcz
from whitewater.config.pagerank import PageRank
from whitewater.config.recsys import Recsys
from whitewater.config.taxi import Taxi
from whitewater.errors import WhitewaterError
from whitewater.places import expand
from whitewater.redaction import redacted
from whitewater.remote import local_path, open_remote

REACH_SECONDS = 10.0
FIRST_BYTES = 1 << 16  # asked of a bucket: the first one says enough, on a slow line too


@dataclass(frozen=True)
class Named:
    """What the keys of a source name: files, whose first byte is read, and stores of Zarr, which are opened."""

    source: str
    keys: str
    files: Iterable[str] = ()
    anonymous: bool = True
    stores: Mapping[str, Vcz] = field(default_factory=dict)


def check_source(application: str, section: Mapping[str, Any]) -> Check:
    """Try each place that the configured source of an application names.

    Parameters
    ----------
    application
        Its name, which is that of its section.
    section
        Its section of the resolved configuration.
    """
    named = NAMED[application](section)
    name = f"{application} source: {named.source}"
    files = [str(local_path(place) or place) for place in named.files if place]
    if not files and not named.stores:
        return Check(name, "ok", "made on this machine; no network and no credentials are used")
    problems = [*_not_opened(named.stores), *unreachable(files, anonymous=named.anonymous, seconds=REACH_SECONDS)]
    if problems:
        fix = f"Correct {named.keys}; a private bucket needs anonymous: false and credentials of its own tools."
        return Check(name, "fail", few(problems), fix)
    return Check(name, "ok", f"tried each: {few([redacted(place) for place in (*named.stores, *files)])}")


def _not_opened(stores: Mapping[str, Vcz]) -> list[str]:
    """Say which stores cannot be opened, and why: in little time, so with one further try at most."""
    from whitewater.zarr_arrays import open_group

    problems = []
    for store, settings in stores.items():
        try:
            open_group(
                str(local_path(store) or store),
                anonymous=settings.anonymous,
                endpoint=settings.endpoint,
                retries=min(settings.retries, 1),
                timeout=min(settings.timeout, REACH_SECONDS),
            )
        except WhitewaterError as error:
            problems.append(str(error))
    return problems


def unreachable(places: Iterable[str], *, anonymous: bool, seconds: float) -> list[str]:
    """Read the first byte of each path, glob (its first match) or URL; say why each that gave none in time did not."""
    problems = {place: f"{redacted(place)}: no answer within {seconds:g} s" for place in places}

    def read(place: str) -> None:
        problems[place] = _not_read(place, anonymous=anonymous, seconds=seconds)

    # Daemons, because a client that hangs must not keep the process from ending.
    tries = [threading.Thread(target=read, args=(place,), daemon=True) for place in problems]
    deadline = time.monotonic() + seconds
    for each in tries:
        each.start()
    for each in tries:
        each.join(max(0.0, deadline - time.monotonic()))
    return [problem for problem in problems.values() if problem]


def _not_read(place: str, *, anonymous: bool, seconds: float) -> str:
    try:
        first = expand(place, anonymous=anonymous, key="its name", example="*")[0]
        if "://" not in first:
            with Path(first).open("rb") as file:
                found = file.read(1)
        else:
            with open_remote(first, anonymous=anonymous, timeout=seconds, block=FIRST_BYTES) as opened:
                found = opened.read(1)
    except WhitewaterError as error:
        return str(error)
    except Exception as error:  # each protocol has errors of its own, and each is an answer
        return f"{redacted(place)}: {error}".replace(place, redacted(place))
    return "" if found else f"{redacted(place)}: the file is empty"


def _taxi(section: Mapping[str, Any]) -> Named:
    fetch = Taxi.model_validate(section).fetch
    if fetch.source == "tlc":  # the first file; the others lie beside it
        first = f"{fetch.tlc.base_url}/trip-data/{fetch.tlc.services[0]}_tripdata_{fetch.tlc.months[0]}.parquet"
        return Named("tlc", "taxi.fetch.tlc (base_url, services, months)", [first])
    files = [*fetch.files.paths, fetch.files.zones] if fetch.source == "files" else []
    return Named(fetch.source, "taxi.fetch.files", files, fetch.files.anonymous)


def _genomics(section: Mapping[str, Any]) -> Named:
    settings = Genomics.model_validate(section)
    stores: dict[str, Vcz] = {}
    files = [settings.ingest.labels.table]
    for named in (settings.ingest, settings.project.second):
        if named.source == "vcz":
            stores[named.vcz.store] = named.vcz
        if named.source == "malariagen":
            stores |= dict.fromkeys(filter(None, (named.malariagen.store, named.malariagen.sites)), named.malariagen)
        files += [f"{named.plink.prefix}{suffix}" for suffix in (".bed", ".bim", ".fam") if named.source == "plink"]
        files += named.vcf.paths if named.source == "vcf" else ()
    return Named(settings.ingest.source, "genomics.ingest or genomics.project.second", files, stores=stores)


def _pagerank(section: Mapping[str, Any]) -> Named:
    settings = PageRank.model_validate(section)
    fetch = settings.fetch
    folder = Path(fetch.html.folder).expanduser()
    files: Mapping[str, Iterable[str]] = {
        "html": [_page_of(folder)] if fetch.source == "html" else (),
        "crawl": fetch.crawl.start_urls,
        "warc": fetch.warc.files,
        "edges": (*fetch.edges.files, *fetch.edges.vertices),
    }
    anonymous = {"warc": fetch.warc.anonymous, "edges": fetch.edges.anonymous}.get(fetch.source, True)
    own = (settings.pagerank.personalization, settings.search.judgments)
    return Named(fetch.source, "pagerank.fetch", [*files.get(fetch.source, ()), *own], anonymous)


def _recsys(section: Mapping[str, Any]) -> Named:
    fetch = Recsys.model_validate(section).fetch
    files: Mapping[str, Iterable[str]] = {
        "criteo": fetch.criteo.files,
        "movielens": [_file_of_release(fetch.movielens.path)],
        "files": fetch.files.files,
    }
    return Named(fetch.source, "recsys.fetch", files.get(fetch.source, ()), fetch.anonymous)


def _page_of(folder: Path) -> str:
    """Return a page of the folder, or, where it has none, what is looked for."""
    pages = (path for path in folder.rglob("*.*") if path.suffix in {".html", ".htm", ".xhtml"})
    return str(next(pages, folder / "*.html"))


def _file_of_release(path: str) -> str:
    """Return the release's zip file, or, where it is a folder, a file in it."""
    folder = local_path(path)
    return str(next(folder.glob("*.*"), folder / "ratings.csv")) if folder and folder.is_dir() else path


NAMED: Mapping[str, Callable[[Mapping[str, Any]], Named]] = {
    "taxi": _taxi,
    "genomics": _genomics,
    "pagerank": _pagerank,
    "recsys": _recsys,
}
