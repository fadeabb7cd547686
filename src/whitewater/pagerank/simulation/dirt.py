"""What a real web has besides pages: moved, copied and missing ones, and links that should not count.

The shares here are believable sizes, not counts of a data set; those that a user sets are arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from whitewater.pagerank.simulation.linking import Linking, Numbers
from whitewater.pagerank.simulation.sites import Address, Sites


@dataclass(frozen=True)
class Dirt:
    """How often, as shares of the links or of the pages that have links."""

    nofollow: float = 0.03  # links
    by_alias: float = 0.35  # of the links to a page that has other addresses, those that lead to one of them
    nofollow_pages: float = 0.01  # pages
    self_links: float = 0.05
    repeated: float = 0.05
    mailto: float = 0.1
    base: float = 0.05
    traps: float = 0.05  # pages with links in a comment and in a script, which are none
    malformed: float = 0.08


DIRT = Dirt()
# Two redirects that lead to each other are among so many.
_LEAST_FOR_LOOP = 4
_LINKS_OF_A_MISSING_PAGE = 3


@dataclass(frozen=True)
class Redirect:
    """An address that leads to another; ``page`` is where it ends, -1 in a loop."""

    address: Address
    location: Address
    page: int
    status: int
    relative: bool


@dataclass(frozen=True)
class Duplicate:
    """A second address of a page, which names its first one canonical or does not."""

    address: Address
    page: int
    canonical: bool


@dataclass(frozen=True)
class Addresses:
    """All addresses that links lead to, in this order."""

    pages: list[Address]
    redirects: list[Redirect]
    duplicates: list[Duplicate]
    missing: list[Address]  # the archive has their 404
    absent: list[Address]  # the archive has nothing
    picture: Address

    @cached_property
    def places(self) -> list[Address]:
        """All of them: a link names one by its place."""
        moved, copied = ([each.address for each in several] for several in (self.redirects, self.duplicates))
        return [*self.pages, *moved, *copied, *self.missing, *self.absent, self.picture]

    @property
    def first_missing(self) -> int:
        """The place of the first address that no page is at."""
        return len(self.pages) + len(self.redirects) + len(self.duplicates)

    @property
    def loop(self) -> list[int]:
        """The places of the redirects that lead to each other."""
        return [len(self.pages) + place for place, each in enumerate(self.redirects) if each.page < 0]

    def aliases(self) -> Numbers:
        """Return for each page the place of another address of it, -1 where it has none: int64 (pages,)."""
        found = np.full(len(self.pages), -1, np.int64)
        ends = [*(each.page for each in self.redirects), *(each.page for each in self.duplicates)]
        for place, page in enumerate(ends, start=len(self.pages)):
            if page >= 0:
                found[page] = place
        return found


@dataclass(frozen=True)
class Anchors:
    """Links as they are on the pages, by source.

    Attributes
    ----------
    source
        int64 (links,): the page that links.
    target
        int64 (links,): the page at the end, -1 where there is none.
    destination
        int64 (links,): the place of the address that the link has, in `Addresses.places`.
    nofollow
        bool (links,): the link is marked so.
    """

    source: Numbers
    target: Numbers
    destination: Numbers
    nofollow: npt.NDArray[np.bool_]


def move_pages(sites: Sites, *, share: float, random: np.random.Generator) -> list[Redirect]:
    """Return redirects to random pages: every fifth one leads to the one before it, and the last two to each other.

    Some are the unencrypted address of the page, as hosts have them that moved to https.
    """
    pages = random.permutation(len(sites.addresses))[: round(share * len(sites.addresses))].tolist()
    statuses = random.choice([301, 302], len(pages)).tolist()
    loop = len(pages) - 2 if len(pages) >= _LEAST_FOR_LOOP else len(pages)
    found: list[Redirect] = []
    for number, page in enumerate(pages[:loop]):
        chained = number % 5 == 1
        to, location = (found[-1].page, found[-1].address) if chained else (page, sites.addresses[page])
        moved = Address(location.host, f"/moved/{number}.html")
        address = location._replace(scheme="http") if number % 3 == 0 else moved
        relative = number % 4 == 2 and address.scheme == location.scheme
        found.append(Redirect(address, location, to, statuses[number], relative))
    return found + list(_loop(sites, statuses[loop:]))


def _loop(sites: Sites, statuses: list[int]) -> Iterator[Redirect]:
    host = sites.addresses[0].host
    for number, status in enumerate(statuses):
        here, there = (Address(host, f"/loop/{each}.html") for each in (number, 1 - number))
        yield Redirect(here, there, -1, status, relative=False)


def copy_pages(
    sites: Sites, *, share: float, answers: npt.NDArray[np.int64], random: np.random.Generator
) -> list[Duplicate]:
    """Return second addresses of random pages; half of them, and all of ``answers``, name the first one canonical."""
    pages = random.permutation(len(sites.addresses))[: round(share * len(sites.addresses))]
    canonical = (random.random(len(pages)) < 0.5) | np.isin(pages, answers)
    found = []
    for page, says in zip(pages.tolist(), canonical.tolist(), strict=True):
        address = sites.addresses[page]
        # Links on the copy must lead where those on the page do, so it is in the same folder.
        folder = address.path.endswith("/")
        copy = address._replace(path=f"{address.path}index.html") if folder else address._replace(query="view=print")
        found.append(Duplicate(copy, page, says))
    return found


def lose_pages(sites: Sites, *, links: int) -> tuple[list[Address], list[Address]]:
    """Return addresses of pages that are not found, for so many links: those with a 404, and those with nothing."""
    count = -(-links // _LINKS_OF_A_MISSING_PAGE)
    hosts = [sites.addresses[number % len(sites.topics)].host for number in range(count)]
    missing = [Address(host, f"/missing/{number}.html") for number, host in enumerate(hosts)]
    gone = [
        Address("www.nowhere.example" if number % 5 == 0 else host, f"/gone/{number}.html")
        for number, host in enumerate(hosts)
    ]
    return missing, gone


def soil_links(
    linking: Linking,
    addresses: Addresses,
    *,
    broken: npt.NDArray[np.bool_],
    nofollow: npt.NDArray[np.bool_],
    random: np.random.Generator,
) -> Anchors:
    """Give each link an address: that of its page or another one of it, or one where nothing is.

    Parameters
    ----------
    linking
        The links as they were meant.
    addresses
        Those of `lose_pages` for the broken links among them.
    broken, nofollow
        bool (links,): which links lead nowhere, and which are marked.
    random
        Equal states give equal links.
    """
    aliases = addresses.aliases()[linking.target]
    by_alias = (random.random(len(linking)) < DIRT.by_alias) & (aliases >= 0)
    destination = np.where(by_alias, aliases, linking.target)
    nowhere = np.arange(addresses.first_missing, addresses.first_missing + len(addresses.missing + addresses.absent))
    destination[broken] = random.choice(np.append(nowhere, addresses.loop), int(broken.sum())) if broken.any() else 0
    return Anchors(linking.source, np.where(broken, -1, linking.target), destination, nofollow)


def choose(count: int, *, share: float, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Choose a share of so many, exactly but for rounding: bool (count,)."""
    chosen = np.zeros(count, bool)
    chosen[random.permutation(count)[: round(share * count)]] = True
    return chosen
