"""What robots.txt allows, by RFC 9309 (Robots Exclusion Protocol); the section numbers below are of it."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from urllib.parse import urljoin

from protego import Protego

from whitewater.pagerank import urls
from whitewater.pagerank.crawl.answers import Answer, AnswerError, Wanted
from whitewater.pagerank.crawl.polite import PoliteSession

logger = logging.getLogger(__name__)

LARGEST = Wanted(media_types=None, maximum_bytes=500 << 10, cut=True)  # 2.5: at least 500 KiB are read
MAXIMUM_REDIRECTS = 5  # 2.3.1.2: at least five
TOO_MANY_REQUESTS = 429


@dataclass(frozen=True)
class Rules:
    """What one robots.txt says to one crawler."""

    parsed: Protego
    agent: str

    def allow(self, url: str) -> bool:
        """Return whether the crawler may ask for a URL."""
        return self.parsed.can_fetch(url, self.agent)

    @property
    def delay(self) -> float:
        """Seconds that are asked for between two requests."""
        return self.parsed.crawl_delay(self.agent) or 0.0


class Robots:
    """The rules of every scheme, host and port, each asked for once."""

    def __init__(self, client: PoliteSession, *, user_agent: str) -> None:
        self._client = client
        # A crawler's name may be anywhere in its user agent, but a word in its address is no name.
        self._agent = re.sub(r"\+?https?://[^\s;)]*", "", user_agent)
        self._known: dict[str, Rules | None] = {}

    async def rules(self, url: str) -> Rules | None:
        """Return the rules for a URL; None where they cannot be had, so that nothing is allowed (2.3.1.4)."""
        place = urljoin(url, "/robots.txt")
        if place not in self._known:
            self._known[place] = await self._ask(place)
        return self._known[place]

    async def _ask(self, place: str) -> Rules | None:
        try:
            answer = await self._answer(place)
        except AnswerError as fault:
            logger.warning("%s: %s; nothing is asked for there", place, fault)
            return None
        # "Too many requests" is no permission for more of them, although 2.3.1.3 counts it among those that are.
        if answer.status >= 500 or answer.status == TOO_MANY_REQUESTS:
            logger.warning("%s: status %d; nothing is asked for there", place, answer.status)
            return None
        # A body is there only with success: with all else the file is unavailable, and everything allowed (2.3.1.3).
        return Rules(Protego.parse(_text(answer.body)), self._agent)

    async def _answer(self, place: str) -> Answer:
        """Return the answer after redirects, which may lead to other hosts; the last redirect where there are more."""
        answer = await self._client.get(place, wanted=LARGEST)
        for _ in range(MAXIMUM_REDIRECTS):
            target = urls.normalise(answer.location, place) if answer.location and is_redirect(answer) else None
            if target is None:
                break
            place = target
            answer = await self._client.get(place, wanted=LARGEST)
        return answer


def _text(body: bytes) -> str:
    if len(body) == LARGEST.maximum_bytes:
        # Half of "Disallow: /private" would forbid everything.
        body = body[: body.rfind(b"\n") + 1]
    return body.decode("utf-8-sig", "replace")


def is_redirect(answer: Answer) -> bool:
    """Return whether the answer's Location is where the page is to be found (RFC 9110, section 15.4)."""
    return answer.status in (301, 302, 303, 307, 308)
