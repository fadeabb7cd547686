"""The frontier of a crawl: every URL with its state, and the pages, in an SQLite database.

A page, its links and its counts are stored in one transaction, so a process that is killed loses only its open
requests, and the next one resumes there.

The order of a crawl depends only on the site. URLs are visited by depth, and within a depth in rounds: the first URLs
of that depth in byte order, at most as many as pages are still allowed. Targets of redirects, which have the same
depth, wait for the next round. Rounds are stored, too, so that a kill does not change them.
"""

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from whitewater.errors import InputError, ResourceError
from whitewater.web.config import Crawl
from whitewater.web.crawl.client import host_of
from whitewater.web.pages import Page

FORMAT = 2
# Settings that change which pages are found, not how fast.
DEFINING = {"start_urls", "allowed_hosts", "user_agent", "maximum_pages", "maximum_depth", "maximum_bytes"}
FINISHED = ".finished.sqlite"

# The state of a URL is 'waiting', 'chosen' (for the current round), or its outcome. `counts` are the links that are not
# followed, by kind, and the seconds of all processes of the crawl.
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
CREATE TABLE IF NOT EXISTS counts (kind TEXT PRIMARY KEY, number NOT NULL);
INSERT OR IGNORE INTO counts VALUES ('seconds', 0.0);
"""
# Keep the shortest path to a URL, so that its depth does not depend on which page came first.
_ADD = """
INSERT INTO urls (url, host, depth, redirects) VALUES (?, ?, ?, ?)
ON CONFLICT (url) DO UPDATE SET depth = excluded.depth, redirects = excluded.redirects
WHERE state = 'waiting' AND (excluded.depth, excluded.redirects) < (depth, redirects)
"""
_COUNT = "INSERT INTO counts VALUES (?, ?) ON CONFLICT (kind) DO UPDATE SET number = number + excluded.number"
_CHOOSE = """
UPDATE urls SET state = 'chosen' WHERE url IN (
    SELECT url FROM urls WHERE state = 'waiting'
    AND depth = (SELECT min(depth) FROM urls WHERE state = 'waiting' AND depth <= :deepest)
    ORDER BY url LIMIT :most
)
"""
_OUTCOMES = """
SELECT CASE WHEN state NOT IN ('waiting', 'chosen') THEN state
            WHEN depth > ? THEN 'beyond_depth' ELSE 'beyond_limits' END, count(*)
FROM urls GROUP BY 1 ORDER BY 1
"""
_LINKS = "SELECT * FROM counts WHERE kind <> 'seconds' ORDER BY kind"
_OUTCOME = "SELECT ifnull('redirected to ' || location, state) FROM urls LEFT JOIN pages USING (url) WHERE url = ?"


class Visit(NamedTuple):
    """A URL to visit, the number of links from a start URL to it, and the redirects since the last link."""

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
        """Seconds of the crawl so far, in all its processes."""
        return float(self._value("SELECT number FROM counts WHERE kind = 'seconds'"))

    def add(self, visits: Collection[Visit] = (), counts: Collection[tuple[str, float]] = ()) -> None:
        """Add URLs, or reduce the depth of those that are waiting, and add to counts."""
        rows = [(visit.url, host_of(visit.url), visit.depth, visit.redirects) for visit in visits]
        with self._connection:
            self._connection.executemany(_ADD, rows)
            self._connection.executemany(_COUNT, counts)

    def choose(self, *, most: int, deepest: int) -> list[str]:
        """Start a round of at most ``most`` URLs, unless one is open; return the hosts that have URLs in it."""
        if not self.remaining():
            with self._connection:
                self._connection.execute(_CHOOSE, {"most": most, "deepest": deepest})
        hosts = self._connection.execute("SELECT DISTINCT host FROM urls WHERE state = 'chosen' ORDER BY host")
        return [host for (host,) in hosts]

    def remaining(self) -> int:
        """Return the number of URLs of the round that have not been visited."""
        return int(self._value("SELECT count(*) FROM urls WHERE state = 'chosen'"))

    def next_of(self, host: str) -> Visit | None:
        """Return the next URL of a host in this round, if any."""
        query = "SELECT url, depth, redirects FROM urls WHERE state = 'chosen' AND host = ? ORDER BY url LIMIT 1"
        row = self._connection.execute(query, (host,)).fetchone()
        return Visit(*row) if row else None

    def settle(
        self, url: str, outcome: str, *, page: Page | None = None, visits: Collection[Visit] = (),
        skipped: Collection[tuple[str, float]] = (),
    ) -> None:  # fmt: skip
        """Store the outcome of a URL, its page if any, the URLs it leads to, and counts of links not followed."""
        with self._connection:
            self._connection.execute("UPDATE urls SET state = ? WHERE url = ?", (outcome, url))
            if page is not None:
                row = (page.url, page.status, page.content_type, page.location, zlib.compress(page.body, 1))
                self._connection.execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", row)
            self.add(visits, skipped)
        self.pages += page is not None

    def counts(self, *, deepest: int) -> dict[str, int]:
        """Return the number of URLs by outcome, and of links that were not followed by kind."""
        return dict([*self._connection.execute(_OUTCOMES, (deepest,)), *self._connection.execute(_LINKS)])

    def outcome(self, url: str) -> str:
        """Return the outcome of a URL, with its target if it redirects."""
        return str(self._value(_OUTCOME, url))

    def read(self) -> Iterator[Page]:
        """Yield the pages in the order of their URLs."""
        rows = self._connection.execute("SELECT * FROM pages ORDER BY url")
        for url, status, content_type, location, body in rows:
            yield Page(url, status, content_type, location, zlib.decompress(body))

    def _value(self, query: str, *parameters: str) -> Any:
        return self._connection.execute(query, parameters).fetchone()[0]


@contextmanager
def open_frontier(directory: Path, settings: Crawl) -> Iterator[Frontier]:
    """Open or create the frontier of the crawl that the settings define.

    When the block ends without an error the crawl is finished: its database is renamed, and removed by the next crawl.
    Databases of stopped crawls stay until these are resumed. Only one process at a time may use a directory.

    Raises InputError if the database is damaged, and ResourceError if the disk is full.
    """
    path = directory / f"{key(settings)}.sqlite"
    for finished in directory.glob(f"*{FINISHED}"):
        finished.unlink()
    try:
        with closing(sqlite3.connect(path)) as connection:
            # Exclusive access needs no shared memory, which network file systems lack.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = WAL")
            # A kill loses nothing; a power failure may lose the last pages, but the database stays consistent.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
            yield Frontier(connection)
        path.rename(path.with_name(f"{path.stem}{FINISHED}"))
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code, without the details
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise ResourceError(f"{path}: {error}. The fetched pages are kept: free disk space, then run again to "
                                "resume the crawl.") from error  # fmt: skip
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise InputError(f"{path}, the state of a crawl, is damaged: {error}. Remove it and run again: the crawl "
                             "starts over.") from error  # fmt: skip
        raise


def key(settings: Crawl) -> str:
    """Return a digest of the settings that define a crawl."""
    defining = {"format": FORMAT, **settings.model_dump(mode="json", include=DEFINING)}
    return hashlib.sha256(json.dumps(defining, sort_keys=True).encode()).hexdigest()[:16]
