"""What is run by hand asks for nothing that it does not use, and advises nothing that would harm."""

import sys

from tests.guarantees.running import Clone
from tests.helpers.genotype_stores import random_alleles, write_plink


def test_a_step_that_reads_files_needs_no_simulation(fresh: Clone) -> None:
    (fresh / "web.txt").write_text("1 2\n2 1\n")
    edges = {"source": "edges", "edges": {"files": ["web.txt"]}}
    outputs = {"frontier": "crawl", "fetched": "out/fetched", "inputs": "out/web.json"}
    ended = fresh.step("fetch", outputs, settings=edges, application="pagerank")
    assert ended.status == 0, ended.terminal
    write_plink(fresh / "calls", random_alleles(20, 30).sum(axis=2).clip(-1))
    plink = {"source": "plink", "plink": {"prefix": "calls"}}
    outputs = {"genotypes": "out/genotypes", "inputs": "out/calls.json"}
    ended = fresh.step("ingest", outputs, settings=plink, application="genomics")
    assert ended.status == 0, ended.terminal
    (fresh / "day_0").write_text("\t".join(["1", *["3"] * 13, *["0a"] * 26]) + "\n")
    criteo = {"source": "criteo", "criteo": {"files": ["day_0"]}}
    ended = fresh.step("fetch", {"events": "out/events", "inputs": "out/clicks.json"}, settings=criteo,
                       application="recsys")  # fmt: skip
    assert ended.status == 0, ended.terminal


def test_unfinished_results_are_not_advised_to_be_replaced(fresh: Clone) -> None:
    (fresh / "results/taxi/cpu/trips").mkdir(parents=True)
    ended = fresh.start(sys.executable, "-m", "whitewater", "results", PYTHONPATH="src").ended()
    assert ended.status == 1
    assert "run snakemake again, with the same configuration" in ended.terminal
    assert "make run" not in ended.terminal
