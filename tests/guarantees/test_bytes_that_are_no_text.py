"""Bytes that are not text end a step with one sentence, not with Python's error."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.guarantees.running import MINE, Clone

NOT_UTF8 = b"\xff"


def texts(values: list[bytes]) -> pa.Array:
    """Return a column of text that holds these bytes, whatever they are."""
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    )


def write_plink(prefix: Path) -> None:
    """Write the genotypes of two samples at one variant."""
    prefix.with_suffix(".bed").write_bytes(bytes([0x6C, 0x1B, 1, 0b1011]))
    prefix.with_suffix(".bim").write_text("1 rs1 0 10 A G\n")
    prefix.with_suffix(".fam").write_text("f a 0 0 0 0\nf b 0 0 0 0\n")


def test_text_of_parquet_that_is_not_utf8_is_told_in_one_sentence_by_every_application(fresh: Clone) -> None:
    odd = texts([NOT_UTF8, b"x"])
    write_plink(fresh / "few")
    pq.write_table(pa.table({"sample": ["a", "b"], "population": odd}), fresh / "labels.parquet")
    pq.write_table(pa.table({"source": odd, "target": ["x", "y"]}), fresh / "edges.parquet")
    pq.write_table(pa.table({"clicked": [0, 1], "user": odd}), fresh / "log.parquet")
    columns = [{"name": "clicked", "role": "label"}, {"name": "user", "role": "categorical"}]
    settings = {
        "genomics": {"ingest": {"source": "plink", "plink": {"prefix": "few"}, "labels": {"table": "labels.parquet"}}},
        "pagerank": {"fetch": {"source": "edges", "edges": {"files": ["edges.parquet"], "ids": "text"}}},
        "recsys": {"fetch": {"source": "files", "files": {"files": ["log.parquet"], "columns": columns}}},
    }
    fresh.write(MINE[-1], settings)
    targets = ["data/genomics/inputs.json", "data/pagerank/edges", "data/recsys/train"]
    ended = fresh.snakemake("--keep-going", "--", *targets, files=MINE)
    assert ended.status == 1
    assert "Traceback" not in ended.terminal
    assert len(ended.messages) == 3
    for message in ended.messages:
        assert message.startswith("InputError: ")
        assert "Invalid UTF8" in message
        assert [name for name in ("labels.parquet", "edges.parquet", "log.parquet") if name in message], message


def test_a_file_whose_name_is_no_text_is_told_by_every_application_that_lists_files(fresh: Clone) -> None:
    (fresh / "in").mkdir()
    (fresh / "in" / os.fsdecode(b"l\xe4tin.csv")).write_text("a,b\n1,2\n")
    fresh.write(MINE[-1], {
        "taxi": {"fetch": {"source": "files", "files": {"paths": ["in/*.csv"]}}},
        "pagerank": {"fetch": {"source": "edges", "edges": {"files": ["in/*.csv"]}}},
        "recsys": {"fetch": {"source": "criteo", "criteo": {"files": ["in/*.csv"]}}},
    })  # fmt: skip
    targets = [f"data/{application}/inputs.json" for application in ("taxi", "pagerank", "recsys")]
    ended = fresh.snakemake("--keep-going", "--", *targets, files=MINE)
    assert ended.status == 1
    assert "Traceback" not in ended.terminal
    assert [message.partition(": in/")[0] for message in ended.messages] == ["InputError"] * 3
    assert all("whose name is not UTF-8: 'l\\udce4tin.csv'. Rename it." in message for message in ended.messages)
