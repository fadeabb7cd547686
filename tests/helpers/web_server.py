"""A web server on loopback that says, byte by byte, what a test tells it to say, and notes what it was asked."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto

# What a client sends first that speaks TLS.
TLS_HANDSHAKE = b"\x16"


class Act(Enum):
    """What a server can do besides sending bytes."""

    RESET = auto()  # end the connection with RST in place of FIN
    HANG = auto()  # say nothing, until the server closes
    TRICKLE = auto()  # send a byte, again and again, until the client is gone
    FLOOD = auto()  # send as much as the client takes


# Bytes are sent, numbers are pauses in seconds, and functions are called.
Reply = Sequence[bytes | float | Act | Callable[[], object]]


@dataclass(frozen=True)
class Request:
    """A request as it came: path with query, headers with names in lower case, and when, in seconds."""

    path: str
    headers: Mapping[str, str]
    time: float


@dataclass
class Site:
    """Replies by path; requests in the order they came, and how many were answered at once at most."""

    replies: dict[str, list[Reply]] = field(default_factory=dict)
    otherwise: Callable[[str], bytes] = lambda path: response("<p>not found", status=404)
    requests: list[Request] = field(default_factory=list)
    at_once: int = 0
    url: str = ""

    def put(self, path: str, *replies: bytes | Reply) -> None:
        """Answer a path with these replies, one for each request; the last one stays."""
        self.replies[path] = [[reply] if isinstance(reply, bytes) else reply for reply in replies]

    def reply_to(self, request: Request) -> Reply:
        """Return what a request is answered."""
        replies = self.replies.get(request.path) or [[self.otherwise(request.path)]]
        return replies.pop(0) if len(replies) > 1 else replies[0]

    def asked(self) -> Counter[str]:
        """How often each path was asked for, robots.txt apart."""
        return Counter(each.path for each in self.requests if each.path != "/robots.txt")

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")


def response(
    body: bytes | str = b"", *, status: int = 200, content_type: str | None = "text/html; charset=utf-8", **headers: str
) -> bytes:
    """Return an answer that is as it should be; ``Retry_After="3"`` gives the header Retry-After."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Told", f"Content-Length: {len(data)}"]
    lines += [f"Content-Type: {content_type}"] if content_type else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + data


def page(*links: str, text: str = "a page") -> bytes:
    """Return an answer with an HTML page that has these links."""
    anchors = " ".join(f'<a href="{link}">{link}</a>' for link in links)
    return response(f"<!doctype html><title>{text}</title><p>{text} {anchors}</p>")


def redirect(location: str, status: int = 302) -> bytes:
    """Return an answer that leads elsewhere."""
    return response("moved", status=status, Location=location)


@contextmanager
def serving(site: Site, *, host: str = "127.0.0.1") -> Iterator[Site]:
    """Serve a site on a free port of 127.0.0.1; sets its URL, in which the host is named so."""
    with _Server(site) as server:
        site.url = f"http://{host}:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield site
        finally:
            server.closing.set()
            server.shutdown()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, site: Site) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.site = site
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self.active = 0

    def begin(self, request: Request) -> Reply:
        """Note a request and return what is answered."""
        with self.lock:
            self.active += 1
            self.site.at_once = max(self.site.at_once, self.active)
            self.site.requests.append(request)
            return self.site.reply_to(request)

    def end(self) -> None:
        with self.lock:
            self.active -= 1

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that are gone: some of these tests cut the line."""


class _Handler(socketserver.StreamRequestHandler):
    """Answers one request of a connection, and closes it."""

    server: _Server

    def handle(self) -> None:
        if self.connection.recv(1, socket.MSG_PEEK) == TLS_HANDSHAKE:
            self.wfile.write(response(status=400))
            return
        line = self.rfile.readline().decode("latin-1").split(" ")
        if len(line) != 3:  # a client that is gone
            return
        head = iter(lambda: self.rfile.readline().decode("latin-1").strip(), "")
        headers = {name.strip().lower(): value.strip() for name, _, value in (each.partition(":") for each in head)}
        reply = self.server.begin(Request(line[1], headers, time.monotonic()))
        with suppress(OSError):
            self._reply(reply[:-1])
            # With the last bytes the client is free to ask for another page.
            self.server.end()
            self._reply(reply[-1:])

    def _reply(self, reply: Reply) -> None:
        for each in reply:
            if isinstance(each, bytes):
                self.wfile.write(each)
            elif isinstance(each, Act):
                self._act(each)
            elif callable(each):
                each()
            else:
                self.server.closing.wait(each)

    def _act(self, act: Act) -> None:
        if act is Act.RESET:
            # No linger: closing sends RST.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        sent, pause = {Act.HANG: (b"", 0.01), Act.TRICKLE: (b"x", 0.01), Act.FLOOD: (b"x" * 65_536, 0.0)}[act]
        while not self.server.closing.wait(pause):
            self.wfile.write(sent)
