"""Names of samples, of which each may occur once: results are by sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from whitewater.check import few
from whitewater.errors import InputError


def check_unique(names: Iterable[str], *, place: str) -> None:
    """Refuse names of samples of which some occur more than once.

    Raises
    ------
    InputError
        Listing these.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{place} names {len(twice)} samples more than once: {few(twice)}. Results are by sample; "
                         "make the names unique.")  # fmt: skip
