"""The crawler against servers on loopback that misbehave in every way in which servers do."""

from __future__ import annotations

import gzip
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.web_server import Act, Reply, Site, page, redirect, response
from tests.library.web.crawling import TIMEOUT, Run, shortest
from whitewater.errors import ConfigError, InputError
from whitewater.io.remote import seconds_to_wait
from whitewater.web.config import Crawl
from whitewater.web.crawl import client, crawler
from whitewater.web.crawl.crawler import crawl
from whitewater.web.pages import PagesWriter

HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
BODY = gzip.compress(b"<p>hello" * 1000)


FAULTS: dict[str, tuple[str, Reply]] = {
    "says nothing": ("timeout", [Act.HANG]),
    "stops in the middle": ("timeout", [HTML + b"Content-Length: 9\r\n\r\nhalf", Act.HANG]),
    "trickles": ("timeout", [HTML + b"\r\n", Act.TRICKLE]),
    "trickles a header": ("timeout", [b"HTTP/1.1 200 OK\r\nX: ", Act.TRICKLE]),
    "resets": ("no_answer", [Act.RESET]),
    "closes": ("no_answer", [b""]),
    "resets in the middle": ("incomplete", [HTML + b"Content-Length: 9\r\n\r\nhalf", 0.05, Act.RESET]),
    "sends less than it says": ("incomplete", [HTML + b"Content-Length: 9\r\n\r\nhalf"]),
    "sends more than it says": ("malformed", [HTML + b"Content-Length: 4\r\n\r\n<p>half"]),
    "sends more in the end": ("malformed", [HTML + b"Content-Length: 9\r\n\r\nhalf", 0.1, b" and the rest"]),
    "cuts the last chunk": ("incomplete", [HTML + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"]),
    "sends bad chunks": ("malformed", [HTML + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n"]),
    "cuts a compressed body": ("encoding", [response(BODY[:-9], Content_Encoding="gzip")]),
    "damages a compressed body": ("encoding", [response(BODY[:-8] + b"damaged!", Content_Encoding="gzip")]),
    "compresses nothing": ("encoding", [response("plain", Content_Encoding="gzip")]),
    "compresses otherwise": ("encoding", [response("plain", Content_Encoding="br")]),
    "sends a flood of headers": ("malformed", [b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5000 + b"\r\n"]),
    "sends a header without end": ("malformed", [b"HTTP/1.1 200 OK\r\nX: ", Act.FLOOD]),
    "speaks no HTTP": ("malformed", [b"\x00\xff" * 100]),
    "gives two lengths": ("malformed", [HTML + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"]),
    "never ends": ("too_large", [HTML + b"\r\n", Act.FLOOD]),
    "sends too much": ("too_large", [response("x" * 100_001)]),
    "compresses too much": ("too_large", [response(gzip.compress(bytes(10_000_000)), Content_Encoding="gzip")]),
    "sends something else": ("content_type", [response("x", content_type="image/png")]),
    "sends a film": ("content_type", [b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n", Act.FLOOD]),
    "names no type": ("content_type", [response("x", content_type=None)]),
    "sends a part": ("status_206", [response("x", status=206)]),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_server_that_misbehaves_costs_its_page_and_nothing_else(
    site: Site, run: Run, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    reason, reply = FAULTS[what]
    site.put("/", page("/fault", "/good"))
    site.put("/fault", reply)
    site.put("/good", page())
    found = run(site.url, timeout=TIMEOUT if reason == "timeout" else 5.0, maximum_bytes=100_000)
    assert found.counts == {"fetched": 2, reason: 1}
    assert [path for path in found.paths() if path != "/fault"] == ["/", "/good"]
    if reason not in ("content_type", "status_206"):
        assert f"{site.url}/fault: {reason}" in caplog.text


@pytest.mark.parametrize("fault", [
    [Act.RESET], [HTML + b"Content-Length: 9\r\n\r\nhalf"], response(status=503), response(status=429, Retry_After="0"),
])  # fmt: skip
def test_what_may_pass_is_tried_again(site: Site, run: Run, fault: bytes | Reply) -> None:
    site.put("/", fault, fault, page(text="at last"))
    assert b"at last" in run(site.url, retries=2).page("/").body


def test_after_all_tries_the_status_is_told(site: Site, run: Run) -> None:
    site.put("/", page("/a"))
    site.put("/a", response(status=503))
    found = run(site.url, retries=2)
    assert (found.page("/a").status, found.counts["status_503"], site.asked()["/a"]) == (503, 1, 3)


def test_retry_after_is_waited_for_up_to_a_limit(
    site: Site, run: Run, began: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LONGEST_PAUSE", 0.1)
    site.put("/", response(status=503, Retry_After="86400"), page())
    run(site.url, retries=1)
    assert shortest(began[1:]) > 0.099


def test_retry_after_is_a_number_or_a_date() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert 80 < seconds_to_wait(soon) <= 90
    assert seconds_to_wait("Fri, 31 Dec 1999 23:59:59 GMT") == 0
    assert [seconds_to_wait(text) for text in ("120", " 7 ", "soon", "-5", "²", "", None)] == [120, 7, 0, 0, 0, 0, 0]


def test_a_host_that_is_silent_is_given_up(site: Site, other: Site, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawler, "GIVE_UP", 2)
    site.put("/", page(*(f"/{number}" for number in range(9)), f"{other.url}/"))
    for number in range(9):
        site.put(f"/{number}", [Act.HANG])
    other.put("/", page())
    found = run(site.url, allowed_hosts=(site.host, other.host), timeout=TIMEOUT)
    assert found.counts == {"fetched": 2, "timeout": 2, "host_given_up": 7}


def test_a_server_without_tls_is_told(site: Site, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    site.put("/", page(site.url.replace("http:", "https:")))
    assert run(site.url).counts == {"fetched": 1, "robots_unreachable": 1}
    assert "robots.txt: no_answer: " in caplog.text


def test_a_name_that_is_unknown_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(InputError, match=r"http://nowhere\.example/: robots_unreachable"):
        run("http://nowhere.example")


def test_a_crawl_without_a_page_is_an_error_that_says_why(site: Site, other: Site, run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        refusing = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    site.put("/image", response("x", content_type="image/png"))
    site.put("/moved", redirect(f"{other.url}/"))
    start = {
        refusing: "robots_unreachable", f"{site.url}/gone": "status_404", f"{site.url}/image": "content_type",
        f"{site.url}/moved": f"redirected to {other.url}/",
    }  # fmt: skip
    for _ in range(2):  # the second one asks again
        with pytest.raises(InputError) as error:
            run(*start, allowed_hosts=(site.host, refusing.split("/")[2]))
        for url, reason in start.items():
            assert f"{url}: {reason}" in str(error.value)
    assert site.asked() == {"/gone": 2, "/image": 2, "/moved": 2}


@pytest.mark.parametrize(("settings", "told"), [
    ({"start_urls": ("ftp://example.org/",)}, r"start_urls: ftp://example\.org/ .*\(scheme\)"),
    ({"start_urls": ("example.org",)}, r"start_urls: example\.org .*https://"),
    ({"start_urls": ("http://a.example/",), "allowed_hosts": ("b.example",)}, "http://a.example/ is on none"),
    ({"start_urls": ("http://a.example/",), "allowed_hosts": ("http://a.example/",)}, "allowed_hosts: .* not a host"),
])  # fmt: skip
def test_a_start_or_a_host_that_is_none_is_refused(tmp_path: Path, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        crawl(Crawl(**settings), frontier=tmp_path / "frontier", writer=PagesWriter(tmp_path / "fetched"))
