"""Pages of the web: a cut archive is refused, and a crawl is polite, has limits, and goes on after it was killed."""

import gzip
from collections.abc import Iterator

import pandas as pd
import pytest

from tests.guarantees.running import MINE, Clone, eventually, leftovers
from tests.helpers.web_server import Act, Site, page, response, serving

FETCHED = "data/pagerank/fetched"
DOCUMENTS = "data/pagerank/documents"


def member(number: int) -> bytes:
    """Return a record of a web archive, as a member of a gzip file of its own."""
    body = f"<html><title>{number}</title><p>{'text ' * 50}</html>"
    block = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}".encode()
    head = (
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: 2024-05-01T00:00:00Z\r\n"
        f"WARC-Target-URI: https://a.org/{number}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n")


@pytest.mark.parametrize("torn", ["cut", "damaged"])
def test_an_archive_that_is_not_whole_is_refused_with_its_name_and_the_place(fresh: Clone, torn: str) -> None:
    first, second, third = map(member, range(3))
    spoilt = second[:-20] if torn == "cut" else second[:40] + bytes([second[40] ^ 0xFF]) + second[41:]
    (fresh / "good.warc.gz").write_bytes(first)
    (fresh / "torn.warc.gz").write_bytes(first + spoilt + (b"" if torn == "cut" else third))
    ended = fresh.run("pagerank", {"fetch": {"source": "warc", "warc": {"files": ["*.warc.gz"]}}}, FETCHED)
    assert ended.message.startswith("InputError: ")
    assert "torn.warc.gz" in ended.message
    assert "good.warc.gz" not in ended.message
    assert f"at byte {len(first):,}" in ended.message
    assert not (fresh / FETCHED).exists()
    assert leftovers(fresh) == []


@pytest.fixture
def site() -> Iterator[Site]:
    """A chain of pages from / to /7, each of which also links to what may not be asked for, and to another host."""
    site = Site()
    site.put("/robots.txt", response("User-agent: *\nDisallow: /private\n", content_type="text/plain"))
    for number in range(8):
        path = f"/{number}" if number else "/"
        site.put(path, page(f"/{number + 1}", "/private", "http://127.0.0.2:9/", text=f"page {number}"))
    with serving(site):
        yield site


def test_a_crawl_obeys_robots_and_limits_and_asks_for_no_page_twice_after_it_was_killed(
    fresh: Clone, site: Site
) -> None:
    whole = site.replies["/3"][0]
    site.put("/3", [Act.HANG], whole)
    crawl = {"start_urls": [f"{site.url}/"], "delay": 0.0, "maximum_depth": 5, "timeout": 300.0}
    fresh.write(MINE[-1], {"pagerank": {"fetch": {"source": "crawl", "crawl": crawl}}})
    run = fresh.start_snakemake("--", DOCUMENTS, files=MINE)
    eventually(lambda: site.asked()["/3"] or None, what="the request for /3")
    run.step("fetch").kill()
    assert run.ended().status == 1
    assert not (fresh / FETCHED).exists()

    again = fresh.snakemake("--", DOCUMENTS, files=MINE)
    assert again.status == 0, again.terminal
    # The one page that was under way is asked for again, and nothing is deeper than five links.
    assert site.asked() == {"/": 1, "/1": 1, "/2": 1, "/3": 2, "/4": 1, "/5": 1}
    titles = pd.concat(pd.read_parquet(path) for path in (fresh / DOCUMENTS).rglob("*.parquet"))["title"]
    assert sorted(titles) == [f"page {number}" for number in range(6)]
