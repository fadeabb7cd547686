"""Draw topics, pages with URLs and titles, redirects, copies, missing pages, and queries.

Each topic has two hosts, ``www`` and ``blog``; the first topics have more pages. Pages are numbered by age, and the
oldest ones are the home pages.
"""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from whitewater_apps.pagerank.synthetic.words import Numbers, Vocabulary, draw_topic_words

TOPICS = (
    "astronomy", "bread", "chess", "dunes", "economy", "fjords", "gardens", "harbours", "insects", "jazz", "kites",
    "lighthouses", "maps", "nomads", "orchids", "pottery", "quilts", "rivers", "sailing", "theatre", "umbrellas",
    "volcanoes", "weaving", "xylophones", "yoga", "zoology",
)  # fmt: skip
# Of a topic, with its home page.
MINIMUM_PAGES = 5
SECTIONS, TITLE_WORDS = 6, 3
LINKS_PER_MISSING_PAGE = 3
RIVALS = 5
# The answer of a query by subject has at least this many links, and times as many as any rival.
MINIMUM_LINKS, RIVAL_FACTOR = 3, 3


class Address(NamedTuple):
    """A URL in parts, not percent-encoded."""

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
    """A URL that redirects to ``location``, and in the end to ``page``, -1 in a loop."""

    address: Address
    location: str
    page: int
    status: int


class Question(NamedTuple):
    """The words of a query, the page that should rank first, all pages with the words, and their sentence about them.

    A query of two words is by subject, a query of one word is rare; see `make_questions`.
    """

    words: tuple[str, ...]
    answer: int
    pages: tuple[int, ...]
    sentence: str


def topic_names(maximum: int, *, pages: int) -> list[str]:
    """Return the names of the topics, fewer than ``maximum`` if they would have less than `MINIMUM_PAGES`."""
    rounds = [divmod(number, len(TOPICS)) for number in range(min(maximum, pages // MINIMUM_PAGES))]
    return [TOPICS[place] + (str(number + 1) if number else "") for number, place in rounds]


def place_pages(
    pages: int, topics: Sequence[str], vocabulary: Vocabulary, *, random: np.random.Generator
) -> tuple[Numbers, list[Address], list[list[str]]]:
    """Return the topic of each page, int64 (pages,), its address, and the words of its title.

    Beyond `MINIMUM_PAGES`, the number of pages of a topic is proportional to 1 / (number + 3).
    """
    numbers = np.arange(len(topics))
    weights = 1 / (numbers + 3.0)
    first = np.tile(numbers, MINIMUM_PAGES)
    topic = np.concatenate([first, random.choice(numbers, pages - len(first), p=weights / weights.sum())])
    titles = vocabulary.words[draw_topic_words(topic[:, np.newaxis], random.random((pages, TITLE_WORDS)))]
    sections = vocabulary.words[draw_topic_words(numbers[:, np.newaxis], random.random((len(topics), SECTIONS)))]
    section = sections[topic, random.integers(SECTIONS, size=pages)]
    on_blog, is_folder = random.random(pages) < 0.25, random.random(pages) < 0.3
    addresses = [Address(f"www.{name}.example", "/") for name in topics]
    for page in range(len(topics), pages):
        host = f"{'blog' if on_blog[page] else 'www'}.{topics[topic[page]]}.example"
        ending = "/" if is_folder[page] else ".html"
        addresses.append(Address(host, f"/{section[page]}/{titles[page, 0]}-{page}{ending}"))
    return topic, addresses, titles.tolist()


def move_pages(pages: Sequence[Address], *, share: float, random: np.random.Generator) -> list[Redirect]:
    """Return redirects to random pages; every fifth one leads to the one before it, and the last two to each other.

    Every third one is the http URL of its target.
    """
    moved = random.permutation(len(pages))[: round(share * len(pages))].tolist()
    statuses = random.choice([301, 302], len(moved)).tolist()
    loop = len(moved) - 2 if len(moved) >= 4 else len(moved)
    redirects: list[Redirect] = []
    for number, page in enumerate(moved[:loop]):
        end, location = (redirects[-1].page, redirects[-1].address) if number % 5 == 1 else (page, pages[page])
        moved_address = Address(location.host, f"/moved/{number}.html")
        address = location._replace(scheme="http") if number % 3 == 0 else moved_address
        relative = number % 4 == 2 and address.scheme == location.scheme
        redirects.append(Redirect(address, location.target if relative else location.url, end, statuses[number]))
    ends = [Address(pages[0].host, f"/loop/{number}.html") for number in (0, 1)]
    pairs = zip(ends, reversed(ends), statuses[loop:], strict=False)
    return redirects + [Redirect(here, there.url, -1, status) for here, there, status in pairs]


def copy_pages(
    pages: Sequence[Address], *, share: float, answers: Sequence[int], random: np.random.Generator
) -> tuple[dict[int, Address], npt.NDArray[np.bool_]]:
    """Return second addresses of random pages, and which pages, bool (pages,), declare the first one canonical.

    These are half of the copied pages, and all ``answers`` among them.
    """
    copied = random.permutation(len(pages))[: round(share * len(pages))]
    canonical = np.zeros(len(pages), bool)
    canonical[copied] = (random.random(len(copied)) < 0.5) | np.isin(copied, answers)
    copies = {}
    for page in copied.tolist():
        path = pages[page].path
        # In the same folder, so that relative links on the copy have the same targets.
        change = {"path": f"{path}index.html"} if path.endswith("/") else {"query": "view=print"}
        copies[page] = pages[page]._replace(**change)
    return copies, canonical


def lose_pages(homes: Sequence[Address], *, links: int) -> tuple[list[Address], list[Address]]:
    """Return addresses without a page for broken links: those that answer 404, and those not in the archive."""
    hosts = [homes[number % len(homes)].host for number in range(-(-links // LINKS_PER_MISSING_PAGE))]
    missing = [Address(host, f"/missing/{number}.html") for number, host in enumerate(hosts)]
    gone = ["www.nowhere.example" if number % 5 == 0 else host for number, host in enumerate(hosts)]
    return missing, [Address(host, f"/gone/{number}.html") for number, host in enumerate(gone)]


def make_questions(
    topic: Numbers, in_degrees: Numbers, vocabulary: Vocabulary, *, random: np.random.Generator
) -> list[Question]:
    """Return two queries per topic: by subject, if a page has enough links, and by a rare word of one page.

    By subject: a few pages of about equal length have the same two words equally often, and one of them has by far the
    most links. So only links can rank it first.
    """
    questions = []
    members = np.split(np.argsort(topic, kind="stable"), np.cumsum(np.bincount(topic))[:-1])
    for number, pages in enumerate(members):
        shuffled = random.permutation(pages[1:])  # without the home page
        answer = int(shuffled[in_degrees[shuffled].argmax()])
        links = in_degrees[answer]
        rivals = shuffled[in_degrees[shuffled] * RIVAL_FACTOR <= links][:RIVALS].tolist()
        candidates = [answer, *rivals] if links >= MINIMUM_LINKS and rivals else []
        if candidates:
            one, two = vocabulary.subjects[number]
            sentence = f"All about {one} and {two}: what {one} is, what {two} was, and {one} with {two}."
            questions.append(Question((one, two), answer, tuple(candidates), sentence))
        page = next((page for page in shuffled.tolist() if page not in candidates), int(shuffled[0]))
        word = vocabulary.rare[number]
        questions.append(Question((word,), page, (page,), f"Here {word} is at home; {word} was here."))
    return questions


def choose(count: int, *, share: float, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Choose a share of ``count`` items at random, rounded: bool (count,)."""
    chosen = np.zeros(count, bool)
    chosen[random.permutation(count)[: round(share * count)]] = True
    return chosen
