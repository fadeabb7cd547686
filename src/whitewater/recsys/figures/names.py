"""Names of columns and groups, which are data, as pictures write them."""

from __future__ import annotations

from whitewater.lettering import fitted


def shown_name(name: str, *, points: float = 120, size: float = 9) -> str:
    """Return a name of at most ``points`` in width at a font size."""
    return fitted(name, points=points, size=size)
