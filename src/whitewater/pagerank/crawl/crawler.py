"""The crawl: from start URLs to pages, within limits, politely.

What is kept as a page: every whole answer. Bodies are those of 200 (and 203) of the media types in `MEDIA_TYPES`;
redirects and errors, such as 404, are pages without a body, whose status and location say what they are. They count as
pages, so that `maximum_pages` ends traps made of redirects, too.

Counts: every URL that was seen has exactly one outcome.

==================== ==================================================================================================
outcome              the URL
==================== ==================================================================================================
fetched              is a page with its body
redirected           leads elsewhere; the page has its location
status_...           is answered with another status, after all tries
robots               is not allowed by robots.txt
robots_unreachable   is not allowed, because robots.txt cannot be had
content_type         is something else than text; its body was not downloaded
too_large            has more than `maximum_bytes` bytes
host_given_up        was not asked for, after `GIVE_UP` URLs of its host in succession without an answer
beyond_depth         is more than `maximum_depth` links away
beyond_limits        was not reached before another limit
other words          is the `answers.Reason` of a fault, which is in the log
==================== ==================================================================================================

Links that lead to no URL of the crawl are counted by link: ``links_other_host``, ``links_nofollow``, ``links_scheme``,
``links_too_long``, ``links_invalid``, ``redirects_too_many``. Pages whose links cannot be read are counted as
``links_of_binary`` or ``links_of_too_complex``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from pathlib import Path

from whitewater.config.pagerank import Crawl
from whitewater.errors import InputError
from whitewater.pagerank import urls
from whitewater.pagerank.crawl.answers import SILENCE, WITH_BODY, Answer, AnswerError, Wanted, open_session
from whitewater.pagerank.crawl.frontier import Frontier, Visit, open_frontier
from whitewater.pagerank.crawl.polite import PoliteSession, host_of
from whitewater.pagerank.crawl.robots import Robots, is_redirect
from whitewater.pagerank.crawl.scope import Scope
from whitewater.pagerank.html_page import base_of, page_links
from whitewater.pagerank.page_content import read_page
from whitewater.pagerank.pages import Page, PagesWriter
from whitewater.store import exclusive

logger = logging.getLogger(__name__)

MEDIA_TYPES = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
# Redirects in succession: browsers follow 20, and sites that mean well need a few.
MAXIMUM_REDIRECTS = 10
GIVE_UP = 5
PROGRESS_SECONDS = 5.0


def crawl(settings: Crawl, *, frontier: Path, writer: PagesWriter) -> dict[str, int]:
    """Crawl, or go on with a crawl of the same settings that was stopped, and write its pages.

    Pages that were fetched before a stop, however hard, are not asked for again. A crawl is finished when the writer
    has its pages; the next call begins a new one, so that nobody gets old pages for new ones. It cannot be known here
    whether the caller's outputs came into place: who was killed just then, and wants those pages, removes ``.finished``
    from the name of the database in ``frontier`` before the next crawl, which removes those of finished ones.

    Parameters
    ----------
    settings
        Where to begin and what the limits are. `maximum_seconds` is for all processes of a crawl together.
    frontier
        Directory of the state; another process that uses it is waited for.
    writer
        Gets the pages, in the order of the bytes of their URLs.

    Returns
    -------
    dict of str to int
        Numbers of URLs by outcome, and of links that are not followed by kind.

    Raises
    ------
    ConfigError
        If a start URL or a host is none.
    InputError
        If there is no page with a body, or the state is damaged.
    ResourceError
        If the disk is full.
    """
    scope = Scope(settings)
    frontier.mkdir(parents=True, exist_ok=True)
    with exclusive(frontier / "lock"), open_frontier(frontier, settings) as state:
        state.add([Visit(url, depth=0, redirects=0) for url in scope.start_urls])
        asyncio.run(_Crawler(settings, scope, state).run())
        counts = {**state.outcomes(deepest=settings.maximum_depth), **state.links()}
        failures = [f"{url}: {_what_became_of(url, state)}" for url in scope.start_urls]
        for page in state.read():
            writer.add(page)
    logger.info("crawled: %s", ", ".join(f"{kind} {number:,}" for kind, number in counts.items()))
    if not counts.get("fetched"):
        raise InputError("The crawl brought no page. " + "; ".join(failures) + ". Check start_urls, allowed_hosts and "
                         "the network; the log has every fault.")  # fmt: skip
    return counts


def _what_became_of(url: str, frontier: Frontier) -> str:
    location = frontier.location(url)
    return f"redirected to {location}" if location else frontier.outcome(url)


class _Crawler:
    """A crawl under way."""

    def __init__(self, settings: Crawl, scope: Scope, frontier: Frontier) -> None:
        self._settings = settings
        self._scope = scope
        self._frontier = frontier
        self._wanted = Wanted(MEDIA_TYPES, settings.maximum_bytes)
        self._silent: Counter[str] = Counter()

    async def run(self) -> None:
        """Crawl until nothing is left to do, or a limit is reached."""
        async with open_session(user_agent=self._settings.user_agent, timeout=self._settings.timeout) as session:
            client = PoliteSession(session, delay=self._settings.delay, retries=self._settings.retries)
            robots = Robots(client, user_agent=self._settings.user_agent)
            clock = asyncio.create_task(self._clock())
            try:
                async with asyncio.timeout(self._settings.maximum_seconds - self._frontier.seconds) as limit:
                    while self._choose():
                        await self._round(client, robots)
            except TimeoutError:
                if not limit.expired():
                    raise
                logger.warning("stopped after %g s, which is maximum_seconds", self._settings.maximum_seconds)
            finally:
                clock.cancel()

    def _choose(self) -> bool:
        left = self._settings.maximum_pages - self._frontier.pages
        return self._frontier.choose(most=left, deepest=self._settings.maximum_depth)

    async def _clock(self) -> None:
        """Note the time and say how far the crawl is, every few seconds."""
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            self._frontier.add_seconds(PROGRESS_SECONDS)
            logger.info("%d of at most %d pages, %d URLs of this round to go", self._frontier.pages,
                        self._settings.maximum_pages, self._frontier.chosen())  # fmt: skip

    async def _round(self, client: PoliteSession, robots: Robots) -> None:
        hosts = iter(self._frontier.chosen_hosts())

        async def visit_hosts() -> None:
            for host in hosts:  # of one iterator: each host has one visitor
                while visit := self._frontier.next_of(host):
                    await self._visit(visit, client, robots)
                    await asyncio.sleep(0)  # for the other hosts: what is refused needs no waiting

        try:
            async with asyncio.TaskGroup() as visitors:
                for _ in range(self._settings.concurrency):
                    visitors.create_task(visit_hosts())
        except ExceptionGroup as group:  # one is enough, and it is what the caller knows
            raise group.exceptions[0] from None

    async def _visit(self, visit: Visit, client: PoliteSession, robots: Robots) -> None:
        host = host_of(visit.url)
        if self._silent[host] >= GIVE_UP:
            self._frontier.settle(visit.url, "host_given_up")
            return
        rules = await robots.rules(visit.url)
        if rules is None or not rules.allow(visit.url):
            self._frontier.settle(visit.url, "robots" if rules else "robots_unreachable")
            return
        client.slow_down(host, rules.delay)
        try:
            answer = await client.get(visit.url, wanted=self._wanted)
        except AnswerError as fault:
            self._failed(visit, fault)
        else:
            self._silent[host] = 0
            await self._answered(visit, answer)

    def _failed(self, visit: Visit, fault: AnswerError) -> None:
        host = host_of(visit.url)
        self._silent[host] = self._silent[host] + 1 if fault.reason in SILENCE else 0
        if self._silent[host] == GIVE_UP:
            logger.warning("%s is not asked any more: %d URLs in succession had no answer", host, GIVE_UP)
        if fault.reason != "content_type":
            logger.warning("%s: %s", visit.url, fault)
        self._frontier.settle(visit.url, fault.reason)

    async def _answered(self, visit: Visit, answer: Answer) -> None:
        location = urls.normalise(answer.location, visit.url) if answer.location and is_redirect(answer) else None
        page = Page(visit.url, answer.status, answer.content_type, location, answer.body)
        if answer.status in WITH_BODY:
            # In a thread: large pages take seconds, in which other hosts would seem to be silent.
            outcome, (found, links) = "fetched", await asyncio.to_thread(self._links, visit, page)
        elif is_redirect(answer) and answer.location:
            outcome, (found, links) = "redirected", self._target(visit, answer.location, visit.url)
        else:
            outcome, found, links = f"status_{answer.status}", [], Counter[str]()
        self._frontier.settle(visit.url, outcome, page=page, found=found, links=links)

    def _links(self, visit: Visit, page: Page) -> tuple[list[Visit], Counter[str]]:
        """Return where a page leads, and how many of its links are not followed."""
        html = read_page(page, maximum_bytes=self._settings.maximum_bytes)
        if isinstance(html, str):
            return [], Counter({f"links_of_{html}": 1})
        links = page_links(html, page.url, nofollow=True)
        inside = [url for url in links.targets if url in self._scope]
        left_out = Counter(
            {f"links_{kind}": number for kind, number in links.left_out.items() if kind != "repeated"}
            | {"links_other_host": len(links.targets) - len(inside)}
        )
        found = [Visit(url, visit.depth + 1, redirects=0) for url in inside]
        if html.refresh is not None:  # a redirect in the words of HTML
            target, why = self._target(visit, html.refresh, base_of(html, page.url))
            return [*found, *target], +(left_out + why)
        return found, +left_out

    def _target(self, visit: Visit, sent: str, base: str) -> tuple[list[Visit], Counter[str]]:
        """Return where a redirect leads, which is as deep as the redirect itself, or why it is not followed."""
        location = urls.normalise(sent, base)
        if location is None:
            return [], Counter({f"links_{urls.refusal(sent, base)}": 1})
        if location not in self._scope:
            return [], Counter({"links_other_host": 1})
        if visit.redirects == MAXIMUM_REDIRECTS:
            return [], Counter({"redirects_too_many": 1})
        return [Visit(location, visit.depth, visit.redirects + 1)], Counter()
