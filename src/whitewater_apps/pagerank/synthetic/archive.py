"""The archive: WARC 1.0, a member of gzip for each record, with nothing in it that differs from run to run."""

from __future__ import annotations

import zlib
from base64 import b32encode
from collections.abc import Mapping
from hashlib import sha1
from http import HTTPStatus
from uuid import NAMESPACE_URL, uuid5

_DATE = "1998-04-14T00:00:00Z"


def record_of(url: str, body: bytes, *, status: int = 200, content_type: str, location: str = "") -> bytes:
    """Return the record of a response."""
    response = {"Content-Type": content_type, "Content-Length": len(body)}
    response |= {"Location": location} if location else {}
    block = _head(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", response) + body
    record = {
        "WARC-Record-ID": f"<urn:uuid:{uuid5(NAMESPACE_URL, url)}>",
        "WARC-Date": _DATE,
        "WARC-Type": "response",
        "WARC-Target-URI": url,
        "WARC-Payload-Digest": _digest(body),
        "WARC-Block-Digest": _digest(block),
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": len(block),
    }
    return zlib.compress(_head("WARC/1.0", record) + block + b"\r\n\r\n", 9, wbits=16 + zlib.MAX_WBITS)


def _head(first: str, fields: Mapping[str, object]) -> bytes:
    return "\r\n".join([first, *(f"{name}: {value}" for name, value in fields.items()), "", ""]).encode()


def _digest(data: bytes) -> str:
    return f"sha1:{b32encode(sha1(data, usedforsecurity=False).digest()).decode()}"
