"""The frontier of a crawl: every URL that was seen and what became of it, and the pages, in an SQLite database.

What a page brought (itself, the links on it, the counts) is stored in one transaction. A process that is killed loses
the requests under way and nothing else, and who opens the database again goes on from there.

The order of a crawl depends on the site alone. URLs are visited by depth, and within a depth in rounds: a round is the
first URLs of that depth in the order of their bytes, as many as there may still be pages; what a round finds at its own
depth (the targets of redirects) is for the next one. A round is stored, too, so that it stays what it was after a kill.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whitewater.config.pagerank import Crawl
from whitewater.errors import InputError, ResourceError
from whitewater.pagerank.crawl.polite import host_of
from whitewater.pagerank.pages import Page

FORMAT = 1
# Settings that change which pages there are, not how fast or how often they are asked for.
DEFINING = {"start_urls", "allowed_hosts", "user_agent", "maximum_pages", "maximum_depth", "maximum_bytes"}
FINISHED = ".finished.sqlite"

# The state of a URL is 'waiting', 'chosen' (for the round under way), or what became of it.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS urls (
    url TEXT PRIMARY KEY, host TEXT NOT NULL, depth INTEGER NOT NULL, redirects INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting'
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS waiting ON urls (depth, url) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS chosen ON urls (host, url) WHERE state = 'chosen';
CREATE TABLE IF NOT EXISTS pages (
    url TEXT PRIMARY KEY, status INTEGER NOT NULL, content_type TEXT, location TEXT, body BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS links (kind TEXT PRIMARY KEY, number INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS clock (one INTEGER PRIMARY KEY CHECK (one = 1), seconds REAL NOT NULL);
INSERT OR IGNORE INTO clock VALUES (1, 0.0);
"""
# A URL that is found on a shorter way takes it, so that its depth does not depend on which page came first.
_ADD = """
INSERT INTO urls (url, host, depth, redirects) VALUES (?, ?, ?, ?)
ON CONFLICT (url) DO UPDATE SET depth = excluded.depth, redirects = excluded.redirects
WHERE state = 'waiting' AND (excluded.depth, excluded.redirects) < (depth, redirects)
"""
_CHOOSE = """
UPDATE urls SET state = 'chosen' WHERE url IN (
    SELECT url FROM urls WHERE state = 'waiting'
    AND depth = (SELECT min(depth) FROM urls WHERE state = 'waiting' AND depth <= :deepest)
    ORDER BY url LIMIT :most
)
"""
_CHOSEN = "SELECT count(*) FROM urls WHERE state = 'chosen'"
_CHOSEN_HOSTS = "SELECT DISTINCT host FROM urls WHERE state = 'chosen' ORDER BY host"
_NEXT = "SELECT url, depth, redirects FROM urls WHERE state = 'chosen' AND host = ? ORDER BY url LIMIT 1"
_OUTCOMES = """
SELECT CASE WHEN state NOT IN ('waiting', 'chosen') THEN state
            WHEN depth > ? THEN 'beyond_depth' ELSE 'beyond_limits' END, count(*)
FROM urls GROUP BY 1 ORDER BY 1
"""


@dataclass(frozen=True)
class Visit:
    """A URL to be asked for: the links, and the redirects since the last link, that lead to it from a start URL."""

    url: str
    depth: int
    redirects: int


class Frontier:
    """An open frontier; every method that changes it is one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.pages: int = self._value("SELECT count(*) FROM pages")

    @property
    def seconds(self) -> float:
        """Seconds that the crawl has taken so far, in all processes together."""
        return float(self._value("SELECT seconds FROM clock"))

    def add_seconds(self, seconds: float) -> None:
        """Note that the crawl took more time."""
        self._connection.execute("UPDATE clock SET seconds = seconds + ?", (seconds,))

    def add(self, visits: Collection[Visit]) -> None:
        """Add URLs that were seen; those that are known stay as they are, or become less deep."""
        with self._transaction():
            self._add(visits)

    def choose(self, *, most: int, deepest: int) -> bool:
        """Begin a round of at most so many URLs, unless one is under way; return whether there is any."""
        if not self.chosen_hosts():
            self._connection.execute(_CHOOSE, {"most": most, "deepest": deepest})
        return bool(self.chosen_hosts())

    def chosen_hosts(self) -> list[str]:
        """Return the hosts of the round's URLs that have not been visited."""
        return [host for (host,) in self._connection.execute(_CHOSEN_HOSTS)]

    def chosen(self) -> int:
        """Return the number of URLs of the round that have not been visited."""
        return int(self._value(_CHOSEN))

    def next_of(self, host: str) -> Visit | None:
        """Return the next URL of a host in this round."""
        row = self._connection.execute(_NEXT, (host,)).fetchone()
        return Visit(*row) if row else None

    def settle(
        self,
        url: str,
        outcome: str,
        *,
        page: Page | None = None,
        found: Collection[Visit] = (),
        links: Mapping[str, int] | None = None,
    ) -> None:
        """Store what became of a URL.

        Parameters
        ----------
        url
            The URL that was visited.
        outcome
            What became of it: one word, by which it is counted.
        page
            The page, where there is one.
        found
            URLs that it leads to.
        links
            Number of its links that are not followed, by kind.
        """
        with self._transaction():
            self._connection.execute("UPDATE urls SET state = ? WHERE url = ?", (outcome, url))
            if page is not None:
                row = (page.url, page.status, page.content_type, page.location, zlib.compress(page.body, 1))
                self._connection.execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", row)
            self._add(found)
            self._connection.executemany(
                "INSERT INTO links VALUES (?, ?) ON CONFLICT (kind) DO UPDATE SET number = number + excluded.number",
                (links or {}).items(),
            )
        self.pages += page is not None

    def outcomes(self, *, deepest: int) -> dict[str, int]:
        """Return the number of URLs by outcome; those without one are beyond the greatest depth, or other limits."""
        return dict(self._connection.execute(_OUTCOMES, (deepest,)))

    def links(self) -> dict[str, int]:
        """Return the number of links that were not followed, by kind."""
        return dict(self._connection.execute("SELECT kind, number FROM links ORDER BY kind"))

    def outcome(self, url: str) -> str:
        """Return what became of a URL."""
        return str(self._value("SELECT state FROM urls WHERE url = ?", url))

    def location(self, url: str) -> str | None:
        """Return where a page redirects to."""
        row = self._connection.execute("SELECT location FROM pages WHERE url = ?", (url,)).fetchone()
        return row[0] if row else None

    def read(self) -> Iterator[Page]:
        """Yield the pages in the order of their URLs."""
        rows = self._connection.execute("SELECT url, status, content_type, location, body FROM pages ORDER BY url")
        for url, status, content_type, location, body in rows:
            yield Page(url, status, content_type, location, zlib.decompress(body))

    def _add(self, visits: Collection[Visit]) -> None:
        self._connection.executemany(
            _ADD, [(visit.url, host_of(visit.url), visit.depth, visit.redirects) for visit in visits]
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:  # a full disk has ended it
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _value(self, query: str, *parameters: str) -> Any:
        return self._connection.execute(query, parameters).fetchone()[0]


@contextmanager
def open_frontier(directory: Path, settings: Crawl) -> Iterator[Frontier]:
    """Open the frontier of the crawl that the settings define, a new one if need be.

    When the block ends without an error the crawl is finished: its database is renamed, so that the same settings
    begin a new crawl, and stays until then, for whoever wants to see what became of a URL. Databases of crawls that
    were stopped stay until they are gone on with.

    Only one process at a time may have a directory.

    Raises
    ------
    InputError
        If the database is damaged.
    ResourceError
        If the disk is full.
    """
    path = directory / f"{key(settings)}.sqlite"
    for finished in directory.glob(f"*{FINISHED}"):
        finished.unlink()
    with _explained(path):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            # One process has it, so that no shared memory is needed, which network file systems lack.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = WAL")
            # After a kill nothing is missing; after a power failure it is consistent, and may lack the last pages.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
            yield Frontier(connection)
        path.rename(path.with_name(f"{path.stem}{FINISHED}"))


def key(settings: Crawl) -> str:
    """Return what tells crawls of different settings apart."""
    defining = {"format": FORMAT, **settings.model_dump(mode="json", include=DEFINING)}
    return hashlib.sha256(json.dumps(defining, sort_keys=True).encode()).hexdigest()[:16]


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest of it tells which read or write it was
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise ResourceError(f"{path}: {error}. What was fetched is kept: see that the disk has space, then run "
                                "again to go on.") from error  # fmt: skip
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise InputError(f"{path}, the state of a crawl, is damaged: {error}. Remove it and run again: the crawl "
                             "begins anew.") from error  # fmt: skip
        raise
