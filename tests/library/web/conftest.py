"""Sites on loopback, and a crawler of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.web_server import Site, serving
from tests.library.web.crawling import Crawled, Run, crawled
from whitewater.web.config import Crawl
from whitewater.web.crawl import client
from whitewater.web.crawl.client import Response


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as served:
        yield served


@pytest.fixture
def other() -> Iterator[Site]:
    """A site on another host (localhost, where `site` is on 127.0.0.1)."""
    with serving(Site(), host="localhost") as served:
        yield served


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.001)
    written = iter(range(100))

    def run(*start_urls: str, frontier: Path = tmp_path / "frontier", **settings: Any) -> Crawled:
        chosen = {"delay": 0.0, "timeout": 5.0, "retries": 0, "start_urls": start_urls, **settings}
        return crawled(Crawl(**chosen), frontier=frontier, fetched=tmp_path / f"fetched-{next(written)}")

    return run


@pytest.fixture
def began(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When each request began, in seconds by the crawler's clock."""
    times: list[float] = []
    original = client.send_request

    async def send_request(*arguments: Any, **wanted: Any) -> Response:
        times.append(time.monotonic())
        return await original(*arguments, **wanted)

    monkeypatch.setattr(client, "send_request", send_request)
    return times
