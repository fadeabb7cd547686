"""From an answer to what its page says, or why it says nothing that can be read."""

from __future__ import annotations

from typing import Literal, NamedTuple

from w3lib.encoding import html_to_unicode

from whitewater.pagerank.complexity import is_too_complex
from whitewater.pagerank.html_page import HtmlPage, collapsed, read_html
from whitewater.pagerank.pages import Page

Unread = Literal["too_large", "other_type", "binary", "too_complex"]

HTML_TYPES = {"text/html", "application/xhtml+xml"}
PLAIN_TYPE = "text/plain"
# What pages without a declaration were written in before UTF-8; it has a character for nearly every byte.
FALLBACK = "cp1252"


def read_page(page: Page, *, maximum_bytes: int) -> HtmlPage | Unread:
    """Return what a page says, or why it cannot be read; nothing is raised.

    A page without a type is taken to be HTML. Of plain text, the first line is the title.

    Returns
    -------
    HtmlPage or str
        ``too_large``: more than ``maximum_bytes``; ``other_type``: neither HTML nor plain text, by its header;
        ``binary``: it holds characters of number 0; ``too_complex``: see `whitewater.pagerank.complexity`.
    """
    kind = (page.content_type or "text/html").partition(";")[0].strip().lower()
    if kind not in HTML_TYPES and kind != PLAIN_TYPE:
        return "other_type"
    if len(page.body) > maximum_bytes:
        return "too_large"
    text, _ = decode(page.body, page.content_type)
    if "\0" in text:
        return "binary"
    if kind == PLAIN_TYPE:
        return HtmlPage(title=collapsed(text.lstrip().partition("\n")[0]), text=collapsed(text))
    return "too_complex" if is_too_complex(text) else read_html(text)


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
