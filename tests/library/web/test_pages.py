"""The folder of pages: what was added is read back in its order, a row group at a time, or an error says why not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whitewater.errors import InputError, IntegrityError
from whitewater.web import pages as module
from whitewater.web.pages import Page, PagesFolder, PagesWriter, open_pages

PAGES = [
    Page("https://example.org/", 200, "text/html; charset=utf-8", None, b"<title>A</title>"),
    Page("https://example.org/moved", 301, None, "https://example.org/", b""),
    Page("https://example.org/\u00fc", 404, "text/html", None, bytes(range(256))),
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PAGE = st.builds(Page, TEXT, st.integers(100, 999), st.none() | TEXT, st.none() | TEXT, st.binary(max_size=40))


def write(path: Path, pages: list[Page]) -> PagesFolder:
    writer = PagesWriter(path)
    for page in pages:
        writer.add(page)
    return writer.finish(source="html", counts={"pages": len(pages)})


def everything(folder: PagesFolder) -> list[Page]:
    return [page for place in folder.row_groups() for page in folder.read(place)]


def numbered(count: int) -> list[Page]:
    return [Page(f"https://example.org/{number}", 200, None, None, b"x" * number) for number in range(count)]


def test_pages_come_back_in_their_order_with_what_is_known_of_the_source(tmp_path: Path) -> None:
    writer = PagesWriter(tmp_path / "pages")
    for page in PAGES:
        writer.add(page)
    writer.finish(source="warc", counts={"records": 5}, files={"edges": ["a.txt"]}, settings={"files": ["a"]})
    found = open_pages(tmp_path / "pages")
    assert everything(found) == PAGES
    assert (found.source, found.pages, found.counts) == ("warc", 3, {"records": 5})
    assert (found.files, found.settings) == ({"edges": ["a.txt"]}, {"files": ["a"]})


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pages=st.lists(PAGE, max_size=30), group_pages=st.integers(1, 9), group_bytes=st.integers(1, 100))
def test_any_pages_come_back_however_they_are_grouped(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    *,
    pages: list[Page],
    group_pages: int,
    group_bytes: int,
) -> None:
    monkeypatch.setattr(module, "GROUP_PAGES", group_pages)
    monkeypatch.setattr(module, "GROUP_BYTES", group_bytes)
    folder = write(tmp_path_factory.mktemp("pages"), pages)
    assert everything(open_pages(folder.path)) == pages
    groups = [folder.read(place) for place in folder.row_groups()]
    assert all(len(group) <= group_pages for group in groups)
    assert all(len(group) == 1 or sum(len(page.body) for page in group) <= group_bytes for group in groups)
    assert len({place.path for place in folder.row_groups()}) == len(groups)


def test_parts_are_taken_in_the_order_in_which_they_are_named(tmp_path: Path) -> None:
    pages = numbered(7)
    writer = PagesWriter(tmp_path / "pages")
    writer.add(pages[0])
    for name, part in {"a": pages[1:4], "b": [], "c": pages[4:6]}.items():
        other = PagesWriter(tmp_path / "pages" / name)
        for page in part:
            other.add(page)
        other.flush()
        writer.append_folder(tmp_path / "pages" / name, excluded=np.zeros(len(part), bool))
    writer.add(pages[6])
    found = writer.finish(source="warc")
    assert everything(found) == pages
    assert found.pages == 7
    assert not [path for path in (tmp_path / "pages").iterdir() if path.is_dir()]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(left_out=st.lists(st.booleans(), min_size=1, max_size=30))
def test_pages_of_a_part_that_are_left_out_are_gone_and_the_others_are_not(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, *, left_out: list[bool]
) -> None:
    monkeypatch.setattr(module, "GROUP_PAGES", 3)
    pages = numbered(len(left_out))
    path = tmp_path_factory.mktemp("pages")
    writer, part = PagesWriter(path), PagesWriter(path / "part")
    for page in pages:
        part.add(page)
    part.flush()
    writer.append_folder(path / "part", excluded=np.array(left_out))
    found = writer.finish(source="warc")
    assert everything(found) == [page for page, gone in zip(pages, left_out, strict=True) if not gone]
    assert found.pages == len(pages) - sum(left_out)
    assert sorted(each.name for each in path.iterdir()) == sorted(
        ["source.json", *(file.name for file in path.glob("pages-*"))]
    )


def test_what_is_not_unicode_becomes_question_marks(tmp_path: Path) -> None:
    folder = write(tmp_path, [Page("https://example.org/\udcff", 200, "text/\udce9", "\udc80", b"")])
    assert everything(folder) == [Page("https://example.org/?", 200, "text/?", "?", b"")]


def test_a_source_without_pages_is_a_folder_of_one_file(tmp_path: Path) -> None:
    PagesWriter(tmp_path / "pages").finish(source="edges", files={"edges": ["a", "b"], "vertices": []})
    assert [path.name for path in (tmp_path / "pages").iterdir()] == ["source.json"]
    assert open_pages(tmp_path / "pages").row_groups() == []


def test_a_writer_that_an_error_ends_leaves_no_folder_of_pages(tmp_path: Path) -> None:
    def broken_off() -> None:
        PagesWriter(tmp_path).add(PAGES[0])
        raise KeyError

    with pytest.raises(KeyError):
        broken_off()
    with pytest.raises(InputError, match=r"source\.json"):
        open_pages(tmp_path)


def test_a_lost_file_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUP_PAGES", 1)
    folder = write(tmp_path, PAGES)
    (tmp_path / "pages-00001.parquet").unlink()
    with pytest.raises(IntegrityError, match="has 2 rows, not 3"):
        folder.row_groups()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, PAGES)
    place = folder.row_groups()[0]
    file = place.path
    data = bytearray(file.read_bytes())
    data[4:60] = bytes(56)
    file.write_bytes(data)
    with pytest.raises(InputError, match=r"pages-00000\.parquet cannot be read"):
        folder.read(place)
    file.write_bytes(data[:50])
    with pytest.raises(InputError, match=r"pages-00000\.parquet cannot be read"):
        folder.row_groups()
