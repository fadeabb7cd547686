"""Pages of the same bytes are one document though they link to one of themselves; other pages stay apart."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd

from tests.guarantees.running import Clone

SUMMARY = "data/pagerank/parse.json"
ALIASES = "data/pagerank/documents/aliases.parquet"
RANKS = "results/pagerank/cpu/vertices.parquet"


def html(title: str, *links: str) -> str:
    anchors = " ".join(f'<a href="{link}">link</a>' for link in links)
    return f"<html><title>{title}</title><body>About {title}. {anchors}</body></html>"


def response(url: str, body: str) -> bytes:
    """Return a record of a web archive."""
    answer = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    head = ["WARC/1.0", "WARC-Type: response", f"WARC-Target-URI: {url}", "WARC-Date: 2024-01-01T00:00:00Z",
            "Content-Type: application/http; msgtype=response", f"Content-Length: {len(answer)}"]  # fmt: skip
    return gzip.compress(("\r\n".join(head) + f"\r\n\r\n{answer}\r\n\r\n").encode())


def write_site(folder: Path, pages: dict[str, str]) -> None:
    folder.mkdir()
    for name, content in pages.items():
        (folder / name).write_text(content)


def test_copies_with_a_home_link_are_one_vertex_with_the_links_to_all(fresh: Clone) -> None:
    home = html("Home", "/", "/a", "/b")
    pages = {"/": home, "/index.html": home, "/a": html("A", "/"), "/b": html("B", "/index.html", "/a")}
    records = [response(f"https://example.org{path}", body) for path, body in pages.items()]
    (fresh / "web.warc.gz").write_bytes(b"".join(records))
    ended = fresh.run("pagerank", {"fetch": {"source": "warc", "warc": {"files": ["web.warc.gz"]}}}, RANKS)
    assert ended.status == 0, ended.terminal
    counts = fresh.json(SUMMARY)["pages"]
    assert (counts["documents"], counts["duplicates"], counts["fetched"]) == (3, 1, 4)
    vertices = pd.read_parquet(fresh / RANKS).set_index("name")
    assert vertices["in_degree"].to_dict() == {
        "https://example.org/": 2, "https://example.org/a": 2, "https://example.org/b": 1,
    }  # fmt: skip


def test_pages_that_only_look_alike_stay_apart(fresh: Clone) -> None:
    copies = html("Copy", "one.html", "")
    write_site(fresh / "site", {
        # Three of the same bytes: each links to the first, and to itself.
        "one.html": copies, "two.html": copies, "three.html": copies,
        # A gallery: the same words, but each page leads on to the next one.
        "g1.html": html("Gallery", "g2.html"), "g2.html": html("Gallery", "g3.html"),
        "g3.html": html("Gallery", "one.html"),
    })  # fmt: skip
    ended = fresh.run("pagerank", {"fetch": {"source": "html", "html": {"folder": "site"}}}, SUMMARY)
    assert ended.status == 0, ended.terminal
    counts = fresh.json(SUMMARY)["pages"]
    assert (counts["documents"], counts["duplicates"]) == (4, 2)
    assert pd.read_parquet(fresh / ALIASES)["reason"].tolist() == ["duplicate"] * 2
