"""URLs in normal form: two addresses of one page are one text, so that a link finds its page.

`ada_url` reads an address as browsers do (the URL Standard of the WHATWG). These rules are added, which make more
addresses equal and refuse others:

- the fragment goes, and so do an empty query and the query parameters that are named;
- a path and a query have as few escapes as there can be, those in upper case (RFC 3986, section 6.2.2);
- other schemes than http and https are refused, and so are users and passwords, which lead where only their owner may
  go, port 0, hosts that the domain name system cannot have, and what is longer than `MAXIMUM_LENGTH`.
"""

import re
from collections.abc import Collection
from functools import cache
from urllib.parse import quote, unquote_to_bytes

from ada_url import join_url, normalize_url

# What is longer is made by a mistake or a trap: the protocol of site maps, for one, has none of more than 2,048.
MAXIMUM_LENGTH = 2048
# Of RFC 3986: what may stand in a path or a query without an escape; "?" in a query only, and paths have none here.
KEPT = "/:@!$&'()*+,;=-._~?"
REFUSALS = frozenset({"scheme", "too_long", "invalid"})

_SURROGATE = re.compile("[\ud800-\udfff]")
_DOMAIN = r"(?=[^/:]{1,253}[/:])(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?"
_ADDRESS = re.compile(rf"(https?://(?:{_DOMAIN}|\[[0-9a-f:.]+\])(?::[1-9][0-9]*)?)(/[^?#]*)(?:\?([^#]*))?(?:#.*)?")
# An escape, which may be one of a character that needs none, or a character that needs one.
_ESCAPED = re.compile(rf"[^A-Za-z0-9{re.escape(KEPT)}](?:(?<=%)[0-9A-Fa-f]{{2}})?")


def normalize(url: str, base: str | None = None, drop_parameters: Collection[str] = ()) -> str | None:
    """Return a URL in normal form, or None where it is not the address of a page; `normal_or_refusal` tells why.

    ``url`` is any text: an absolute URL, or a reference as in ``href`` of the page ``base``, a URL in normal form. The
    query parameters named ``drop_parameters`` are removed. The normal form is ASCII only, and its own normal form.

    Examples
    --------
    >>> normalize("../b%7Ec?utm_source=x&id=7#top", "https://Example.org:443/a/", {"utm_source"})
    'https://example.org/b~c?id=7'
    """
    normal = normal_or_refusal(url, base, drop_parameters)
    return None if normal in REFUSALS else normal


def host(url: str) -> str:
    """Return the host of a URL in normal form, with its port where it has one.

    Examples
    --------
    >>> host("http://example.org:8080/a/b")
    'example.org:8080'
    """
    return url.split("/", 3)[2]


def normal_or_refusal(url: str, base: str | None = None, drop_parameters: Collection[str] = ()) -> str:
    """Return a URL in normal form, or which of the `REFUSALS` it has: another scheme, too long, or invalid."""
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
    path, query = _escaped(path), _escaped(query)
    if drop_parameters and query:
        query = "&".join(pair for pair in query.split("&") if pair.partition("=")[0] not in drop_parameters)
    normal = f"{site}{path}?{query}" if query else f"{site}{path}"
    return normal if len(normal) <= MAXIMUM_LENGTH else "too_long"


def _escaped(text: str) -> str:
    """Return a path or query with as few escapes as there can be, those in upper case."""
    return _ESCAPED.sub(lambda match: _escape(match[0]), text)


@cache
def _escape(text: str) -> str:
    return quote(unquote_to_bytes(text), safe="")
