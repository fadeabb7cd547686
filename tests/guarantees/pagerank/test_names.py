"""Any text is a name: in the tables as it is, in pictures as letters and not as a formula, on the terminal harmless."""

from __future__ import annotations

import re

import pandas as pd

from tests.guarantees.running import Clone

RESULTS = "results/pagerank/cpu"
FIRST = "[/red]\x1b[31m$x^2$ " + "x" * 5_000
NAMES = ["$x^2$", r"$\frac{$", "日本語", "#hash", "%41", "_a^b", "$", "", "NA", "null"]


def test_any_name_is_ranked_drawn_and_told(fresh: Clone) -> None:
    edges = [(name, FIRST) for name in NAMES if name] + [("$x^2$", name) for name in NAMES[1:] if name]
    (fresh / "e.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in edges), encoding="utf-8")
    (fresh / "p.csv").write_text("name,weight\n#hash,2\n%41,1\nNA,1\nnull,1\n")
    settings = {
        "fetch": {"source": "edges", "edges": {"files": ["e.tsv"], "ids": "text", "delimiter": "tab"}},
        "rank": {"personalization": "p.csv"},
        "plot": {"formats": ["svg"]},
    }
    ended = fresh.run("pagerank", settings)
    assert ended.status == 0, ended.terminal
    vertices = pd.read_parquet(fresh / f"{RESULTS}/vertices.parquet")
    assert set(vertices["name"]) == {FIRST, *filter(None, NAMES)}
    assert vertices.set_index("name")["rank"].idxmax() == FIRST
    drawn = (fresh / f"{RESULTS}/plots/neighborhood.svg").read_text(encoding="utf-8")
    # A formula has no comment with its text as it stands, nor dollar signs among its glyphs.
    for name in ("$x^2$", r"$\frac{$", "#hash"):
        written = re.search(rf"<!-- {re.escape(name)} -->(.*?)<!--", drawn, re.DOTALL)
        assert written, name
        assert written[1].count("<use") == len(name)
    told = fresh.start("python", "-m", "whitewater", "results", PYTHONPATH="src", PYTHONIOENCODING="utf-8").ended()
    assert told.status == 0, told.terminal
    assert "ranks first" in " ".join(told.terminal.split())
    assert "x" * 200 not in told.terminal
    assert "\x1b[31m$" not in told.terminal
