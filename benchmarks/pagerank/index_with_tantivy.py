"""tantivy: words cut at white space, frequencies without positions, texts not stored; an index in its own format.

The number of a document is a fast field. What Python can read of the index are its terms and how many documents hold
each, so that the rest of the answer, the frequencies of postings, is not compared.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import tantivy
from pydantic import JsonValue

from benchmarks.pagerank.index_variant import Work, main, sums_of_terms

HEAP_BYTES = 1_000_000_000


def build(work: Work) -> None:
    """Build the index."""
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    schema.add_integer_field("vertex", fast=True)
    writer = tantivy.Index(schema.build(), path=str(work.folder)).writer(HEAP_BYTES, work.threads)
    for file in work.files:
        for batch in pq.ParquetFile(file).iter_batches(columns=["vertex", "text"]):
            for vertex, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                writer.add_document(tantivy.Document(vertex=vertex, text=text))
    writer.commit()
    writer.wait_merging_threads()


def inspect(folder: Path) -> JsonValue:
    """Return of `index_variant.inspect` what the terms and their document frequencies tell."""
    searcher = tantivy.Index.open(str(folder)).searcher()
    terms = sorted(searcher.terms_with_prefix("text", ""))
    frequencies = np.array([documents for _, documents in terms])
    return {**sums_of_terms([term for term, _ in terms], frequencies), "postings": int(frequencies.sum())}


if __name__ == "__main__":
    main(build)
