"""Decode the body of an HTTP response: chunked, gzip, deflate, Brotli or Zstandard.

The decoders of aiohttp and FastWARC accept a body that is cut off as complete.

Sources: RFC 9112, section 7.1 (chunked); RFC 9110, section 8.4 (content encodings).
"""

import re
import zlib

import pyarrow as pa

CODECS = {"gzip": "gzip", "x-gzip": "gzip", "br": "brotli", "zstd": "zstd"}
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")


class UndecodableError(Exception):
    """A body does not match its headers, or is cut off."""


def decode_body(body: bytes, *, content_encoding: str, transfer_encoding: str = "", limit: int) -> bytes:
    """Return the decoded body, or its first ``limit`` + 1 bytes if it is larger than that.

    Archives often hold decoded bodies with the original headers. So a body that should be chunked but does not begin
    with a chunk is returned as it is, and so is one that cannot be decompressed and looks like markup. Unknown content
    encodings, such as ``utf-8``, are ignored, as in browsers.

    Raises UndecodableError if the body is damaged or cut off.
    """
    if "chunked" in transfer_encoding.lower():
        body = _join_chunks(body)
    for encoding in reversed(content_encoding.lower().split(",")):
        try:
            body = _decompress(body, encoding.strip(), limit)
        except (OSError, zlib.error) as error:
            if not body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
                raise UndecodableError(str(error)) from error
    return body


def decode_header(sent: bytes | None) -> str | None:
    """Return a header as text: UTF-8, or Latin-1 if it is not valid UTF-8."""
    if sent is None:
        return None
    try:
        return sent.decode()
    except UnicodeDecodeError:
        return sent.decode("latin-1")


def _join_chunks(body: bytes) -> bytes:
    chunks, start = list[bytes](), 0
    while match := _CHUNK_SIZE.match(body, start):
        size, start = int(match[1], 16), match.end()
        if not size:
            return b"".join(chunks)
        chunks.append(body[start : start + size])
        start += size + 2
        if body[start - 2 : start] != b"\r\n":
            raise UndecodableError(f"a chunk of {size} bytes does not end where it should")
    if start:
        raise UndecodableError("the last chunk is missing")
    return body


def _decompress(body: bytes, encoding: str, limit: int) -> bytes:
    if encoding in CODECS and body:
        with pa.CompressedInputStream(pa.BufferReader(body), CODECS[encoding]) as stream:
            return bytes(stream.read(limit + 1))
    if encoding != "deflate" or not body:
        return body
    # zlib format (RFC 1950, section 2.2), or the raw deflate that some servers send instead.
    is_zlib = body[0] & 15 == zlib.DEFLATED and int.from_bytes(body[:2], "big") % 31 == 0
    inflate = zlib.decompressobj(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)
    data = inflate.decompress(body, limit + 1)
    if not inflate.eof and len(data) <= limit:
        raise zlib.error("it is cut off")
    return data
