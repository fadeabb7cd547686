"""From an answer to what its page says (title, text and links), or why it says nothing that can be read.

HTML is parsed as browsers parse it, however broken it is.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode
from w3lib.encoding import html_to_unicode

from whitewater.web.pages import Page
from whitewater.web.urls import REFUSALS, normal_or_refusal, normalize

Unread = Literal["too_large", "other_type", "binary", "too_complex"]

MEDIA_TYPES = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
# What pages without a declaration were written in before UTF-8; it has a character for nearly every byte.
FALLBACK = "cp1252"

# Looks at an open element or an attribute take about 3 ns each: 5 s at most.
MAXIMUM_LOOKS = 1_500_000_000
# Tags or attributes that are few enough whatever they are.
HARMLESS = int(MAXIMUM_LOOKS**0.5)

# Elements that hold nothing, and those that the next of their kind ends, which nest no deeper than what holds them.
_NEVER_DEEP = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "colgroup", "dd", "dt", "embed", "frame", "hr", "img", "input",
    "keygen", "li", "link", "meta", "optgroup", "option", "p", "param", "rp", "rt", "source", "tbody", "td", "tfoot",
    "th", "thead", "tr", "track", "wbr",
})  # fmt: skip
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

# What separates words even without a blank, as ends of lines do.
BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "body", "br", "button", "caption", "center", "dd", "details", "dialog",
    "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frame", "frameset", "h1", "h2",
    "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "ol", "optgroup",
    "option", "p", "pre", "search", "section", "select", "summary", "table", "tbody", "td", "textarea", "tfoot", "th",
    "thead", "tr", "ul",
})  # fmt: skip
# What is not shown by a browser that runs scripts.
HIDDEN: Final = frozenset({"iframe", "noembed", "noframes", "noscript", "script", "style", "template", "title"})
TEXT: Final = "-text"

_REFRESH_AT_ONCE = re.compile(r"""\s*0*(?:\.0*)?\s*[;,]\s*url\s*=\s*(?:"([^"]*)|'([^']*)|(.*))""", re.I | re.S)


@dataclass(frozen=True)
class HtmlPage:
    """What a page holds; addresses are as they are written, relative to the page's own or to ``base``.

    ``hrefs`` are where links lead, each with whether it or the page is marked nofollow.
    """

    title: str = ""
    text: str = ""
    hrefs: Sequence[tuple[str, bool]] = ()
    base: str | None = None
    canonical: str | None = None
    refresh: str | None = None


def read_page(page: Page, *, maximum_bytes: int) -> HtmlPage | Unread:
    """Return what a page says, or why it cannot be read; nothing is raised.

    A page without a type is taken to be HTML. Of plain text, the first line is the title. ``too_large``: more than
    ``maximum_bytes``; ``other_type``: neither HTML nor plain text, by its header; ``binary``: it holds characters of
    number 0; ``too_complex``: see `is_too_complex`.
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
        return HtmlPage(title=collapsed(text.lstrip().partition("\n")[0]), text=collapsed(text))
    return "too_complex" if is_too_complex(text) else read_html(text)


def read_html(html: str) -> HtmlPage:
    """Parse HTML. Any text is a page of HTML; nothing is raised.

    The title is that of the first ``title`` in the head; the text is what a browser that runs scripts shows of the
    body, words of different blocks apart and white space collapsed. Links are those of ``a`` and ``area``.
    """
    tree = LexborHTMLParser(html.encode("utf-8", "replace"), options=LexborDocumentOptions.WO_EVENTS, scripting=True)
    titles = (collapsed(node.text()) for node in tree.css("head > title"))
    refreshes = map(_refresh_at_once, tree.css('meta[http-equiv="refresh" i]'))
    robots = {word for node in tree.css('meta[name="robots" i]') for word in _words(node, "content")}
    is_marked = not robots.isdisjoint({"nofollow", "none"})
    return HtmlPage(
        title=next(filter(None, titles), ""),
        text=_shown_text(tree.root),
        hrefs=[(node.attributes["href"] or "", is_marked or "nofollow" in _words(node, "rel"))
               for node in tree.css("a[href], area[href]")],
        base=_first_href(tree, "base[href]"),
        # In the body it may be what a visitor wrote.
        canonical=_first_href(tree, 'head > link[rel~="canonical" i][href]'),
        refresh=next(filter(None, refreshes), None),
    )  # fmt: skip


def page_links(
    page: HtmlPage, url: str, *, nofollow: bool, drop_parameters: Collection[str] = ()
) -> tuple[list[str], Counter[str]]:
    """Return where the links of a page lead, each target once and in normal form, and counts of those left out.

    ``url`` is the page's own in normal form; parameters are dropped as `urls.normalize` does. Left out are those that
    are ``repeated``, marked ``nofollow`` or on a page that is, if so wanted, of another ``scheme``, ``invalid`` or
    ``too_long``.
    """
    base = base_of(page, url)
    targets: dict[str, None] = {}
    left_out: Counter[str] = Counter()
    for href, is_marked in page.hrefs:
        if nofollow and is_marked:
            left_out["nofollow"] += 1
        elif (target := normal_or_refusal(href, base, drop_parameters)) in REFUSALS:
            left_out[target] += 1
        elif target in targets:
            left_out["repeated"] += 1
        else:
            targets[target] = None
    return list(targets), left_out


def base_of(page: HtmlPage, url: str) -> str:
    """Return what the addresses on a page are relative to, in normal form."""
    return url if page.base is None else normalize(page.base, url) or url


def collapsed(text: str) -> str:
    """Return a text with one blank for each run of white space, and none around it."""
    return " ".join(text.split())


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
        # A declaration may name a codec that does not give text, such as base64.
        text = body.decode(_by_its_bytes(body), "replace")
    # Some codecs, such as raw-unicode-escape, give half characters, which no text may hold.
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def is_too_complex(html: str) -> bool:
    """Return whether parsing could take longer than some seconds for the depth of tags or the number of attributes.

    A parser of HTML looks through the elements that are open at nearly every tag, and through the attributes of a tag
    at each of them; so a page of a million tags that are never closed, or of attributes, would take days. Browsers stop
    at a depth of 512 and put what is deeper beside it. Here such a page, which no one wrote, is refused.
    """
    long_tags = _LONG_TAG.finditer(html) if len(html) > 2 * HARMLESS else ()
    if any(len(_ATTRIBUTE.findall(_QUOTED.sub('""', tag[0]))) > HARMLESS for tag in long_tags):
        return True
    if html.count("<") <= HARMLESS:
        return False
    deepest = depth = 0
    unclosed: Counter[str] = Counter()
    tags = _TAG.findall(html)
    for _, closing, tag in tags:
        name = tag.lower()
        # A closing tag for which nothing is open changes nothing.
        if name and name not in _NEVER_DEEP and (not closing or unclosed[name]):
            change = -1 if closing else 1
            unclosed[name] += change
            depth += change
            deepest = max(deepest, depth)
    return len(tags) * deepest > MAXIMUM_LOOKS


def _shown_text(root: LexborNode | None) -> str:
    """Return the text that is shown, blanks where blocks begin and end.

    Without recursion, since elements may be nested by the thousand.
    """
    pieces: list[str] = []
    open_tags: list[tuple[str | None, LexborNode | None]] = []  # and what follows each
    node = root
    while node is not None or open_tags:
        if node is None:
            tag, node = open_tags.pop()
            pieces += [" "] if tag in BLOCKS else []
            continue
        tag, following = node.tag, node.next
        if tag == TEXT:
            pieces.append(node.text_content or "")
        elif tag not in HIDDEN:
            pieces += [" "] if tag in BLOCKS else []
            open_tags.append((tag, following))
            following = node.first_child
        node = following
    return collapsed("".join(pieces))


def _first_href(tree: LexborHTMLParser, selector: str) -> str | None:
    node = tree.css_first(selector)
    return None if node is None else node.attributes["href"]


def _refresh_at_once(node: LexborNode) -> str | None:
    match = _REFRESH_AT_ONCE.match(node.attributes.get("content") or "")
    return next(filter(None, match.groups()), None) if match else None


def _words(node: LexborNode, attribute: str) -> list[str]:
    return (node.attributes.get(attribute) or "").lower().replace(",", " ").split()


def _by_its_bytes(body: bytes) -> str:
    try:
        body.decode()
    except UnicodeDecodeError:
        return FALLBACK
    return "utf-8"
