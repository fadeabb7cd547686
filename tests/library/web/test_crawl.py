"""The crawler against a server on loopback that does all that servers do."""

from __future__ import annotations

import asyncio
import gzip
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.helpers.web_server import Act, Reply, Site, page, redirect, response, serving
from tests.library.web.crawling import TIMEOUT, Run, crawled, shortest
from whitewater.web.config import Crawl
from whitewater.web.crawl import client, crawler
from whitewater.web.pages import Page, PagesWriter

# What is crawled


def test_linked_pages_of_the_host_are_fetched_as_they_were_sent(site: Site, other: Site, run: Run) -> None:
    site.put("/", page("/b", "a?x=1#part", f"{other.url}/", "mailto:a@example.org", "/missing"))
    site.put("/a?x=1", page("/"))
    site.put("/b", response("text\x00".encode("latin-1"), content_type="Text/Plain; charset=latin-1"))
    found = run(site.url)
    assert found.paths() == ["/", "/a?x=1", "/b", "/missing"]
    assert found.page("/b") == Page(f"{site.url}/b", 200, "Text/Plain; charset=latin-1", None, b"text\x00")
    assert found.page("/missing") == Page(f"{site.url}/missing", 404, "text/html; charset=utf-8", None, b"")
    assert found.counts == {
        "fetched": 3, "status_404": 1, "links_other_host": 1, "links_scheme": 1, "links_of_binary": 1
    }  # fmt: skip
    assert set(site.asked().values()) == {1}
    assert not other.requests


def test_a_compressed_page_is_decoded_member_by_member(site: Site, run: Run) -> None:
    site.put("/", response(gzip.compress(b"one ") + gzip.compress(b"two"), Content_Encoding="gzip"))
    assert run(site.url).page("/").body == b"one two"
    assert site.requests[-1].headers["accept-encoding"] == "gzip"


def test_allowed_hosts_are_crawled_with_their_ports(site: Site, other: Site, run: Run) -> None:
    with serving(Site()) as third:
        site.put("/", page(f"{other.url}/", f"{third.url}/"))
        other.put("/", page())
        third.put("/", page())
        found = run(site.url, allowed_hosts=(site.host, other.host))
    assert found.counts == {"fetched": 2, "links_other_host": 1}
    assert not third.requests


def test_a_crawl_tells_how_far_it_is_and_ends_in_time_with_the_pages_it_has(
    site: Site, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(crawler, "PROGRESS_SECONDS", 0.02)
    caplog.set_level("INFO")
    site.put("/", page("/hangs", "/never"))
    site.put("/hangs", [Act.HANG])
    found = run(site.url, maximum_seconds=0.3, maximum_pages=9)
    assert "1 of at most 9 pages, 2 URLs left in this round" in caplog.text
    assert found.paths() == ["/"]
    assert found.counts == {"fetched": 1, "beyond_limits": 2}


def expected_pages(graph: dict[str, list[str]], start: list[str], most: int) -> list[str]:
    """Breadth first, by depth and in the order of URLs: what a crawl of one page at a time gives."""
    seen, level, found = set(start), sorted(start), list[str]()
    while level:
        found += level[: most - len(found)]
        level = sorted({target for url in level for target in graph[url]} - seen)
        seen |= set(level)
    return sorted(found)


@pytest.mark.parametrize("concurrency", [1, 2, 8])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_pages_depend_on_the_site_and_not_on_time(
    site: Site, other: Site, run: Run, seed: int, concurrency: int
) -> None:
    draw = random.Random(seed)
    urls = [f"{each.url}/{number}" for each in (site, other) for number in range(30)]
    graph = {url: draw.sample(urls, 3) for url in urls}
    for each in (site, other):
        for url in urls:
            each.put(
                f"/{url.rpartition('/')[2]}",
                [random.random() / 200, page(*graph[f"{each.url}/{url.rpartition('/')[2]}"])],
            )
    start = [f"{site.url}/0", f"{other.url}/7"]
    found = run(*start, maximum_pages=35, concurrency=concurrency)
    assert [page.url for page in found.pages] == expected_pages(graph, start, 35)


# Redirects


def test_a_redirect_is_a_page_and_its_target_is_as_deep(site: Site, other: Site, run: Run) -> None:
    site.put("/", page("/old", "/away", "/nowhere", "/broken"))
    site.put("/old", redirect("new?x=1", status=301))
    site.put("/away", redirect(f"{other.url}/"))
    site.put("/nowhere", response(status=302))
    site.put("/broken", redirect("ftp://example.org/", status=308))
    site.put("/new?x=1", page("/deeper"))
    found = run(site.url, maximum_depth=1)
    assert found.paths() == ["/", "/away", "/broken", "/new?x=1", "/nowhere", "/old"]
    assert found.page("/old") == Page(f"{site.url}/old", 301, "text/html; charset=utf-8", f"{site.url}/new?x=1", b"")
    assert found.page("/away").location == f"{other.url}/"
    assert found.counts == {
        "fetched": 2, "redirected": 3, "status_302": 1, "beyond_depth": 1, "links_other_host": 1, "links_scheme": 1,
    }  # fmt: skip
    assert not other.requests


def test_a_page_that_refreshes_to_another_leads_there(site: Site, run: Run) -> None:
    site.put("/", response('<meta http-equiv="refresh" content="0; url=/a">'))
    site.put("/a", page())
    assert run(site.url, maximum_depth=0).counts == {"fetched": 2}


def test_loops_of_redirects_end(site: Site, run: Run) -> None:
    site.put("/", page("/self", "/a"))
    site.put("/self", redirect("/self"))
    site.put("/a", redirect("/b"))
    site.put("/b", redirect("/a"))
    assert run(site.url).counts == {"fetched": 1, "redirected": 3}
    assert set(site.asked().values()) == {1}


def test_a_redirect_that_always_leads_on_ends(site: Site, run: Run) -> None:
    site.put("/", page("/r"))
    site.otherwise = lambda path: redirect(f"{path}r")
    counts = run(site.url).counts
    assert counts == {"fetched": 1, "redirected": crawler.MAXIMUM_REDIRECTS + 1, "redirects_too_many": 1}


# Politeness


def test_robots_txt_is_obeyed_for_our_name(site: Site, run: Run) -> None:
    rules = "User-agent: *\nDisallow: /\n\nUser-agent: Whitewater\nDisallow: /private\nAllow: /private/open\n"
    site.put("/robots.txt", response(rules, content_type="text/plain"))
    site.put("/", page("/private/a", "/private/open", "/public"))
    site.otherwise = lambda path: page()
    found = run(site.url)
    assert found.paths() == ["/", "/private/open", "/public"]
    assert found.counts == {"fetched": 3, "robots": 1}
    assert [request.path for request in site.requests].count("/robots.txt") == 1
    assert site.requests[0].path == "/robots.txt"


def test_a_word_in_the_address_of_the_crawler_is_not_its_name(site: Site, run: Run) -> None:
    site.put("/robots.txt", response("User-agent: github\nDisallow: /\n", content_type="text/plain"))
    site.put("/", page())
    assert run(site.url, user_agent="surveyor/2 (+https://github.com/surveyor)").counts == {"fetched": 1}


@pytest.mark.parametrize("answer", [
    response(status=404), response(status=403), response("not rules at all\x00\n" * 10, content_type="text/html"),
])  # fmt: skip
def test_without_robots_txt_everything_is_allowed(site: Site, run: Run, answer: bytes) -> None:
    site.put("/robots.txt", answer)
    site.put("/", page())
    assert run(site.url).counts == {"fetched": 1}


@pytest.mark.parametrize("answer", [
    [response(status=500)], [response(status=503)], [response(status=429)], [Act.RESET], [Act.HANG],
    [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nUser-agent"],
])  # fmt: skip
def test_nothing_is_allowed_where_robots_txt_cannot_be_had(site: Site, other: Site, run: Run, answer: Reply) -> None:
    site.put("/robots.txt", answer)
    site.otherwise = lambda path: page()
    other.put("/", page(f"{site.url}/a", f"{site.url}/b"))
    timeout = TIMEOUT if Act.HANG in answer else 5.0
    found = run(other.url, allowed_hosts=(site.host, other.host), timeout=timeout, retries=1)
    assert found.counts == {"fetched": 1, "robots_unreachable": 2}
    assert [request.path for request in site.requests] == ["/robots.txt"] * 2


def test_robots_txt_is_tried_again(site: Site, run: Run) -> None:
    site.put("/robots.txt", [Act.RESET], response(status=503), response("User-agent: *\nDisallow: /a\n"))
    site.put("/", page("/a"))
    assert run(site.url, retries=2).counts == {"fetched": 1, "robots": 1}


def test_redirects_of_robots_txt_are_followed_to_other_hosts(site: Site, other: Site, run: Run) -> None:
    site.put("/robots.txt", redirect(f"{other.url}/robots.txt"))
    other.put("/robots.txt", redirect("/rules"))
    other.put("/rules", response("User-agent: *\nDisallow: /a\n"))
    site.put("/", page("/a"))
    assert run(site.url).counts == {"fetched": 1, "robots": 1}


def test_endless_redirects_of_robots_txt_are_none(site: Site, run: Run) -> None:
    site.put("/robots.txt", redirect("/robots.txt"))
    site.put("/", page())
    assert run(site.url).counts == {"fetched": 1}
    assert len(site.requests) == 2 + client.MAXIMUM_ROBOTS_REDIRECTS


def test_the_first_500_kib_of_robots_txt_count(site: Site, run: Run) -> None:
    cap = 500 << 10
    begin, comment = b"User-agent: *\nDisallow: /a\n", b"#" + b"x" * 998 + b"\n"
    rules = begin + comment * ((cap - len(begin)) // 1000)
    # The cap falls in the middle of a line, which in half would forbid everything.
    rules += b"#" * (cap - len(rules) - len(b"\nDisallow: /")) + b"\nDisallow: /private\nDisallow: /b\n"
    assert rules[:cap].endswith(b"\nDisallow: /")
    site.put("/robots.txt", response(rules + comment * 100))
    site.put("/", page("/a", "/b"))
    assert run(site.url).counts == {"fetched": 1, "status_404": 1, "robots": 1}


def test_a_host_is_asked_for_a_page_when_the_pause_after_the_last_is_over(
    site: Site, run: Run, began: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = asyncio.sleep

    async def oversleep(seconds: float) -> None:
        await sleep(seconds + 0.03 * (seconds > 0) * (len(began) % 2))

    monkeypatch.setattr(asyncio, "sleep", oversleep)
    site.put("/", page(*(f"/{number}" for number in range(5))))
    run(site.url, delay=0.05)
    assert len(began) == 7
    assert shortest(began) > 0.049


def test_a_host_is_asked_for_one_page_at_a_time(site: Site, run: Run) -> None:
    site.put("/", page(*(f"/{number}" for number in range(5))))
    for number in range(5):
        site.put(f"/{number}", [0.02, page()])
    assert run(site.url).counts == {"fetched": 6}
    assert site.at_once == 1


@pytest.mark.parametrize("asked", [0.1, 86400])
def test_robots_txt_may_ask_for_longer_pauses_up_to_a_limit(
    site: Site, run: Run, began: list[float], monkeypatch: pytest.MonkeyPatch, asked: float
) -> None:
    monkeypatch.setattr(client, "LONGEST_PAUSE", 0.2)
    site.put("/robots.txt", response(f"User-agent: *\nCrawl-delay: {asked}\n"))
    site.put("/", page("/a"))
    run(site.url)
    assert shortest(began) > 0.99 * min(asked, 0.2)


def test_hosts_are_asked_at_once(site: Site, other: Site, run: Run) -> None:
    together = threading.Barrier(2, timeout=10)
    for each in (site, other):
        each.put("/", [together.wait, page()])
    assert run(site.url, other.url, concurrency=2).counts == {"fetched": 2}


def test_links_marked_nofollow_are_not_followed(site: Site, run: Run) -> None:
    site.put("/", response('<a href="/a" rel="external NoFollow">a</a><a href="/b">b</a>'))
    site.put("/b", response('<meta name="ROBOTS" content="noindex, NOFOLLOW"><a href="/c">c</a>'))
    assert run(site.url).counts == {"fetched": 2, "links_nofollow": 2}
    assert set(site.asked()) == {"/", "/b"}


def test_no_cookies_credentials_or_proxies_are_used(
    site: Site, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    site.put(
        "/", response('<a href="/a">a</a><a href="http://somebody:secret@127.0.0.1/">b</a>', Set_Cookie="a=b; Path=/")
    )
    site.put("/a", page())
    assert run(site.url).counts["fetched"] == 2
    sent = {name for request in site.requests for name in request.headers}
    assert sent == {"host", "user-agent", "accept", "accept-encoding", "connection"}


# Stops


def test_a_finished_crawl_asks_anew(site: Site, run: Run) -> None:
    site.put("/", page("/a", text="first"), page(text="second"))
    run(site.url)
    assert run(site.url).paths() == ["/"]
    assert site.asked() == {"/": 2, "/a": 1}


def test_a_finished_crawl_can_be_had_again_by_its_name(site: Site, run: Run, tmp_path: Path) -> None:
    site.put("/", page("/a"))
    found = run(site.url)
    (finished,) = (tmp_path / "frontier").glob("*.finished.sqlite")
    finished.rename(finished.with_name(finished.name.replace(".finished", "")))
    assert run(site.url) == found
    assert site.asked() == {"/": 1, "/a": 1}


def test_a_crawl_whose_pages_were_not_written_asks_for_none_again(
    site: Site, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("full")

    site.put("/", page("/a"))
    with monkeypatch.context() as patch:
        patch.setattr(PagesWriter, "add", full)
        with pytest.raises(OSError, match="full"):
            run(site.url)
    assert run(site.url).paths() == ["/", "/a"]
    assert site.asked() == {"/": 1, "/a": 1}


CHILD = """
import sys
from pathlib import Path
from whitewater.web.config import Crawl
from whitewater.web.crawl.crawler import crawl
from whitewater.web.pages import PagesWriter

settings, writer = Crawl.model_validate_json(sys.argv[1]), PagesWriter(Path(sys.argv[2]))
crawl(settings, frontier=Path(sys.argv[3]), writer=writer)
"""


def kill(site: Site, settings: Crawl, *, frontier: Path, fetched: Path, after: int) -> None:
    """Crawl in a process that is killed after so many more requests."""
    wanted = len(site.requests) + after
    command = [sys.executable, "-c", CHILD, settings.model_dump_json(), str(fetched), str(frontier)]
    source = str(Path(crawler.__file__).parents[3])
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": source}) as child:
        end = time.monotonic() + 60
        while len(site.requests) < wanted and child.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
        child.kill()
    assert child.returncode == -signal.SIGKILL


def test_a_crawl_that_is_killed_goes_on_and_asks_for_no_page_twice(site: Site, tmp_path: Path) -> None:
    draw = random.Random(5)
    site.put("/", page(*(f"/{number}" for number in range(0, 60, 2))))
    for number in range(60):
        links = [f"/{draw.randrange(60)}" for _ in range(3)]
        site.put(f"/{number}", redirect(links[0]) if number % 10 == 3 else [0.005, page(*links, text=str(number))])
    settings = Crawl(start_urls=(f"{site.url}/",), delay=0.0, maximum_pages=50)
    whole = crawled(settings, frontier=tmp_path / "unbroken", fetched=tmp_path / "whole")
    site.requests.clear()
    for after in (1, 4, 17):
        kill(site, settings, frontier=tmp_path / "broken", fetched=tmp_path / f"part-{after}", after=after)
    assert crawled(settings, frontier=tmp_path / "broken", fetched=tmp_path / "resumed") == whole
    assert len(whole.pages) == 50
    # What was under way is asked for again, which is one page for each kill.
    assert sum(times - 1 for times in site.asked().values()) <= 3


def test_page_that_takes_forever_to_parse_is_kept_and_its_links_are_not_followed(site: Site, run: Run) -> None:
    site.put("/", page("/nested"))
    site.put("/nested", response(b"<div>" * 100_000 + b'<a href="/below">', content_type="text/html"))
    found = run(site.url)
    assert found.paths() == ["/", "/nested"]
    assert found.counts == {"fetched": 2, "links_of_too_complex": 1}
