"""From an answer to what its page says, or why it says nothing that can be read."""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal

from w3lib.encoding import html_to_unicode

from whitewater.web.html_page import HtmlPage, collapsed, read_html
from whitewater.web.pages import Page

Unread = Literal["too_large", "other_type", "binary", "too_complex"]

HTML_TYPES = {"text/html", "application/xhtml+xml"}
PLAIN_TYPE = "text/plain"
# What pages without a declaration were written in before UTF-8; it has a character for nearly every byte.
FALLBACK = "cp1252"

# Looks at an open element or an attribute take about 3 ns each: 5 s at most.
MAXIMUM_LOOKS = 1_500_000_000
# Tags or attributes that are few enough whatever they are.
HARMLESS = int(MAXIMUM_LOOKS**0.5)

# Elements that hold nothing, and those that the next of their kind ends, which nest no deeper than what holds them.
_NEVER_DEEP = frozenset(
    re.findall(
        r"\w+",
        "area base basefont bgsound br col colgroup dd dt embed frame hr img input keygen li link meta option optgroup "
        "p param rp rt source tbody td tfoot th thead tr track wbr",
    )
)
# Nothing here goes back to try again, so that the time is in proportion to the text, whatever it is.
_TAG = re.compile(
    r"<!--.*?(?:--!?>|\Z)"
    r"|<(script|style|textarea|title|xmp|iframe|noembed|noframes|noscript)(?=[\s/>]).*?(?:</\1|\Z)"
    r"""|<(/?)([a-z][^\s/><]*+)(?:[^<>"']++|"[^"]*+"|'[^']*+')*+""",
    re.IGNORECASE | re.DOTALL,
)
_LONG_TAG = re.compile(rf"<[A-Za-z][^<>]{{{2 * HARMLESS},}}")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_ATTRIBUTE = re.compile(r"""(?<=[\s/"'])[^\s/"'=]""")


def read_page(page: Page, *, maximum_bytes: int) -> HtmlPage | Unread:
    """Return what a page says, or why it cannot be read; nothing is raised.

    A page without a type is taken to be HTML. Of plain text, the first line is the title. ``too_large``: more than
    ``maximum_bytes``; ``other_type``: neither HTML nor plain text, by its header; ``binary``: it holds characters of
    number 0; ``too_complex``: see `is_too_complex`.
    """
    kind = (page.content_type or "text/html").partition(";")[0].strip().lower()
    if kind not in HTML_TYPES and kind != PLAIN_TYPE:
        return "other_type"
    if len(page.body) > maximum_bytes:
        return "too_large"
    text = decode(page.body, page.content_type)
    if "\0" in text:
        return "binary"
    if kind == PLAIN_TYPE:
        return HtmlPage(title=collapsed(text.lstrip().partition("\n")[0]), text=collapsed(text))
    return "too_complex" if is_too_complex(text) else read_html(text)


def decode(body: bytes, content_type: str | None) -> str:
    """Decode a page by its byte order mark, its header, what it declares within, or else what its bytes look like.

    Without a declaration that is known it is UTF-8 where the bytes are valid UTF-8, else windows-1252. Bytes that the
    encoding does not have become U+FFFD, also where a declaration is wrong, as in browsers. Nothing is raised.

    Source: HTML Standard (WHATWG), section "Determining the character encoding"; labels mean what the Encoding Standard
    says, so that ISO-8859-1 is windows-1252 and Shift_JIS is windows-31j.
    """
    try:
        _, text = html_to_unicode(content_type, body, auto_detect_fun=_by_its_bytes)
    except (LookupError, ValueError):
        # A declaration may name a codec that is none of characters, such as base64.
        text = body.decode(_by_its_bytes(body), "replace")
    # Some codecs, such as raw-unicode-escape, give half characters, which no text may hold.
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _by_its_bytes(body: bytes) -> str:
    try:
        body.decode()
    except UnicodeDecodeError:
        return FALLBACK
    return "utf-8"


def is_too_complex(html: str) -> bool:
    """Return whether parsing could take longer than some seconds for the depth of tags or the number of attributes.

    A parser of HTML looks through the elements that are open at nearly every tag, and through the attributes of a tag
    at each of them; so a page of a million tags that are never closed, or of attributes, would take days. Browsers stop
    at a depth of 512 and put what is deeper beside it. Here such a page, which no one wrote, is refused.
    """
    return _too_many_attributes(html) or _too_deep(html)


def _too_deep(html: str) -> bool:
    if html.count("<") <= HARMLESS:
        return False
    tags = deepest = depth = 0
    unclosed: Counter[str] = Counter()
    for _, closing, name in _TAG.findall(html):
        tags += 1
        change = _change(unclosed, name.lower(), closing=bool(closing))
        depth += change
        deepest = max(deepest, depth)
    return tags * deepest > MAXIMUM_LOOKS


def _change(unclosed: Counter[str], name: str, *, closing: bool) -> int:
    """Return by how much a tag can change the depth; a closing tag for which nothing is open does not."""
    if not name or name in _NEVER_DEEP or (closing and not unclosed[name]):
        return 0
    change = -1 if closing else 1
    unclosed[name] += change
    return change


def _too_many_attributes(html: str) -> bool:
    if len(html) < 2 * HARMLESS:
        return False
    return any(len(_ATTRIBUTE.findall(_QUOTED.sub('""', found[0]))) > HARMLESS for found in _LONG_TAG.finditer(html))
