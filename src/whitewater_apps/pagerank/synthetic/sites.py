"""Topics, their pages with addresses and titles, other addresses that lead to pages or nowhere, and queries.

Each topic has a home page and others on two hosts, ``www`` and ``blog``; the first topics have more pages. Pages are
numbered from the oldest on, and the first ones are the home pages.
"""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from whitewater_apps.pagerank.synthetic.words import Numbers, Vocabulary, topic_words

TOPICS = (
    "astronomy", "bread", "chess", "dunes", "economy", "fjords", "gardens", "harbours", "insects", "jazz", "kites",
    "lighthouses", "maps", "nomads", "orchids", "pottery", "quilts", "rivers", "sailing", "theatre", "umbrellas",
    "volcanoes", "weaving", "xylophones", "yoga", "zoology",
)  # fmt: skip
# A topic has a home page and others; where the web is too small for that, there are fewer topics.
LEAST_PAGES = 5
SECTIONS, TITLE_WORDS = 6, 3
LEAST_FOR_LOOP = 4  # redirects; among fewer, no two lead to each other
LINKS_OF_A_MISSING_PAGE = 3
RIVALS = 5
# The answer of a query has at least so many times the links of any rival, and at least so many.
TIMES_THE_LINKS, LEAST_LINKS = 3, 3


class Address(NamedTuple):
    """A URL in parts; path and query as people write them, not percent-encoded."""

    host: str
    path: str
    query: str = ""
    scheme: str = "https"

    @property
    def url(self) -> str:
        """The URL in ASCII: percent-encoded UTF-8."""
        return f"{self.scheme}://{self.host}{self.target}"

    @property
    def target(self) -> str:
        """Path and query in ASCII."""
        return quote(self.path) + (f"?{self.query}" if self.query else "")


class Redirect(NamedTuple):
    """An address that leads to another; ``page`` is where it ends, -1 in a loop."""

    address: Address
    location: str
    page: int
    status: int


class Question(NamedTuple):
    """The words of a query, the page that ought to be first, all pages that have the words, and what these say.

    A query of several words is by subject, one of a single word is rare; see `ask`.
    """

    words: tuple[str, ...]
    answer: int
    pages: tuple[int, ...]
    sentence: str


def topic_names(wanted: int, *, pages: int) -> list[str]:
    """Return the names of the topics, at most as many as have `LEAST_PAGES` each."""
    rounds = [divmod(number, len(TOPICS)) for number in range(min(wanted, pages // LEAST_PAGES))]
    return [TOPICS[place] + (str(number + 1) if number else "") for number, place in rounds]


def place_pages(
    pages: int, topics: Sequence[str], vocabulary: Vocabulary, *, random: np.random.Generator
) -> tuple[Numbers, list[Address], list[list[str]]]:
    """Return of each page its topic, int64 (pages,), its address, and the words of its title.

    The shares of the topics are proportional to 1 / (number + 3), beside the least of each.
    """
    every = np.arange(len(topics))
    weights = 1 / (every + 3.0)
    first = np.tile(every, LEAST_PAGES)
    topic = np.concatenate([first, random.choice(every, pages - len(first), p=weights / weights.sum())])
    titles = vocabulary.words[topic_words(topic[:, np.newaxis], random.random((pages, TITLE_WORDS)))]
    sections = vocabulary.words[topic_words(every[:, np.newaxis], random.random((len(topics), SECTIONS)))]
    section = sections[topic, random.integers(SECTIONS, size=pages)]
    on_blog, is_folder = random.random(pages) < 0.25, random.random(pages) < 0.3
    addresses = [Address(f"www.{name}.example", "/") for name in topics]
    for page in range(len(topics), pages):
        host = f"{'blog' if on_blog[page] else 'www'}.{topics[topic[page]]}.example"
        ending = "/" if is_folder[page] else ".html"
        addresses.append(Address(host, f"/{section[page]}/{titles[page, 0]}-{page}{ending}"))
    return topic, addresses, titles.tolist()


def move_pages(pages: Sequence[Address], *, share: float, random: np.random.Generator) -> list[Redirect]:
    """Return redirects to random pages: every fifth one leads to the one before it, and the last two to each other.

    Some are the unencrypted address of the page, as hosts have them that moved to https.
    """
    moved = random.permutation(len(pages))[: round(share * len(pages))].tolist()
    statuses = random.choice([301, 302], len(moved)).tolist()
    loop = len(moved) - 2 if len(moved) >= LEAST_FOR_LOOP else len(moved)
    found: list[Redirect] = []
    for number, page in enumerate(moved[:loop]):
        to, location = (found[-1].page, found[-1].address) if number % 5 == 1 else (page, pages[page])
        here = Address(location.host, f"/moved/{number}.html")
        address = location._replace(scheme="http") if number % 3 == 0 else here
        relative = number % 4 == 2 and address.scheme == location.scheme
        found.append(Redirect(address, location.target if relative else location.url, to, statuses[number]))
    ends = [Address(pages[0].host, f"/loop/{number}.html") for number in (0, 1)]
    pairs = zip(ends, reversed(ends), statuses[loop:], strict=False)
    return found + [Redirect(here, there.url, -1, status) for here, there, status in pairs]


def copy_pages(
    pages: Sequence[Address], *, share: float, answers: Sequence[int], random: np.random.Generator
) -> tuple[dict[int, Address], npt.NDArray[np.bool_]]:
    """Return second addresses of random pages, and the pages, bool (pages,), that name their first one canonical.

    These are half of those that have two, and all of ``answers``.
    """
    copied = random.permutation(len(pages))[: round(share * len(pages))]
    canonical = np.zeros(len(pages), bool)
    canonical[copied] = (random.random(len(copied)) < 0.5) | np.isin(copied, answers)
    copies = {}
    for page in copied.tolist():
        path = pages[page].path
        # Links on the copy must lead where those on the page do, so it is in the same folder.
        change = {"path": f"{path}index.html"} if path.endswith("/") else {"query": "view=print"}
        copies[page] = pages[page]._replace(**change)
    return copies, canonical


def lose_pages(homes: Sequence[Address], *, links: int) -> tuple[list[Address], list[Address]]:
    """Return addresses of pages that are not found, for so many links: those with a 404, and those with nothing."""
    hosts = [homes[number % len(homes)].host for number in range(-(-links // LINKS_OF_A_MISSING_PAGE))]
    missing = [Address(host, f"/missing/{number}.html") for number, host in enumerate(hosts)]
    gone = ["www.nowhere.example" if number % 5 == 0 else host for number, host in enumerate(hosts)]
    return missing, [Address(host, f"/gone/{number}.html") for number, host in enumerate(gone)]


def ask(topic: Numbers, in_degrees: Numbers, vocabulary: Vocabulary, *, random: np.random.Generator) -> list[Question]:
    """Return queries: by topic the one of a subject, where a page is linked to enough, and a rare one.

    By subject: a few pages of a topic, all of about the same length, have the same two words equally often, and one of
    them has by far the most links. Words cannot tell them apart; links do. Rare: one page has the word.
    """
    found = []
    members = np.split(np.argsort(topic, kind="stable"), np.cumsum(np.bincount(topic))[:-1])
    for number, pages in enumerate(members):
        shuffled = random.permutation(pages[1:])  # the first one is the home page
        answer = int(shuffled[in_degrees[shuffled].argmax()])
        links = in_degrees[answer]
        rivals = shuffled[in_degrees[shuffled] * TIMES_THE_LINKS <= links][:RIVALS].tolist()
        taken = [answer, *rivals] if links >= LEAST_LINKS and rivals else []
        if taken:
            one, two = vocabulary.subjects[number]
            said = f"All about {one} and {two}: what {one} is, what {two} was, and {one} with {two}."
            found.append(Question((one, two), answer, tuple(taken), said))
        free = next((page for page in shuffled.tolist() if page not in taken), int(shuffled[0]))
        word = vocabulary.rare[number]
        found.append(Question((word,), free, (free,), f"Here {word} is at home; {word} was here."))
    return found


def choose(count: int, *, share: float, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Choose a share of so many, exactly but for rounding: bool (count,)."""
    chosen = np.zeros(count, bool)
    chosen[random.permutation(count)[: round(share * count)]] = True
    return chosen
