"""Whitewater: what the step index builds and writes of terms and postings; the texts are not stored again.

It ends as Whitewater's command line does.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.pagerank.index_variant import Work, main
from whitewater.config.pagerank import Index
from whitewater.pagerank.index_folder import IndexWriter
from whitewater.pagerank.postings import build_postings
from whitewater.process import leave


def build(work: Work) -> None:
    """Build the index."""
    pa.set_cpu_count(work.threads)
    settings = Index(stop_words="none", title_weight=1)
    with ThreadPoolExecutor(work.threads) as pool:
        table = pa.concat_tables(pool.map(lambda file: pq.ParquetFile(file).read(["title", "text"]), work.files))
    postings = build_postings(table["title"], table["text"], settings=settings, threads=work.threads)
    writer = IndexWriter(work.folder, documents=len(table), settings=settings)
    writer.write_postings(postings)
    writer.write_terms(postings)


if __name__ == "__main__":
    main(build)
    leave(0)
