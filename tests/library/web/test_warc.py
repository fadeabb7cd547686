"""Web archives: every record is a page or counted, the latest capture counts, and what is cut or torn is an error.

The files are written by hand.
"""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from whitewater.engines import resolve
from whitewater.errors import InputError
from whitewater.step import Run
from whitewater.web import http_body, warc
from whitewater.web.http_body import UndecodableError, decode_body
from whitewater.web.pages import Page, PagesWriter, open_pages
from whitewater.web.warc import CAPTURE, find_superseded, parse_date, read_warcs, warc_records
from whitewater_apps.pagerank.config import Fetch

HTML = b"<html><title>Whitewater</title><p>" + b"rapids " * 50 + b"</html>"
KINDS = {
    "pages", "superseded", "malformed", "not_http", "segmented", "undecodable", "too_large", "revisit", "request",
    "metadata", "warcinfo", "continuation", "other",
}  # fmt: skip


def record(kind: str, block: bytes, **headers: str) -> bytes:
    """Return a record; names of headers with underscores for dashes."""
    named = {"WARC-Type": kind, "WARC-Date": "2024-05-01T00:00:00Z"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    named.setdefault("Content-Length", str(len(block)))
    lines = [b"WARC/1.0", *(f"{name}: {value}".encode() for name, value in named.items())]
    return b"\r\n".join(lines) + b"\r\n\r\n" + block + b"\r\n\r\n"


def response(url: str, body: bytes = HTML, *, status: str = "200 OK", date: str = "2024-05-01T00:00:00Z",
             **headers: str) -> bytes:  # fmt: skip
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    block = "\r\n".join(lines).encode() + b"\r\n\r\n" + body
    return record("response", block, WARC_Target_URI=url, WARC_Date=date)


def members(*records: bytes) -> bytes:
    return b"".join(gzip.compress(each) for each in records)


def chunked(body: bytes, size: int = 100) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x;name=value\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def read(folder: Path, *contents: bytes, threads: int = 1) -> tuple[list[Page], dict[str, int]]:
    """Read files with these contents; return the pages and the counts."""
    files = []
    for number, content in enumerate(contents):
        files.append(folder / f"{number}.warc.gz")
        files[-1].write_bytes(content)
    writer = PagesWriter(folder / "pages")
    counts = read_warcs(files, writer, run=Run("pagerank", "fetch", resolve("cpu"), Fetch(), threads))
    writer.finish(source="warc", counts=counts)
    found = open_pages(folder / "pages")
    return [page for place in found.row_groups() for page in found.read(place)], counts


def counted(**kinds: int) -> dict[str, int]:
    total = sum(number for kind, number in kinds.items() if kind != "truncated")
    return {"pages": 0, "superseded": 0, "truncated": 0, **kinds, "records": total}


def test_every_record_of_an_archive_is_a_page_or_counted(tmp_path: Path) -> None:
    contents = members(
        record("warcinfo", b"software: test\r\n", Content_Type="application/warc-fields"),
        record("request", b"GET / HTTP/1.1\r\n\r\n", WARC_Target_URI="https://a.org/"),
        response("https://a.org/", Content_Type="text/html"),
        response("https://a.org/old", b"", status="301 Moved", Location="../new?q=1"),
        response("https://a.org/gone", b"no", status="404 Not Found"),
        record("metadata", b"fetchTimeMs: 5", WARC_Target_URI="https://a.org/"),
        record("revisit", b"HTTP/1.1 200 OK\r\n\r\n", WARC_Target_URI="https://a.org/"),
        record("response", b"answer", WARC_Target_URI="dns:a.org"),
        record("response", b"HTTP/1.1 200 OK\r\n\r\nhalf", WARC_Target_URI="https://a.org/", WARC_Segment_Number="1"),
        record("continuation", b"half", WARC_Target_URI="https://a.org/", WARC_Segment_Number="2"),
        record("response", b"HTTP/1.1 200 OK\r\n\r\n"),
        record("response", b"", WARC_Target_URI="https://a.org/empty"),
        response("https://a.org/status", status="two hundred"),
        record("response", b"\x00\x01\x02 binary", WARC_Target_URI="https://a.org/binary"),
        record("vendor-kind", b"?"),
        response("https://a.org/torn", gzip.compress(HTML)[:40], Content_Encoding="gzip"),
        record("conversion", b"text", WARC_Target_URI="https://a.org/text", Content_Type="text/plain"),
        record("resource", b"<p>", WARC_Target_URI="https://a.org/resource", Content_Type="text/html"),
    )
    pages, counts = read(tmp_path, contents)
    assert pages == [
        Page("https://a.org/", 200, "text/html", None, HTML),
        Page("https://a.org/old", 301, None, "https://a.org/new?q=1", b""),
        Page("https://a.org/gone", 404, None, None, b"no"),
        Page("https://a.org/text", 200, "text/plain; charset=utf-8", None, b"text"),
        Page("https://a.org/resource", 200, "text/html", None, b"<p>"),
    ]
    assert counts == counted(pages=5, warcinfo=1, request=1, metadata=1, revisit=1, not_http=1, segmented=1,
                             continuation=1, malformed=4, other=1, undecodable=1)  # fmt: skip
    assert set(counts) <= KINDS | {"records", "truncated"}


@pytest.mark.parametrize("join", [members, lambda *records: b"".join(records)])
def test_bodies_are_those_that_were_sent_however_they_were_encoded(tmp_path: Path, join: Callable[..., bytes]) -> None:
    random = np.random.default_rng(7)
    records, expected = list[bytes](), list[Page]()
    for number in range(40):
        body = sent = random.integers(0, 256, int(random.integers(0, 200_000)), np.uint8).tobytes()
        headers = {"Content_Type": f"text/html; charset=x{number}"}
        if number % 3 == 1:
            sent, headers["Content_Encoding"] = gzip.compress(sent), "gzip"
        if number % 4 == 1:
            sent, headers["Transfer_Encoding"] = chunked(sent, 5000), "chunked"
        records.append(response(f"https://a.org/{number}", sent, **headers))
        expected.append(Page(f"https://a.org/{number}", 200, headers["Content_Type"], None, body))
    pages, counts = read(tmp_path, join(*records))
    assert pages == expected
    assert counts == counted(pages=40)


def test_headers_are_read_as_servers_write_them(tmp_path: Path) -> None:
    blocks = [
        b"HTTP/1.1 301 Moved\nLocation: /\xe9\n\n",
        "HTTP/1.1 302\r\nLOCATION: /é\r\nBroken\r\n\r\n".encode(),
        b"http/2 200\r\nX: " + b"x" * 100_000 + b"\r\nContent-Type: text/\r\n html\r\n\r\nbody",
        b"HTTP/1.1 200 OK",
    ]
    pages, _ = read(tmp_path, members(*(record("response", block, WARC_Target_URI=f"https://a.org/{number}")
                                        for number, block in enumerate(blocks))))  # fmt: skip
    assert [(page.status, page.location, page.content_type, page.body) for page in pages] == [
        (301, "https://a.org/é", None, b""),
        (302, "https://a.org/é", None, b""),
        (200, None, "text/ html", b"body"),
        (200, None, None, b""),
    ]


def test_records_may_share_a_gzip_member_or_stretch_over_several(tmp_path: Path) -> None:
    records = [response(f"https://a.org/{number}", HTML * 300) for number in range(5)]
    one = b"".join(records)
    pieces = [one[start : start + 70_000] for start in range(0, len(one), 70_000)]
    expected = [f"https://a.org/{number}" for number in range(5)]
    for name, contents in {"one": members(one), "pieces": members(*pieces)}.items():
        (tmp_path / name).mkdir()
        assert [page.url for page in read(tmp_path / name, contents)[0]] == expected


def test_the_latest_capture_of_a_page_counts_wherever_it_is(tmp_path: Path) -> None:
    first = [
        response("https://a.org/early", b"new", date="2024-05-01T00:00:00.5Z"),
        response("https://a.org/late", b"old", date="2024-05-01T00:00:00Z"),
        response("https://a.org/tie", b"first"),
        response("https://a.org/tie", b"second"),
        response("https://a.org/undated", b"undated", date="yesterday"),
    ]
    second = [
        response("https://a.org/tie", b"third"),
        response("https://a.org/early", b"old", date="2024-05-01T00:00:00Z"),
        response("https://a.org/late", b"", status="404 Gone", date="2025-01-01T00:00:00Z"),
        response("https://a.org/undated", b"dated", date="1999-01-01T00:00:00Z"),
    ]
    pages, counts = read(tmp_path, members(*first), b"".join(second), threads=2)
    assert [(page.url[14:], page.status, page.body) for page in pages] == [
        ("early", 200, b"new"), ("tie", 200, b"third"), ("late", 404, b""), ("undated", 200, b"dated"),
    ]  # fmt: skip
    assert counts == counted(pages=4, superseded=5)


def test_addresses_of_one_normal_form_are_one_page_and_may_be_in_brackets(tmp_path: Path) -> None:
    captures = [
        response("http://a.org/x", b"old", date="2019-01-01T00:00:00Z"),
        response("<http://a.org:80/x>", b"new", date="2021-01-01T00:00:00Z"),
    ]
    pages, counts = read(tmp_path, members(*captures))
    assert [(page.url, page.body) for page in pages] == [("http://a.org:80/x", b"new")]
    assert counts == counted(pages=1, superseded=1)


@hypothesis_settings(max_examples=100, deadline=None)
@given(captures=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-2, 2)), max_size=12))
def test_one_capture_of_each_url_remains(captures: list[tuple[int, int, int]]) -> None:
    latest: dict[tuple[int, int], int] = {}
    for place, (high, low, date) in enumerate(captures):
        if (high, low) not in latest or captures[latest[high, low]][2] <= date:
            latest[high, low] = place
    pages = [(bytes([high, *[0] * 14, low]), date) for high, low, date in captures]
    found = find_superseded(np.array(pages, CAPTURE))
    assert np.flatnonzero(~found).tolist() == sorted(latest.values())


@pytest.mark.parametrize(("threads", "large"), [(1, None), (3, None), (2, 1)], ids=["one", "threads", "processes"])
@pytest.mark.slow
def test_pages_are_in_the_order_of_the_files_whatever_workers_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, large: int | None
) -> None:
    monkeypatch.setattr(warc, "LARGE_BYTES", large or warc.LARGE_BYTES)
    contents = [members(*(response(f"https://a.org/{file}/{n}") for n in range(9 - file))) for file in range(7)]
    expected = [f"https://a.org/{file}/{number}" for file in range(7) for number in range(9 - file)]
    pages, counts = read(tmp_path, *contents, threads=threads)
    assert [page.url for page in pages] == expected
    assert counts == counted(pages=len(expected))


def test_pages_that_the_crawler_cut_are_kept_and_counted(tmp_path: Path) -> None:
    block = b"HTTP/1.1 200 OK\r\n\r\n<p>the beg"
    cut = record("response", block, WARC_Target_URI="https://a.org/", WARC_Truncated="length")
    pages, counts = read(tmp_path, members(cut, response("https://a.org/whole")))
    assert [page.body for page in pages] == [b"<p>the beg", HTML]
    assert counts == counted(pages=2, truncated=1)


def test_huge_pages_are_counted_whether_they_were_compressed_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warc, "LARGEST_BODY", 1000)
    contents = members(
        response("https://a.org/large", b"x" * 1001),
        response("https://a.org/bomb", gzip.compress(bytes(10_000_000), mtime=0)[:9900], Content_Encoding="gzip"),
        response("https://a.org/deflated", zlib.compress(bytes(1001)), Content_Encoding="deflate"),
        record("resource", b"x" * 1001, WARC_Target_URI="https://a.org/resource"),
        response("https://a.org/whole", b"x" * 900),
        response("https://a.org/packed", gzip.compress(b"x" * 1000), Content_Encoding="gzip"),
    )
    pages, counts = read(tmp_path, contents)
    assert [page.url for page in pages] == ["https://a.org/whole", "https://a.org/packed"]
    assert counts == counted(pages=2, too_large=4)


def test_a_bomb_takes_no_more_memory_than_the_largest_page() -> None:
    bomb = gzip.compress(bytes(200_000_000))
    tracemalloc.start()
    body = decode_body(bomb, transfer_encoding="", content_encoding="gzip", limit=1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(body) == 1_000_001
    assert peak < 20_000_000


def compressor(name: str) -> Callable[[bytes], bytes]:
    return lambda data: pa.Codec(name).compress(data).to_pybytes()


def raw_deflate(data: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-15)
    return deflate.compress(data) + deflate.flush()


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "X-Gzip": gzip.compress, "br": compressor("brotli"), "zstd": compressor("zstd"),
    "deflate": zlib.compress, " Deflate ": raw_deflate,
}  # fmt: skip


@pytest.mark.parametrize("encoding", ENCODERS)
def test_bodies_are_decoded_and_cut_ones_are_refused(encoding: str) -> None:
    body = ENCODERS[encoding](HTML)

    def plain(data: bytes, *, transfer: str = "", content: str = encoding) -> bytes:
        return decode_body(data, transfer_encoding=transfer, content_encoding=content, limit=len(HTML))

    assert plain(body) == HTML
    assert plain(chunked(body), transfer="Chunked") == HTML
    assert plain(gzip.compress(body), content=f"{encoding}, gzip") == HTML
    assert plain(b"") == b""
    for data, transfer in ((body[:-1], ""), (body[: len(body) // 2], ""), (chunked(body)[:-5], "chunked"),
                           (chunked(body)[:-6], "chunked"), (chunked(body, 9)[:20], "chunked")):  # fmt: skip
        with pytest.raises(UndecodableError):
            plain(data, transfer=transfer)


@pytest.mark.parametrize("encoding", [*ENCODERS, "utf-8", "identity", "none"])
def test_bodies_that_were_decoded_before_are_taken_as_they_are(encoding: str) -> None:
    for body in (HTML, b"\xef\xbb\xbf\r\n" + HTML, b""):
        assert decode_body(body, transfer_encoding="chunked", content_encoding=encoding, limit=9999) == body


@given(body=st.binary(max_size=300), size=st.integers(1, 40))
def test_chunks_of_any_size_are_joined(body: bytes, size: int) -> None:
    assert http_body._join_chunks(chunked(body, size)) == body


def test_a_chunk_that_lies_about_its_length_is_refused() -> None:
    for body in (b"5\r\nabc\r\n0\r\n\r\n", b"2\r\nabc\r\n0\r\n\r\n", b"ffffffffffff\r\nabc\r\n0\r\n\r\n"):
        with pytest.raises(UndecodableError):
            decode_body(body, transfer_encoding="chunked", content_encoding="", limit=100)


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T00:00:01.5Z", 1_500_000),
        ("1970-01-01T00:00:00.123456789Z", 123_456),
        ("1970-01-02", 86_400_000_000),
        ("1971", 31_536_000_000_000),
        (None, warc.NO_DATE),
        ("", warc.NO_DATE),
        ("Tue, 15 Nov 1994", warc.NO_DATE),
    ],
)
def test_dates_are_compared_in_microseconds(date: str | None, expected: int) -> None:
    assert parse_date(date) == expected


def read_all(path: Path, contents: bytes) -> list[str]:
    path.write_bytes(contents)
    return [headers["WARC-Target-URI"] for headers, _, _ in warc_records(path)]


THREE = [response(f"https://a.org/{number}", HTML[: 10 + 20 * number]) for number in range(3)]


def test_a_gzip_file_cut_anywhere_is_an_error_but_between_members(tmp_path: Path) -> None:
    contents = members(*THREE)
    ends = np.cumsum([len(members(each)) for each in THREE]).tolist()
    for length in range(len(contents)):
        if length in ends:
            assert len(read_all(tmp_path / "a.warc.gz", contents[:length])) == ends.index(length) + 1
        else:
            with pytest.raises(InputError, match=r"a\.warc\.gz is (empty|a gzip file|cut off|damaged|not a WARC)"):
                read_all(tmp_path / "a.warc.gz", contents[:length])


def test_a_plain_file_cut_anywhere_is_an_error_but_between_records(tmp_path: Path) -> None:
    contents = b"".join(THREE)
    ends = np.cumsum([len(each) for each in THREE]).tolist()
    # Of the four bytes that end a record nothing is lost.
    whole = {end - missing for end in ends for missing in range(5)}
    for length in range(len(contents)):
        if length in whole:
            read_all(tmp_path / "a.warc", contents[:length])
        else:
            with pytest.raises(InputError, match=r"a\.warc (is|holds)"):
                read_all(tmp_path / "a.warc", contents[:length])


def test_a_cut_names_the_record_and_its_place(tmp_path: Path) -> None:
    for name, contents in (
        ("a.warc", b"".join(THREE)[: len(THREE[0]) + len(THREE[1]) - 10]),
        ("b.warc.gz", members(THREE[0], THREE[1][:-10])),
    ):
        place = rf"the record near byte {len(THREE[0])} \(https://a.org/1\)"
        with pytest.raises(InputError, match=f"is cut: {place} lacks 6 of"):
            read_all(tmp_path / name, contents)


def test_a_torn_gzip_member_is_an_error_that_names_it(tmp_path: Path) -> None:
    first, second, third = (members(each) for each in THREE)
    with pytest.raises(InputError, match=f"is cut off in the gzip member at byte {len(first):,} "):
        read_all(tmp_path / "a.warc.gz", first + second[:50])
    flipped = bytearray(second)
    flipped[len(second) // 2] ^= 0xFF
    crc = bytearray(second)
    crc[-6] ^= 1
    for torn in (second[:-20], second[20:], bytes(flipped), bytes(crc), b"rubbish" + second):
        with pytest.raises(InputError, match=f"is damaged in the gzip member at byte {len(first):,} "):
            read_all(tmp_path / "a.warc.gz", first + torn + third)


@pytest.mark.parametrize("change", [-200, -1, 5, 100])
@pytest.mark.parametrize("join", [members, lambda *records: b"".join(records)])
def test_a_wrong_length_of_a_record_is_an_error(tmp_path: Path, change: int, join: Callable[..., bytes]) -> None:
    block = b"HTTP/1.1 200 OK\r\n\r\n" + HTML
    lying = record("response", block, WARC_Target_URI="https://a.org/", Content_Length=str(len(block) + change))
    for following in ([], THREE):
        with pytest.raises(InputError, match=r"a\.warc is (damaged|cut)"):
            read_all(tmp_path / "a.warc", join(THREE[0], lying, *following))


@pytest.mark.parametrize("length", ["-5", "many", "", "\u0665", "1e3"])
def test_a_length_that_is_not_a_number_is_an_error(tmp_path: Path, length: str) -> None:
    lying = record("response", b"", WARC_Target_URI="https://a.org/", Content_Length=length)
    with pytest.raises(InputError, match=f"the Content-Length {length}"):
        read_all(tmp_path / "a.warc", THREE[0] + lying)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b"<html></html>", "is not a WARC file: it begins with b'<html"),
        (gzip.compress(b"0 1\n1 2\n", mtime=0), "is not a WARC file: it begins with b'0 1"),
        (gzip.compress(members(*THREE), mtime=0), "is not a WARC file"),
        (b"\x1f\x8b", "is a gzip file that is cut off"),
        (bytes(range(256)) * 10, "is not a WARC file"),
        (b"WARC/1.0\r\n", "is cut or damaged: the record near byte 0"),
        (b"WARC/9.9\r\n\r\n", "is damaged: there is no record after its beginning"),
    ],
)
def test_a_file_that_is_not_an_archive_is_an_error(tmp_path: Path, contents: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_all(tmp_path / "a.warc", contents)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.warc cannot be read"):
        list(warc_records(tmp_path / "none.warc"))


def test_records_are_not_kept_in_memory(tmp_path: Path) -> None:
    body = np.random.default_rng(1).integers(0, 256, 1_000_000, np.uint8).tobytes()
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"".join(members(response(f"https://a.org/{number}", body)) for number in range(60)))

    def peak(task: Any) -> int:
        tracemalloc.start()
        warc.read_warc(task)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak((path, tmp_path / "part")) < 40_000_000
