"""Whether a page can be parsed in reasonable time.

A parser of HTML looks through the elements that are open at nearly every tag, and through the attributes of a tag at
each of them; so a page of a million tags that are never closed, or of attributes, would take days. Browsers stop at a
depth of 512 and put what is deeper beside it. Here such a page, which no one wrote, is refused before it is parsed.
"""

from __future__ import annotations

import re
from collections import Counter

# Looks at an open element or an attribute take about 3 ns each: 5 s at most.
MAXIMUM_LOOKS = 1_500_000_000
# Tags or attributes that are few enough whatever they are.
HARMLESS = int(MAXIMUM_LOOKS**0.5)

# Elements that hold nothing, and those that the next of their kind ends, which nest no deeper than what holds them.
_NEVER_DEEP = frozenset(
    re.findall(
        r"\w+",
        "area base basefont bgsound br col colgroup dd dt embed frame hr img input keygen li link meta option optgroup "
        "p param rp rt source tbody td tfoot th thead tr track wbr",
    )
)
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


def is_too_complex(html: str) -> bool:
    """Return whether parsing could take longer than some seconds for the depth of tags or the number of attributes."""
    return _too_many_attributes(html) or _too_deep(html)


def _too_deep(html: str) -> bool:
    if html.count("<") <= HARMLESS:
        return False
    tags = deepest = depth = 0
    unclosed: Counter[str] = Counter()
    for _, closing, name in _TAG.findall(html):
        tags += 1
        change = _change(unclosed, name.lower(), closing=bool(closing))
        depth += change
        deepest = max(deepest, depth)
    return tags * deepest > MAXIMUM_LOOKS


def _change(unclosed: Counter[str], name: str, *, closing: bool) -> int:
    """Return by how much a tag can change the depth; a closing tag for which nothing is open does not."""
    if not name or name in _NEVER_DEEP or (closing and not unclosed[name]):
        return 0
    change = -1 if closing else 1
    unclosed[name] += change
    return change


def _too_many_attributes(html: str) -> bool:
    if len(html) < 2 * HARMLESS:
        return False
    return any(len(_ATTRIBUTE.findall(_QUOTED.sub('""', found[0]))) > HARMLESS for found in _LONG_TAG.finditer(html))
