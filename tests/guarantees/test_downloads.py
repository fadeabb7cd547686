"""What is downloaded is what its name promises, is kept, and is downloaded again when that is asked for."""

import gzip
from collections.abc import Iterator
from typing import Any

import pytest

from tests.guarantees.running import MINE, Clone, contents
from tests.helpers.raw_files import TRIP, YELLOW_2019
from tests.helpers.web_server import Site, response, serving

TRIPS = f"{YELLOW_2019}\n{TRIP}\n{TRIP}\n"
CLICKS = "".join("\t".join([str(row % 2), *["3"] * 13, *["0a0b0c0d"] * 26]) + "\n" for row in range(50))
EDGES = "1 2\n2 3\n3 1\n"
LABELS = "sample,population\n" + "".join(f"{name}\n" for name in ("ADMIX_001,A", "ADMIX_002,B"))
# What each application downloads: path on the server, content, and other content of another size.
FILES = {
    "taxi": ("/trips.csv", TRIPS.encode(), f"{TRIPS}{TRIP}\n".encode()),
    "recsys": ("/day_0.gz", gzip.compress(CLICKS.encode()), gzip.compress((CLICKS * 2).encode())),
    "pagerank": ("/web.txt", EDGES.encode(), (EDGES + "1 3\n").encode()),
    "genomics": ("/labels.csv", LABELS.encode(), (LABELS + "ADMIX_003,C\n").encode()),
}
RULES = {name: f"{name}_{'ingest' if name == 'genomics' else 'fetch'}" for name in FILES}
TARGETS = [f"data/{name}/inputs.json" for name in FILES]
LOGIN = response("<!DOCTYPE html><title>Log in</title><p>Please log in.</p>")


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as served:
        yield served


def serve(site: Site, version: int) -> None:
    for path, *contents_ in FILES.values():
        site.put(path, response(contents_[version], content_type="application/octet-stream"))


def name_urls(clone: Clone, url: str) -> None:
    sections: dict[str, Any] = {
        "taxi": {"fetch": {"source": "files", "files": {"paths": [f"{url}/trips.csv"]}}},
        "recsys": {"fetch": {"source": "criteo", "criteo": {"files": [f"{url}/day_0.gz"]}}},
        "pagerank": {"fetch": {"source": "edges", "edges": {"files": [f"{url}/web.txt"]}}},
        "genomics": {"ingest": {"labels": {
            "table": f"{url}/labels.csv", "sample_column": "sample", "label_column": "population"
        }}},
    }  # fmt: skip
    clone.write(MINE[-1], sections)


def downloaded(clone: Clone) -> dict[str, bytes]:
    """Return what is in the folders of downloads, by application and name on the server."""
    found = contents(clone / "data")
    return {
        f"{path.split('/')[0]}/{path.partition('-')[2]}": data for path, data in found.items() if "/downloads/" in path
    }


def test_a_page_in_place_of_data_is_refused_and_the_data_taken_when_they_come(fresh: Clone, site: Site) -> None:
    name_urls(fresh, site.url)
    for path, *_ in FILES.values():
        site.put(path, LOGIN)
    ended = fresh.snakemake("--keep-going", "--", *TARGETS, files=MINE)
    assert ended.status == 1
    for path, *_ in FILES.values():
        assert any(message.startswith(f"InputError: {site.url}{path} is ") for message in ended.messages), path
    assert downloaded(fresh) == {}
    assert list((fresh / "data").glob("*/registry.json")) == []
    serve(site, 0)
    ended = fresh.snakemake("--", *TARGETS, files=MINE)
    assert ended.status == 0, ended.terminal
    assert downloaded(fresh) == {f"{name}{path}": content for name, (path, content, _) in FILES.items()}


def test_a_refresh_downloads_again_and_says_what_changed_upstream(fresh: Clone, site: Site) -> None:
    name_urls(fresh, site.url)
    serve(site, 0)
    ended = fresh.snakemake("--", *TARGETS, files=MINE)
    assert ended.status == 0, ended.terminal
    serve(site, 1)
    ended = fresh.snakemake("--config", "refresh=True", "--forcerun", *RULES.values(), "--", *TARGETS, files=MINE)
    assert ended.status == 0, ended.terminal
    for path, *_ in FILES.values():
        assert f"{site.url}{path} was replaced upstream" in ended.terminal
    assert downloaded(fresh) == {f"{name}{path}": content for name, (path, _, content) in FILES.items()}


def test_a_url_with_a_space_is_asked_for_and_one_that_is_none_is_told_at_once(fresh: Clone, site: Site) -> None:
    site.put("/my%20trips.csv", response(TRIPS, content_type="text/csv"))
    sections = {
        "taxi": {"fetch": {"source": "files", "files": {"paths": [f"{site.url}/my trips.csv"]}}},
        "recsys": {"fetch": {"source": "criteo", "criteo": {"files": ["http://127.0.0.1:8o/day_0.gz"]}}},
    }
    fresh.write(MINE[-1], sections)
    ended = fresh.snakemake("--keep-going", "--", *TARGETS[:2], files=MINE)
    assert ended.message.startswith("InputError: http://127.0.0.1:8o/day_0.gz is not an address: ")
    assert "trying again" not in ended.terminal
    assert downloaded(fresh) == {"taxi/my_trips.csv": TRIPS.encode()}
