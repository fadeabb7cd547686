"""Step `edges`: edges of pages or of files of edges, both as one folder."""

import logging
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whitewater.errors import InputError, IntegrityError
from whitewater.graphs.config import EdgeRules, Edges
from whitewater.graphs.edge_files.names import SCHEMA, Merging, merged
from whitewater.graphs.edge_files.reading import edges_of_files, judge, total
from whitewater.graphs.edges_folder import EdgesFolder, EdgesWriter, finish_edges, open_edges
from whitewater.graphs.vertex_ids import Ids, places_of
from whitewater.io.local_files import check_fetched
from whitewater.io.store import read_json
from whitewater.script import main
from whitewater.step import Inputs, Output, Run
from whitewater.text.documents import DOCUMENTS, LINKS, read_aliases
from whitewater.web.pages import open_pages

if TYPE_CHECKING:
    from whitewater.io.folder import RowGroup

logger = logging.getLogger(__name__)
# Row groups of links that one task reads: a file of links may be small.
_GROUPS_A_PART = 16
_AGAIN = "Run the step parse again."


def edges(run: Run[EdgeRules], *, fetched: Path, documents: Inputs, links: Inputs, inputs: Path, edges: Output) -> None:
    """Write the edges of the source, without those that the rules of section ``pagerank.edges`` leave out.

    ``documents`` and ``links`` hold the folders that `parse` wrote, where the source has pages, and nothing else;
    ``inputs`` is the list of files that `fetch` wrote.

    Raises IntegrityError if a file of edges is not the one that `fetch` wrote down.
    """
    if links:
        folder = edges_of_pages(run, documents["documents"], links["links"], edges)
    else:
        with check_fetched(read_json(inputs)["files"], rule="pagerank_fetch", threads=run.threads):
            pages = open_pages(fetched)
            settings = Edges.model_validate(pages.settings)
            folder = edges_of_files(run, pages.files, edges, settings=settings)
    run.note(**folder.counts, vertices=folder.vertex_rows)
    logger.info("%d rows read, %d edges kept", folder.counts["read"], folder.edges)


@dataclass(frozen=True)
class Linking:
    """What links are resolved with, and where edges go; the aliases, ascending, each stand for a document."""

    documents: Ids
    aliases: Ids
    stands_for: Ids
    rules: EdgeRules
    folder: Path

    def resolved(self, ids: Ids) -> Ids:
        """Return ids, those of aliases replaced by the documents that they stand for."""
        places = places_of(ids, self.aliases)
        found = ids.copy()
        found[places >= 0] = self.stands_for[places[places >= 0]]
        return found


def edges_of_pages(run: Run[EdgeRules], documents: Path, links: Path, folder: Path) -> EdgesFolder:
    """Write the links between documents, and the documents as vertices that are named by their addresses.

    Both ends are resolved by the aliases of the documents. An alias that leads to no document is left as it is, so that
    a link to it is broken, and where broken links are kept, its own address is the vertex.

    Raises InputError if a folder cannot be read, or there is no document, and IntegrityError if two documents have one
    id, or a link comes from no document.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vertices = _vertices(documents)
    if not vertices.num_rows:
        raise InputError(f"{documents} holds no document: every page that was fetched is left out. parse.json and the "
                         "log of the step parse tell why; check pagerank.fetch and pagerank.parse.")  # fmt: skip
    known = vertices["vertex"].to_numpy()
    linking = Linking(known, *_aliases(documents, known), run.settings, folder)
    counts, merging = Counter[str](redirected=0), Merging(vertices)
    groups = LINKS.parts(links)
    parts = [groups[start : start + _GROUPS_A_PART] for start in range(0, len(groups), _GROUPS_A_PART)]
    with run.workers() as workers:
        work = partial(read_links, linking=linking)
        for found, others in workers.map(work, list(enumerate(parts)), label="edges", ordered=True):
            counts.update(found)
            merging.add(others)
    finish_edges(folder, weighted=False, directed=True, vertices=merging.table(), counts=total(counts))
    return open_edges(folder)


def read_links(part: "tuple[int, list[RowGroup]]", *, linking: Linking) -> tuple[Counter[str], pa.Table]:
    """Write the edges of some row groups of links; return counts, and the broken targets that are kept, with names."""
    number, groups = part
    counts, names = Counter[str](), [SCHEMA.empty_table()]
    keep = linking.rules.broken == "keep"
    with EdgesWriter(linking.folder, number, weighted=False) as writer:
        for group in groups:
            table = LINKS.read_group(group, ["source", "target", *(["target_url"] if keep else [])])
            linked = np.array(table["target"])
            source, target = (linking.resolved(ids) for ids in (np.array(table["source"]), linked))
            unknown = source[places_of(source, linking.documents) < 0]
            if len(unknown):
                raise IntegrityError(f"a link comes from page {unknown[0]}, which is not a document. {_AGAIN}")
            judged = judge(source, target, places_of(target, linking.documents) < 0, linking.rules)
            counts.update(judged.counts, redirected=int((target != linked).sum()))
            writer.add(source[judged.kept], target[judged.kept])
            if keep:
                urls = table["target_url"].filter(pa.array(judged.broken)).cast(pa.string())
                names.append(pa.table([target[judged.broken], urls], names=SCHEMA.names).cast(SCHEMA))
    return counts, merged(names)


def _vertices(documents: Path) -> pa.Table:
    """Return vertex and name of all documents, ascending by vertex."""
    found = DOCUMENTS.tables(documents, ["vertex", "url"])
    tables = [table.rename_columns(SCHEMA.names).cast(SCHEMA) for table in found]
    table = pa.concat_tables([SCHEMA.empty_table(), *tables]).sort_by("vertex")
    ids = table["vertex"].to_numpy()
    again = np.flatnonzero(ids[1:] == ids[:-1])
    if len(again):
        urls = " and ".join(table["name"][int(again[0]) : int(again[0]) + 2].to_pylist())
        raise IntegrityError(f"{documents}: the documents {urls} have the same id, {ids[again[0]]}. If the addresses "
                             "differ, leave one of them out; else run the step parse again.")  # fmt: skip
    return table


def _aliases(folder: Path, documents: Ids) -> tuple[Ids, Ids]:
    """Return the aliases that lead to a document, and that of each."""
    table = read_aliases(folder)
    alias, vertex = table["alias"].to_numpy(), table["vertex"].to_numpy()
    if (alias[1:] <= alias[:-1]).any():
        raise IntegrityError(f"{folder}: the aliases are not in ascending order, each once. {_AGAIN}")
    leads = places_of(vertex, documents) >= 0
    return alias[leads], vertex[leads]


if __name__ == "__main__":
    main(edges)
