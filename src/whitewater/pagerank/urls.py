"""URLs in normal form: two addresses of one page are one text, so that a link finds its page.

RFC 3986, sections 5 (references), 6.2.2 and 6.2.3 (normalisation), as browsers read an address (the URL Standard of
the WHATWG): blanks around it and line breaks within it go, a backslash is a slash, a host may be in any script (Unicode
Technical Standard 46) and an IPv4 address in any notation. The fragment goes, and so does an empty query.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Collection
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Literal
from urllib.parse import quote, unquote_to_bytes

import idna

Refusal = Literal["scheme", "too_long", "invalid"]

DEFAULT_PORTS = {"http": "80", "https": "443"}
# What is longer is made by a mistake or a trap: the protocol of site maps, for one, has none of more than 2,048.
MAXIMUM_LENGTH = 2048
MAXIMUM_HOST = 253
MAXIMUM_LABEL = 63
# A host with all its bytes escaped, and a port; what is longer is not looked at, nor remembered.
MAXIMUM_AUTHORITY = 3 * MAXIMUM_HOST + len(":65535")
# Of RFC 3986: what may stand in a path or a query without an escape; "?" in a query only.
KEPT_IN_PATH = "/:@!$&'()*+,;=-._~"
KEPT_IN_QUERY = KEPT_IN_PATH + "?"

_BLANKS = "".join(map(chr, range(0x21)))
_PRINTABLE = re.compile(r"[!-~]*")
_LINE_BREAKS = str.maketrans("", "", "\t\n\r")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_NORMAL_PATH = re.compile(rf"[A-Za-z0-9{re.escape(KEPT_IN_PATH)}]*")
_NORMAL_QUERY = re.compile(rf"[A-Za-z0-9{re.escape(KEPT_IN_QUERY)}]*")
_ESCAPE = re.compile(r"(%[0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]*))?")
_LABEL = re.compile(r"[a-z0-9_-]+")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def normalise(url: str, base: str | None = None, drop_parameters: Collection[str] = ()) -> str | None:
    """Return a URL in normal form, or None where it is not the address of a page.

    Parameters
    ----------
    url
        An absolute URL or, where there is a base, a reference to another page as in ``href``. Any text at all.
    base
        URL of the page that refers, itself in normal form.
    drop_parameters
        Names of query parameters that are removed; the others stay, in their order.

    Returns
    -------
    str or None
        ASCII only, and its own normal form. None for other schemes than http and https, hosts and ports that cannot
        be, URLs with a user name or a password, which lead where only their owner may go, and those of more than
        `MAXIMUM_LENGTH` characters in normal form; `refusal` tells which.

    Examples
    --------
    >>> normalise("../b%7Ec?utm_source=x&id=7#top", "https://Example.org:443/a/", {"utm_source"})
    'https://example.org/b~c?id=7'
    """
    normal = _assembled(url, base, drop_parameters)
    return normal if normal is not None and len(normal) <= MAXIMUM_LENGTH else None


def refusal(url: str, base: str | None = None, drop_parameters: Collection[str] = ()) -> Refusal:
    """Return why `normalise` gave None: another scheme, too long, or no valid address."""
    scheme = _SCHEME.match(_cleaned(url))
    if scheme and scheme[1].lower() not in DEFAULT_PORTS:
        return "scheme"
    return "invalid" if _assembled(url, base, drop_parameters) is None else "too_long"


def host(url: str) -> str:
    """Return the host of a URL in normal form, with its port where it has one.

    Examples
    --------
    >>> host("http://example.org:8080/a/b")
    'example.org:8080'
    """
    return url.split("/", 3)[2]


def _assembled(url: str, base: str | None, drop_parameters: Collection[str]) -> str | None:
    """Return the normal form, however long."""
    parts = _split(_cleaned(url), base)
    if parts is None:
        return None
    scheme, authority, path, query = parts
    address = _normal_authority(scheme, authority) if len(authority) <= MAXIMUM_AUTHORITY else None
    if address is None:
        return None
    path = _without_dots(_normal(path, _NORMAL_PATH, KEPT_IN_PATH)) or "/"
    query = _without(_normal(query, _NORMAL_QUERY, KEPT_IN_QUERY), drop_parameters)
    return f"{scheme}://{address}{path}?{query}" if query else f"{scheme}://{address}{path}"


def _cleaned(url: str) -> str:
    """Return the text as a browser reads it, still without meaning."""
    if _PRINTABLE.fullmatch(url):
        return url
    cleaned = url.strip(_BLANKS).translate(_LINE_BREAKS)
    return cleaned if cleaned.isascii() else _SURROGATE.sub("\ufffd", cleaned)


def _split(reference: str, base: str | None) -> tuple[str, str, str, str] | None:
    """Return scheme, authority, path and query, those that the reference lacks from the base; None without a scheme."""
    found = _SCHEME.match(reference)
    scheme, rest = (found[1].lower(), reference[found.end() :]) if found else ("", reference)
    rest, _, _ = rest.partition("#")
    rest, question, query = rest.partition("?")
    rest = rest.replace("\\", "/")
    if scheme and scheme not in DEFAULT_PORTS:
        return None
    if rest.startswith("//") or (scheme and not (base and base.startswith(f"{scheme}:"))):
        # Browsers take any number of slashes, so that https:example.org is an address, too.
        authority, slash, path = rest.lstrip("/").partition("/")
        scheme = scheme or (base or "").partition(":")[0]
        return (scheme, authority, slash + path, query) if scheme else None
    return _resolved(rest, query, has_query=bool(question), base=base) if base else None


def _resolved(path: str, query: str, *, has_query: bool, base: str) -> tuple[str, str, str, str]:
    """Resolve a path and query against a base in normal form (RFC 3986, section 5.2.2)."""
    scheme, _, authority, base_rest = base.split("/", 3)
    base_path, _, base_query = base_rest.partition("?")
    if not path:
        return scheme[:-1], authority, f"/{base_path}", query if has_query else base_query
    if not path.startswith("/"):
        path = f"/{base_path[: base_path.rfind('/') + 1]}{path}"
    return scheme[:-1], authority, path, query


@lru_cache(maxsize=1 << 16)
def _normal_authority(scheme: str, authority: str) -> str | None:
    """Return host and, where it is not the usual one, port; None where they cannot be or a user is named."""
    found = _AUTHORITY.fullmatch(authority)
    name = _normal_host(found[1]) if found else None
    if found is None or name is None:
        return None
    port = (found[2] or "").lstrip("0")
    if found[2] and (not port or len(port) > 5 or int(port) > 0xFFFF):
        return None
    return name if port in {"", DEFAULT_PORTS[scheme]} else f"{name}:{port}"


def _normal_host(name: str) -> str | None:
    if name.startswith("["):
        return _ipv6(name[1:-1])
    labels = _domain(unquote_to_bytes(name).decode("utf-8", "replace"))
    if labels is None:
        return None
    last = labels[-1] or labels[-2] if len(labels) > 1 else labels[0]
    return _ipv4(labels) if _NUMBER.fullmatch(last) else ".".join(labels)


def _domain(name: str) -> list[str] | None:
    """Return the labels of a domain in ASCII; the last is empty where a dot ends it. None where one cannot be."""
    try:
        mapped = name.lower() if name.isascii() else idna.uts46_remap(name, std3_rules=False)
        labels = [each if each.isascii() else f"xn--{each.encode('punycode').decode()}" for each in mapped.split(".")]
    except (idna.IDNAError, UnicodeError):
        return None
    whole = labels[:-1] if len(labels) > 1 and not labels[-1] else labels
    valid = all(len(each) <= MAXIMUM_LABEL and _LABEL.fullmatch(each) for each in whole)
    return labels if valid and sum(map(len, labels)) + len(labels) - 1 <= MAXIMUM_HOST else None


def _ipv4(labels: list[str]) -> str | None:
    """Return an IPv4 address in four decimal numbers, from any of the notations of inet_aton."""
    try:
        return socket.inet_ntoa(socket.inet_aton(".".join(filter(None, labels))))
    except OSError:
        return None


def _ipv6(address: str) -> str | None:
    try:
        parsed = IPv6Address(address)
    except ValueError:
        return None
    return None if parsed.scope_id else f"[{parsed.compressed}]"


def _normal(text: str, normal: re.Pattern[str], kept: str) -> str:
    """Return a path or query with as few escapes as there can be, those in upper case."""
    if normal.fullmatch(text):
        return text
    pieces = _ESCAPE.split(text)
    pieces[::2] = [quote(piece, safe=kept) for piece in pieces[::2]]
    pieces[1::2] = [_normal_escape(escape) for escape in pieces[1::2]]
    return "".join(pieces)


def _normal_escape(escape: str) -> str:
    character = chr(int(escape[1:], 16))
    return character if _UNRESERVED.match(character) else escape.upper()


def _without_dots(path: str) -> str:
    """Remove the segments ``.`` and ``..`` (RFC 3986, section 5.2.4) of a path that begins with a slash, if any."""
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path[1:].split("/")
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)


def _without(query: str, drop_parameters: Collection[str]) -> str:
    """Return a query without the named parameters."""
    if not query or not drop_parameters:
        return query
    return "&".join(each for each in query.split("&") if each.partition("=")[0] not in drop_parameters)
