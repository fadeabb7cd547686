"""Names of vertices as pictures write them: without what all have in common, and no longer than there is room."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from whitewater.lettering import fitted

_WEB = re.compile(r"https?://", re.IGNORECASE)


def shown_names(names: Sequence[str], *, points: float, size: float) -> list[str]:
    """Return names of at most ``points`` in width at a font size, cut in the middle where they are longer.

    Of URLs the scheme is left out, and the host, too, where it is the same for all; letters are not percent-encoded.
    Letters that the font lacks are `whitewater.lettering.NO_LETTER`.

    Parameters
    ----------
    names
        Names, URLs or any others.
    points, size
        Width and size of the font in points.
    """
    short = _without_hosts(names) if names and all(map(_WEB.match, names)) else list(names)
    return [fitted(name, points=points, size=size) for name in short]


def _without_hosts(urls: Sequence[str]) -> list[str]:
    parts = [urlsplit(url) for url in urls]
    one_host = len({each.netloc for each in parts}) == 1 and len(urls) > 1
    queries = [f"?{each.query}" if each.query else "" for each in parts]
    return [
        unquote(f"{'' if one_host else each.netloc}{each.path}{query}")
        for each, query in zip(parts, queries, strict=True)
    ]
