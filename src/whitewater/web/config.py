"""Settings for fetching and parsing web pages."""

from typing import Literal

from pydantic import Field

from whitewater.config.base import Section


class Html(Section):
    """A folder of HTML files."""

    folder: str = Field("", description="Path of the folder. Files ending in .html, .htm or .xhtml are pages.")
    base_url: str = Field("https://example.org/", description="URL of the folder.")


class Crawl(Section):
    """A polite crawler: it obeys robots.txt, asks each host for one page at a time, and resumes after a stop."""

    start_urls: tuple[str, ...] = Field((), description="URLs to start from.")
    allowed_hosts: tuple[str, ...] = Field(
        (), description="Hosts to stay on, with the port unless it is the default one. Empty: those of start_urls."
    )
    user_agent: str = Field(
        "whitewater",
        min_length=1,
        description="Name of the crawler and how to reach you: `name (+mailto:you@example.org)`.",
    )
    maximum_pages: int = Field(1000, ge=1, le=2**53, description="Pages to fetch; redirects and errors count.")
    maximum_depth: int = Field(10, ge=0, description="Maximum number of links between a start URL and a page.")
    maximum_bytes: int = Field(10_000_000, ge=1, le=2**53, description="Maximum bytes of a page; larger are skipped.")
    maximum_seconds: float = Field(3600.0, gt=0, description="Maximum seconds of the whole crawl.")
    delay: float = Field(1.0, ge=0, description="Seconds between two requests to a host; robots.txt may ask for more.")
    timeout: float = Field(20.0, gt=0, description="Seconds without an answer after which a request fails.")
    retries: int = Field(2, ge=0, description="Retries of a request that failed.")
    concurrency: int = Field(8, ge=1, description="Hosts crawled at the same time.")


class Parse(Section):
    """How pages are parsed into text and links."""

    maximum_bytes: int = Field(
        10_000_000, ge=1, le=2**53, description="Maximum bytes of a page; larger pages are counted and skipped."
    )
    nofollow: Literal["follow", "ignore"] = Field(
        "ignore", description="Links marked rel=nofollow, or on pages marked nofollow. ignore: leave them out."
    )
    duplicates: Literal["merge", "keep"] = Field(
        "merge",
        description="Pages with the same content at several URLs. merge: one document, which gets all links to them.",
    )
    canonical: bool = Field(
        True, description="Treat a page as an alias of its rel=canonical URL, if that is on the same host."
    )
    drop_parameters: tuple[str, ...] = Field(
        ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "gclid", "fbclid"),
        description="Query parameters that are removed from URLs, because they do not change the page.",
    )
