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
other words          is the reason of a fault (`client.REASONS`), which is in the log
==================== ==================================================================================================

Links that lead to no URL of the crawl are counted by link: ``links_other_host``, ``links_nofollow``, ``links_scheme``,
``links_too_long``, ``links_invalid``, ``redirects_too_many``. Pages whose links cannot be read are counted as
``links_of_binary`` or ``links_of_too_complex``.
"""

import asyncio
import logging
from collections import Counter
from pathlib import Path

from whitewater.errors import ConfigError, InputError
from whitewater.io.store import exclusive
from whitewater.web import urls
from whitewater.web.config import Crawl
from whitewater.web.crawl.client import WITH_BODY, AnswerError, PoliteClient, host_of, open_session
from whitewater.web.crawl.frontier import Frontier, Visit, open_frontier
from whitewater.web.page_content import base_of, page_links, read_page
from whitewater.web.pages import REDIRECTS, Page, PagesWriter

logger = logging.getLogger(__name__)

# Redirects in succession: browsers follow 20, and sites that mean well need a few.
MAXIMUM_REDIRECTS = 10
GIVE_UP = 5
PROGRESS_SECONDS = 5.0


def crawl(settings: Crawl, *, frontier: Path, writer: PagesWriter) -> dict[str, int]:
    """Crawl, or go on with a crawl of the same settings that was stopped, and write its pages.

    Pages that were fetched before a stop, however hard, are not asked for again. A crawl is finished when the writer
    has its pages; the next call begins a new one, so that nobody gets old pages for new ones. Who was killed before the
    outputs came into place, and wants these pages, removes ``.finished`` from the name of the database in ``frontier``.

    The `maximum_seconds` are for all processes of a crawl together. ``frontier`` is the directory of the state; another
    process that uses it is waited for. ``writer`` gets the pages, in the order of the bytes of their URLs. Returned are
    the numbers of URLs by outcome, and of links that are not followed by kind.

    Raises ConfigError if a start URL or a host is not valid; InputError if there is no page with a body, or the state
    is damaged; and ResourceError if the disk is full.
    """
    start_urls = sorted({_start(url) for url in settings.start_urls})
    hosts = _hosts(settings, start_urls)
    frontier.mkdir(parents=True, exist_ok=True)
    with exclusive(frontier / "lock"), open_frontier(frontier, settings) as state:
        state.add([Visit(url, depth=0, redirects=0) for url in start_urls])
        asyncio.run(_Crawler(settings, hosts, state).run())
        counts = state.counts(deepest=settings.maximum_depth)
        failures = [f"{url}: {state.became(url)}" for url in start_urls]
        for page in state.read():
            writer.add(page)
    logger.info("crawled: %s", ", ".join(f"{kind} {number:,}" for kind, number in counts.items()))
    if not counts.get("fetched"):
        raise InputError("The crawl brought no page. " + "; ".join(failures) + ". Check start_urls, allowed_hosts and "
                         "the network; the log has every fault.")  # fmt: skip
    return counts


def _start(url: str) -> str:
    normal = urls.normal_or_refusal(url)
    if normal in urls.REFUSALS:
        raise ConfigError(f"pagerank.fetch.crawl.start_urls: {url} is not an address of a page ({normal}). Write it as "
                          "https://host/path.")  # fmt: skip
    return normal


def _hosts(settings: Crawl, start_urls: list[str]) -> frozenset[str]:
    """Return the hosts that a crawl stays on, as they are in URLs in normal form, without the scheme's usual port."""
    hosts = set[str]()
    for name in settings.allowed_hosts:
        normal = [urls.normalize(f"{scheme}://{name}/") for scheme in ("http", "https")]
        if not any(normal) or "/" in name:
            raise ConfigError(f"pagerank.fetch.crawl.allowed_hosts: {name} is not a host. Write it as example.org or "
                              "example.org:8080.")  # fmt: skip
        hosts.update(urls.host(url) for url in normal if url)
    for url in start_urls:
        if hosts and urls.host(url) not in hosts:
            raise ConfigError(
                f"pagerank.fetch.crawl.start_urls: {url} is on none of allowed_hosts. Add its host there."
            )
    return frozenset(hosts or map(urls.host, start_urls))


class _Crawler:
    """A crawl under way."""

    def __init__(self, settings: Crawl, hosts: frozenset[str], frontier: Frontier) -> None:
        self._settings = settings
        self._hosts = hosts
        self._frontier = frontier
        self._silent: Counter[str] = Counter()

    async def run(self) -> None:
        """Crawl until nothing is left to do, or a limit is reached."""
        async with open_session(self._settings) as session:
            client = PoliteClient(session, self._settings)
            clock = asyncio.create_task(self._clock())
            try:
                async with asyncio.timeout(self._settings.maximum_seconds - self._frontier.seconds) as limit:
                    while hosts := self._frontier.choose(
                        most=self._settings.maximum_pages - self._frontier.pages, deepest=self._settings.maximum_depth
                    ):
                        await self._round(hosts, client)
            except TimeoutError:
                if not limit.expired():
                    raise
                logger.warning("stopped after %g s, which is maximum_seconds", self._settings.maximum_seconds)
            finally:
                clock.cancel()

    async def _clock(self) -> None:
        """Note the time and say how far the crawl is, every few seconds."""
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            self._frontier.add(counts=[("seconds", PROGRESS_SECONDS)])
            pages, most = self._frontier.pages, self._settings.maximum_pages
            logger.info("%d of at most %d pages, %d URLs of this round to go", pages, most, self._frontier.chosen(),
                        extra={"progress": pages / most})  # fmt: skip

    async def _round(self, chosen_hosts: list[str], client: PoliteClient) -> None:
        hosts = iter(chosen_hosts)

        async def visit_hosts() -> None:
            for host in hosts:  # of one iterator: each host has one visitor
                while visit := self._frontier.next_of(host):
                    await self._visit(visit, client)
                    await asyncio.sleep(0)  # for the other hosts: what is refused needs no waiting

        try:
            async with asyncio.TaskGroup() as visitors:
                for _ in range(self._settings.concurrency):
                    visitors.create_task(visit_hosts())
        except ExceptionGroup as group:  # one is enough, and it is what the caller knows
            raise group.exceptions[0] from None

    async def _visit(self, visit: Visit, client: PoliteClient) -> None:
        """Ask for a URL, unless its host is given up or its robots.txt does not allow it, and settle it."""
        host = host_of(visit.url)
        refusal = "host_given_up" if self._silent[host] >= GIVE_UP else await client.refusal(visit.url)
        if refusal:
            self._frontier.settle(visit.url, refusal)
            return
        try:
            answer = await client.page(visit.url)
        except AnswerError as fault:
            self._silent[host] = self._silent[host] + 1 if fault.reason in ("timeout", "no_answer") else 0
            if self._silent[host] == GIVE_UP:
                logger.warning("%s is not asked any more: %d URLs in succession had no answer", host, GIVE_UP)
            if fault.reason != "content_type":
                logger.warning("%s: %s", visit.url, fault)
            self._frontier.settle(visit.url, fault.reason)
            return
        self._silent[host] = 0
        page, outcome = answer.page, f"status_{answer.page.status}"
        visits, links = list[Visit](), Counter[str]()
        if page.status in WITH_BODY:
            # In a thread: large pages take seconds, in which other hosts would seem to be silent.
            outcome, (visits, links) = "fetched", await asyncio.to_thread(self._links, visit, page)
        elif page.status in REDIRECTS and answer.location:
            outcome, (visits, links) = "redirected", self._target(visit, answer.location, visit.url)
        self._frontier.settle(visit.url, outcome, page=page, visits=visits, links=links.items())

    def _links(self, visit: Visit, page: Page) -> tuple[list[Visit], Counter[str]]:
        """Return where a page leads, and how many of its links are not followed."""
        html = read_page(page, maximum_bytes=self._settings.maximum_bytes)
        if isinstance(html, str):
            return [], Counter({f"links_of_{html}": 1})
        targets, kinds = page_links(html, page.url, nofollow=True)
        visits = [Visit(url, visit.depth + 1, redirects=0) for url in targets if urls.host(url) in self._hosts]
        left_out = Counter({f"links_{kind}": number for kind, number in kinds.items() if kind != "repeated"})
        left_out["links_other_host"] += len(targets) - len(visits)
        if html.refresh is not None:  # a redirect in the words of HTML
            target, why = self._target(visit, html.refresh, base_of(html, page.url))
            visits, left_out = [*visits, *target], left_out + why
        return visits, +left_out

    def _target(self, visit: Visit, sent: str, base: str) -> tuple[list[Visit], Counter[str]]:
        """Return where a redirect leads, which is as deep as the redirect itself, or why it is not followed."""
        location = urls.normal_or_refusal(sent, base)
        if location in urls.REFUSALS:
            return [], Counter({f"links_{location}": 1})
        if urls.host(location) not in self._hosts:
            return [], Counter({"links_other_host": 1})
        if visit.redirects == MAXIMUM_REDIRECTS:
            return [], Counter({"redirects_too_many": 1})
        return [Visit(location, visit.depth, visit.redirects + 1)], Counter()
