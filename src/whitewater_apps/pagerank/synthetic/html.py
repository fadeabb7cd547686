"""Write a page as HTML: encodings, spellings of links, and errors that browsers accept."""

from base64 import b64decode
from collections.abc import Collection, Mapping, Sequence
from html import escape
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from whitewater_apps.pagerank.synthetic.sites import Address

TRAPS = (
    '<!-- <a href="/commented-out.html">not a link</a> -->\n'
    "<script>var text = \"<a href='/in-a-script.html'>not a link</a>\";</script>\n"
)
PICTURE_PATH = "/picture.png"
# One pixel.
PICTURE = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNQTFsDAAHfATQsx0ROAAAAAElFTkSuQmCC")
NOFOLLOW = ' rel="nofollow"'
TRACKING = "utm_source=newsletter&utm_medium=email"
FAULTS = ("unclosed", "unquoted", "cut off")


class Encoding(NamedTuple):
    """The encoding of a page, what its header and its meta tag declare, and the share of such pages."""

    codec: str
    header: str
    meta: str
    share: float


ENCODINGS = (
    Encoding("utf-8", "; charset=utf-8", "utf-8", 0.45),
    Encoding("utf-8", "; charset=UTF-8", "", 0.12),
    Encoding("utf-8", "", "utf-8", 0.15),
    Encoding("iso-8859-1", "; charset=ISO-8859-1", "", 0.06),
    Encoding("iso-8859-1", "", "iso-8859-1", 0.06),
    Encoding("windows-1252", "; charset=windows-1252", "", 0.04),
    Encoding("windows-1252", "", "Windows-1252", 0.04),
    Encoding("windows-1252", "", "", 0.04),
    Encoding("utf-8", "", "", 0.04),
)


# The share of links that are written this way, if possible.
SPELLINGS = {
    "relative": 0.45,  # to the folder, not to the host
    "absolute": 0.25,  # even within a host
    "protocol-relative": 0.08,
    "upper case": 0.04,  # scheme and host
    "dotted": 0.04,  # /archive/.. in front
    "port": 0.02,  # the default port
    "fragment": 0.05,
    "tracking": 0.05,
    "raw": 0.3,  # non-ASCII letters not escaped
}


class Link(NamedTuple):
    """An ``a`` element."""

    href: str
    text: str
    nofollow: bool = False


def draw_spellings(links: int, *, random: np.random.Generator) -> list[set[str]]:
    """Return the `SPELLINGS` of each link."""
    columns = [(random.random(links) < share).tolist() for share in SPELLINGS.values()]
    return [set(compress(SPELLINGS, chosen)) for chosen in zip(*columns, strict=True)]


def write_href(address: Address, base: Address, spelling: Collection[str]) -> str:
    """Return a reference from base URL ``base`` to ``address``, not yet escaped for HTML."""
    path = address.path if "raw" in spelling else Address("", address.path).target
    path = f"/archive/..{path}" if "dotted" in spelling else path
    query = "&".join(part for part in (address.query, TRACKING if "tracking" in spelling else "") if part)
    end = (f"?{query}" if query else "") + ("#more" if "fragment" in spelling else "")
    if (address.scheme, address.host) != (base.scheme, base.host) or "absolute" in spelling:
        port = {"https": ":443", "http": ":80"}[address.scheme] if "port" in spelling else ""
        scheme = "" if "protocol-relative" in spelling and address.scheme == base.scheme else f"{address.scheme}:"
        origin = f"{scheme}//{address.host}"
        return (origin.upper() if "upper case" in spelling and scheme else origin) + port + path + end
    if "relative" in spelling:
        # Up to the root, then down to the target.
        path = "../" * (base.path.count("/") - 1) + path[1:] or "./"
    return path + end


def write_html(title: str, paragraphs: Sequence[str], links: Sequence[Link], features: Mapping[str, Any], *, base: str,
               canonical: str, picture: bool) -> bytes:  # fmt: skip
    """Return the bytes of a page; letters that its encoding lacks are character references.

    ``features`` are the page's own of `Web.features`; ``base`` and ``canonical`` are URLs or empty.
    """
    encoding, fault = ENCODINGS[features["encoding"]], FAULTS[features["fault"]] if features["fault"] >= 0 else ""
    unclosed = fault == "unclosed"
    quote = "" if fault == "unquoted" else '"'
    items = "".join(
        f"<li><a href={quote}{escape(link.href)}{quote}{NOFOLLOW if link.nofollow else ''}>{escape(link.text)}</a>"
        f"{'' if unclosed else '</li>'}\n"
        for link in links
    )
    parts = [
        "<!DOCTYPE html>\n<html>\n<head>\n",
        f'<meta charset="{encoding.meta}">\n' if encoding.meta else "",
        f"<title>{escape(title)}</title>\n",
        f'<base href="{base}">\n' if base else "",
        f'<link rel="canonical" href="{canonical}">\n' if canonical else "",
        '<meta name="robots" content="nofollow">\n' if features["nofollow_pages"] else "",
        f"</head>\n<body>\n<h1>{escape(title)}</h1>\n",
        TRAPS if features["trap_pages"] else "",
        "<b>" if unclosed else "",
        *(f"<p>{escape(text)}{'' if unclosed else '</p>'}\n" for text in paragraphs),
        f'<img src="{PICTURE_PATH}" alt="">\n' if picture else "",
        f"<ul>\n{items}</ul>\n" if items else "",
        "<p><b>5 < 6 & so on <" if fault == "cut off" else "</body>\n</html>\n",
    ]
    text = "".join(parts)
    if fault == "unquoted":
        text = text.replace("<p>", "<P>").replace("<li>", "<LI>").replace("<a ", "<A ")
    return text.encode(encoding.codec, "xmlcharrefreplace")
