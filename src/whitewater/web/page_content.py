"""Extract title, text and links from a page. HTML is parsed as in browsers, however broken it is."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode
from w3lib.encoding import html_to_unicode, http_content_type_encoding

from whitewater.web.pages import Page
from whitewater.web.urls import REFUSALS, normal_or_refusal, normalize

SkipReason = Literal["too_large", "other_type", "binary", "too_complex"]

MEDIA_TYPES = frozenset({"text/html", "application/xhtml+xml", "text/plain"})

# Comparisons with an open element or an attribute, about 3 ns each: 5 s at most.
MAXIMUM_COMPARISONS = 1_500_000_000
# With no more tags or attributes than this, a page is never too complex.
HARMLESS = int(MAXIMUM_COMPARISONS**0.5)

# Elements without content, and those that the next one of their kind closes: they do not nest.
_NEVER_DEEP = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "colgroup", "dd", "dt", "embed", "frame", "hr", "img", "input",
    "keygen", "li", "link", "meta", "optgroup", "option", "p", "param", "rp", "rt", "source", "tbody", "td", "tfoot",
    "th", "thead", "tr", "track", "wbr",
})  # fmt: skip
# No backtracking, so that the time is linear in the text.
_TAG = re.compile(
    r"<!--.*?(?:--!?>|\Z)"
    r"|<(script|style|textarea|title|xmp|iframe|noembed|noframes|noscript)(?=[\s/>]).*?(?:</\1|\Z)"
    r"""|<(/?)([a-z][^\s/><]*+)(?:[^<>"']++|"[^"]*+"|'[^']*+')*+""",
    re.IGNORECASE | re.DOTALL,
)
_MARK = re.compile(r"<(/?)(b|big|code|em|font|i|s|small|strike|strong|tt|u)(?=[\s/>])([^>]*+)")
# Elements that a parser may reopen, 100 bytes and 200 ns each. The bound that is compared with it is far too high for
# most pages.
MAXIMUM_REOPENED = 40_000_000
_LONG_TAG = re.compile(rf"<[A-Za-z][^<>]{{{2 * HARMLESS},}}")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_ATTRIBUTE = re.compile(r"""(?<=[\s/"'])[^\s/"'=]""")

# Elements that separate words even without white space.
BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "body", "br", "button", "caption", "center", "dd", "details", "dialog",
    "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frame", "frameset", "h1", "h2",
    "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "ol", "optgroup",
    "option", "p", "pre", "search", "section", "select", "summary", "table", "tbody", "td", "textarea", "tfoot", "th",
    "thead", "tr", "ul",
})  # fmt: skip
# Elements that a browser with scripts enabled does not show.
HIDDEN: Final = frozenset({"iframe", "noembed", "noframes", "noscript", "script", "style", "template", "title"})

_REFRESH_AT_ONCE = re.compile(r"""\s*+0*+(?:\.0*+)?\s*+[;,]\s*+url\s*+=\s*+(?:"([^"]*)|'([^']*)|(.*))""", re.I | re.S)


@dataclass(frozen=True)
class HtmlPage:
    """The content of a page. URLs are as written: relative to ``base``, or to the URL of the page.

    ``hrefs`` are the targets of links, each with whether the link or the page is marked nofollow.
    """

    title: str = ""
    text: str = ""
    hrefs: Sequence[tuple[str, bool]] = ()
    base: str | None = None
    canonical: str | None = None
    refresh: str | None = None


def read_page(page: Page, *, maximum_bytes: int) -> HtmlPage | SkipReason:
    """Return the content of a page, or why it is skipped. Never raises.

    A page without a content type is HTML. The title of plain text is its first line. ``other_type`` is a page that is
    neither HTML nor plain text; ``binary`` one with null characters; for ``too_complex`` see `is_too_complex`.
    """
    kind = (page.content_type or "text/html").partition(";")[0].strip().lower()
    if kind not in MEDIA_TYPES:
        return "other_type"
    if len(page.body) > maximum_bytes:
        return "too_large"
    text = decode(page.body, page.content_type)
    if "\0" in text:
        return "binary"
    if kind == "text/plain":
        return HtmlPage(title=collapse_whitespace(text.lstrip().partition("\n")[0]), text=collapse_whitespace(text))
    return "too_complex" if is_too_complex(text) else read_html(text)


def read_html(html: str) -> HtmlPage:
    """Parse HTML. Any text is valid HTML: never raises.

    The text is what a browser with scripts enabled shows, with blocks separated and white space collapsed. Links are
    those of ``a`` and ``area``.
    """
    tree = LexborHTMLParser(html.encode("utf-8", "replace"), options=LexborDocumentOptions.WO_EVENTS, scripting=True)
    titles = (collapse_whitespace(node.text()) for node in tree.css("title:not(svg title)"))
    refreshes = map(_refresh_at_once, tree.css('meta[http-equiv="refresh" i]'))
    robots = {word for node in tree.css('meta[name="robots" i]') for word in _words(node, "content")}
    is_marked = not robots.isdisjoint({"nofollow", "none"})
    return HtmlPage(
        title=next(filter(None, titles), ""),
        text=_visible_text(tree.root),
        hrefs=[(node.attributes["href"] or "", is_marked or "nofollow" in _words(node, "rel"))
               for node in _with_href(tree, "a[href], area[href]")],
        base=_first_href(tree, "base[href]"),
        # Only in the head: the body may hold what visitors wrote.
        canonical=_first_href(tree, 'head > link[rel~="canonical" i][href]'),
        refresh=next(filter(None, refreshes), None),
    )  # fmt: skip


def page_links(
    page: HtmlPage, url: str, *, nofollow: bool, drop_parameters: Collection[str] = ()
) -> tuple[list[str], Counter[str]]:
    """Return the unique link targets of a page in normal form, and the number of skipped links by reason.

    ``url`` is that of the page, in normal form. With ``nofollow``, links that are marked so, or on a page that is, are
    skipped. The other reasons are ``repeated`` and the `REFUSALS`.
    """
    base = base_of(page, url)
    targets, skipped = dict[str, None](), Counter[str]()
    for href, is_marked in page.hrefs:
        if nofollow and is_marked:
            skipped["nofollow"] += 1
        elif (target := normal_or_refusal(href, base, drop_parameters)) in REFUSALS:
            skipped[target] += 1
        elif target in targets:
            skipped["repeated"] += 1
        else:
            targets[target] = None
    return list(targets), skipped


def base_of(page: HtmlPage, url: str) -> str:
    """Return the base URL of a page in normal form."""
    return url if page.base is None else normalize(page.base, url) or url


def collapse_whitespace(text: str) -> str:
    """Strip a text, and replace each run of white space by one blank."""
    return " ".join(text.split())


def decode(body: bytes, content_type: str | None) -> str:
    """Decode a page by its byte order mark, its header, its meta tags, or else by its bytes. Never raises.

    Without a known declaration, valid UTF-8 is UTF-8 and anything else windows-1252. Invalid bytes become U+FFFD, as in
    browsers.

    Source: HTML Standard (WHATWG), section "Determining the character encoding"; labels are those of the Encoding
    Standard, so ISO-8859-1 means windows-1252 and Shift_JIS means windows-31j.
    """
    try:
        encoding, text = html_to_unicode(content_type, body, auto_detect_fun=_guess_encoding)
        is_marked = body.startswith((BOM_UTF16_BE, BOM_UTF16_LE))
        if encoding.startswith("utf-16") and not (is_marked or http_content_type_encoding(content_type)):
            text = body.decode("utf-8", "replace")  # meta tags that can be read as ASCII are not in UTF-16
    except (LookupError, ValueError):
        # A page may declare a codec that does not decode to text, such as base64.
        text = body.decode(_guess_encoding(body), "replace")
    # Some codecs, such as raw-unicode-escape, produce lone surrogates.
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def is_too_complex(html: str) -> bool:
    """Return whether the depth of tags or the number of attributes could make parsing take more than seconds.

    At nearly every tag, an HTML parser looks through all open elements, and at every attribute through all attributes
    of the tag. So a page with a million unclosed tags or attributes would take days. Browsers limit the depth to 512.
    """
    long_tags = _LONG_TAG.finditer(html) if len(html) > 2 * HARMLESS else ()
    if any(len(_ATTRIBUTE.findall(_QUOTED.sub('""', tag[0]))) > HARMLESS for tag in long_tags):
        return True
    count = html.count("<")
    if 3 * count**2 > MAXIMUM_REOPENED and _marks_reopened(html) * count > MAXIMUM_REOPENED:
        return True
    if count <= HARMLESS:
        return False
    deepest = depth = 0
    unclosed: Counter[str] = Counter()
    tags = _TAG.findall(html)
    for _, closing, tag in tags:
        name = tag.lower()
        # A closing tag without an open one has no effect.
        if name and name not in _NEVER_DEEP and (not closing or unclosed[name]):
            change = -1 if closing else 1
            unclosed[name] += change
            depth += change
            deepest = max(deepest, depth)
    return len(tags) * deepest > MAXIMUM_COMPARISONS


def _marks_reopened(html: str) -> int:
    """Return a bound of the unclosed formatting elements, up to three alike, which a parser reopens at later tags."""
    kinds, unclosed, most = set[str](), Counter[str](), 0
    for closing, name, attributes in _MARK.findall(html.lower()):
        kinds.add(name + attributes)
        unclosed[name] = max(0, unclosed[name] + (-1 if closing else 1))
        most = max(most, unclosed.total())
    return min(3 * len(kinds), most)


def _visible_text(root: LexborNode | None) -> str:
    """Return the visible text, without recursion, since thousands of elements may be nested."""
    pieces, node = list[str](), root
    open_tags: list[tuple[str | None, LexborNode | None]] = []  # each with its next sibling
    while node is not None or open_tags:
        if node is None:
            tag, node = open_tags.pop()
            pieces += [" "] if tag in BLOCKS else []
            continue
        tag, following = node.tag, node.next
        if tag == "-text":
            pieces.append(node.text_content or "")
        elif tag not in HIDDEN:
            pieces += [" "] if tag in BLOCKS else []
            open_tags.append((tag, following))
            following = node.first_child
        node = following
    return collapse_whitespace("".join(pieces))


def _first_href(tree: LexborHTMLParser, selector: str) -> str | None:
    return next((node.attributes["href"] for node in _with_href(tree, selector)), None)


def _with_href(tree: LexborHTMLParser, selector: str) -> Iterator[LexborNode]:
    """Yield the elements of a selector that have the attribute itself: ``[href]`` selects SVG's ``xlink:href``, too."""
    return (node for node in tree.css(selector) if "href" in node.attributes)


def _refresh_at_once(node: LexborNode) -> str | None:
    match = _REFRESH_AT_ONCE.match(node.attributes.get("content") or "")
    return next(filter(None, match.groups()), None) if match else None


def _words(node: LexborNode, attribute: str) -> list[str]:
    return (node.attributes.get(attribute) or "").lower().replace(",", " ").split()


def _guess_encoding(body: bytes) -> str:
    try:
        body.decode()
    except UnicodeDecodeError:
        return "cp1252"  # the usual encoding before UTF-8; it has a character for nearly every byte
    return "utf-8"
