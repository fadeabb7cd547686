"""Source `warc`: the pages in files of web archives, the latest capture of each.

Every record is counted as one of:

============== ========================================================================================================
pages          a page that is kept
superseded     a page of whose URL there is a later capture (WARC-Date; of captures at once, the one further on in the
               files, which are in the order of their names)
malformed      a response without target URI, or whose HTTP status or headers cannot be read
not_http       a response from elsewhere, such as dns:
segmented      a part of an answer that is spread over several records
undecodable    a page whose transfer or content encoding is damaged or cut
too_large      a page of more than `LARGEST_BODY` bytes
revisit        a capture equal to an earlier one, which is the page
request ...    warcinfo, metadata, continuation, other: records that hold no page
============== ========================================================================================================

``truncated`` are those of the pages that the crawler has cut (WARC-Truncated).

Each file is read once, by one worker, into a folder of its own, and the captures are told apart by a digest of their
URL and their date, 24 bytes a page. Only then, and only where there are superseded pages, files of pages are written
again without them. So bodies take the memory of one row group for each worker.
"""

from __future__ import annotations

import io
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import numpy as np
import numpy.typing as npt
import xxhash

from whitewater.pagerank.pages import LARGEST_BODY, Page, PagesWriter
from whitewater.pagerank.sources.http_body import UndecodableError, decoded
from whitewater.pagerank.sources.warc_records import warc_records
from whitewater.step import Run

if TYPE_CHECKING:
    from warcio.recordloader import ArcWarcRecord
    from warcio.statusandheaders import StatusAndHeaders

NO_PAGES = frozenset({"request", "revisit", "metadata", "warcinfo", "continuation"})
WITH_PAGES = frozenset({"response", "resource", "conversion"})
# From this on, workers are processes: `warcio` is Python, and threads would wait for each other.
LARGE_BYTES = 64_000_000
# A capture without a date that can be read counts as the oldest.
NO_DATE = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Captures:
    """The pages of a file in order: uint64 (pages, 2) digests of URLs, int64 (pages,) dates in microseconds."""

    counts: Mapping[str, int]
    urls: npt.NDArray[np.uint64]
    dates: npt.NDArray[np.int64]


def read_warcs(files: Sequence[Path], writer: PagesWriter, *, run: Run[Any]) -> dict[str, int]:
    """Add the pages of files of web archives, the latest capture of each URL; return how many records were what.

    Raises
    ------
    InputError
        If a file is no WARC, or is cut or damaged; see `warc_records`.
    """
    parts = [writer.path / f"part-{number:05d}" for number in range(len(files))]
    large = len(files) > 1 and sum(path.stat().st_size for path in files) > LARGE_BYTES
    with run.cluster(large=large) as client:
        tasks = list(zip(files, parts, strict=True))
        captures = list(run.map(read_warc, tasks, client=client, label="fetch", ordered=True))
    for part in parts:
        writer.take(part)
    dropped = superseded(
        np.concatenate([each.urls for each in captures]), np.concatenate([each.dates for each in captures])
    )
    writer.drop(dropped)
    counts = Counter[str]()
    for each in captures:
        counts.update(each.counts)
    return {**counts, "pages": writer.pages, "superseded": int(dropped.sum())}


def read_warc(task: tuple[Path, Path]) -> Captures:
    """Write the pages of a file into a folder of pages, which is replaced, and return what they are."""
    file, folder = task
    shutil.rmtree(folder, ignore_errors=True)
    counts, digests, dates = Counter[str](records=0, truncated=0), bytearray(), list[int]()
    with PagesWriter(folder) as writer:
        for record in warc_records(file):
            kind, page = read_record(record)
            counts.update(("records", kind))
            if page:
                writer.add(page)
                digests += xxhash.xxh3_128_digest(page.url.encode("utf-8", "replace"))
                dates.append(microseconds(record.rec_headers.get_header("WARC-Date")))
                counts["truncated"] += "WARC-Truncated" in record.rec_headers
        writer.close()
    return Captures(counts, np.frombuffer(digests, np.uint64).reshape(-1, 2), np.array(dates, np.int64))


def read_record(record: ArcWarcRecord) -> tuple[str, Page | None]:
    """Return what a record is, and its page if that is ``pages``."""
    if record.rec_type not in WITH_PAGES:
        return (record.rec_type if record.rec_type in NO_PAGES else "other"), None
    url = record.rec_headers.get_header("WARC-Target-URI")
    kind = _obstacle(record, url)
    if kind:
        return kind, None
    block = record.raw_stream.read(LARGEST_BODY + 1)
    if len(block) > LARGEST_BODY:
        return "too_large", None
    if record.rec_type != "response":
        return "pages", Page(url, 200, _content_type(record), None, block)
    return _read_response(url, io.BytesIO(block))


def superseded(urls: npt.NDArray[np.uint64], dates: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return bool (pages,): whether there is a capture of the same URL that is later, or as late and further on."""
    # `lexsort` is stable, so captures of a URL at the same time stay in their order.
    order = np.lexsort((dates, urls[:, 1], urls[:, 0]))
    found = np.zeros(len(dates), bool)
    found[order[:-1]] = (urls[order[1:]] == urls[order[:-1]]).all(axis=1)
    return found


def microseconds(date: str | None) -> int:
    """Return a WARC-Date (UTC, from years to fractions of seconds) in microseconds since 1970; `NO_DATE` of none."""
    try:
        return int(np.datetime64((date or "").strip().removesuffix("Z"), "us").astype(np.int64))
    except ValueError:
        return NO_DATE


def _obstacle(record: ArcWarcRecord, url: str | None) -> str:
    """Return why a record holds no whole page; empty if it may hold one."""
    if not url:
        return "malformed"
    if not url.lower().startswith(("http:", "https:")):
        return "not_http"
    return "segmented" if "WARC-Segment-Number" in record.rec_headers else ""


def _content_type(record: ArcWarcRecord) -> str | None:
    """Return the type of a record that is no answer; text that was converted (WET) is in UTF-8."""
    found: str | None = record.rec_headers.get_header("Content-Type")
    converted = record.rec_type == "conversion" and found == "text/plain"
    return "text/plain; charset=utf-8" if converted else found


def _read_response(url: str, stream: io.BytesIO) -> tuple[str, Page | None]:
    headers = _headers(stream)
    status = headers.get_statuscode() if headers else ""
    if headers is None or not (len(status) == 3 and status.isascii() and status.isdigit()):
        return "malformed", None
    try:
        body = decoded(
            stream.read(),
            transfer_encoding=headers.get_header("Transfer-Encoding", ""),
            content_encoding=headers.get_header("Content-Encoding", ""),
            limit=LARGEST_BODY,
        )
    except UndecodableError:
        return "undecodable", None
    if len(body) > LARGEST_BODY:
        return "too_large", None
    code = int(status)
    return "pages", Page(url, code, headers.get_header("Content-Type"), _location(url, code, headers), body)


def _headers(stream: io.BytesIO) -> StatusAndHeaders | None:
    """Return status and headers, and leave the stream at the body; None if there are none."""
    from warcio.statusandheaders import StatusAndHeadersParser

    try:
        headers = StatusAndHeadersParser([], verify=False).parse(stream)
    except EOFError:
        return None
    return headers if headers.protocol.upper().startswith("HTTP/") else None


def _location(url: str, status: int, headers: StatusAndHeaders) -> str | None:
    location: str | None = headers.get_header("Location")
    if location is None or not 300 <= status < 400:
        return None
    try:
        return urljoin(url, location.strip())
    except ValueError:  # an address that is none, such as http://[
        return None
