"""Files that the settings of a source name by path, glob or URL, in the order in which they are named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from whitewater.download import Access
from whitewater.places import Downloads, Input, distinct, expand, obtain

_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class NamedFiles:
    """How files are got: where remote ones go, whether buckets are read without credentials, threads for checksums."""

    downloads: Downloads
    anonymous: bool
    threads: int

    def find(self, names: Sequence[str], *, key: str, example: str) -> list[Input]:
        """Return the files that paths, globs and URLs stand for, each once.

        They are in the order of ``names``, and those of a glob in that of the numbers in their names: day_2 is before
        day_10. ``key`` of the configuration names them, and ``example`` is a name that one might have.

        Raises
        ------
        InputError
            If there is no such file, or a download fails.
        """
        found = [
            place
            for name in names
            for place in sorted(expand(name, anonymous=self.anonymous, key=key, example=example), key=by_number)
        ]
        once = set(distinct(found))
        places = [place for place in dict.fromkeys(found) if place in once]
        access = Access(anonymous=self.anonymous)
        files = obtain(places, downloads=self.downloads, access=access, threads=self.threads, key=key)
        return [files[place] for place in places]


def by_number(name: str) -> list[tuple[int, str]]:
    """Return what to sort names by, so that their numbers ascend."""
    return [(int(part) if part.isdecimal() else -1, part) for part in _DIGITS.split(name)]
