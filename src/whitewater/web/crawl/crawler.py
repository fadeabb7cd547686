"""Crawl pages from start URLs, politely and within limits.

Every complete response is a page. Redirects and errors, such as 404, are pages without a body; they count toward
`maximum_pages`, so that it also ends traps made of redirects. Every URL that was seen has exactly one outcome:

==================== ==================================================================================================
outcome              the URL
==================== ==================================================================================================
fetched              is a page with its body
redirected           leads elsewhere; the page has its location
status_...           has another status, after all retries
robots               is not allowed by robots.txt
robots_unreachable   is not requested, because robots.txt cannot be read
content_type         is not HTML or text; its body was not downloaded
too_large            has more than `maximum_bytes` bytes
host_given_up        is not requested, because `GIVE_UP` URLs of its host in a row had no answer
beyond_depth         is more than `maximum_depth` links away
beyond_limits        was not reached before another limit
other words          failed, for one of `client.REASONS`, which is in the log
==================== ==================================================================================================

Links that are not followed are counted as ``links_other_host``, ``links_nofollow``, ``links_scheme``,
``links_too_long``, ``links_invalid`` and ``redirects_too_many``, and pages whose links cannot be read as
``links_of_binary`` and ``links_of_too_complex``.
"""

import asyncio
import logging
from collections import Counter
from pathlib import Path

from whitewater.errors import ConfigError, InputError
from whitewater.io.store import hold_lock
from whitewater.web import urls
from whitewater.web.config import Crawl
from whitewater.web.crawl.client import WITH_BODY, PoliteClient, RequestError, host_of, open_session
from whitewater.web.crawl.frontier import Frontier, Visit, open_frontier
from whitewater.web.page_content import base_of, page_links, read_page
from whitewater.web.pages import REDIRECTS, Page, PagesWriter

logger = logging.getLogger(__name__)

# In a row: browsers follow 20, and well-meaning sites need a few.
MAXIMUM_REDIRECTS = 10
GIVE_UP = 5
PROGRESS_SECONDS = 5.0


def crawl(settings: Crawl, *, frontier: Path, writer: PagesWriter) -> dict[str, int]:
    """Crawl, or resume a stopped crawl of the same settings, and write its pages in the order of their URLs.

    ``frontier`` is the directory of the state; if another process uses it, this one waits. Pages fetched before a stop
    are not requested again, and `maximum_seconds` counts all processes of a crawl. Once all pages are written the crawl
    is finished, and the next call starts a new one. If the step is killed after that, remove ``.finished`` from the
    name of the database in ``frontier`` to use its pages.

    Returns the number of URLs by outcome, and of links that are not followed by reason.

    Raises ConfigError if a start URL or a host is not valid; InputError if there is no page with a body, or the state
    is damaged; and ResourceError if the disk is full.
    """
    start_urls = sorted({_normalize_start_url(url) for url in settings.start_urls})
    hosts = _hosts(settings, start_urls)
    frontier.mkdir(parents=True, exist_ok=True)
    with hold_lock(frontier / "lock"), open_frontier(frontier, settings) as state:
        state.add([Visit(url, depth=0, redirects=0) for url in start_urls])
        asyncio.run(_Crawler(settings, hosts, state).run())
        counts = state.counts(deepest=settings.maximum_depth)
        failures = [f"{url}: {state.outcome(url)}" for url in start_urls]
        for page in state.read():
            writer.add(page)
    logger.info("crawled: %s", ", ".join(f"{kind} {number:,}" for kind, number in counts.items()))
    if not counts.get("fetched"):
        raise InputError("The crawl found no page. " + "; ".join(failures) + ". Check start_urls, allowed_hosts and "
                         "the network; the log lists all errors.")  # fmt: skip
    return counts


def _normalize_start_url(url: str) -> str:
    normal = urls.normal_or_refusal(url)
    if normal in urls.REFUSALS:
        raise ConfigError(f"pagerank.fetch.crawl.start_urls: {url} is not the URL of a page ({normal}). Write it as "
                          "https://host/path.")  # fmt: skip
    return normal


def _hosts(settings: Crawl, start_urls: list[str]) -> frozenset[str]:
    """Return the hosts that a crawl stays on, as they are in URLs in normal form."""
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
    def __init__(self, settings: Crawl, hosts: frozenset[str], frontier: Frontier) -> None:
        self._settings = settings
        self._hosts = hosts
        self._frontier = frontier
        self._unanswered: Counter[str] = Counter()  # URLs in a row, by host

    async def run(self) -> None:
        """Crawl until no URL is left, or a limit is reached."""
        async with open_session(self._settings) as session:
            client = PoliteClient(session, self._settings)
            clock = asyncio.create_task(self._report_progress())
            try:
                async with asyncio.timeout(self._settings.maximum_seconds - self._frontier.seconds) as limit:
                    while hosts := self._frontier.choose(
                        most=self._settings.maximum_pages - self._frontier.pages, deepest=self._settings.maximum_depth
                    ):
                        await self._run_round(hosts, client)
            except TimeoutError:
                if not limit.expired():
                    raise
                logger.warning("stopped after %g s, which is maximum_seconds", self._settings.maximum_seconds)
            finally:
                clock.cancel()

    async def _report_progress(self) -> None:
        """Store the elapsed time and log the progress every few seconds."""
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            self._frontier.add(counts=[("seconds", PROGRESS_SECONDS)])
            pages, maximum = self._frontier.pages, self._settings.maximum_pages
            logger.info("%d of at most %d pages, %d URLs left in this round", pages, maximum,
                        self._frontier.remaining(), extra={"progress": pages / maximum})  # fmt: skip

    async def _run_round(self, hosts: list[str], client: PoliteClient) -> None:
        queue = iter(hosts)

        async def visit_hosts() -> None:
            for host in queue:  # all tasks share one iterator, so each host has one task
                while visit := self._frontier.next_of(host):
                    await self._visit(visit, client)
                    await asyncio.sleep(0)  # let other tasks run: a refused URL does not wait

        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self._settings.concurrency):
                    tasks.create_task(visit_hosts())
        except ExceptionGroup as group:  # callers handle the error, not the group
            raise group.exceptions[0] from None

    async def _visit(self, visit: Visit, client: PoliteClient) -> None:
        """Request a URL, unless its host is given up or robots.txt forbids it, and store the outcome."""
        host = host_of(visit.url)
        refusal = "host_given_up" if self._unanswered[host] >= GIVE_UP else await client.refusal(visit.url)
        if refusal:
            self._frontier.settle(visit.url, refusal)
            return
        try:
            response = await client.get(visit.url)
        except RequestError as error:
            self._unanswered[host] = self._unanswered[host] + 1 if error.reason in ("timeout", "no_answer") else 0
            if self._unanswered[host] == GIVE_UP:
                logger.warning("%s is given up: %d URLs in a row had no answer", host, GIVE_UP)
            if error.reason != "content_type":
                logger.warning("%s: %s", visit.url, error)
            self._frontier.settle(visit.url, error.reason)
            return
        self._unanswered[host] = 0
        page, outcome = response.page, f"status_{response.page.status}"
        visits, skipped = list[Visit](), Counter[str]()
        if page.status in WITH_BODY:
            # In a thread: parsing a large page takes seconds, in which requests to other hosts would time out.
            outcome, (visits, skipped) = "fetched", await asyncio.to_thread(self._follow_links, visit, page)
        elif page.status in REDIRECTS and response.location:
            outcome, (visits, skipped) = "redirected", self._follow_redirect(visit, response.location, visit.url)
        self._frontier.settle(visit.url, outcome, page=page, visits=visits, skipped=skipped.items())

    def _follow_links(self, visit: Visit, page: Page) -> tuple[list[Visit], Counter[str]]:
        """Return the URLs that a page links to, and the number of links that are not followed, by reason."""
        html = read_page(page, maximum_bytes=self._settings.maximum_bytes)
        if isinstance(html, str):
            return [], Counter({f"links_of_{html}": 1})
        targets, reasons = page_links(html, page.url, nofollow=True)
        visits = [Visit(url, visit.depth + 1, redirects=0) for url in targets if urls.host(url) in self._hosts]
        skipped = Counter({f"links_{reason}": number for reason, number in reasons.items() if reason != "repeated"})
        skipped["links_other_host"] += len(targets) - len(visits)
        if html.refresh is not None:  # a redirect by a meta tag
            target, reason_count = self._follow_redirect(visit, html.refresh, base_of(html, page.url))
            visits, skipped = [*visits, *target], skipped + reason_count
        return visits, +skipped

    def _follow_redirect(self, visit: Visit, target: str, base: str) -> tuple[list[Visit], Counter[str]]:
        """Return the target of a redirect, at the same depth, or the reason why it is not followed."""
        location = urls.normal_or_refusal(target, base)
        if location in urls.REFUSALS:
            return [], Counter({f"links_{location}": 1})
        if urls.host(location) not in self._hosts:
            return [], Counter({"links_other_host": 1})
        if visit.redirects == MAXIMUM_REDIRECTS:
            return [], Counter({"redirects_too_many": 1})
        return [Visit(location, visit.depth, visit.redirects + 1)], Counter()
