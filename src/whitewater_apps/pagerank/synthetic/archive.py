"""The archive: WARC 1.0, a member of gzip for each record, with nothing in it that differs from run to run."""

from __future__ import annotations

import zlib
from base64 import b32encode
from hashlib import sha1
from http import HTTPStatus
from typing import BinaryIO
from uuid import NAMESPACE_URL, uuid5

_DATE = "1998-04-14T00:00:00Z"


class Archive:
    """Responses as records of a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.records = 0

    def add(self, url: str, body: bytes, *, status: int = 200, content_type: str, location: str = "") -> None:
        """Add a response."""
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            f"Content-Type: {content_type}",
            f"Content-Length: {len(body)}",
            *([f"Location: {location}"] if location else []),
        ]
        block = _head(lines) + body
        lines = [
            "WARC/1.0",
            f"WARC-Record-ID: <urn:uuid:{uuid5(NAMESPACE_URL, url)}>",
            f"WARC-Date: {_DATE}",
            "WARC-Type: response",
            f"WARC-Target-URI: {url}",
            f"WARC-Payload-Digest: {_digest(body)}",
            f"WARC-Block-Digest: {_digest(block)}",
            "Content-Type: application/http; msgtype=response",
            f"Content-Length: {len(block)}",
        ]
        self._file.write(zlib.compress(_head(lines) + block + b"\r\n\r\n", 9, wbits=16 + zlib.MAX_WBITS))
        self.records += 1


def _head(lines: list[str]) -> bytes:
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()


def _digest(data: bytes) -> str:
    return f"sha1:{b32encode(sha1(data, usedforsecurity=False).digest()).decode()}"
