"""Step `edges`: write the links between pages, or the edges in files, as one folder of edges."""

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from whitewater.errors import InputError, IntegrityError
from whitewater.graphs.config import EdgeFiles, EdgeRules
from whitewater.graphs.edge_files.reading import COUNTS, edges_of_files, write_part
from whitewater.graphs.edges_folder import Batch, EdgesFolder, finish_edges
from whitewater.graphs.vertex_ids import SCHEMA, Ids, find_positions, merge_vertices
from whitewater.io.folder import RowGroup
from whitewater.io.places import check_fetched
from whitewater.io.store import read_json
from whitewater.script import main
from whitewater.step import Inputs, Output, Run
from whitewater.text.documents import DOCUMENTS, LINKS, read_aliases
from whitewater.web.pages import open_pages

logger = logging.getLogger(__name__)
# Row groups of links per task, since files of links may be small.
_GROUPS_PER_PART = 16
_REMEDY = "Run the step parse again."


def edges(run: Run[EdgeRules], *, fetched: Path, documents: Inputs, links: Inputs, inputs: Path, edges: Output) -> None:
    """Write the edges that the rules of section ``pagerank.edges`` keep.

    ``documents`` and ``links`` are the folders that `parse` wrote, or empty if the source is files of edges; ``inputs``
    is the list of files that `fetch` wrote.

    Raises InputError if a folder cannot be read or has no document; and IntegrityError if a file of edges has changed
    since `fetch`, two documents have the same id, or the source of a link is not a document.
    """
    if links or documents:
        if not (len(links) == len(documents) == 1):
            raise InputError(f"{len(documents)} folders of documents and {len(links)} of links were given. Give one of "
                             "each.")  # fmt: skip
        [of_documents], [of_links] = documents.values(), links.values()
        folder = edges_of_pages(run, of_documents, of_links, edges)
    else:
        with check_fetched(read_json(inputs)["files"], rule="pagerank_fetch", threads=run.threads):
            pages = open_pages(fetched)
            settings = EdgeFiles.model_validate(pages.settings)
            folder = edges_of_files(run, pages.files, edges, settings=settings)
    run.note(**folder.counts, vertices=folder.vertex_rows)
    logger.info("%d rows read, %d edges kept", folder.counts["read"], folder.edges)


def edges_of_pages(run: Run[EdgeRules], documents: Path, links: Path, folder: Path) -> EdgesFolder:
    """Write the links between documents as edges, and the documents as vertices named by their URLs.

    Aliases are replaced by their documents. A link to an alias without a document is broken; if broken links are kept,
    the alias itself is the vertex.
    """
    parts = [part.rename_columns(SCHEMA.names).cast(SCHEMA) for part in DOCUMENTS.tables(documents, ["vertex", "url"])]
    vertices = pa.concat_tables([SCHEMA.empty_table(), *parts]).sort_by("vertex")
    if not vertices.num_rows:
        raise InputError(f"{documents} holds no document: all fetched pages are left out. See parse.json and the log "
                         "of the step parse for the reasons; check pagerank.fetch and pagerank.parse.")  # fmt: skip
    ids = vertices["vertex"].to_numpy()
    repeated = np.flatnonzero(ids[1:] == ids[:-1])
    if len(repeated):
        urls = " and ".join(vertices["name"][repeated[0] : repeated[0] + 2].to_pylist())
        raise IntegrityError(f"{documents}: the documents {urls} have the same id, {ids[repeated[0]]}. If the URLs "
                             "differ, leave one of them out; else run the step parse again.")  # fmt: skip
    table = read_aliases(documents)
    alias, target = table["alias"].to_numpy(), table["vertex"].to_numpy()
    is_document = find_positions(target, ids) >= 0
    aliases = alias[is_document], target[is_document]
    shared = {"documents": ids, "aliases": aliases, "rules": run.settings, "folder": folder}
    groups = LINKS.parts(links)
    tasks = list(enumerate(groups[at : at + _GROUPS_PER_PART] for at in range(0, len(groups), _GROUPS_PER_PART)))
    counts = Counter[str]()
    with run.workers() as workers:

        def vertex_tables() -> Iterator[pa.Table]:
            yield vertices
            for part_counts, targets in workers.map(read_links, tasks, label="edges", ordered=True, shared=shared):
                counts.update(part_counts)
                if targets is not None:
                    yield targets

        all_vertices = merge_vertices(vertex_tables())
    return finish_edges(folder, weighted=False, directed=True, vertices=all_vertices,
                        counts={**dict.fromkeys((*COUNTS, "redirected"), 0), **counts})  # fmt: skip


def read_links(
    part: tuple[int, list[RowGroup]], *, documents: Ids, aliases: tuple[Ids, Ids], rules: EdgeRules, folder: Path
) -> tuple[Counter[str], pa.Table | None]:
    """Write the edges of row groups of links; return the counts, and id and URL of broken targets that are kept.

    ``aliases`` are pairs of alias and document; ``documents`` and aliases ascend.
    """

    def resolve(ids: Ids) -> Ids:
        places = find_positions(ids, aliases[0])
        resolved = ids.copy()
        resolved[places >= 0] = aliases[1][places[places >= 0]]
        return resolved

    def batches() -> Iterator[Batch]:
        for group in groups:
            table = LINKS.read_group(group, ["source", "target", "target_url"][: 2 + (rules.broken == "keep")])
            original = np.array(table["target"])
            source, target = resolve(np.array(table["source"])), resolve(original)
            unknown = source[find_positions(source, documents) < 0]
            if len(unknown):
                raise IntegrityError(f"a link comes from page {unknown[0]}, which is not a document. {_REMEDY}")
            names = None
            if rules.broken == "keep":
                names = pa.table([target, table["target_url"].cast(pa.string())], names=SCHEMA.names).cast(SCHEMA)
            yield Batch(source, target, names=names, counts=Counter(redirected=int((target != original).sum())))

    number, groups = part
    return write_part(folder, number, batches(), rules=rules, known=documents)


if __name__ == "__main__":
    main(edges)
