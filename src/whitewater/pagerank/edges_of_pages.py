"""Edges from the links of pages: every address is replaced by the document that it stands for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whitewater.errors import InputError, IntegrityError
from whitewater.folder import RowGroup
from whitewater.pagerank.documents import DOCUMENTS, LINKS, read_aliases
from whitewater.pagerank.edge_files.names import SCHEMA, Merging
from whitewater.pagerank.edge_rules import Aliases, Known, judge, total
from whitewater.pagerank.edges_folder import EdgesFolder, EdgesWriter, finish_edges, open_edges

if TYPE_CHECKING:
    from whitewater.config.pagerank import EdgeRules
    from whitewater.step import Run

# Row groups of links that one task reads: a file of links may be small.
_GROUPS_A_PART = 16
_AGAIN = "Run the step parse again."


@dataclass(frozen=True)
class Linking:
    """What links are resolved with, and where edges go."""

    documents: Known
    aliases: Aliases
    rules: EdgeRules
    folder: Path


def edges_of_pages(run: Run[EdgeRules], documents: Path, links: Path, folder: Path) -> EdgesFolder:
    """Write the links between documents, and the documents as vertices that are named by their addresses.

    Both ends are resolved by the aliases of the documents. An alias that leads to no document is left as it is, so that
    a link to it is broken, and where broken links are kept, its own address is the vertex.

    Raises
    ------
    InputError
        If a folder cannot be read, or there is no document.
    IntegrityError
        If two documents have one id, or a link comes from no document.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vertices = _vertices(documents)
    if not vertices.num_rows:
        raise InputError(f"{documents} holds no document: every page that was fetched is left out. parse.json and the "
                         "log of the step parse tell why; check pagerank.fetch and pagerank.parse.")  # fmt: skip
    known = Known(vertices["vertex"].to_numpy())
    linking = Linking(known, _aliases(documents, known), run.settings, folder)
    counts: Counter[str] = Counter({"redirected": 0})
    merging = Merging([vertices])
    with run.cluster() as client:
        work = partial(read_links, linking=linking)
        for found, others in run.map(work, _parts(links), client=client, label="edges", ordered=True):
            counts.update(found)
            merging.add(others)
    finish_edges(
        folder,
        edges=counts["edges"],
        weighted=False,
        directed=True,
        vertices=merging.table(),
        counts=total(counts),
    )
    return open_edges(folder)


def read_links(part: tuple[int, list[RowGroup]], *, linking: Linking) -> tuple[Counter[str], pa.Table]:
    """Write the edges of some row groups of links; return counts, and the broken targets that are kept, with names."""
    number, groups = part
    counts: Counter[str] = Counter()
    names = Merging([SCHEMA.empty_table()])
    keep = linking.rules.broken == "keep"
    with EdgesWriter(linking.folder, number, weighted=False) as writer:
        for group in groups:
            table = LINKS.read_group(group, ["source", "target", *(["target_url"] if keep else [])])
            linked = np.array(table["target"])
            source, target = (linking.aliases.resolved(ids) for ids in (np.array(table["source"]), linked))
            unknown = source[~linking.documents.holds(source)]
            if len(unknown):
                raise IntegrityError(f"a link comes from page {unknown[0]}, which is no document. {_AGAIN}")
            judged = judge(source, target, ~linking.documents.holds(target), linking.rules)
            counts.update(judged.counts, redirected=int((target != linked).sum()))
            writer.add(source[judged.kept], target[judged.kept])
            if keep:
                urls = table["target_url"].filter(pa.array(judged.broken)).cast(pa.string())
                names.add(pa.table([target[judged.broken], urls], names=SCHEMA.names).cast(SCHEMA))
    return counts, names.table()


def _parts(links: Path) -> list[tuple[int, list[RowGroup]]]:
    groups = LINKS.parts(links)
    starts = range(0, len(groups), _GROUPS_A_PART)
    return [(number, groups[start : start + _GROUPS_A_PART]) for number, start in enumerate(starts)]


def _vertices(documents: Path) -> pa.Table:
    """Return vertex and name of all documents, ascending by vertex."""
    found = DOCUMENTS.tables(documents, ["vertex", "url"])
    tables = [table.rename_columns(SCHEMA.names).cast(SCHEMA) for table in found]
    table = pa.concat_tables([SCHEMA.empty_table(), *tables])
    ids = table["vertex"].to_numpy()
    order = np.argsort(ids)
    again = np.flatnonzero(np.diff(ids[order]) == 0)
    if len(again):
        at = order[again[0] : again[0] + 2]
        urls = " and ".join(table["name"].take(pa.array(at)).to_pylist())
        raise IntegrityError(f"{documents}: the documents {urls} have the same id, {ids[at[0]]}. If the addresses "
                             "differ, leave one of them out; else run the step parse again.")  # fmt: skip
    return table.take(pa.array(order))


def _aliases(folder: Path, documents: Known) -> Aliases:
    """Return the aliases that lead to a document."""
    table = read_aliases(folder)
    alias, vertex = table["alias"].to_numpy(), table["vertex"].to_numpy()
    if (alias[1:] <= alias[:-1]).any():
        raise IntegrityError(f"{folder}: the aliases are not in ascending order, each once. {_AGAIN}")
    leads = documents.holds(vertex)
    return Aliases(Known(alias[leads]), vertex[leads])
