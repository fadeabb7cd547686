"""The archive: WARC 1.0, a member of gzip for each record, with nothing in it that differs from run to run."""

from __future__ import annotations

import struct
import zlib
from http import HTTPStatus
from io import BytesIO
from typing import BinaryIO
from uuid import NAMESPACE_URL, uuid5

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

_DATE = "1998-04-14T00:00:00Z"


class Archive:
    """Responses as records of a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._writer = WARCWriter(file, gzip=True)
        self.records = 0

    def add(self, url: str, body: bytes, *, status: int = 200, content_type: str, location: str = "") -> None:
        """Add a response."""
        headers = [("Content-Type", content_type), ("Content-Length", str(len(body)))]
        if location:
            headers.append(("Location", location))
        line = f"{status} {HTTPStatus(status).phrase}"
        record = self._writer.create_warc_record(
            url,
            "response",
            payload=BytesIO(body),
            length=len(body),
            http_headers=StatusAndHeaders(line, headers, protocol="HTTP/1.1"),
            warc_headers_dict={"WARC-Record-ID": f"<urn:uuid:{uuid5(NAMESPACE_URL, url)}>", "WARC-Date": _DATE},
        )
        self._writer.write_record(record)
        self.records += 1


def picture() -> bytes:
    """Return an image of one pixel (PNG, third edition: signature, then chunks of length, type, data and CRC-32)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\x00\x21\x66\xac")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")
