"""A page as HTML: its encoding, what it says of itself, and the faults that browsers forgive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

TRAPS = (
    '<!-- <a href="/commented-out.html">not a link</a> -->\n'
    "<script>var text = \"<a href='/in-a-script.html'>not a link</a>\";</script>\n"
)
PICTURE = "/picture.png"


@dataclass(frozen=True)
class Encoding:
    """How a page is encoded, where that is declared, and how often it is so."""

    codec: str
    header: str | None
    meta: str | None
    share: float

    @property
    def content_type(self) -> str:
        """The header Content-Type."""
        return "text/html" + (f"; charset={self.header}" if self.header else "")

    @property
    def name(self) -> str:
        """Codec and where it is declared, as counts have it."""
        return f"{self.codec} by {'header' if self.header else 'meta' if self.meta else 'nothing'}"


ENCODINGS = (
    Encoding("utf-8", "utf-8", "utf-8", 0.45),
    Encoding("utf-8", "UTF-8", None, 0.12),
    Encoding("utf-8", None, "utf-8", 0.15),
    Encoding("iso-8859-1", "ISO-8859-1", None, 0.06),
    Encoding("iso-8859-1", None, "iso-8859-1", 0.06),
    Encoding("windows-1252", "windows-1252", None, 0.04),
    Encoding("windows-1252", None, "Windows-1252", 0.04),
    Encoding("windows-1252", None, None, 0.04),
    Encoding("utf-8", None, None, 0.04),
)
Fault = Literal["none", "unclosed", "unquoted", "cut off"]
FAULTS: tuple[Fault, ...] = ("unclosed", "unquoted", "cut off")


@dataclass(frozen=True)
class Link:
    """An element a."""

    href: str
    text: str
    nofollow: bool = False


@dataclass(frozen=True)
class Page:
    """What a page has; ``base`` and ``canonical`` are URLs, empty where it says nothing of them."""

    title: str
    paragraphs: Sequence[str]
    links: Sequence[Link]
    encoding: Encoding
    base: str = ""
    canonical: str = ""
    nofollow: bool = False
    traps: bool = False
    picture: bool = False
    fault: Fault = "none"


def write_html(page: Page) -> bytes:
    """Return the bytes of a page; what its encoding lacks is written as character references."""
    unclosed = page.fault == "unclosed"
    quote = "" if page.fault == "unquoted" else '"'
    paragraphs = "".join(f"<p>{escape(each)}{'' if unclosed else '</p>'}\n" for each in page.paragraphs)
    picture = f'<img src="{PICTURE}" alt="">\n' if page.picture else ""
    links = "".join(_link(each, quote=quote) + ("\n" if unclosed else "</li>\n") for each in page.links)
    body = (
        f"<h1>{escape(page.title)}</h1>\n{TRAPS if page.traps else ''}{'<b>' if unclosed else ''}{paragraphs}{picture}"
        + (f"<ul>\n{links}</ul>\n" if links else "")
    )
    end = "<p><b>5 < 6 & so on <" if page.fault == "cut off" else "</body>\n</html>\n"
    text = f"<!DOCTYPE html>\n<html>\n<head>\n{_head(page)}</head>\n<body>\n{body}{end}"
    if page.fault == "unquoted":
        text = text.replace("<p>", "<P>").replace("<li>", "<LI>").replace("<a ", "<A ")
    return text.encode(page.encoding.codec, "xmlcharrefreplace")


def _head(page: Page) -> str:
    parts = [
        f'<meta charset="{page.encoding.meta}">' if page.encoding.meta else "",
        f"<title>{escape(page.title)}</title>",
        f'<base href="{page.base}">' if page.base else "",
        f'<link rel="canonical" href="{page.canonical}">' if page.canonical else "",
        '<meta name="robots" content="nofollow">' if page.nofollow else "",
    ]
    return "".join(f"{part}\n" for part in parts if part)


def _link(link: Link, *, quote: str) -> str:
    marked = ' rel="nofollow"' if link.nofollow else ""
    return f"<li><a href={quote}{escape(link.href)}{quote}{marked}>{escape(link.text)}</a>"
