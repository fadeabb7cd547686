"""Requests at the pace that a host is asked at, tried again where that may help."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import aiohttp

from whitewater.pagerank.crawl.answers import Answer, AnswerError, Wanted, ask
from whitewater.remote import TRANSIENT

logger = logging.getLogger(__name__)

FIRST_PAUSE = 1.0
# Nobody waits longer between two tries, or two requests, whatever Retry-After and Crawl-delay ask for.
LONGEST_PAUSE = 60.0


class PoliteSession:
    """Asks each host for one page at a time, ``delay`` seconds after the last; a request that failed is repeated.

    A host is a name or an address, whatever the port and the scheme: it is one machine that has the work.
    """

    def __init__(self, session: aiohttp.ClientSession, *, delay: float, retries: int) -> None:
        self._session = session
        self._delay = delay
        self._retries = retries
        self._delays: dict[str, float] = {}
        self._begun: dict[str, float] = {}

    def slow_down(self, host: str, delay: float) -> None:
        """Leave at least so many seconds, but no more than `LONGEST_PAUSE`, between two requests to a host."""
        self._delays[host] = max(self._delays.get(host, self._delay), min(delay, LONGEST_PAUSE))

    async def get(self, url: str, *, wanted: Wanted) -> Answer:
        """Return the answer of the last try; one of a status that may pass (429, 503 and the like) is the last one's.

        Raises
        ------
        AnswerError
            If there is none.
        """
        for attempt in itertools.count():
            last = attempt == self._retries
            await self._turn(host_of(url))
            try:
                answer = await ask(self._session, url, wanted=wanted)
            except AnswerError as fault:
                if last or not fault.passes:
                    raise
                said, pause = str(fault), 0.0
            else:
                if last or answer.status not in TRANSIENT:
                    return answer
                said, pause = f"status {answer.status}", seconds(answer.retry_after)
            pause = min(max(pause, FIRST_PAUSE * 2**attempt), LONGEST_PAUSE)
            logger.info("%s: %s; trying again in %.1f s", url, said, pause)
            await asyncio.sleep(pause)
        raise AssertionError  # itertools.count does not end

    async def _turn(self, host: str) -> None:
        """Wait until the host may be asked again, and take the turn."""
        now = time.monotonic()
        start = max(now, self._begun.get(host, -math.inf) + self._delays.get(host, self._delay))
        self._begun[host] = start  # before waiting: whoever comes meanwhile is next
        await asyncio.sleep(start - now)
        self._begun[host] = max(self._begun[host], time.monotonic())


def host_of(url: str) -> str:
    """Return the name or address of the machine in a URL, without port."""
    return urlsplit(url).hostname or ""


def seconds(retry_after: str | None) -> float:
    """Return how long a header Retry-After asks to wait, from now on; 0 where it says nothing.

    Source: RFC 9110, section 10.2.3: a number of seconds, or a date.
    """
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
