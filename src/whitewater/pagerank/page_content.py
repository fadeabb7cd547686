"""From an answer to what its page says, or why it says nothing that can be read."""

from __future__ import annotations

from typing import Literal

from whitewater.pagerank.complexity import is_too_complex
from whitewater.pagerank.encodings import decode
from whitewater.pagerank.html_page import HtmlPage, collapsed, read_html
from whitewater.pagerank.pages import Page

Unread = Literal["too_large", "other_type", "binary", "too_complex"]

HTML_TYPES = {"text/html", "application/xhtml+xml"}
PLAIN_TYPE = "text/plain"


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
