"""Which URLs belong to a crawl."""

from __future__ import annotations

from whitewater.config.pagerank import Crawl
from whitewater.errors import ConfigError
from whitewater.pagerank import urls


class Scope:
    """The start URLs of a crawl in normal form, and the hosts it stays on.

    Raises
    ------
    ConfigError
        If a start URL or a host is none, or a start URL is on another host.
    """

    def __init__(self, settings: Crawl) -> None:
        self.start_urls = sorted({_start(url) for url in settings.start_urls})
        named = [host for name in settings.allowed_hosts for host in _hosts(name)]
        self._hosts = frozenset(named or map(urls.host, self.start_urls))
        for url in self.start_urls:
            if url not in self:
                raise ConfigError(
                    f"pagerank.fetch.crawl.start_urls: {url} is on none of allowed_hosts. Add its host there."
                )

    def __contains__(self, url: str) -> bool:
        return urls.host(url) in self._hosts


def _start(url: str) -> str:
    normal = urls.normalise(url)
    if normal is None:
        raise ConfigError(
            f"pagerank.fetch.crawl.start_urls: {url} is no address of a page ({urls.refusal(url)}). Write it as "
            "https://host/path."
        )
    return normal


def _hosts(name: str) -> list[str]:
    """Return a host as it is in URLs in normal form, where the usual port of the scheme is left out."""
    normal = [urls.normalise(f"{scheme}://{name}/") for scheme in ("http", "https")]
    found = [urls.host(url) for url in normal if url]
    if not found or "/" in name:
        raise ConfigError(
            f"pagerank.fetch.crawl.allowed_hosts: {name} is no host. Write it as example.org or example.org:8080."
        )
    return found
