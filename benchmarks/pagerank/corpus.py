"""Documents of words by Zipf's law, in Parquet, made once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WORDS = 50_000
LENGTH = 120
ROW_GROUP = 1_000
DOCUMENTS_A_FILE = 16_000
SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstvwz" for vowel in "aeiou"]


@dataclass(frozen=True)
class Corpus:
    """A folder of documents as Whitewater's step `parse` leaves it; the peers read its Parquet files."""

    folder: Path
    documents: int

    @property
    def file_bytes(self) -> int:
        """Bytes of the files."""
        return sum(path.stat().st_size for path in self.folder.glob("documents-*.parquet"))


def prepare(directory: Path, *, documents: int, seed: int) -> Corpus:
    """Make documents of about 120 words each, lower case and single spaces between them, unless they are there."""
    folder = directory / f"corpus-{documents}-{seed}"
    described = folder / "documents.json"
    if not described.exists():
        folder.mkdir(parents=True, exist_ok=True)
        generator = np.random.default_rng(seed)
        words = _words(generator)
        for number, first in enumerate(range(0, documents, DOCUMENTS_A_FILE)):
            count = min(DOCUMENTS_A_FILE, documents - first)
            texts = _texts(generator, words, count)
            vertex = pa.array(np.arange(first, first + count))
            url = pa.array([f"https://example.org/{at}" for at in range(first, first + count)])
            table = pa.table({"vertex": vertex, "url": url, "title": pa.array([""] * count), "text": texts})
            path = folder / f"documents-{number:05d}.parquet"
            pq.write_table(table, path, row_group_size=ROW_GROUP, compression="zstd")
        _write_no_aliases(folder)
        described.write_text(json.dumps({"format": 1, "documents": documents}))
    return Corpus(folder, documents)


def _words(generator: np.random.Generator) -> list[str]:
    """Return distinct words of two to five syllables; frequent ones are shorter."""
    found: dict[str, None] = {}
    while len(found) < WORDS:
        length = 2 + int(len(found) > WORDS // 500) + int(len(found) > WORDS // 10) + int(generator.random() < 0.3)
        found["".join(generator.choice(SYLLABLES, length))] = None
    return list(found)


def _texts(generator: np.random.Generator, words: list[str], count: int) -> pa.Array:
    frequency = 1 / np.arange(1, len(words) + 1)
    lengths = generator.poisson(LENGTH, count)
    drawn = generator.choice(len(words), int(lengths.sum()), p=frequency / frequency.sum())
    pieces = np.split(drawn, np.cumsum(lengths)[:-1])
    return pa.array([" ".join(words[word] for word in piece) for piece in pieces])


def _write_no_aliases(folder: Path) -> None:
    fields = {"alias": pa.int64(), "vertex": pa.int64(), "reason": pa.string()}
    pq.write_table(pa.schema(list(fields.items())).empty_table(), folder / "aliases.parquet")
