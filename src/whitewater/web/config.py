"""Settings of what brings web pages and reads them."""

from typing import Literal

from pydantic import Field

from whitewater.config.base import Section


class Html(Section):
    """A folder of HTML files."""

    folder: str = Field("", description="Path of the folder; its files .html, .htm and .xhtml are the pages.")
    base_url: str = Field("https://example.org/", description="URL that the folder stands for.")


class Crawl(Section):
    """A polite crawler: robots.txt is obeyed, each host is asked for one page at a time, and a crawl can go on."""

    start_urls: tuple[str, ...] = Field((), description="Pages to begin with.")
    allowed_hosts: tuple[str, ...] = Field(
        (), description="Hosts to stay on, with port where it is not the usual one; empty: those of start_urls."
    )
    user_agent: str = Field(
        "whitewater", min_length=1, description="Name; add how to reach you: `name (+mailto:you@example.org)`."
    )
    maximum_pages: int = Field(1000, ge=1, description="Pages to fetch; redirects and errors count.")
    maximum_depth: int = Field(10, ge=0, description="Links to follow from a start URL.")
    maximum_bytes: int = Field(10_000_000, ge=1, description="Bytes of a page; larger ones are not kept.")
    maximum_seconds: float = Field(3600.0, gt=0, description="Seconds that the crawl may take.")
    delay: float = Field(1.0, ge=0, description="Seconds between two requests to a host; robots.txt may ask for more.")
    timeout: float = Field(20.0, gt=0, description="Seconds after which a request without an answer is given up.")
    retries: int = Field(2, ge=0, description="Further tries of a request that failed.")
    concurrency: int = Field(8, ge=1, description="Hosts that are asked at once.")


class Parse(Section):
    """From pages to text and links."""

    maximum_bytes: int = Field(10_000_000, ge=1, description="Bytes of a page; larger ones are counted and left out.")
    nofollow: Literal["follow", "ignore"] = Field(
        "ignore", description="Links marked rel=nofollow, and those of pages marked nofollow: ignore leaves them out."
    )
    duplicates: Literal["merge", "keep"] = Field(
        "merge",
        description="Pages of the same content at several addresses: merge makes them one, with all links to it.",
    )
    canonical: bool = Field(True, description="Obey link rel=canonical within a host: the page is the one it names.")
    drop_parameters: tuple[str, ...] = Field(
        ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "gclid", "fbclid"),
        description="Query parameters that name no other page and are removed from URLs.",
    )
