"""The tables of a wiki that have titles: pages, redirects, targets of links; and where redirects lead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from whitewater.errors import InputError
from whitewater.pagerank.edge_files.name_hash import hash_names
from whitewater.pagerank.edge_files.names import Names
from whitewater.pagerank.edge_files.text_kernels import LENGTH
from whitewater.pagerank.edge_rules import Aliases, Known
from whitewater.pagerank.wikipedia_sql import Column, Rows, columns_of, read_rows

if TYPE_CHECKING:
    from whitewater.devices.protocol import Array
    from whitewater.pagerank.pages import PagesFolder

# The column by which pagelinks names a target in linktarget, where it has no titles itself.
TARGET = "pl_target_id"
_INTERWIKI = "rd_interwiki"
_PAGE: dict[str, Column] = {
    "page_id": "integer",
    "page_namespace": "integer",
    "page_title": "text",
    "page_is_redirect": "integer",
}
_REDIRECT: dict[str, Column] = {"rd_from": "integer", "rd_namespace": "integer", "rd_title": "text"}
_LINKTARGET: dict[str, Column] = {"lt_id": "integer", "lt_namespace": "integer", "lt_title": "text"}
_PAGELINKS: dict[str, Column] = {"pl_from": "integer", "pl_from_namespace": "integer"}
_PAGELINKS_WITH_TITLES = _PAGELINKS | {"pl_namespace": "integer", "pl_title": "text"}


@dataclass(frozen=True)
class Dump:
    """The files of one table, and the columns that are read; namespace and title are those that end in these words."""

    table: str
    paths: tuple[Path, ...]
    columns: dict[str, Column]

    @property
    def number(self) -> str:
        """The column of the number that a row has."""
        return next(iter(self.columns))

    @property
    def namespace(self) -> str:
        """The column of the namespace of the title."""
        return self._title.replace("title", "namespace")

    def rows(self) -> Iterator[Rows]:
        """Yield the rows of all files."""
        return (rows for path in self.paths for rows in read_rows(path, self.table, self.columns))

    def names(self, rows: Rows) -> tuple[Array, Array, Array]:
        """Return the names that the titles of rows make, as uint8 text and its spans, and their ids, int64 (rows,)."""
        text, spans = rows.names(self.namespace, self._title)
        return text, spans, hash_names(text, spans)

    @property
    def _title(self) -> str:
        return next(name for name in self.columns if name.endswith("title"))


@dataclass(frozen=True)
class Titles:
    """Rows of a table: their numbers, ascending, and int64 (rows,) the ids of their names.

    ``flags``, bool (rows,): pages that redirect; redirects to a page of this wiki; targets in a chosen namespace.
    ``articles`` are pages that do not redirect.
    """

    numbers: Known
    ids: Array
    flags: Array
    articles: Names = field(default_factory=Names)


def find_dumps(fetched: PagesFolder) -> dict[str, Dump]:
    """Return the dumps that a folder of pages names, by table; linktarget only where pagelinks needs it.

    Raises
    ------
    InputError
        If one is missing or cannot be read.
    """
    paths = {table: tuple(map(Path, files)) for table, files in fetched.files.items() if files}
    for table in ("page", "redirect", "pagelinks"):
        if table not in paths:
            raise InputError(f"{fetched.path} names no dump of table {table}. Set pagerank.fetch.wikipedia.{table}.")
    interwiki = _INTERWIKI in columns_of(paths["redirect"][0], "redirect")
    tables = {"page": _PAGE, "redirect": _REDIRECT | ({_INTERWIKI: "text"} if interwiki else {})}
    if TARGET not in columns_of(paths["pagelinks"][0], "pagelinks"):
        tables["pagelinks"] = _PAGELINKS_WITH_TITLES
    elif "linktarget" in paths:
        tables |= {"linktarget": _LINKTARGET, "pagelinks": _PAGELINKS | {TARGET: "integer"}}
    else:
        raise InputError(f"{paths['pagelinks'][0]} names targets by number. Set pagerank.fetch.wikipedia."
                         "linktarget, the dump of the table that has their titles.")  # fmt: skip
    return {table: Dump(table, paths[table], columns) for table, columns in tables.items()}


def read_titles(dump: Dump, *, namespaces: Sequence[int]) -> Titles:
    """Read a table that has titles; of pages only those in the chosen namespaces.

    Raises
    ------
    InputError
        If a dump cannot be read, or two of its rows have the same number.
    """
    numbers, ids, flags = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, bool)]
    articles = Names()
    for every in dump.rows():
        chosen = np.isin(every.columns[dump.namespace], namespaces)
        rows = every.chosen(chosen) if dump.table == "page" else every
        text, spans, found = dump.names(rows)
        flags.append(_flags(rows, chosen))
        if dump.table == "page":
            articles.add(text, spans[~flags[-1]], found[~flags[-1]])
        numbers.append(rows.columns[dump.number].copy())
        ids.append(found)
    return _by_number(dump, np.concatenate(numbers), np.concatenate(ids), np.concatenate(flags), articles)


def _flags(rows: Rows, chosen: Array) -> Array:
    flags = np.ones(len(rows), bool)
    if "page_is_redirect" in rows.columns:
        flags = rows.columns["page_is_redirect"] != 0
    elif "lt_id" in rows.columns:
        flags = chosen
    elif _INTERWIKI in rows.columns:
        # A prefix that is null or empty stands for this wiki.
        flags = rows.columns[_INTERWIKI] & LENGTH == 0
    return flags


def _by_number(dump: Dump, numbers: Array, ids: Array, flags: Array, articles: Names) -> Titles:
    if (numbers[1:] <= numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        numbers, ids, flags = numbers[order], ids[order], flags[order]
        again = np.flatnonzero(numbers[1:] == numbers[:-1])
        if len(again):
            raise InputError(f"{dump.paths[0]}: two rows have {dump.number} {numbers[again[0]]}. Fetch it again.")
    return Titles(Known(numbers), ids, flags, articles)


def resolve_redirects(pages: Titles, redirects: Titles, articles: Known) -> tuple[Aliases, int]:
    """Return the redirects that lead to an article, over other redirects too, and how many lead round in a loop."""
    numbers, ids = pages.numbers.ids[pages.flags], pages.ids[pages.flags]
    places = redirects.numbers.places(numbers)
    there = places >= 0
    there[there] = redirects.flags[places[there]]
    order = np.argsort(ids[there])
    known, targets = Known(ids[there][order]), redirects.ids[places[there]][order]
    # Each round follows twice as many redirects as the one before; what has not ended after all of them is a loop.
    for _ in range(len(targets).bit_length() + 1):
        targets = Aliases(known, targets).resolved(targets)
    leads = articles.holds(targets)
    return Aliases(Known(known.ids[leads]), targets[leads]), int(known.holds(targets).sum())
