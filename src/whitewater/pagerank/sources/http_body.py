"""Bodies of HTTP answers as archives store them: chunked, and compressed with gzip, deflate, Brotli or Zstandard.

Sources: RFC 9112, section 7.1 (chunked); RFC 9110, section 8.4 (content encodings).
"""

from __future__ import annotations

import zlib

CODECS = {"gzip": "gzip", "x-gzip": "gzip", "br": "brotli", "zstd": "zstd"}
HEXADECIMAL = frozenset(b"0123456789abcdefABCDEF")
LINE_END = b"\r\n"


class UndecodableError(Exception):
    """A body is not what its headers say, or it is cut."""


def decoded(body: bytes, *, transfer_encoding: str, content_encoding: str, limit: int) -> bytes:
    """Return a body without its encodings, and at most one byte more than ``limit``: then it is larger.

    Archives often hold bodies that were decoded before, under headers that were left as they were. So a body whose
    headers say that it is chunked, but which begins with no chunk, is taken as it is, and so is one that cannot be
    decompressed and begins like markup. Content encodings that nobody knows, such as ``utf-8``, are passed over, as
    browsers do.

    Parameters
    ----------
    body
        What follows the headers.
    transfer_encoding, content_encoding
        These headers; empty if there are none.
    limit
        Bytes: what is decoded beyond it is not looked at.

    Raises
    ------
    UndecodableError
        If it is damaged or cut.
    """
    if "chunked" in transfer_encoding.lower():
        body = _without_chunks(body)
    for encoding in reversed(content_encoding.lower().split(",")):
        try:
            body = _decompressed(body, encoding.strip(), limit)
        except (OSError, zlib.error) as error:
            if not body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
                raise UndecodableError(str(error)) from error
    return body


def _without_chunks(body: bytes) -> bytes:
    """Join chunks, each of which is a line with its size in hexadecimal, its bytes, and a line end."""
    if body and _chunk_size(body, 0) is None:
        return body
    chunks, start = [], 0
    while size := _chunk_size(body, start):
        first = body.index(LINE_END, start) + len(LINE_END)
        chunks.append(body[first : first + size])
        start = first + size + len(LINE_END)
        if body[first + size : start] != LINE_END:
            raise UndecodableError(f"a chunk of {size} bytes does not end where it should")
    if body and size is None:
        raise UndecodableError("the last chunk is missing")
    return b"".join(chunks)


def _chunk_size(body: bytes, start: int) -> int | None:
    """Return the size in the line at ``start``; None if it is no such line."""
    line = body[start : start + 64].partition(LINE_END)[0].partition(b";")[0].strip()
    return int(line, 16) if line and HEXADECIMAL.issuperset(line) else None


def _decompressed(body: bytes, encoding: str, limit: int) -> bytes:
    if encoding == "deflate" and body:
        return _inflated(body, limit)
    if encoding not in CODECS or not body:
        return body
    import pyarrow as pa

    with pa.CompressedInputStream(pa.BufferReader(body), CODECS[encoding]) as stream:
        data: bytes = stream.read(limit + 1)
    return data


def _inflated(body: bytes, limit: int) -> bytes:
    """Decompress the format of zlib, or the bare one that some servers take for it."""
    try:
        return _whole(zlib.decompressobj(), body, limit)
    except zlib.error:
        return _whole(zlib.decompressobj(-zlib.MAX_WBITS), body, limit)


def _whole(inflate: zlib._Decompress, body: bytes, limit: int) -> bytes:
    data = inflate.decompress(body, limit + 1)
    if not inflate.eof and len(data) <= limit:
        raise zlib.error("it is cut")
    return data
