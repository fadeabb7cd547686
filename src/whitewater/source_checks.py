"""Whether the sources that the configuration names are there: the doctor's checks of each application's data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from whitewater.check import Check, few
from whitewater.config.genomics import Genomics, Vcz
from whitewater.config.pagerank import PageRank
from whitewater.config.recsys import Recsys
from whitewater.errors import WhitewaterError
from whitewater.reachability import unreachable
from whitewater.redaction import redacted
from whitewater.remote import local_path

REACH_SECONDS = 10.0
MADE_HERE = "made on this machine; no network and no credentials are used"


def check_taxi_source(fetch: Mapping[str, Any]) -> Check:
    """Read the first byte of each place that the configured source of taxi trips names."""
    source = fetch["source"]
    name = f"taxi source: {source}"
    if source == "generated":
        return Check(name, "ok", MADE_HERE)
    places = _tlc_files(fetch["tlc"]) if source == "tlc" else _own_files(fetch["files"])
    anonymous = source == "tlc" or fetch["files"]["anonymous"]
    problems = unreachable(places, anonymous=anonymous, seconds=REACH_SECONDS)
    if not problems:
        return Check(name, "ok", f"read the first byte of each: {few(places)}")
    found = few([f"{place}: {problem}" for place, problem in problems.items()])
    return Check(name, "fail", found, _source_fix(source, problems))


def _tlc_files(tlc: Mapping[str, Any]) -> list[str]:
    """Return the address of the first file; the others lie beside it."""
    return [f"{tlc['base_url']}/trip-data/{tlc['services'][0]}_tripdata_{tlc['months'][0]}.parquet"]


def _own_files(files: Mapping[str, Any]) -> list[str]:
    return [*files["paths"], *([files["zones"]] if files["zones"] else [])]


def _source_fix(source: str, places: Iterable[str]) -> str:
    if source == "tlc":
        return (
            "Check the network and taxi.fetch.tlc (base_url, services, months), or set taxi.fetch.source to generated."
        )
    buckets = any(place.startswith(("gs://", "gcs://", "s3://")) for place in places)
    credentials = "; a private bucket needs anonymous: false and credentials of its own tools" if buckets else ""
    return f"Correct taxi.fetch.files{credentials}."


def check_genomics_source(genomics: Mapping[str, Any]) -> Check:
    """Open each store, and read the first byte of each file, that the configured source of genotypes names."""
    settings = Genomics.model_validate(genomics)
    name = f"genomics source: {settings.ingest.source}"
    stores, files = _genotype_stores(settings), _genotype_files(settings)
    if not stores and not files:
        return Check(name, "ok", MADE_HERE)
    problems = [*_not_opened(stores), *_not_read(files)]
    if problems:
        fix = (
            "Correct genomics.ingest or genomics.project.second; a private bucket needs anonymous: false and "
            "credentials of its own tools."
        )
        return Check(name, "fail", few(problems), fix)
    return Check(name, "ok", f"opened each: {few([redacted(place) for place in (*stores, *files)])}")


def _genotype_stores(settings: Genomics) -> dict[str, Vcz]:
    """Return each Zarr store with the settings that it is read by."""
    stores: dict[str, Vcz] = {}
    for named in (settings.ingest, settings.project.second):
        if named.source == "vcz":
            stores[named.vcz.store] = named.vcz
        if named.source == "malariagen":
            stores |= dict.fromkeys(filter(None, (named.malariagen.store, named.malariagen.sites)), named.malariagen)
    return stores


def _genotype_files(settings: Genomics) -> list[str]:
    files: list[str] = []
    for named in (settings.ingest, settings.project.second):
        files += [f"{named.plink.prefix}{suffix}" for suffix in (".bed", ".bim", ".fam") if named.source == "plink"]
        files += named.vcf.paths if named.source == "vcf" else ()
    files += [settings.ingest.labels.table] if settings.ingest.labels.table else []
    return [str(local_path(place) or place) for place in files]


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


def check_pagerank_source(pagerank: Mapping[str, Any]) -> Check:
    """Read the first byte of each file, or of each start page, that the configured source of pages or edges names."""
    settings = PageRank.model_validate(pagerank)
    name = f"pagerank source: {settings.fetch.source}"
    places, anonymous = _web_places(settings)
    if not places:
        return Check(name, "ok", MADE_HERE)
    problems = _not_read(places, anonymous=anonymous)
    if problems:
        fix = "Correct pagerank.fetch; a private bucket needs anonymous: false and credentials of its own tools."
        return Check(name, "fail", few(problems), fix)
    return Check(name, "ok", f"read the first byte of each: {few([redacted(place) for place in places])}")


def _web_places(settings: PageRank) -> tuple[list[str], bool]:
    """Return the places that are read, and whether that is done without credentials."""
    fetch = settings.fetch
    places = {
        "generated": [],
        "html": _first_page(Path(fetch.html.folder).expanduser()),
        "crawl": [*fetch.crawl.start_urls],
        "warc": [*fetch.warc.files],
        "edges": [*fetch.edges.files, *fetch.edges.vertices],
    }[fetch.source]
    own = [settings.pagerank.personalization, settings.search.judgments]
    anonymous = {"warc": fetch.warc.anonymous, "edges": fetch.edges.anonymous}.get(fetch.source, True)
    return [str(local_path(place) or place) for place in (*places, *filter(None, own))], anonymous


def _first_page(folder: Path) -> list[str]:
    """Return a page of the folder, or, where it has none, what is looked for."""
    found = sorted(path for path in folder.rglob("*.*") if path.suffix in {".html", ".htm", ".xhtml"})
    return [str(found[0] if found else folder / "*.html")]


def check_recsys_source(recsys: Mapping[str, Any]) -> Check:
    """Read the first byte of each file that the configured source of clicks or ratings names."""
    fetch = Recsys.model_validate(recsys).fetch
    name = f"recsys source: {fetch.source}"
    if fetch.source == "generated":
        return Check(name, "ok", MADE_HERE)
    places = {
        "criteo": fetch.criteo.files,
        "movielens": _release(fetch.movielens.path),
        "files": fetch.files.files,
    }[fetch.source]
    problems = _not_read([str(local_path(place) or place) for place in places], anonymous=fetch.anonymous)
    if problems:
        fix = "Correct recsys.fetch; a private bucket needs anonymous: false and credentials of its own tools."
        return Check(name, "fail", few(problems), fix)
    return Check(name, "ok", f"read the first byte of each: {few([redacted(place) for place in places])}")


def _release(path: str) -> list[str]:
    """Return the release's zip file, or, where it is a folder, a file in it."""
    folder = local_path(path)
    if folder is None or not folder.is_dir():
        return [path]
    return [str(each) for each in sorted(folder.glob("*.*"))[:1]] or [str(folder / "ratings.csv")]


def _not_read(files: Iterable[str], *, anonymous: bool = True) -> list[str]:
    problems = unreachable(files, anonymous=anonymous, seconds=REACH_SECONDS)
    return [f"{redacted(place)}: {problem.replace(place, redacted(place))}" for place, problem in problems.items()]
