"""The step `fetch` of the PageRank application: every source leaves one folder, and every file read is written down."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import fsspec
import pytest

from whitewater.engines import resolve
from whitewater.errors import ConfigError, InputError
from whitewater.step import Run, execute
from whitewater.web import html_files as html
from whitewater.web.config import Crawl
from whitewater.web.pages import Page, PagesFolder, PagesWriter, open_pages
from whitewater.web.urls import normalize
from whitewater_apps.pagerank.config import Fetch
from whitewater_apps.pagerank.steps.fetch import fetch


@pytest.fixture
def site(folder: Path, served: tuple[str, Path]) -> tuple[str, Path]:
    """The address of the folder `site`, and where it is."""
    return f"{served[0]}/site", folder / "site"


def run_fetch(source: str, simulated: dict[str, Path] | None = None, /, **settings: Any) -> tuple[PagesFolder, Any]:
    """Run the step; return the folder and what `inputs.json` holds."""
    given = Fetch.model_validate({"source": source, source: settings} if settings else {"source": source})
    run = Run("pagerank", "fetch", resolve("cpu"), given, 2)
    place = Path("data/pagerank")
    outputs = {"fetched": place / "fetched", "inputs": place / "inputs.json"}
    inputs: dict[str, Path | dict[str, Path]] = {"simulated": simulated or {}, "frontier": place / "crawl"}
    execute(run, fetch, inputs=inputs, outputs=outputs, record=Path("logs/fetch.json"))
    return open_pages(outputs["fetched"]), json.loads(outputs["inputs"].read_text())


def pages(found: PagesFolder) -> list[Page]:
    return [page for place in found.row_groups() for page in found.read(place)]


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def described(path: Path, name: str, *, origin: str | None = None) -> dict[str, Any]:
    content = path.read_bytes()
    return {"path": name, "origin": origin or name, "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest()}  # fmt: skip


def archive(*urls: str) -> bytes:
    answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>{}</title>"
    return b"".join(record("response", answer.format(url), f"WARC-Target-URI: {url}\r\n") for url in urls)


def record(kind: str, block: str, header: str = "") -> bytes:
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\n{header}Content-Length: {len(block)}\r\n\r\n"
    return gzip.compress(f"{head}{block}\r\n\r\n".encode())


def test_html_files_are_pages_at_the_address_of_the_folder(folder: Path) -> None:
    contents = {
        "index.html": b"<title>A</title>",
        "b/old page.HTM": b"\xff\x00",
        "b/\u00fc?#%.xhtml": b"",
        "notes.txt": b"no page",
    }
    for name, content in contents.items():
        write(folder / "web" / name, content)
    found, inputs = run_fetch("html", folder="web", base_url="https://example.org/sub")
    base = "https://example.org/sub/"
    assert pages(found) == [
        Page(f"{base}b/old%20page.HTM", 200, None, None, b"\xff\x00"),
        Page(f"{base}b/%C3%BC%3F%23%25.xhtml", 200, None, None, b""),
        Page(f"{base}index.html", 200, None, None, b"<title>A</title>"),
    ]
    assert found.counts == {"files": 4, "pages": 3, "other_files": 1, "symbolic_links": 0, "too_large": 0}
    assert inputs["files"] == [
        described(Path("web", name), f"web/{name}") for name in ("b/old page.HTM", "b/\u00fc?#%.xhtml", "index.html")
    ]
    facts = json.loads(Path("logs/fetch.json").read_text())["facts"]
    assert facts == {"source": "html", "pages": 3, "counts": found.counts, "files": 3}


def test_a_name_that_is_not_unicode_has_an_address(folder: Path) -> None:
    write(folder / "web" / os.fsdecode(b"\xe9.html"), b"latin-1")
    found, inputs = run_fetch("html", folder="web")
    assert [page.url for page in pages(found)] == ["https://example.org/%E9.html"]
    assert inputs["files"][0]["path"] == "web/\\xe9.html"


def test_symbolic_links_are_counted_and_not_followed(folder: Path) -> None:
    write(folder / "secret" / "key.html", b"secret")
    write(folder / "web" / "a.html", b"a")
    (folder / "web" / "out").symlink_to(folder / "secret")
    (folder / "web" / "round").symlink_to(folder / "web")
    (folder / "web" / "key.html").symlink_to(folder / "secret" / "key.html")
    (folder / "web" / "nowhere.html").symlink_to("nowhere")
    found, _ = run_fetch("html", folder="web")
    assert [page.body for page in pages(found)] == [b"a"]
    assert (found.counts["symbolic_links"], found.counts["files"]) == (4, 5)


def test_a_file_too_large_to_be_a_page_is_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "LARGEST_BODY", 10)
    large = write(folder / "web" / "film.html", b"x" * 11)
    write(folder / "web" / "page.html", b"x" * 10)
    found, inputs = run_fetch("html", folder="web")
    assert [page.url for page in pages(found)] == ["https://example.org/page.html"]
    assert found.counts["too_large"] == 1
    assert inputs["files"][0] == described(large, "web/film.html")


def test_a_folder_without_pages_is_an_error(folder: Path) -> None:
    write(folder / "web" / "notes.txt", b"no page")
    with pytest.raises(InputError, match=r"web has no HTML files \(\.htm, \.html, \.xhtml\)"):
        run_fetch("html", folder="web")
    with pytest.raises(InputError, match="none cannot be read"):
        run_fetch("html", folder="none")
    assert not Path("data/pagerank/fetched").exists()


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    write(folder / "web" / "a.html", b"a")
    os.mkfifo(folder / "web" / "pipe.html")
    with pytest.raises(InputError, match=r"pipe\.html is not a file"):
        run_fetch("html", folder="web")


def test_a_file_that_cannot_be_read_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(folder / "web" / "a.html", b"a")

    def refuse(self: Path, *args: object, **named: object) -> object:
        if self.name == path.name:
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *args, **named)  # type: ignore[call-overload]

    opened = Path.open
    monkeypatch.setattr(Path, "open", refuse)  # root may read everything
    with pytest.raises(InputError, match=r"a\.html cannot be read: Permission denied"):
        run_fetch("html", folder="web")


def test_a_file_is_where_links_to_it_lead_whatever_the_punctuation(folder: Path) -> None:
    name = "Mercury_(planet),+@!'&=$:;*~-.html"
    write(folder / "web" / name, b"a")
    found, _ = run_fetch("html", folder="web")
    assert [page.url for page in pages(found)] == [normalize(f"./{name}", "https://example.org/")]


@pytest.mark.parametrize(
    "base",
    ["example.org", "ftp://example.org/", "https://", "https://a.org/?q=", "/a/", "http://[::", "http://u:p@a/",
     "http://a b/", "https://a.org/#b"],
)  # fmt: skip
def test_an_address_that_is_none_is_an_error(folder: Path, base: str) -> None:
    write(folder / "web" / "a.html", b"a")
    with pytest.raises(ConfigError, match="base_url"):
        run_fetch("html", folder="web", base_url=base)


def test_the_simulated_web_is_read_as_an_archive(folder: Path) -> None:
    web = write(folder / "simulated.warc.gz", archive("https://a.org/", "https://a.org/b"))
    queries = write(folder / "simulated_queries.csv", b"query,url\n")
    found, inputs = run_fetch("generated", {"simulated.warc.gz": web, "simulated_queries.csv": queries})
    assert [page.url for page in pages(found)] == ["https://a.org/", "https://a.org/b"]
    assert (found.source, found.settings) == ("generated", {})
    assert inputs["files"] == [described(path, str(path)) for path in (web, queries)]
    with pytest.raises(InputError, match="Run the step simulate"):
        run_fetch("generated")


def test_archives_are_found_by_path_glob_and_address(folder: Path, site: tuple[str, Path]) -> None:
    write(folder / "warc" / "b.warc.gz", archive("https://b.org/"))
    write(folder / "warc" / "a.warc.gz", archive("https://a.org/"))
    served = write(site[1] / "c.warc.gz", archive("https://c.org/", "https://b.org/"))
    url = f"{site[0]}/c.warc.gz"
    found, inputs = run_fetch("warc", files=("warc/*.warc.gz", f"{url}?key=secret", "warc/a.warc.gz"))
    # Names of files are in order; of the captures of b.org that of the last file is the latest.
    assert [page.url for page in pages(found)] == ["https://c.org/", "https://a.org/", "https://b.org/"]
    assert (found.counts["records"], found.counts["superseded"]) == (4, 1)
    assert "secret" not in json.dumps(inputs) + Path("data/pagerank/fetched/source.json").read_text()
    downloaded = Path("data/pagerank/downloads")
    assert inputs["files"][0] == described(served, str(next(downloaded.iterdir())), origin=f"{url}?key=...")
    assert [file["path"] for file in inputs["files"][1:]] == ["warc/a.warc.gz", "warc/b.warc.gz"]


def test_an_archive_without_pages_is_an_error_that_says_what_was_there(folder: Path) -> None:
    write(folder / "a.warc.gz", record("warcinfo", "software: test"))
    with pytest.raises(InputError, match=r"There are no pages: records 1, warcinfo 1\. Check pagerank\.fetch\.warc"):
        run_fetch("warc", files=("a.warc.gz",))


def test_a_crawl_fills_the_folder_and_names_its_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def crawl(settings: Crawl, *, frontier: Path, writer: PagesWriter) -> dict[str, int]:
        assert frontier == Path("data/pagerank/crawl")
        for url in settings.start_urls:
            writer.add(Page(url, 200, "text/html", None, b"<p>"))
        return {"requests": 3, "refused": 1}

    crawler = ModuleType("whitewater.web.crawl.crawler")
    monkeypatch.setattr(crawler, "crawl", crawl, raising=False)
    monkeypatch.setitem(sys.modules, crawler.__name__, crawler)
    found, inputs = run_fetch("crawl", start_urls=("https://a.org/", "https://b.org/"))
    assert [page.url for page in pages(found)] == ["https://a.org/", "https://b.org/"]
    assert found.counts == {"requests": 3, "refused": 1}
    assert inputs == {
        "source": "crawl", "pages": 2, "files": [{"url": "https://a.org/"}, {"url": "https://b.org/"}],
    }  # fmt: skip
    assert "user_agent is 'whitewater': add how sites can reach you" in caplog.text


def test_files_of_edges_are_named_by_role_with_their_settings(folder: Path) -> None:
    for name in ("b.txt", "a.txt", "v.txt"):
        write(folder / name, name.encode())
    found, inputs = run_fetch("edges", files=("[ab].txt",), vertices=("v.txt",), delimiter="tab", weighted=True)
    assert found.files == {"edges": ["a.txt", "b.txt"], "vertices": ["v.txt"]}
    assert (found.pages, found.settings["delimiter"], found.settings["weighted"]) == (0, "tab", True)
    assert inputs["files"] == [described(Path(name), name) for name in ("a.txt", "b.txt", "v.txt")]


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("base", ["", "{site}/elsewhere/", "{folder}/local"])
def test_a_list_names_files_beside_it_or_under_a_base(
    folder: Path, site: tuple[str, Path], *, base: str, zipped: bool
) -> None:
    places = {"": site[1] / "lists", "{site}/elsewhere/": site[1] / "elsewhere", "{folder}/local": folder / "local"}
    write(places[base] / "edges" / "part-0.txt", b"part-0")
    text = b"edges/part-0.txt\n\n"
    name = "lists/edges.paths.gz" if zipped else "lists/edges.paths"
    listing = write(site[1] / name, gzip.compress(text) if zipped else text)
    found, inputs = run_fetch(
        "edges", files=(f"{site[0]}/{name}",), paths_base=base.format(site=site[0], folder=folder)
    )
    assert [Path(path).read_bytes() for path in found.files["edges"]] == [b"part-0"]
    assert inputs["files"][1] == described(listing, inputs["files"][1]["path"], origin=f"{site[0]}/{name}")


def test_a_local_list_names_files_beside_it(folder: Path) -> None:
    write(folder / "graph" / "parts" / "0.txt", b"0 1")
    write(folder / "elsewhere.txt", b"1 2")
    write(folder / "graph" / "edges.paths", f"parts/*.txt\n{folder}/elsewhere.txt\n".encode())
    found, inputs = run_fetch("edges", files=("graph/edges.paths",))
    assert sorted(found.files["edges"]) == sorted([str(folder / "elsewhere.txt"), "graph/parts/0.txt"])
    assert inputs["files"][-1]["path"] == "graph/edges.paths"


def test_a_list_in_a_bucket_names_files_beside_it(folder: Path) -> None:
    store = fsspec.filesystem("memory")
    store.pipe_file("/graph-bucket/a/edges.paths", b"parts/0.txt\n")
    store.pipe_file("/graph-bucket/a/parts/0.txt", b"0 1")
    found, _ = run_fetch("edges", files=("memory://graph-bucket/a/edges.paths",))
    assert [Path(path).read_bytes() for path in found.files["edges"]] == [b"0 1"]
    store.rm("/graph-bucket", recursive=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "names no files"),
        (b"none.txt\n", r"none\.txt does not exist"),
        (gzip.compress(b"a.txt\n", mtime=0)[:-3], "is a gzip file that is cut off"),
        (b"\xff\xfe\n", "is not a list of files"),
    ],
)
def test_a_list_that_is_none_is_an_error(folder: Path, content: bytes, message: str) -> None:
    write(folder / "edges.paths", content)
    with pytest.raises(InputError, match=message):
        run_fetch("edges", files=("edges.paths",))


def test_files_that_are_not_there_are_named(folder: Path, site: tuple[str, Path]) -> None:
    write(folder / "a.txt", b"0 1")
    for place, message in {
        "none.txt": r"none\.txt does not exist\. Check pagerank\.fetch\.edges",
        "*.csv": "matches no file",
        str(folder): r"is a directory\. Name its files",
        f"{site[0]}/none.txt": "is not published",
    }.items():
        with pytest.raises(InputError, match=message):
            run_fetch("edges", files=("a.txt", place))
        with pytest.raises(InputError, match=message):
            run_fetch("edges", files=("a.txt",), vertices=(place,))
