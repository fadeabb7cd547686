"""From the bytes of a page to text: the encoding that a browser would take."""

from __future__ import annotations

from typing import NamedTuple

from w3lib.encoding import html_to_unicode

# What pages without a declaration were written in before UTF-8; it has a character for nearly every byte.
FALLBACK = "cp1252"


class Decoded(NamedTuple):
    """A text, and the name that Python has for the encoding it was in."""

    text: str
    encoding: str


def decode(body: bytes, content_type: str | None) -> Decoded:
    """Decode a page by its byte order mark, its header, what it declares within, or else what its bytes look like.

    Without a declaration that is known it is UTF-8 where the bytes are valid UTF-8, else windows-1252. Bytes that the
    encoding does not have become U+FFFD, also where a declaration is wrong, as in browsers. Nothing is raised.

    Source: HTML Standard (WHATWG), section "Determining the character encoding"; labels mean what the Encoding Standard
    says, so that ISO-8859-1 is windows-1252 and Shift_JIS is windows-31j.
    """
    try:
        encoding, text = html_to_unicode(content_type, body, auto_detect_fun=_by_its_bytes)
    except (LookupError, ValueError):
        # A declaration may name a codec that is none of characters, such as base64.
        encoding = _by_its_bytes(body)
        text = body.decode(encoding, "replace")
    # Some codecs, such as raw-unicode-escape, give half characters, which no text may hold.
    return Decoded(text if text.isascii() else text.encode("utf-8", "replace").decode(), encoding)


def _by_its_bytes(body: bytes) -> str:
    try:
        body.decode()
    except UnicodeDecodeError:
        return FALLBACK
    return "utf-8"
