"""Links as people write them: relative and absolute, with fragments, tracking parameters and odd spellings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from whitewater.pagerank.simulation.sites import Address

_TRACKING = "utm_source=newsletter&utm_medium=email"


class Spelling(NamedTuple):
    """How a link is written; each holds where it can."""

    relative: bool  # to the folder; else to the host
    absolute: bool  # within a host, too
    protocol_relative: bool
    upper_case: bool  # scheme and host
    dotted: bool  # a segment that .. takes back
    port: bool  # the default one, spelt out
    fragment: bool
    tracking: bool
    raw: bool  # letters beyond ASCII as they are


_SHARES = {
    "relative": 0.45, "absolute": 0.25, "protocol_relative": 0.08, "upper_case": 0.04, "dotted": 0.04, "port": 0.02,
    "fragment": 0.05, "tracking": 0.05, "raw": 0.3,
}  # fmt: skip


def draw_spellings(links: int, *, random: np.random.Generator) -> Iterator[Spelling]:
    """Yield a spelling for each link."""
    columns = [(random.random(links) < _SHARES[name]).tolist() for name in Spelling._fields]
    return map(Spelling._make, zip(*columns, strict=True))


def write_href(address: Address, base: Address, spelling: Spelling) -> str:
    """Return a reference that leads from a page of base URL ``base`` to ``address``; not yet escaped for HTML."""
    path, end = _path(address, spelling), _end(address, spelling)
    within = (address.scheme, address.host) == (base.scheme, base.host)
    if not within or spelling.absolute:
        return _authority(address, base, spelling) + path + end
    return (_relative(path, base) if spelling.relative else path) + end


def _path(address: Address, spelling: Spelling) -> str:
    path = address.path if spelling.raw else Address("", address.path).target
    return f"/archive/..{path}" if spelling.dotted else path


def _end(address: Address, spelling: Spelling) -> str:
    query = "&".join(part for part in (address.query, _TRACKING if spelling.tracking else "") if part)
    return (f"?{query}" if query else "") + ("#more" if spelling.fragment else "")


def _authority(address: Address, base: Address, spelling: Spelling) -> str:
    port = {"https": ":443", "http": ":80"}[address.scheme] if spelling.port else ""
    if spelling.protocol_relative and address.scheme == base.scheme:
        return f"//{address.host}{port}"
    authority = f"{address.scheme}://{address.host}"
    return (authority.upper() if spelling.upper_case else authority) + port


def _relative(path: str, base: Address) -> str:
    """Return an absolute path as a relative one: out of all folders of the base, then into its own."""
    return "../" * (base.path.count("/") - 1) + path[1:] or "./"
