"""Normalize URLs, so that different spellings of one URL are equal and a link finds its page.

`ada_url` parses a URL as browsers do (WHATWG URL Standard). In addition:

- the fragment, an empty query and selected query parameters are removed;
- path and query have as few percent-escapes as possible, in upper case (RFC 3986, section 6.2.2);
- schemes other than http and https, user names and passwords, port 0, invalid host names and URLs longer than
  `MAXIMUM_LENGTH` are refused.
"""

import re
from collections.abc import Collection
from functools import cache
from urllib.parse import quote, unquote_to_bytes

from ada_url import join_url, normalize_url

# Longer URLs come from mistakes or crawler traps; sitemaps have the same limit.
MAXIMUM_LENGTH = 2048
# Punctuation that needs no escape in a path or query (RFC 3986); a path has no "?" here.
UNESCAPED = "/:@!$&'()*+,;=-._~?"
REFUSALS = frozenset({"scheme", "too_long", "invalid"})

_SURROGATE = re.compile("[\ud800-\udfff]")
_DOMAIN = r"(?=[^/:]{1,253}[/:])(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?"
_ADDRESS = re.compile(rf"(https?://(?:{_DOMAIN}|\[[0-9a-f:.]+\])(?::[1-9][0-9]*)?)(/[^?#]*)(?:\?([^#]*))?(?:#.*)?")
# An escape, possibly an unnecessary one, or a character that needs one.
_ESCAPED = re.compile(rf"[^A-Za-z0-9{re.escape(UNESCAPED)}](?:(?<=%)[0-9A-Fa-f]{{2}})?")


def normalize(url: str, base: str | None = None, drop_parameters: Collection[str] = ()) -> str | None:
    """Return a URL in normal form, or None if it is refused; `normal_or_refusal` tells why.

    ``url`` is any text: an absolute URL, or a reference relative to ``base``, a URL in normal form. The query
    parameters ``drop_parameters`` are removed. The normal form is ASCII, and normalizing it again changes nothing.

    Examples
    --------
    >>> normalize("../b%7Ec?utm_source=x&id=7#top", "https://Example.org:443/a/", {"utm_source"})
    'https://example.org/b~c?id=7'
    """
    normal = normal_or_refusal(url, base, drop_parameters)
    return None if normal in REFUSALS else normal


def host(url: str) -> str:
    """Return the host of a URL in normal form, with its port if it has one: ``example.org:8080``."""
    return url.split("/", 3)[2]


def normal_or_refusal(url: str, base: str | None = None, drop_parameters: Collection[str] = ()) -> str:
    """Return a URL in normal form, or the one of the `REFUSALS` that applies."""
    if not url.isascii():
        url = _SURROGATE.sub("\ufffd", url)
    try:
        address = join_url(base, url) if base else normalize_url(url)
    except ValueError:
        return "invalid"
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return "invalid" if address.startswith(("http:", "https:")) else "scheme"
    site, path, query = match.groups(default="")
    path, query = _normalize_escapes(path), _normalize_escapes(query)
    if drop_parameters and query:
        query = "&".join(pair for pair in query.split("&") if pair.partition("=")[0] not in drop_parameters)
    normal = f"{site}{path}?{query}" if query else f"{site}{path}"
    return normal if len(normal) <= MAXIMUM_LENGTH else "too_long"


def _normalize_escapes(text: str) -> str:
    return _ESCAPED.sub(lambda match: _escape(match[0]), text)


@cache
def _escape(text: str) -> str:
    return quote(unquote_to_bytes(text), safe="")
