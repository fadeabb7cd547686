"""The frontier of a crawl: every URL that was seen and what became of it, and the pages, in an SQLite database.

What a page brought (itself, the links on it, the counts) is stored in one transaction. A process that is killed loses
the requests under way and nothing else, and who opens the database again goes on from there.

The order of a crawl depends on the site alone. URLs are visited by depth, and within a depth in rounds: a round is the
first URLs of that depth in the order of their bytes, as many as there may still be pages; what a round finds at its own
depth (the targets of redirects) is for the next one. A round is stored, too, so that it stays what it was after a kill.
"""

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from whitewater.errors import InputError, ResourceError
from whitewater.web.config import Crawl
from whitewater.web.crawl.client import host_of
from whitewater.web.pages import Page

FORMAT = 2
# Settings that change which pages there are, not how fast or how often they are asked for.
DEFINING = {"start_urls", "allowed_hosts", "user_agent", "maximum_pages", "maximum_depth", "maximum_bytes"}
FINISHED = ".finished.sqlite"

# The state of a URL is 'waiting', 'chosen' (for the round under way), or what became of it. `counts` are links that are
# not followed, by kind, and the seconds that the crawl has taken, in all processes together.
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
# A URL that is found on a shorter way takes it, so that its depth does not depend on which page came first.
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
_BECAME = "SELECT ifnull('redirected to ' || location, state) FROM urls LEFT JOIN pages USING (url) WHERE url = ?"


class Visit(NamedTuple):
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
        return float(self._value("SELECT number FROM counts WHERE kind = 'seconds'"))

    def add(self, visits: Collection[Visit] = (), counts: Collection[tuple[str, float]] = ()) -> None:
        """Add URLs that were seen, of which known ones stay as they are or become less deep, and add to counts."""
        rows = [(visit.url, host_of(visit.url), visit.depth, visit.redirects) for visit in visits]
        with self._connection:
            self._connection.executemany(_ADD, rows)
            self._connection.executemany(_COUNT, counts)

    def choose(self, *, most: int, deepest: int) -> list[str]:
        """Begin a round of at most so many URLs, unless one is under way; return the hosts of those to be visited."""
        if not self.chosen():
            with self._connection:
                self._connection.execute(_CHOOSE, {"most": most, "deepest": deepest})
        hosts = self._connection.execute("SELECT DISTINCT host FROM urls WHERE state = 'chosen' ORDER BY host")
        return [host for (host,) in hosts]

    def chosen(self) -> int:
        """Return the number of URLs of the round that have not been visited."""
        return int(self._value("SELECT count(*) FROM urls WHERE state = 'chosen'"))

    def next_of(self, host: str) -> Visit | None:
        """Return the next URL of a host in this round."""
        query = "SELECT url, depth, redirects FROM urls WHERE state = 'chosen' AND host = ? ORDER BY url LIMIT 1"
        row = self._connection.execute(query, (host,)).fetchone()
        return Visit(*row) if row else None

    def settle(
        self, url: str, outcome: str, *, page: Page | None = None, visits: Collection[Visit] = (),
        links: Collection[tuple[str, float]] = (),
    ) -> None:  # fmt: skip
        """Store what became of a URL: one word, its page if there is one, URLs that it leads to, and links left out."""
        with self._connection:
            self._connection.execute("UPDATE urls SET state = ? WHERE url = ?", (outcome, url))
            if page is not None:
                row = (page.url, page.status, page.content_type, page.location, zlib.compress(page.body, 1))
                self._connection.execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", row)
            self.add(visits, links)
        self.pages += page is not None

    def counts(self, *, deepest: int) -> dict[str, int]:
        """Return the number of URLs by outcome, and of links that were not followed by kind.

        URLs without an outcome are beyond the greatest depth, or other limits.
        """
        return dict(chain(self._connection.execute(_OUTCOMES, (deepest,)), self._connection.execute(_LINKS)))

    def became(self, url: str) -> str:
        """Tell what became of a URL."""
        return str(self._value(_BECAME, url))

    def read(self) -> Iterator[Page]:
        """Yield the pages in the order of their URLs."""
        rows = self._connection.execute("SELECT * FROM pages ORDER BY url")
        for url, status, content_type, location, body in rows:
            yield Page(url, status, content_type, location, zlib.decompress(body))

    def _value(self, query: str, *parameters: str) -> Any:
        return self._connection.execute(query, parameters).fetchone()[0]


@contextmanager
def open_frontier(directory: Path, settings: Crawl) -> Iterator[Frontier]:
    """Open the frontier of the crawl that the settings define, a new one if need be.

    When the block ends without an error the crawl is finished: its database is renamed, so that the same settings
    begin a new crawl, and stays until then, for whoever wants to see what became of a URL. Databases of crawls that
    were stopped stay until they are gone on with.

    Only one process at a time may have a directory.

    Raises InputError if the database is damaged, and ResourceError if the disk is full.
    """
    path = directory / f"{key(settings)}.sqlite"
    for finished in directory.glob(f"*{FINISHED}"):
        finished.unlink()
    try:
        with closing(sqlite3.connect(path)) as connection:
            # One process has it, so that no shared memory is needed, which network file systems lack.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = WAL")
            # After a kill nothing is missing; after a power failure it is consistent, and may lack the last pages.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
            yield Frontier(connection)
        path.rename(path.with_name(f"{path.stem}{FINISHED}"))
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest of it tells which read or write it was
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise ResourceError(f"{path}: {error}. What was fetched is kept: see that the disk has space, then run "
                                "again to go on.") from error  # fmt: skip
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise InputError(f"{path}, the state of a crawl, is damaged: {error}. Remove it and run again: the crawl "
                             "begins anew.") from error  # fmt: skip
        raise


def key(settings: Crawl) -> str:
    """Return what tells crawls of different settings apart."""
    defining = {"format": FORMAT, **settings.model_dump(mode="json", include=DEFINING)}
    return hashlib.sha256(json.dumps(defining, sort_keys=True).encode()).hexdigest()[:16]
