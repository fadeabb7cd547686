"""Edges from the dumps of a wiki: its articles are the vertices, redirects are resolved, and titles are the names.

The name of a page is its title with blanks; where its namespace is not 0, the number of that and a colon stand ahead of
it, as in ``14:Physics``. Tables: https://www.mediawiki.org/wiki/Manual:Database_layout. Targets of links are in table
linktarget since 2024, and in pagelinks itself before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whitewater.config.pagerank import Wikipedia
from whitewater.errors import InputError
from whitewater.pagerank.documents import finish_documents, write_documents
from whitewater.pagerank.edge_files.names import Names, merged
from whitewater.pagerank.edge_rules import Aliases, Known, judge, total
from whitewater.pagerank.edges_folder import EdgesFolder, EdgesWriter, finish_edges, open_edges
from whitewater.pagerank.wikipedia_titles import TARGET, Dump, Titles, find_dumps, read_titles, resolve_redirects

if TYPE_CHECKING:
    from whitewater.config.pagerank import EdgeRules
    from whitewater.devices.protocol import Array
    from whitewater.pagerank.pages import PagesFolder
    from whitewater.pagerank.wikipedia_sql import Rows
    from whitewater.step import Run
    from whitewater.workers import Workers


@dataclass(frozen=True)
class Wiki:
    """What the rows of pagelinks are resolved with.

    ``pages`` by number, flagged where they redirect; ``targets`` by number, flagged where their namespace is chosen, or
    None where pagelinks has the titles; ``articles`` are the vertices and ``redirects`` their aliases.
    """

    namespaces: tuple[int, ...]
    pages: Titles
    targets: Titles | None
    articles: Known
    redirects: Aliases


def edges_of_wikipedia(run: Run[EdgeRules], fetched: PagesFolder, folder: Path) -> EdgesFolder:
    """Write the links between articles, the articles as vertices, and as documents that have a title and no text.

    Raises
    ------
    InputError
        If a dump cannot be read, is cut off, or lacks a table or column, or no page is in the chosen namespaces.
    """
    settings = Wikipedia.model_validate(fetched.settings)
    dumps = find_dumps(fetched)
    folder.mkdir(parents=True, exist_ok=True)
    with run.cluster() as client:
        wiki, vertices, loops = _read_wiki(run, dumps, settings.namespaces, client)
        counts = Counter({"redirected": 0, "redirects": len(wiki.redirects.vertices), "redirects_in_loops": loops})
        broken = [np.empty(0, np.int64)]
        parts = list(enumerate(_each_file(dumps["pagelinks"])))
        work = partial(read_links, wiki=wiki, rules=run.settings, folder=folder)
        for found, ids in run.map(work, parts, client=client, label="edges", ordered=True):
            counts.update(found)
            broken.append(ids)
        others = _names_of(np.unique(np.concatenate(broken)), dumps.get("linktarget", dumps["pagelinks"]))
    _write_documents(folder, vertices, wiki.redirects)
    finish_edges(
        folder,
        edges=counts["edges"],
        weighted=False,
        directed=True,
        vertices=merged([vertices, others]),
        counts=total(counts),
    )
    return open_edges(folder)


def read_links(part: tuple[int, Dump], *, wiki: Wiki, rules: EdgeRules, folder: Path) -> tuple[Counter[str], Array]:
    """Write the edges of a file of pagelinks; return the counts, and the broken targets that are kept, int64."""
    number, dump = part
    counts: Counter[str] = Counter()
    broken = [np.empty(0, np.int64)]
    with EdgesWriter(folder, number, weighted=False) as writer:
        for rows in dump.rows():
            usable, source, linked, dropped = _ends(rows, dump, wiki)
            target = wiki.redirects.resolved(linked)
            judged = judge(source, target, ~wiki.articles.holds(target), rules)
            writer.add(source[judged.kept], target[judged.kept])
            counts.update(judged.counts)
            counts.update(dropped, read=len(rows) - int(usable.sum()), redirected=int((target != linked).sum()))
            if rules.broken == "keep":
                broken.append(np.unique(target[judged.broken]))
    return counts, np.unique(np.concatenate(broken))


def _ends(rows: Rows, dump: Dump, wiki: Wiki) -> tuple[Array, Array, Array, dict[str, int]]:
    """Return which rows are links from an article to a chosen namespace, their ends, and the others by reason."""
    sources = wiki.pages.numbers.places(rows.columns["pl_from"])
    found = sources >= 0
    redirects = found & wiki.pages.flags[sources]
    chosen_source = np.isin(rows.columns["pl_from_namespace"], wiki.namespaces)
    if wiki.targets is None:
        chosen_target = np.isin(rows.columns["pl_namespace"], wiki.namespaces)
        unknown_target, (_, _, linked) = np.zeros(len(rows), bool), dump.names(rows)
    else:
        targets = wiki.targets.numbers.places(rows.columns[TARGET])
        unknown_target, linked = targets < 0, wiki.targets.ids[targets]
        chosen_target = wiki.targets.flags[targets] | unknown_target
    reasons = {
        "dropped_other_namespaces": ~chosen_source | ~chosen_target,
        "dropped_unknown_sources": ~found,
        "dropped_from_redirects": redirects,
        "dropped_unknown_targets": unknown_target,
    }
    usable = np.ones(len(rows), bool)
    dropped = {}
    for reason, concerned in reasons.items():
        dropped[reason] = int((usable & concerned).sum())
        usable &= ~concerned
    return usable, wiki.pages.ids[sources][usable], linked[usable], dropped


def _each_file(dump: Dump) -> list[Dump]:
    return [Dump(dump.table, (path,), dump.columns) for path in dump.paths]


def _read_wiki(
    run: Run[EdgeRules], dumps: Mapping[str, Dump], namespaces: tuple[int, ...], client: Workers
) -> tuple[Wiki, pa.Table, int]:
    """Read the tables of pages, redirects and targets; return also the articles with names, and redirects in loops."""
    tables = [dumps[table] for table in ("page", "redirect", "linktarget") if table in dumps]
    work = partial(read_titles, namespaces=namespaces)
    pages, redirects, *targets = run.map(work, tables, client=client, label="titles", ordered=True)
    vertices = pages.articles.table()
    if not vertices.num_rows:
        chosen = ", ".join(map(str, namespaces))
        raise InputError(f"{dumps['page'].paths[0]} has no page in the namespaces {chosen}, except redirects. Check "
                         "pagerank.fetch.wikipedia.namespaces.")  # fmt: skip
    if targets and not len(targets[0].ids):
        raise InputError(f"{dumps['linktarget'].paths[0]} has no rows, but pagelinks names targets by number. Fetch it "
                         "again.")  # fmt: skip
    articles = Known(vertices["vertex"].to_numpy())
    aliases, loops = resolve_redirects(pages, redirects, articles)
    return Wiki(namespaces, pages, targets[0] if targets else None, articles, aliases), vertices, loops


def _names_of(ids: Array, dump: Dump) -> pa.Table:
    """Return vertex and name of the ids that titles of a dump have."""
    wanted, names = Known(ids), Names()
    for rows in dump.rows() if len(ids) else ():
        text, spans, found = dump.names(rows)
        chosen = wanted.holds(found)
        names.add(text, spans[chosen], found[chosen])
    return names.table()


def _write_documents(folder: Path, vertices: pa.Table, redirects: Aliases) -> None:
    """Write the articles as documents without text, so that they are found by their titles, and their aliases."""
    titles, rows = vertices["name"], len(redirects.vertices)
    texts = pa.repeat(pa.scalar(""), vertices.num_rows)
    write_documents(folder, 0, pa.table({"vertex": vertices["vertex"], "url": titles, "title": titles, "text": texts}))
    aliases = {"alias": redirects.aliases.ids, "vertex": redirects.vertices}
    reasons = pa.repeat(pa.scalar("redirect"), rows)
    finish_documents(folder, documents=vertices.num_rows, aliases=pa.table({**aliases, "reason": reasons}))
