"""What every variant that indexes documents has in common: its arguments, the rules of the work, its line of output.

The work: read the texts; a word is a maximal run of letters and digits, in lower case; of each document and word in it
count how often, and write two Parquet files: the terms, ascending, with the number of documents that hold them, and the
postings (document, frequency), ordered by term and document. The texts hold lower-case ASCII words with single spaces
between them, so that a tool may just split them; Whitewater does not know that.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from pydantic import JsonValue

from benchmarks.placement import ON_CPU, Placement, add_options, placement_of

TERMS, POSTINGS = "terms.parquet", "postings.parquet"


@dataclass(frozen=True)
class Work:
    """What a variant is to do: read ``documents-*.parquet`` (vertex, text), and write the files to ``folder``."""

    documents: Path
    threads: int
    folder: Path
    placement: Placement = ON_CPU

    @property
    def files(self) -> list[str]:
        """The Parquet files of documents; ``vertex`` is 0, 1, 2, ... and stands for the document."""
        return sorted(map(str, self.documents.glob("documents-*.parquet")))


def main(build: Callable[[Work], None], *, is_placed: bool = False) -> None:
    """Read the command line, build the index, and print how long that took.

    Only a variant that ``is_placed`` has the options of `benchmarks.placement`.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    if is_placed:
        add_options(parser)
    arguments: Any = parser.parse_args()
    work = Work(arguments.documents, arguments.threads, arguments.folder, placement_of(arguments))
    work.folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    build(work)
    print(json.dumps({"compute_seconds": time.perf_counter() - start, "answer": None}))


def inspect(folder: Path) -> JsonValue:
    """Return what an index comes to: sizes, and sums that depend on every value and on the order of the postings."""
    terms = pq.read_table(folder / TERMS, columns=["term", "document_frequency"])
    postings = pq.read_table(folder / POSTINGS, columns=["document", "frequency"])
    document, frequency = (postings[name].to_numpy().astype(np.uint64) for name in ("document", "frequency"))
    place = np.arange(len(document), dtype=np.uint64)
    names = terms["term"].to_pylist()
    return {
        **sums_of_terms(names, terms["document_frequency"].to_numpy()),
        "ascending": names == sorted(names),
        "postings": len(document),
        "words": int(frequency.sum()),
        "checksum": int((place * (document + np.uint64(7)) * frequency).sum() % 2**53),
    }


def sums_of_terms(terms: list[str], document_frequencies: npt.NDArray[np.integer]) -> dict[str, JsonValue]:
    """Return how many terms there are, the first ones, and a sum that depends on each frequency and its place."""
    places = np.arange(1, len(terms) + 1)
    return {
        "terms": len(terms),
        "first": list(terms[:3]),
        "document_frequencies": int((document_frequencies * places).sum()),
    }
