"""Requests at the pace that a host is asked at, where its robots.txt allows them, tried again where that may help.

Of a request comes a whole answer, or a fault that has a reason. Section numbers are of RFC 9309 (robots.txt).
"""

import asyncio
import logging
import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from protego import Protego
from yarl import URL

from whitewater.io.remote import seconds_to_wait
from whitewater.web import urls
from whitewater.web.config import Crawl
from whitewater.web.http_body import UndecodableError, decoded, header_text
from whitewater.web.page_content import MEDIA_TYPES
from whitewater.web.pages import REDIRECTS, Page

logger = logging.getLogger(__name__)

# Why there is no whole answer: the first that fits a fault counts.
REASONS: dict[type[Exception], str] = {
    UndecodableError: "encoding", TimeoutError: "timeout", aiohttp.ClientPayloadError: "incomplete",
    aiohttp.ClientConnectionError: "no_answer", OSError: "no_answer", aiohttp.ClientError: "malformed",
    HttpProcessingError: "malformed", ValueError: "malformed",
}  # fmt: skip

# 203 is a 200 that a proxy has changed; a 206 would be a part of a page, and nobody asked for one.
WITH_BODY = frozenset({200, 203})
ACCEPT = "text/html, application/xhtml+xml, text/plain;q=0.5"
# A whole request may take this many times as long as a silence of the server: trickling servers end, slow ones do not.
SILENCES_PER_REQUEST = 3
FIRST_PAUSE = 1.0
# Nobody waits longer between two tries, or two requests, whatever Retry-After and Crawl-delay ask for.
LONGEST_PAUSE = 60.0
LARGEST_ROBOTS = 500 << 10  # 2.5: at least 500 KiB are read
MAXIMUM_ROBOTS_REDIRECTS = 5  # 2.3.1.2: at least five
TOO_MANY_REQUESTS = 429
TRANSIENT = frozenset({408, 425, TOO_MANY_REQUESTS, 500, 502, 503, 504})
LONGEST_DETAIL = 200  # characters; HTTP libraries quote what they do not understand


class Answer(NamedTuple):
    """A whole answer, its body decoded and its location in normal form; and two of its headers as they were sent."""

    page: Page
    location: str | None
    retry_after: str | None


class AnswerError(Exception):
    """A request without a whole answer that is wanted."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {' '.join(detail.split())[:LONGEST_DETAIL]}")
        self.reason = reason


def open_session(settings: Crawl) -> aiohttp.ClientSession:
    """Open a session without cookies, credentials and proxies."""
    silence = settings.timeout
    return aiohttp.ClientSession(
        # A connection serves one request: what a server sends beyond its Content-Length would be read as the next
        # answer. There need be no limit here, since each host is asked for one page at a time.
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": settings.user_agent, "Accept": ACCEPT, "Accept-Encoding": "gzip"},
        timeout=aiohttp.ClientTimeout(
            total=SILENCES_PER_REQUEST * silence, connect=silence, sock_connect=silence, sock_read=silence
        ),
        # aiohttp takes a gzip stream that is cut off for whole.
        auto_decompress=False,
        trust_env=False,
        middlewares=(_once,),
    )


class PoliteClient:
    """Asks each host for one page at a time, ``delay`` seconds after the last; a request that failed is repeated.

    A host is a name or an address, whatever the port and the scheme: it is one machine that has the work.
    """

    def __init__(self, session: aiohttp.ClientSession, settings: Crawl) -> None:
        self._session = session
        self._settings = settings
        # A crawler's name may be anywhere in its user agent, but a word in its address is not a name.
        self._agent = re.sub(r"\+?https?://[^\s;)]*", "", settings.user_agent)
        self._robots: dict[str, Protego | None] = {}
        self._delays: dict[str, float] = {}
        self._begun: dict[str, float] = {}

    async def refusal(self, url: str) -> str | None:
        """Return None where robots.txt allows the URL, else ``robots``, or ``robots_unreachable``: then nothing is."""
        place = urljoin(url, "/robots.txt")
        if place not in self._robots:
            self._robots[place] = await self._read_robots(place)
        rules = self._robots[place]
        if rules is None:
            return "robots_unreachable"
        asked = min(rules.crawl_delay(self._agent) or 0.0, LONGEST_PAUSE)
        host = host_of(url)
        self._delays[host] = max(self._delays.get(host, self._settings.delay), asked)
        return None if rules.can_fetch(url, self._agent) else "robots"

    async def _read_robots(self, place: str) -> Protego | None:
        try:
            answer = await self.page(place, is_robots=True)
            for _ in range(MAXIMUM_ROBOTS_REDIRECTS):
                if answer.page.location is not None:
                    answer = await self.page(answer.page.location, is_robots=True)
        except AnswerError as fault:
            logger.warning("%s: %s; nothing is asked for there", place, fault)
            return None
        # "Too many requests" is not permission for more of them, although 2.3.1.3 counts it among those that are.
        status, body = answer.page.status, answer.page.body
        if status >= 500 or status == TOO_MANY_REQUESTS:
            logger.warning("%s: status %d; nothing is asked for there", place, status)
            return None
        if len(body) >= LARGEST_ROBOTS:
            # Half of "Disallow: /private" would forbid everything.
            body = body[: body.rfind(b"\n", 0, LARGEST_ROBOTS) + 1]
        # A body is there only with success: with all else the file is unavailable, and everything allowed (2.3.1.3).
        return Protego.parse(body.decode("utf-8-sig", "replace"))

    async def page(self, url: str, *, is_robots: bool = False) -> Answer:
        """Return the answer of the last try; one of a status that may pass (429, 503 and the like) is the last one's.

        Raises AnswerError if there is none.
        """
        attempt = 0
        while True:
            last = attempt == self._settings.retries
            await self._turn(host_of(url))
            try:
                answer = await ask(self._session, url, self._settings.maximum_bytes, is_robots=is_robots)
            except AnswerError as fault:
                if last or fault.reason in ("content_type", "too_large"):  # a whole answer, but not wanted
                    raise
                said, pause = str(fault), 0.0
            else:
                if last or answer.page.status not in TRANSIENT:
                    return answer
                said, pause = f"status {answer.page.status}", seconds_to_wait(answer.retry_after)
            pause = min(max(pause, FIRST_PAUSE * 2**attempt), LONGEST_PAUSE)
            logger.info("%s: %s; trying again in %.1f s", url, said, pause)
            await asyncio.sleep(pause)
            attempt += 1

    async def _turn(self, host: str) -> None:
        """Wait until the host may be asked again, and take the turn."""
        now = time.monotonic()
        start = max(now, self._begun.get(host, -math.inf) + self._delays.get(host, self._settings.delay))
        self._begun[host] = start  # before waiting: whoever comes meanwhile is next
        await asyncio.sleep(start - now)
        self._begun[host] = max(self._begun[host], time.monotonic())


async def ask(session: aiohttp.ClientSession, url: str, maximum_bytes: int, *, is_robots: bool) -> Answer:
    """Ask for a URL in normal form; redirects are answers like others, and bodies of errors are not read.

    A page of more than ``maximum_bytes`` is a fault, as one of another type than `MEDIA_TYPES`. A robots.txt may be of
    any type, and is cut off after about `LARGEST_ROBOTS`.

    Raises AnswerError if no whole answer came, or one that is not wanted.
    """
    with _explained():
        # The URL is sent as it is: in another form, the page that is stored would not be the one that was asked for.
        async with session.get(URL(url, encoded=True), allow_redirects=False) as response:
            sent = {name.lower(): value for name, value in reversed(response.raw_headers)}  # the first of each
            names = (b"content-type", b"location", b"retry-after")
            kind, location, pause = (header_text(sent.get(name)) for name in names)
            body = b""
            if response.status in WITH_BODY:
                if not is_robots and (kind or "").partition(";")[0].strip().lower() not in MEDIA_TYPES:
                    raise AnswerError("content_type", kind or "none is named")
                body = await _body(response, LARGEST_ROBOTS if is_robots else maximum_bytes, cut=is_robots)
            target = urls.normalize(location, url) if location and response.status in REDIRECTS else None
            return Answer(Page(url, response.status, kind, target, body), location, pause)


async def _body(response: aiohttp.ClientResponse, maximum_bytes: int, *, cut: bool) -> bytes:
    # Once the body has ended the response lets go of its connection; small ones have ended already.
    protocol = response.connection.protocol if response.connection is not None else None
    sent = bytearray()
    async for piece in response.content.iter_any():
        sent += piece
        if len(sent) > maximum_bytes:
            break
    body = bytes(sent)
    if cut or len(body) <= maximum_bytes:
        body = decoded(body, content_encoding=response.headers.get("Content-Encoding", ""), limit=maximum_bytes)
    if len(body) > maximum_bytes:
        if cut:
            return body
        raise AnswerError("too_large", f"more than {maximum_bytes:,} bytes")
    # The library reads on after the end and does not understand what it finds; framed as it is the body seems whole.
    if protocol is not None and isinstance(protocol.exception(), HttpProcessingError):
        raise AnswerError("malformed", "the body is longer than its Content-Length")
    return body


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request; a fault of the connection is told as ours, since the library would ask again, and at once."""
    with _explained():
        return await send(request)


@contextmanager
def _explained() -> Iterator[None]:
    """Turn what the network, TLS, HTTP and compression can do wrong into faults."""
    try:
        yield
    except tuple(REASONS) as error:
        reason = next(reason for kind, reason in REASONS.items() if isinstance(error, kind))
        raise AnswerError(reason, str(error)) from error


def host_of(url: str) -> str:
    """Return the name or address of the machine in a URL, without port."""
    return urlsplit(url).hostname or ""
