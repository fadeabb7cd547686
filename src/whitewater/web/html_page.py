"""What a page of HTML says: title, text, and what it links to; parsed as browsers parse it, however broken it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from whitewater.web.urls import normalize, refusal

Attributes = Mapping[str, str | None]

# What separates words even without a blank, as ends of lines do.
BLOCKS: Final = frozenset(
    re.findall(
        r"\w+",
        "address article aside blockquote body br button caption center dd details dialog dir div dl dt fieldset "
        "figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav "
        "ol optgroup option p pre search section select summary table tbody td textarea tfoot th thead tr ul",
    )
)
# What is not shown by a browser that runs scripts.
HIDDEN: Final = frozenset({"iframe", "noembed", "noframes", "noscript", "script", "style", "template", "title"})
TEXT: Final = "-text"

_REFRESH_AT_ONCE = re.compile(r"""\s*0*(?:\.0*)?\s*[;,]\s*url\s*=\s*(?:"([^"]*)|'([^']*)|(.*))""", re.I | re.S)


class Href(NamedTuple):
    """Where a link leads, as it is written, and whether it is marked rel=nofollow."""

    url: str
    nofollow: bool


@dataclass
class HtmlPage:
    """What a page holds; addresses are as they are written, relative to the page's own or to ``base``."""

    title: str = ""
    text: str = ""
    hrefs: list[Href] = field(default_factory=list)
    base: str | None = None
    canonical: str | None = None
    refresh: str | None = None
    nofollow: bool = False


@dataclass(frozen=True)
class PageLinks:
    """Where the links of a page lead, each target once and in normal form, and counts of those left out by reason."""

    targets: list[str]
    left_out: dict[str, int]


def read_html(html: str) -> HtmlPage:
    """Parse HTML. Any text is a page of HTML; nothing is raised.

    The title is that of the first ``title`` in the head; the text is what a browser that runs scripts shows of the
    body, words of different blocks apart and white space collapsed. Links are those of ``a`` and ``area``.
    """
    tree = LexborHTMLParser(html.encode("utf-8", "replace"), options=LexborDocumentOptions.WO_EVENTS, scripting=True)
    page = HtmlPage()
    pieces: list[str] = []
    for tag, node in _walk(tree.root):
        if tag == TEXT:
            pieces.append(node.text_content or "")
        elif tag in BLOCKS:
            pieces.append(" ")
        elif tag in _READERS:
            _READERS[tag](page, node)
    page.text = collapsed("".join(pieces))
    return page


def page_links(page: HtmlPage, url: str, *, nofollow: bool, drop_parameters: Collection[str] = ()) -> PageLinks:
    """Return the links of a page whose own URL in normal form is given, parameters dropped as `urls.normalize` does.

    Left out are those that are ``repeated``, marked ``nofollow`` or on a page that is, if so wanted, of another
    ``scheme``, ``invalid`` or ``too_long``.
    """
    base = base_of(page, url)
    targets: dict[str, None] = {}
    left_out: dict[str, int] = {}
    for href in page.hrefs:
        reason: str | None = None
        if nofollow and (page.nofollow or href.nofollow):
            reason = "nofollow"
        elif (target := normalize(href.url, base, drop_parameters)) is None:
            reason = refusal(href.url, base, drop_parameters)
        elif target in targets:
            reason = "repeated"
        else:
            targets[target] = None
        if reason:
            left_out[reason] = left_out.get(reason, 0) + 1
    return PageLinks(list(targets), left_out)


def base_of(page: HtmlPage, url: str) -> str:
    """Return what the addresses on a page are relative to, in normal form."""
    return url if page.base is None else normalize(page.base, url) or url


def collapsed(text: str) -> str:
    """Return a text with one blank for each run of white space, and none around it."""
    return " ".join(text.split())


def _walk(root: LexborNode | None) -> Iterator[tuple[str, LexborNode]]:
    """Yield tag and node of all that is shown, in the order of the page; blocks once more where they end.

    Without recursion, since elements may be nested by the thousand.
    """
    opened: list[tuple[str, LexborNode]] = []
    node = root
    while node is not None:
        tag = node.tag or ""
        yield tag, node
        child = None if tag == TEXT or tag in HIDDEN else node.first_child
        if child is not None:
            opened.append((tag, node))
            node = child
            continue
        following = node.next
        while following is None and opened:
            tag, node = opened.pop()
            if tag in BLOCKS:
                yield tag, node
            following = node.next
        node = following


def _read_title(page: HtmlPage, node: LexborNode) -> None:
    parent = node.parent
    if not page.title and parent is not None and parent.tag == "head":
        page.title = collapsed(node.text())


def _read_link(page: HtmlPage, node: LexborNode) -> None:
    attributes = node.attributes
    if "href" in attributes:
        page.hrefs.append(Href(attributes["href"] or "", "nofollow" in _words(attributes, "rel")))


def _read_base(page: HtmlPage, node: LexborNode) -> None:
    if page.base is None:
        page.base = node.attributes.get("href")


def _read_relation(page: HtmlPage, node: LexborNode) -> None:
    attributes = node.attributes
    parent = node.parent
    # In the body it may be what a visitor wrote.
    if (
        page.canonical is None
        and "canonical" in _words(attributes, "rel")
        and parent is not None
        and parent.tag == "head"
    ):
        page.canonical = attributes.get("href")


def _read_meta(page: HtmlPage, node: LexborNode) -> None:
    attributes = node.attributes
    if "robots" in _words(attributes, "name"):
        page.nofollow = page.nofollow or not {"nofollow", "none"}.isdisjoint(_words(attributes, "content"))
    if "refresh" in _words(attributes, "http-equiv"):
        found = _REFRESH_AT_ONCE.match(attributes.get("content") or "")
        page.refresh = page.refresh or (found and next(filter(None, found.groups()), None))


def _words(attributes: Attributes, name: str) -> list[str]:
    value = attributes.get(name)
    return value.lower().replace(",", " ").split() if value else []


_READERS: Final[Mapping[str, Callable[[HtmlPage, LexborNode], None]]] = {
    "a": _read_link,
    "area": _read_link,
    "base": _read_base,
    "link": _read_relation,
    "meta": _read_meta,
    "title": _read_title,
}
