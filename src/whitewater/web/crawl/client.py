"""A polite HTTP client: it obeys robots.txt (section numbers are of RFC 9309), limits its rate, and retries."""

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
from whitewater.web.http_body import UndecodableError, decode_body, decode_header
from whitewater.web.page_content import MEDIA_TYPES
from whitewater.web.pages import REDIRECTS, Page

logger = logging.getLogger(__name__)

# Why a request failed: the first match counts.
REASONS: dict[type[Exception], str] = {
    UndecodableError: "encoding", TimeoutError: "timeout", aiohttp.ClientPayloadError: "incomplete",
    aiohttp.ClientConnectionError: "no_answer", OSError: "no_answer", aiohttp.ClientError: "malformed",
    HttpProcessingError: "malformed", ValueError: "malformed",
}  # fmt: skip

# 203 is a 200 that a proxy has changed. A 206 would be a part of a page, which is never requested.
WITH_BODY = frozenset({200, 203})
ACCEPT = "text/html, application/xhtml+xml, text/plain;q=0.5"
FIRST_PAUSE = 1.0
# The longest pause between two requests, whatever Retry-After and Crawl-delay ask for.
LONGEST_PAUSE = 60.0
LARGEST_ROBOTS = 500 << 10  # 2.5: at least 500 KiB are read
MAXIMUM_ROBOTS_REDIRECTS = 5  # 2.3.1.2: at least five
TOO_MANY_REQUESTS = 429
TRANSIENT = frozenset({408, 425, TOO_MANY_REQUESTS, 500, 502, 503, 504})


class Response(NamedTuple):
    """A complete response, with its location normalized, and the header Retry-After as sent."""

    page: Page
    location: str | None
    retry_after: str | None


class RequestError(Exception):
    """A request failed, or its response is not wanted."""

    def __init__(self, reason: str, detail: str) -> None:
        # HTTP libraries quote whole invalid responses.
        super().__init__(f"{reason}: {' '.join(detail.split())[:200]}")
        self.reason = reason


def open_session(settings: Crawl) -> aiohttp.ClientSession:
    """Open a session without cookies, credentials and proxies."""
    timeout = settings.timeout
    return aiohttp.ClientSession(
        # One request per connection: bytes beyond a Content-Length would be read as the next response. The number of
        # connections needs no limit, since each host is asked for one page at a time.
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": settings.user_agent, "Accept": ACCEPT, "Accept-Encoding": "gzip"},
        # The total stops servers that send a byte now and then, but not slow ones.
        timeout=aiohttp.ClientTimeout(total=3 * timeout, connect=timeout, sock_connect=timeout, sock_read=timeout),
        # aiohttp accepts a gzip stream that is cut off as complete.
        auto_decompress=False,
        trust_env=False,
        middlewares=(_send_once,),
    )


class PoliteClient:
    """Asks each host for one page at a time, ``delay`` seconds after the last one, and retries failed requests.

    All ports and schemes of a host name share one rate, since one machine serves them.
    """

    def __init__(self, session: aiohttp.ClientSession, settings: Crawl) -> None:
        self._session = session
        self._settings = settings
        # The crawler's name may be anywhere in the user agent, but not inside a URL.
        self._agent = re.sub(r"\+?https?://[^\s;)]*", "", settings.user_agent)
        self._robots: dict[str, Protego | None] = {}
        self._delays: dict[str, float] = {}
        self._last_request: dict[str, float] = {}

    async def refusal(self, url: str) -> str | None:
        """Return None if robots.txt allows the URL, else ``robots``, or ``robots_unreachable`` without an answer."""
        robots_url = urljoin(url, "/robots.txt")
        if robots_url not in self._robots:
            self._robots[robots_url] = await self._read_robots(robots_url)
        rules = self._robots[robots_url]
        if rules is None:
            return "robots_unreachable"
        crawl_delay = min(rules.crawl_delay(self._agent) or 0.0, LONGEST_PAUSE)
        host = host_of(url)
        self._delays[host] = max(self._delays.get(host, self._settings.delay), crawl_delay)
        return None if rules.can_fetch(url, self._agent) else "robots"

    async def _read_robots(self, url: str) -> Protego | None:
        try:
            response = await self.get(url, is_robots=True)
            for _ in range(MAXIMUM_ROBOTS_REDIRECTS):
                if response.page.location is not None:
                    response = await self.get(response.page.location, is_robots=True)
        except RequestError as error:
            logger.warning("%s: %s; this site is not crawled", url, error)
            return None
        # By 2.3.1.3, a 429 would allow everything, but "too many requests" does not invite more of them.
        status, body = response.page.status, response.page.body
        if status >= 500 or status == TOO_MANY_REQUESTS:
            logger.warning("%s: status %d; this site is not crawled", url, status)
            return None
        if len(body) >= LARGEST_ROBOTS:
            # Half of "Disallow: /private" would forbid everything.
            body = body[: body.rfind(b"\n", 0, LARGEST_ROBOTS) + 1]
        # Any other status has no body: the file is unavailable, and everything is allowed (2.3.1.3).
        return Protego.parse(body.decode("utf-8-sig", "replace"))

    async def get(self, url: str, *, is_robots: bool = False) -> Response:
        """Return the response, retried if its status is `TRANSIENT`. Raises RequestError if the last try failed."""
        attempt = 0
        while True:
            last = attempt == self._settings.retries
            await self._wait_for_turn(host_of(url))
            try:
                response = await send_request(self._session, url, self._settings.maximum_bytes, is_robots=is_robots)
            except RequestError as error:
                if last or error.reason in ("content_type", "too_large"):  # the response would be the same
                    raise
                problem, pause = str(error), 0.0
            else:
                if last or response.page.status not in TRANSIENT:
                    return response
                problem, pause = f"status {response.page.status}", seconds_to_wait(response.retry_after)
            pause = min(max(pause, FIRST_PAUSE * 2**attempt), LONGEST_PAUSE)
            logger.info("%s: %s; trying again in %.1f s", url, problem, pause)
            await asyncio.sleep(pause)
            attempt += 1

    async def _wait_for_turn(self, host: str) -> None:
        now = time.monotonic()
        start = max(now, self._last_request.get(host, -math.inf) + self._delays.get(host, self._settings.delay))
        self._last_request[host] = start  # before waiting, so that the next request queues behind this one
        await asyncio.sleep(start - now)
        self._last_request[host] = max(self._last_request[host], time.monotonic())


async def send_request(session: aiohttp.ClientSession, url: str, maximum_bytes: int, *, is_robots: bool) -> Response:
    """Request a URL in normal form once, without following redirects or reading bodies of errors.

    A robots.txt may have any content type, and is cut off after about `LARGEST_ROBOTS`.

    Raises RequestError if the response is incomplete, larger than ``maximum_bytes``, or not one of `MEDIA_TYPES`.
    """
    with _convert_errors():
        # Send the URL as it is: re-encoding it could fetch another page than the one that is stored.
        async with session.get(URL(url, encoded=True), allow_redirects=False) as response:
            headers = {name.lower(): value for name, value in reversed(response.raw_headers)}  # the first of each
            names = (b"content-type", b"location", b"retry-after")
            content_type, location, retry_after = (decode_header(headers.get(name)) for name in names)
            body = b""
            if response.status in WITH_BODY:
                if not is_robots and (content_type or "").partition(";")[0].strip().lower() not in MEDIA_TYPES:
                    raise RequestError("content_type", content_type or "not specified")
                body = await _read_body(response, LARGEST_ROBOTS if is_robots else maximum_bytes, cut=is_robots)
            target = urls.normalize(location, url) if location and response.status in REDIRECTS else None
            return Response(Page(url, response.status, content_type, target, body), location, retry_after)


async def _read_body(response: aiohttp.ClientResponse, maximum_bytes: int, *, cut: bool) -> bytes:
    # At the end of the body the response releases its connection; for small bodies it already has.
    protocol = response.connection.protocol if response.connection is not None else None
    received = bytearray()
    async for chunk in response.content.iter_any():
        received += chunk
        if len(received) > maximum_bytes:
            break
    body = bytes(received)
    if cut or len(body) <= maximum_bytes:
        body = decode_body(body, content_encoding=response.headers.get("Content-Encoding", ""), limit=maximum_bytes)
    if len(body) > maximum_bytes:
        if cut:
            return body
        raise RequestError("too_large", f"more than {maximum_bytes:,} bytes")
    # aiohttp takes the bytes beyond Content-Length for another response, and fails to parse it.
    if protocol is not None and isinstance(protocol.exception(), HttpProcessingError):
        raise RequestError("malformed", "the body is longer than its Content-Length")
    return body


async def _send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request and convert connection errors, which aiohttp would retry at once."""
    with _convert_errors():
        return await send(request)


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Turn errors of network, TLS, HTTP and decompression into RequestError."""
    try:
        yield
    except tuple(REASONS) as error:
        reason = next(reason for kind, reason in REASONS.items() if isinstance(error, kind))
        raise RequestError(reason, str(error)) from error


def host_of(url: str) -> str:
    """Return the name or address of the machine in a URL, without port."""
    return urlsplit(url).hostname or ""
