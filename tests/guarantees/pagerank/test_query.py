"""What a search prints: no longer than the terminal is wide, and nothing in it that controls the terminal."""

from __future__ import annotations

import json
import unicodedata

from tests.guarantees.running import Clone, Ended

INDEX = "results/pagerank/cpu/index"
TITLE = "Loud " + "a" * 5_000
SECRET = "s" * 3_000
WIDE = "日本語" * 200
PAGES = {
    "long.html": f"<title>{TITLE}</title><p>needle {SECRET}</p>",
    "wide.html": f"<title>{WIDE}</title><p>needle {WIDE}</p>",
    f"{'u' * 200}.html": "<title>Address</title><p>needle</p>",
    "escape.html": "<title>Red \x1b[31mtitle\x07\x9b2J \u202eback</title><p>needle \x1b]0;owned\x07 \u202etext</p>",
}


def query(clone: Clone, *arguments: str, columns: int = 60) -> Ended:
    command = ("python", "-m", "whitewater", "pagerank", "query", "needle", *arguments)
    return clone.start(*command, PYTHONPATH="src", COLUMNS=str(columns), PYTHONIOENCODING="utf-8").ended()


def width(line: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in line)


def test_long_and_malicious_pages_keep_to_the_terminal(fresh: Clone) -> None:
    (fresh / "site").mkdir()
    for name, content in PAGES.items():
        (fresh / "site" / name).write_text(content, encoding="utf-8")
    made = fresh.run("pagerank", {"fetch": {"source": "html", "html": {"folder": "site"}}}, INDEX)
    assert made.status == 0, made.terminal
    for columns in (40, 60):
        ended = query(fresh, columns=columns)
        assert ended.status == 0, ended.terminal
        lines = ended.terminal.splitlines()
        assert max(map(width, lines)) <= columns
        assert max(map(width, lines)) > columns - 3
        assert len(lines) <= 40
        assert sum(line.rstrip().endswith("…") for line in lines) >= 4
        assert not any(unicodedata.category(letter) in {"Cc", "Cf"} for letter in ended.terminal.replace("\n", ""))
    answer = json.loads(query(fresh, "--json").terminal)
    found = {result["url"].rpartition("/")[2]: result for result in answer["results"]}
    assert found["long.html"]["title"] == TITLE
    assert SECRET in found["long.html"]["snippet"]
    assert f"{'u' * 200}.html" in found
