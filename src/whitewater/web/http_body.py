"""Bodies of HTTP answers as servers send and archives store them: chunked, and gzip, deflate, Brotli or Zstandard.

The decoders of HTTP libraries (aiohttp, FastWARC) take the end of what is cut off for the end of the body.

Sources: RFC 9112, section 7.1 (chunked); RFC 9110, section 8.4 (content encodings).
"""

import re
import zlib

import pyarrow as pa

CODECS = {"gzip": "gzip", "x-gzip": "gzip", "br": "brotli", "zstd": "zstd"}
_LINE_END = b"\r\n"
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")


class UndecodableError(Exception):
    """A body is not what its headers say, or it is cut."""


def decoded(body: bytes, *, content_encoding: str, transfer_encoding: str = "", limit: int) -> bytes:
    """Return a body without its encodings, and at most one byte more than ``limit``: then it is larger.

    Archives often hold bodies that were decoded before, under headers that were left as they were. So a body whose
    headers say that it is chunked, but which begins with no chunk, is taken as it is, and so is one that cannot be
    decompressed and begins like markup. Content encodings that nobody knows, such as ``utf-8``, are passed over, as
    browsers do.

    Raises UndecodableError if it is damaged or cut.
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


def header_text(sent: bytes | None) -> str | None:
    """Return a header, if there is one, as text: of bytes that are not UTF-8 each is the character of its number."""
    if sent is None:
        return None
    try:
        return sent.decode()
    except UnicodeDecodeError:
        return sent.decode("latin-1")


def _without_chunks(body: bytes) -> bytes:
    """Join chunks, each of which is a line with its size in hexadecimal, its bytes, and a line end."""
    chunks, start = list[bytes](), 0
    while match := _CHUNK_SIZE.match(body, start):
        size, start = int(match[1], 16), match.end()
        if not size:
            return b"".join(chunks)
        chunks.append(body[start : start + size])
        start += size + len(_LINE_END)
        if body[start - len(_LINE_END) : start] != _LINE_END:
            raise UndecodableError(f"a chunk of {size} bytes does not end where it should")
    if start:
        raise UndecodableError("the last chunk is missing")
    return body


def _decompressed(body: bytes, encoding: str, limit: int) -> bytes:
    if encoding in CODECS and body:
        with pa.CompressedInputStream(pa.BufferReader(body), CODECS[encoding]) as stream:
            return bytes(stream.read(limit + 1))
    if encoding != "deflate" or not body:
        return body
    # The format of zlib (RFC 1950, section 2.2), or the bare one that some servers take for it.
    is_zlib = body[0] & 15 == zlib.DEFLATED and int.from_bytes(body[:2], "big") % 31 == 0
    inflate = zlib.decompressobj(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)
    data = inflate.decompress(body, limit + 1)
    if not inflate.eof and len(data) <= limit:
        raise zlib.error("it is cut")
    return data
