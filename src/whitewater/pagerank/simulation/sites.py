"""The pages of the web before they are linked: topics, hosts, addresses, titles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from whitewater.pagerank.simulation.words import Vocabulary, capitalised, draw_topic_words

TOPICS = (
    "astronomy", "bread", "chess", "dunes", "economy", "fjords", "gardens", "harbours", "insects", "jazz", "kites",
    "lighthouses", "maps", "nomads", "orchids", "pottery", "quilts", "rivers", "sailing", "theatre", "umbrellas",
    "volcanoes", "weaving", "xylophones", "yoga", "zoology",
)  # fmt: skip
# A topic has a home page and others; where the web is too small for that, there are fewer topics.
LEAST_PAGES = 5
_SECTIONS = 6
_TITLE_WORDS = 3


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


@dataclass(frozen=True)
class Sites:
    """The pages, the oldest first: those of the numbers 0 to topics - 1 are the home pages.

    Attributes
    ----------
    topics
        Names.
    topic
        int64 (pages,): the topic of each page.
    addresses, titles
        Of each page; the words of a title, without the name of the site.
    """

    topics: tuple[str, ...]
    topic: npt.NDArray[np.int64]
    addresses: list[Address]
    titles: list[list[str]]

    def heading(self, page: int) -> str:
        """Return the title of a page as it has it."""
        return f"{capitalised(self.titles[page])} | {self.topics[self.topic[page]].capitalize()}"


def topic_names(wanted: int, *, pages: int) -> tuple[str, ...]:
    """Return the names of the topics, at most as many as have `LEAST_PAGES` each."""
    count = min(wanted, pages // LEAST_PAGES)
    return tuple(
        TOPICS[i % len(TOPICS)] + (str(i // len(TOPICS) + 1) if i >= len(TOPICS) else "") for i in range(count)
    )


def place_pages(pages: int, topics: Sequence[str], vocabulary: Vocabulary, *, random: np.random.Generator) -> Sites:
    """Give each page a topic, an address and a title.

    The first topics have more pages: their shares are proportional to 1 / (number + 3), beside the least of each.
    """
    names = tuple(topics)
    weights = 1 / (np.arange(len(names)) + 3.0)
    first = np.tile(np.arange(len(names)), LEAST_PAGES)
    others = random.choice(len(names), pages - len(first), p=weights / weights.sum())
    topic = np.concatenate([first, others]).astype(np.int64)
    titles = vocabulary.words[draw_topic_words(np.repeat(topic[:, np.newaxis], _TITLE_WORDS, 1), random=random)]
    sections = vocabulary.words[draw_topic_words(np.repeat(np.arange(len(names)), _SECTIONS), random=random)]
    section = sections.reshape(-1, _SECTIONS)[topic, random.integers(_SECTIONS, size=pages)]
    on_blog, is_folder = random.random(pages) < 0.25, random.random(pages) < 0.3
    addresses = [Address(f"www.{name}.example", "/") for name in names]
    for page in range(len(names), pages):
        host = f"{'blog' if on_blog[page] else 'www'}.{names[topic[page]]}.example"
        ending = "/" if is_folder[page] else ".html"
        addresses.append(Address(host, f"/{section[page]}/{titles[page, 0]}-{page}{ending}"))
    return Sites(names, topic, addresses, titles.tolist())
