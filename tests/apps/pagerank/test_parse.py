"""Step `parse`: every page and link is in its outputs or counted, whatever the order of the pages and the workers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.helpers.real_data import needs_real_data, real_data
from whitewater.engines import resolve
from whitewater.errors import InputError, IntegrityError
from whitewater.graphs.vertex_ids import vertex_id
from whitewater.io.folder import PartsFormat
from whitewater.io.store import sha256
from whitewater.step import Output, Run
from whitewater.text.documents import DOCUMENTS, LINKS, read_aliases
from whitewater.web import pages as pages_folder
from whitewater.web import parse_pages
from whitewater.web.config import Parse
from whitewater.web.pages import Page, PagesWriter
from whitewater_apps.pagerank.steps.parse import parse

SITE = "https://example.org/"
HTML = "text/html; charset=utf-8"


def html(path: str, body: str, *, kind: str | None = HTML) -> Page:
    return Page(f"{SITE}{path}", 200, kind, None, body.encode())


def redirect(path: str, to: str) -> Page:
    return Page(f"{SITE}{path}", 301, None, f"{SITE}{to}", b"")


def answer(path: str, status: int, *, kind: str = HTML, body: bytes = b"x") -> Page:
    return Page(f"{SITE}{path}", status, kind, None, body)


WEB = [
    html("", "<title>Home</title>Hello<a href=a><a href=b?utm_source=x><a href=moved><a href=/a#x><a href=mailto:x>"),
    html("a", "<title>A</title>one<a href=/><a href=b rel=nofollow><a href=http://a..b/>"),
    html("b", "<title>B</title>two<a href=copy>"),
    html("b?utm_source=x", "<title>B</title>two<a href=copy><a href=a>"),
    html("copy", "<title>A</title>one<a href=/>"),
    html("canonical", "<link rel=canonical href=/a><title>C</title>three<a href=/><a href=b>"),
    html("foreign", "<link rel=canonical href=https://example.com/a><title>F</title>four<a href=gone>"),
    html("refresh", "<meta http-equiv=refresh content='0;url=a'>five<a href=b>"),
    redirect("moved", "a"),
    redirect("lost", "elsewhere"),
    redirect("x", "y"),
    redirect("y", "x"),
    Page(f"{SITE}odd", 302, None, "mailto:a@example.org", b""),
    answer("gone", 404),
    answer("broken", 500),
    answer("image", 200, kind="image/png"),
    answer("program", 200, body=b"MZ\0\0"),
    answer("large", 200, body=b"x" * 1001),
    answer("deep", 200, body=b"<div>" * 10),
    Page("file:///etc/passwd", 200, HTML, None, b"x"),
    html("note.txt", "Note\nSee https://example.org/a", kind="text/plain"),
]


@dataclass(frozen=True)
class Parsed:
    """The outputs of the step."""

    folder: Path
    summary: dict[str, Any]
    workers: int

    @property
    def documents(self) -> list[dict[str, Any]]:
        return [row for table in DOCUMENTS.tables(self.folder / "documents") for row in table.to_pylist()]

    @property
    def links(self) -> list[tuple[int, int, str]]:
        tables = LINKS.tables(self.folder / "links")
        return [tuple(row.values()) for table in tables for row in table.to_pylist()]

    @property
    def aliases(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = read_aliases(self.folder / "documents").to_pylist()
        return rows


def fetched(path: Path, pages: Sequence[Page]) -> Path:
    writer = PagesWriter(path)
    for page in pages:
        writer.add(page)
    writer.finish(source="html")
    return path


def parsed(folder: Path, pages: Sequence[Page], *, threads: int = 1, **settings: Any) -> Parsed:
    given = Parse(**{"maximum_bytes": 1000, **settings})
    run = Run("pagerank", "parse", resolve("cpu"), given, threads)
    outputs = {name: Output(folder / name) for name in ("documents", "links")}
    parse(run, fetched=fetched(folder / "fetched", pages), summary=Output(folder / "parse.json"), **outputs)
    return Parsed(folder, json.loads((folder / "parse.json").read_text()), run.facts["workers"]["count"])


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Parsed:
    return parsed(tmp_path_factory.mktemp("web"), WEB)


def named(*paths: str) -> set[int]:
    return {vertex_id(f"{SITE}{path}") for path in paths}


def test_every_page_is_a_document_an_alias_or_counted(web: Parsed) -> None:
    assert web.summary["pages"] == {
        "fetched": len(WEB),
        "documents": 6,
        "redirects": 3,
        "duplicates": 1,
        "canonical": 1,
        "same_address": 1,
        "redirect_loop": 2,
        "redirect_too_long": 0,
        "redirect_invalid": 1,
        "status_404": 1,
        "status_500": 1,
        "other_type": 1,
        "binary": 1,
        "too_large": 1,
        "invalid_address": 1,
    }
    assert web.summary["refreshes"] == 1


def test_every_link_found_is_kept_or_counted(web: Parsed) -> None:
    expected = {"found": 15, "kept": 6, "merged": 5, "repeated": 1, "scheme": 1, "nofollow": 1, "invalid": 1}
    assert web.summary["links"] == expected


def test_documents_have_ids_urls_titles_and_texts(web: Parsed) -> None:
    rows = {row["url"]: (row["vertex"], row["title"], row["text"]) for row in web.documents}
    assert rows == {
        f"{SITE}{path}": (vertex_id(f"{SITE}{path}"), title, text)
        for path, title, text in [
            ("", "Home", "Hello"),
            ("a", "A", "one"),
            ("b", "B", "two"),
            ("foreign", "F", "four"),
            ("deep", "", ""),
            ("note.txt", "Note", "Note See https://example.org/a"),
        ]
    }


def test_links_lead_from_documents_to_addresses(web: Parsed) -> None:
    found = {(source, target) for source, target, _ in web.links}
    expected = [("", "a"), ("", "b"), ("", "moved"), ("a", ""), ("b", "copy"), ("foreign", "gone")]
    assert found == {(vertex_id(SITE + source), vertex_id(SITE + target)) for source, target in expected}
    assert all(vertex_id(url) == target for _, target, url in web.links)


def test_aliases_lead_to_documents_or_to_what_was_not_fetched(web: Parsed) -> None:
    found = {row["alias"]: (row["vertex"], row["reason"]) for row in web.aliases}
    assert list(found) == sorted(found)
    assert found == {
        vertex_id(SITE + alias): (vertex_id(SITE + end), reason)
        for alias, end, reason in [
            ("moved", "a", "redirect"),
            ("refresh", "a", "redirect"),
            ("lost", "elsewhere", "redirect"),
            ("copy", "a", "duplicate"),
            ("canonical", "a", "canonical"),
        ]
    }


def test_settings_keep_duplicates_canonical_pages_and_marked_links(tmp_path: Path) -> None:
    found = parsed(tmp_path, WEB, duplicates="keep", canonical=False, nofollow="follow", drop_parameters=())
    assert {row["vertex"] for row in found.documents} == named(
        "", "a", "b", "b?utm_source=x", "copy", "canonical", "foreign", "deep", "note.txt"
    )
    assert found.summary["links"]["merged"] == 0
    assert "nofollow" not in found.summary["links"]


def test_links_of_a_page_to_itself_do_not_tell_it_from_its_copy(tmp_path: Path) -> None:
    found = parsed(tmp_path, [html("a", "x<a href='#top'><a href=/c>"), html("bb", "x<a href='?'><a href=/c>")])
    assert found.summary["pages"]["duplicates"] == 1
    assert found.summary["links"]["kept"] == 2


def test_a_canonical_address_on_another_host_is_not_obeyed(tmp_path: Path) -> None:
    other = Page("https://example.com/", 200, HTML, None, b"other")
    found = parsed(tmp_path, [html("a", "<link rel=canonical href=https://example.com/>x"), other])
    assert found.summary["pages"]["documents"] == 2


def test_a_refresh_is_relative_to_the_base_and_one_of_the_page_itself_is_not_a_redirect(tmp_path: Path) -> None:
    refresh = "<meta http-equiv=refresh content='0;url={}'>x<a href=c>"
    found = parsed(tmp_path, [html("a", refresh.format("a")), html("b", f"<base href=/d/>{refresh.format('e')}")])
    assert [row["url"] for row in found.documents] == [f"{SITE}a"]
    assert {row["vertex"] for row in found.aliases} == named("d/e")


def test_pages_that_say_nothing_are_not_copies_of_each_other(tmp_path: Path) -> None:
    found = parsed(tmp_path, [html("a", "<title>App</title><script>a"), html("b", "<title>App</title><script>b")])
    assert found.summary["pages"]["documents"] == 2


def test_the_order_of_the_pages_changes_nothing_but_the_order_of_the_rows(
    web: Parsed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages_folder, "GROUP_PAGES", 4)
    for seed in range(3):
        shuffled = Random(seed).sample(WEB, len(WEB))
        found = parsed(tmp_path / str(seed), shuffled)
        assert found.summary == web.summary
        assert found.aliases == web.aliases
        assert sorted(found.links) == sorted(web.links)
        assert sorted(map(str, found.documents)) == sorted(map(str, web.documents))


@pytest.mark.parametrize(("threads", "large"), [(3, False), (2, True)])
@pytest.mark.slow
def test_any_number_of_workers_writes_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, large: bool
) -> None:
    monkeypatch.setattr(pages_folder, "GROUP_PAGES", 2)
    one = parsed(tmp_path / "one", WEB)
    monkeypatch.setattr(parse_pages, "LARGE_BYTES", 0 if large else 10**9)
    several = parsed(tmp_path / "several", WEB, threads=threads)
    assert several.workers == (threads if large else 1), (
        "large inputs are parsed by processes, as parsing needs the lock"
    )
    for output in ("documents", "links", "parse.json"):
        assert sha256(one.folder / output) == sha256(several.folder / output)


def test_row_groups_without_documents_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_folder, "GROUP_PAGES", 1)
    found = parsed(tmp_path, [html("a", "x<a href=b>"), answer("b", 404), html("c", "y")])
    files = sorted(
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*-*.parquet") if "fetched" not in path.parts
    )
    assert files == [
        "documents/documents-00000.parquet",
        "documents/documents-00002.parquet",
        "links/links-00000.parquet",
    ]
    assert len(found.documents) == 2


def test_a_web_without_documents_is_parsed(tmp_path: Path) -> None:
    found = parsed(tmp_path, [answer("a", 404), redirect("b", "a")])
    assert (found.documents, found.links) == ([], [])
    assert found.summary["pages"]["documents"] == 0


@pytest.mark.parametrize("parts", [DOCUMENTS, LINKS])
def test_a_folder_that_lost_rows_is_refused(tmp_path: Path, parts: PartsFormat) -> None:
    parsed(tmp_path, WEB)
    file = tmp_path / parts.what / f"{parts.what}-00000.parquet"
    file.write_text("no table")
    with pytest.raises(InputError, match="cannot be read"):
        parts.parts(tmp_path / parts.what)
    file.unlink()
    with pytest.raises(IntegrityError, match=f"{parts.what} has 0 rows, not 6"):
        parts.parts(tmp_path / parts.what)


@needs_real_data
def test_the_links_of_cs50_are_those_that_its_files_show(tmp_path: Path) -> None:
    files = sorted(real_data("graph", "cs50", "corpus0").glob("*.html"))
    found = parsed(tmp_path, [html(file.name, file.read_text()) for file in files], maximum_bytes=10_000)
    number = {vertex_id(f"{SITE}{each}.html"): each for each in range(1, 5)}
    written = {
        (int(file.stem), each) for file in files for each in range(1, 5) if f'href="{each}.html"' in file.read_text()
    }
    assert {(number[source], number[target]) for source, target, _ in found.links} == written
    assert found.summary["pages"]["documents"] == 4
