"""Servers for tests, on loopback: an emulator of Google Cloud Storage, a plain web server, and faults before either."""

from __future__ import annotations

import functools
import http.client
import http.server
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote, urlsplit
from urllib.request import Request, urlopen

from gcp_storage_emulator.server import create_server

BUCKET = "cohorts"
Fault = Literal["reset", "short", "flip", "hang"] | int  # a number is the HTTP status that is answered


@dataclass
class Faults:
    """What goes wrong: for objects whose name ends with a text, a fault and how often it strikes."""

    planned: dict[str, tuple[Fault, int]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def plan(self, name: str, fault: Fault, times: int = 10**6) -> None:
        self.planned[name] = (fault, times)

    def strike(self, path: str) -> Fault | None:
        with self._lock:
            self.asked[path] += 1
            for name, (fault, times) in self.planned.items():
                if path.endswith(name) and times:
                    self.planned[name] = (fault, times - 1)
                    return fault
        return None

    def requests(self, name: str) -> int:
        """How often objects whose name ends so were asked for."""
        return sum(count for path, count in self.asked.items() if path.endswith(name))


@contextmanager
def faulty(upstream: str, faults: Faults) -> Iterator[str]:
    """Serve what ``upstream`` serves, with faults; yield the URL."""
    handler = functools.partial(_FaultyHandler, urlsplit(upstream).netloc, faults)
    with _serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def web_server(directory: Path) -> Iterator[str]:
    """Serve a directory; yield the URL. It knows no ranges and sends whole files."""
    handler = functools.partial(_QuietHandler, directory=str(directory))
    with _serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def emulator() -> Iterator[str]:
    """Run an emulator of Google Cloud Storage, in memory, with the bucket `BUCKET`; yield its URL."""
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    server = create_server("127.0.0.1", port, in_memory=True, default_bucket=BUCKET)
    server.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()


def upload(endpoint: str, directory: Path) -> None:
    """Put the files of a directory into the emulator's bucket."""
    for path in directory.rglob("*"):
        if path.is_file():
            name = quote(str(path.relative_to(directory)), safe="")
            url = f"{endpoint}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}"
            with urlopen(Request(url, path.read_bytes(), {"Content-Type": "application/octet-stream"})):  # noqa: S310
                pass


@contextmanager
def _serving(server: http.server.HTTPServer) -> Iterator[int]:
    server.timeout = 5
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


class _FaultyHandler(http.server.BaseHTTPRequestHandler):
    timeout = 5

    def __init__(self, upstream: str, faults: Faults, *args: object) -> None:
        self.upstream, self.faults = upstream, faults
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        fault = self.faults.strike(unquote(urlsplit(self.path).path))
        if fault == "hang":
            self.rfile.read(1)  # until the client gives up
        elif fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif isinstance(fault, int):
            self._answer(fault, b'{"error": {"code": %d, "message": "planned"}}' % fault, {})
        else:
            self._forward(fault)

    def _forward(self, fault: Fault | None) -> None:
        with closing(http.client.HTTPConnection(self.upstream, timeout=5)) as connection:
            headers = {name: self.headers[name] for name in ("Range", "Authorization") if name in self.headers}
            connection.request("GET", self.path, headers=headers)
            response = connection.getresponse()
            body = response.read()
        if fault == "flip":
            body = body[: len(body) // 2] + bytes([body[len(body) // 2] ^ 0xFF]) + body[len(body) // 2 + 1 :]
        kept = ("Content-Range", "Content-Type", "ETag", "Last-Modified")
        self._answer(response.status, body, {name: response.headers[name] for name in kept if name in response.headers},
                     cut=len(body) // 2 if fault == "short" else 0)  # fmt: skip

    def _answer(self, status: int, body: bytes, headers: dict[str, str], *, cut: int = 0) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) - cut])

    def log_message(self, format: str, *args: object) -> None:
        pass
