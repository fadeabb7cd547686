"""Whitewater: what the step index builds and writes of terms and postings; the texts are not stored again.

It starts and ends as Whitewater's command line does. Words are cut and merged on the host, whatever the device, as the
step does.
"""

from __future__ import annotations

from benchmarks.pagerank.index_variant import Work, main
from whitewater.io.folder import numbered_files
from whitewater.process import exit_fast, start_fast
from whitewater.text.config import Index
from whitewater.text.documents import DOCUMENTS
from whitewater.text.index_folder import write_postings
from whitewater.text.postings import BLOCK_BYTES, cut, merge
from whitewater_apps.pagerank.steps.index import tokenize_groups


def build(work: Work) -> None:
    """Build the index."""
    run = work.placement.run("pagerank", "index", Index(stop_words="none", title_weight=1), threads=work.threads)
    groups = DOCUMENTS.row_groups(*numbered_files(work.documents, "documents"))
    tasks = [groups[start:stop] for start, stop in cut(DOCUMENTS.stored_bytes(groups), BLOCK_BYTES)]
    with run.workers() as workers:
        blocks = list(workers.map(tokenize_groups, tasks, label="index", ordered=True))
    postings = merge(blocks, settings=run.settings, threads=work.threads)
    write_postings(work.folder, postings)


if __name__ == "__main__":
    start_fast()
    main(build, is_placed=True)
    exit_fast(0)
