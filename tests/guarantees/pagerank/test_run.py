"""The PageRank workflow on a tiny simulated web and on edges: its files, what a change runs again, faults."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from typing import Any

import networkx
import pandas as pd
import pytest

from tests.guarantees.running import Clone, Ended, contents, leftovers, sha256, staging

RESULTS = "results/pagerank/cpu"
ON_HOST = ("simulate", "fetch", "parse", "edges")
STEPS = ("renumber", "rank", "communities", "index", "search", "plot")
PICTURES = ("ranks", "degrees", "convergence", "communities", "neighborhood")
# Worker processes start in seconds, so a step is caught in the middle for sure.
SLOW_START = "cluster={kind: processes}"
EDGES = "1 2\n2 1\n2 3\n3 2\n3 4\n4 2\n-7 9000000000\n"


def pagerank(*steps: str) -> set[str]:
    return {f"pagerank_{step}" for step in steps}


def query(clone: Clone, *arguments: str) -> Ended:
    return clone.start("python", "-m", "whitewater", "pagerank", "query", *arguments, PYTHONPATH="src").ended()


# ---- a complete run


def test_the_first_run_runs_every_step_once(first_run: tuple[Clone, Ended]) -> None:
    _, ended = first_run
    assert ended.status == 0, ended.terminal
    assert {job for job in ended.jobs if job.startswith("pagerank_")} == pagerank(*ON_HOST, *STEPS, "manifest")


@pytest.mark.slow
def test_the_application_alone_finds_the_same_results_done(finished: Clone) -> None:
    ended = finished.snakemake("--snakefile", "workflows/pagerank/Snakefile")
    assert ended.status == 0, ended.terminal
    assert "Nothing to be done" in ended.terminal


def test_results_and_data_are_exactly_the_documented_files(finished: Clone) -> None:
    found = {path.name for path in (finished / RESULTS).iterdir() if not path.name.startswith(".")}
    assert found == {
        "graph", "edges.json", "ranks.parquet", "convergence.json", "vertices.parquet", "communities.json", "index",
        "queries.json", "plots", "manifest.json",
    }  # fmt: skip
    drawn = {path.name for path in (finished / RESULTS / "plots").iterdir() if not path.name.startswith(".")}
    assert drawn == {f"{picture}.{form}" for picture in PICTURES for form in ("png", "svg")}
    data = {path.name for path in (finished / "data/pagerank").iterdir() if not path.name.startswith(".")}
    assert data == {
        "simulated.warc.gz", "simulated_queries.csv", "fetched", "inputs.json", "documents", "links", "parse.json",
        "edges",
    }  # fmt: skip


def test_the_manifest_has_the_checksum_of_every_output_and_input(finished: Clone) -> None:
    manifest = finished.json(f"{RESULTS}/manifest.json")
    assert set(manifest["steps"]) == {*ON_HOST, *STEPS}
    outputs = {each["path"]: each["sha256"] for each in manifest["outputs"]}
    assert {f"{RESULTS}/vertices.parquet", f"{RESULTS}/index", "data/pagerank/edges"} <= outputs.keys()
    assert outputs == {path: sha256(finished / path) for path in outputs}
    inputs = manifest["inputs"]["files"]
    assert [each["sha256"] for each in inputs] == [sha256(finished / each["path"]) for each in inputs]


def test_ranks_are_those_of_networkx_for_the_edges_of_the_run(finished: Clone) -> None:
    vertices = pd.read_parquet(finished / f"{RESULTS}/vertices.parquet")
    edges = read_edges(finished)
    graph = networkx.DiGraph()
    graph.add_nodes_from(vertices["vertex"])
    graph.add_edges_from(edges.to_numpy().tolist())
    expected = networkx.pagerank(graph, tol=1e-14, max_iter=1000)
    assert (vertices.set_index("vertex")["rank"] - pd.Series(expected)).abs().sum() < 1e-9
    assert (vertices["in_degree"] == [graph.in_degree(vertex) for vertex in vertices["vertex"]]).all()


def read_edges(clone: Clone) -> pd.DataFrame:
    files = sorted((clone / "data/pagerank/edges").glob("edges-*.parquet"))
    return pd.concat([pd.read_parquet(path) for path in files])[["source", "target"]].drop_duplicates()


def test_every_page_is_a_document_or_is_counted_with_its_reason(finished: Clone) -> None:
    pages = finished.json("data/pagerank/fetched/source.json")["pages"]
    counts = finished.json("data/pagerank/parse.json")["pages"]
    assert counts.pop("fetched") == pages == sum(counts.values())
    assert 0 < counts["documents"] < pages
    assert counts["documents"] == len(pd.read_parquet(finished / f"{RESULTS}/vertices.parquet"))


def test_a_query_finds_the_page_that_was_searched_for(finished: Clone) -> None:
    first = pd.read_csv(finished / "data/pagerank/simulated_queries.csv").iloc[0]
    ended = query(finished, *first["query"].split(), "--json")
    assert ended.status == 0, ended.terminal
    urls = [result["url"] for result in json.loads(ended.terminal)["results"]]
    assert first["url"] in urls
    assert query(finished, "qqqqqqqq").status == 0


def test_a_query_without_an_index_says_what_makes_one(fresh: Clone) -> None:
    ended = query(fresh, "word")
    assert ended.status == 1
    assert ended.message.startswith("InputError: ")
    assert "snakemake" in ended.message


def test_a_run_leaves_nothing_unfinished(finished: Clone) -> None:
    assert [path for path in leftovers(finished) if "pagerank" in path] == []


def test_the_table_of_results_tells_what_was_found(finished: Clone) -> None:
    ended = finished.start("python", "-m", "whitewater", "results", PYTHONPATH="src").ended()
    assert ended.status == 0, ended.terminal
    for said in (f"{RESULTS}/index/", f"{RESULTS}/plots/  10 files", "ranks first"):
        assert said in ended.terminal


# ---- what a change runs again


@pytest.mark.parametrize(
    ("overrides", "steps"),
    [
        ({"simulate": {"seed": 3}}, {*ON_HOST, *STEPS}),
        ({"parse": {"canonical": False}}, {"parse", "edges", *STEPS}),
        ({"renumber": {"duplicates": "sum"}}, set(STEPS)),
        ({"rank": {"damping": 0.5}}, set(STEPS) - {"renumber"}),
        ({"search": {"queries": ["a word"]}}, {"search"}),
        ({"plot": {"formats": ["svg"]}}, {"plot"}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_changed_key_runs_its_step_again_and_what_follows_from_it(
    finished: Clone, overrides: Mapping[str, Any], steps: set[str]
) -> None:
    assert finished.dry_run({"pagerank": overrides}).jobs == {*pagerank(*steps, "manifest"), "all"}


# ---- other sources


@pytest.fixture
def of_edges(fresh: Clone) -> Clone:
    """A clone whose source is a file of edges."""
    (fresh / "my data").mkdir()
    (fresh / "my data/web.txt").write_text(EDGES)
    fresh.write("tiny.yaml", {"pagerank": {"fetch": {"source": "edges", "edges": {"files": ["my data/*.txt"]}}}})
    return fresh


@pytest.mark.slow
def test_a_file_of_edges_is_ranked_without_pages_and_again_when_it_changes(of_edges: Clone) -> None:
    ended = of_edges.snakemake("--", "pagerank")
    assert ended.status == 0, ended.terminal
    steps = {"fetch", "edges", "renumber", "rank", "communities", "plot", "manifest"}
    assert ended.jobs == {*pagerank(*steps), "pagerank"}
    ranks = pd.read_parquet(of_edges / f"{RESULTS}/vertices.parquet").set_index("vertex")["rank"]
    expected = networkx.pagerank(networkx.DiGraph([tuple(map(int, line.split())) for line in EDGES.splitlines()]))
    assert ranks.to_dict() == pytest.approx(expected, abs=1e-5)
    assert "Nothing to be done" in of_edges.snakemake("--dry-run", "--", "pagerank").terminal
    (of_edges / "my data/web.txt").write_text(EDGES + "4 1\n")
    assert pagerank(*steps) <= of_edges.snakemake("--dry-run", "--", "pagerank").jobs


@pytest.mark.slow
def test_any_names_of_html_files_are_read_and_hidden_ones_are_seen_to_change(fresh: Clone) -> None:
    folder = fresh / "site [1]"
    folder.mkdir()
    for name in (b"a.html", b".hidden.html", b"{b}.html", b"l\xe4tin.html"):
        (folder / os.fsdecode(name)).write_bytes(b"<title>" + name + b"</title>")
    fresh.write("tiny.yaml", {"pagerank": {"fetch": {"source": "html", "html": {"folder": "site [1]"}}}})
    fetched = "data/pagerank/inputs.json"
    ended = fresh.snakemake("--", fetched)
    assert ended.status == 0, ended.terminal
    assert fresh.json(fetched)["pages"] == 4
    assert "Nothing to be done" in fresh.snakemake("--dry-run", "--", fetched).terminal
    (folder / ".hidden.html").write_bytes(b"<title>changed</title>")
    assert "pagerank_fetch" in fresh.snakemake("--dry-run", "--", fetched).jobs


def test_a_line_that_is_no_edge_stops_the_workflow_with_its_number(of_edges: Clone) -> None:
    (of_edges / "my data/web.txt").write_text(EDGES + "4 99999999999999999999\n")
    ended = of_edges.snakemake("--", "pagerank")
    assert ended.status == 1
    (message,) = ended.messages
    assert message.startswith("InputError: ")
    assert "web.txt" in message
    assert "8" in message
    assert not (of_edges / "data/pagerank/edges").exists()


def test_a_missing_file_and_wrong_keys_are_told(of_edges: Clone) -> None:
    (of_edges / "my data/web.txt").unlink()
    ended = of_edges.snakemake("--", "pagerank")
    assert ended.status == 1
    assert [message.partition(":")[0] for message in ended.messages] == ["InputError"]
    wrong = {"pagerank": {"rank": {"dampin": 0.9, "definition": "gap", "personalization": "a.csv"}}}
    ended = of_edges.snakemake(files=("tiny.yaml", of_edges.write("wrong.yaml", wrong)))
    assert ended.message.startswith("ConfigError:\n")
    assert "did you mean 'damping'?" in ended.message


# ---- what was killed


@pytest.mark.slow
@pytest.mark.parametrize(("step", "output"), [("parse", "data/pagerank/documents"), ("index", f"{RESULTS}/index")])
def test_a_killed_step_leaves_nothing_visible_and_the_next_run_makes_the_right_result(
    copied: Clone, finished: Clone, step: str, output: str
) -> None:
    run = copied.start_snakemake("--config", SLOW_START, "--forcerun", f"pagerank_{step}", "--", output)
    begun = staging(copied, output)
    run.step(step).kill()
    assert run.ended().status == 1
    assert begun.exists()
    assert not (copied / output).exists()
    again = copied.snakemake("--", output)
    assert again.status == 0, again.terminal
    assert contents(copied / output) == contents(finished / output)
    assert leftovers(copied) == []


def test_an_interrupted_step_ends_cleanly(copied: Clone) -> None:
    output = "data/pagerank/documents"
    run = copied.start_snakemake("--config", SLOW_START, "--forcerun", "pagerank_parse", "--", output)
    staging(copied, output)
    os.killpg(run.process.pid, signal.SIGINT)
    ended = run.ended()
    assert ended.status == 1
    assert "pagerank parse was interrupted and left nothing unfinished." in ended.terminal
    assert leftovers(copied) == []
