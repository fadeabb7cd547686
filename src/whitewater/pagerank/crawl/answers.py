"""One request and what comes of it: a whole answer, or a fault that has a reason.

Bodies are decoded here and not by the HTTP library, which neither notices a gzip stream that is cut off nor stops in
the middle of one that grows without end.
"""

from __future__ import annotations

import errno
import ssl
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

Reason = Literal[
    "timeout", "refused", "reset", "unknown_host", "unreachable", "tls",  # no answer
    "incomplete", "malformed", "encoding",  # half an answer, or one that cannot be understood
    "content_type", "too_large",  # an answer that is not wanted
]  # fmt: skip
SILENCE: frozenset[Reason] = frozenset({"timeout", "refused", "unknown_host", "unreachable", "tls"})
UNWANTED: frozenset[Reason] = frozenset({"content_type", "too_large"})
PASSING: frozenset[Reason] = frozenset(
    {"timeout", "refused", "reset", "unknown_host", "unreachable", "incomplete", "malformed"}
)

# 203 is a 200 that a proxy has changed; a 206 would be a part of a page, and nobody asked for one.
WITH_BODY = frozenset({200, 203})
# A whole request may take this many times as long as a silence of the server: trickling servers end, slow ones do not.
SILENCES_PER_REQUEST = 3
LONGEST_DETAIL = 200  # characters; HTTP libraries quote what they do not understand
ACCEPT = "text/html, application/xhtml+xml, text/plain;q=0.5"


@dataclass(frozen=True)
class Answer:
    """A whole answer: its status, the headers that matter here as they were sent, and its decoded body."""

    status: int
    content_type: str | None
    location: str | None
    retry_after: str | None
    body: bytes


@dataclass(frozen=True)
class Wanted:
    """Which bodies are read: of these media types (None: of all), and how many bytes of them, decoded.

    A longer body is a fault or, where ``cut`` says so, cut off there.
    """

    media_types: frozenset[str] | None
    maximum_bytes: int
    cut: bool = False


class AnswerError(Exception):
    """A request without a whole answer that is wanted."""

    def __init__(self, reason: Reason, detail: str) -> None:
        told = " ".join(detail.split())[:LONGEST_DETAIL]
        super().__init__(f"{reason}: {told}" if told else reason)
        self.reason = reason

    @property
    def passes(self) -> bool:
        """Whether another try may succeed."""
        return self.reason in PASSING


def open_session(*, user_agent: str, timeout: float) -> aiohttp.ClientSession:
    """Open a session without cookies, credentials and proxies.

    Parameters
    ----------
    user_agent
        Name that servers are told.
    timeout
        Seconds for connecting, and of silence; a whole request takes at most `SILENCES_PER_REQUEST` times as long.
    """
    return aiohttp.ClientSession(
        # A connection serves one request: what a server sends beyond its Content-Length would be read as the next
        # answer. One request at a time for each host is the caller's care, so that there need be no limit here.
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": user_agent, "Accept": ACCEPT, "Accept-Encoding": "gzip"},
        timeout=aiohttp.ClientTimeout(
            total=SILENCES_PER_REQUEST * timeout, connect=timeout, sock_connect=timeout, sock_read=timeout
        ),
        auto_decompress=False,
        trust_env=False,
        middlewares=(_once,),
    )


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request; a fault of the connection is told as ours, since the library would ask again, and at once."""
    with _explained():
        return await send(request)


async def ask(session: aiohttp.ClientSession, url: str, *, wanted: Wanted) -> Answer:
    """Ask for a URL in normal form; redirects are answers like others, and bodies of errors are not read.

    Raises
    ------
    AnswerError
        If no whole answer came, or one that is not wanted.
    """
    with _explained():
        # The URL is sent as it is: in another form, the page that is stored would not be the one that was asked for.
        async with session.get(URL(url, encoded=True), allow_redirects=False) as response:
            body = await _body(response, wanted) if response.status in WITH_BODY else b""
            return Answer(
                response.status,
                content_type=_header(response, "Content-Type"),
                location=_header(response, "Location"),
                retry_after=_header(response, "Retry-After"),
                body=body,
            )


async def _body(response: aiohttp.ClientResponse, wanted: Wanted) -> bytes:
    sent = _header(response, "Content-Type") or ""
    if wanted.media_types is not None and media_type(sent) not in wanted.media_types:
        raise AnswerError("content_type", sent or "none is named")
    decoder = _decoder(response.headers.get("Content-Encoding", ""))
    # Once the body has ended the response lets go of its connection; small ones have ended already.
    protocol = response.connection.protocol if response.connection is not None else None
    body = bytearray()
    async for piece in response.content.iter_any():
        # One byte more than is wanted tells that there are more.
        body += decoder.decode(piece, wanted.maximum_bytes + 1 - len(body))
        if len(body) > wanted.maximum_bytes:
            if wanted.cut:
                return bytes(body[: wanted.maximum_bytes])
            raise AnswerError("too_large", f"more than {wanted.maximum_bytes:,} bytes")
    if not decoder.whole:
        raise AnswerError("incomplete", "the compressed body is cut off")
    # The library reads on after the end and does not understand what it finds; framed as it is the body seems whole.
    if protocol is not None and isinstance(protocol.exception(), HttpProcessingError):
        raise AnswerError("malformed", "the body is longer than its Content-Length")
    return bytes(body)


def _header(response: aiohttp.ClientResponse, name: str) -> str | None:
    """Return a header as text: of bytes that are no UTF-8 each counts as the character of its number."""
    sent = response.headers.get(name)
    if sent is None or sent.isascii():
        return sent
    data = sent.encode("utf-8", "surrogateescape")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def media_type(content_type: str) -> str:
    """Return the media type that a header Content-Type names, without parameters."""
    return content_type.partition(";")[0].strip().lower()


class _Identity:
    whole = True

    def decode(self, data: bytes, most: int) -> bytes:
        return data[:most]


class _Gzip:
    """One gzip member after another (RFC 1952, section 2.2)."""

    def __init__(self) -> None:
        self._member = _new_member()
        self._begun = False

    @property
    def whole(self) -> bool:
        """Whether the last member has ended; a body of no bytes is whole."""
        return self._member.eof or not self._begun

    def decode(self, data: bytes, most: int) -> bytes:
        """Return the next bytes, at most so many; then the rest of the data is not decoded."""
        decoded = bytearray()
        while data and len(decoded) < most:
            self._begun = True
            if self._member.eof:
                self._member = _new_member()
            decoded += self._member.decompress(data, most - len(decoded))
            data = self._member.unused_data or self._member.unconsumed_tail
        return bytes(decoded)


def _new_member() -> zlib._Decompress:
    return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)


def _decoder(encoding: str) -> _Identity | _Gzip:
    match encoding.strip().lower():
        case "" | "identity":
            return _Identity()
        case "gzip" | "x-gzip":
            return _Gzip()
    raise AnswerError("encoding", f"Content-Encoding {encoding}, though only gzip was offered")


@contextmanager
def _explained() -> Iterator[None]:
    """Turn what the network, TLS, HTTP and zlib can do wrong into faults."""
    try:
        yield
    except zlib.error as error:
        raise AnswerError("encoding", str(error)) from error
    except TimeoutError as error:
        raise AnswerError("timeout", str(error)) from error
    except aiohttp.ClientPayloadError as error:
        raise AnswerError("incomplete", str(error)) from error
    except (aiohttp.ClientSSLError, ssl.SSLError) as error:
        raise AnswerError("tls", str(error)) from error
    except aiohttp.ClientConnectorDNSError as error:
        raise AnswerError("unknown_host", str(error)) from error
    except (aiohttp.ServerDisconnectedError, OSError) as error:
        raise AnswerError(_reason(error), str(error)) from error
    except (aiohttp.ClientError, HttpProcessingError, ValueError) as error:
        raise AnswerError("malformed", str(error)) from error


def _reason(error: Exception) -> Reason:
    number = getattr(error, "errno", None)
    if number == errno.ECONNREFUSED:
        return "refused"
    disconnected = isinstance(error, aiohttp.ServerDisconnectedError) or number in (errno.ECONNRESET, errno.EPIPE)
    return "reset" if disconnected else "unreachable"
