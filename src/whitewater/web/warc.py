"""Source `warc`: the latest capture of each page in web archives (ISO 28500:2017, WARC 1.1; RFC 1952, gzip).

Every record is counted as one of:

============== ========================================================================================================
pages          a page that is kept
superseded     an earlier capture of a page, by WARC-Date; of equal dates, the last one in the order of the files stays
malformed      a response without target URI, or with unreadable HTTP status or headers
not_http       a response of another protocol, such as dns:
segmented      a part of a response that is split over several records
undecodable    a page whose transfer or content encoding is damaged or cut off
too_large      a page of more than `LARGEST_BODY` bytes
revisit        a capture equal to an earlier one, which has the page
request ...    warcinfo, metadata, continuation, other: records without a page
============== ========================================================================================================

Pages that the crawler cut off (WARC-Truncated) are also counted as ``truncated``.

`fastwarc` does not notice that a file is cut off. So `gzip` checks length and checksum of each member, and this module
the length of each record. A file cut exactly between two records cannot be detected: compare its size or checksum with
the original.

Each worker reads one file into a folder of its own. Of each page 24 bytes stay in memory, a digest of its URL and the
date; files with superseded pages are then rewritten without them.
"""

import gzip
import re
import shutil
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import numpy as np
import numpy.typing as npt
import xxhash
from fastwarc.warc import ArchiveIterator, HeaderMap, WarcRecord

from whitewater.errors import InputError
from whitewater.io.text_files import open_text
from whitewater.step import Run
from whitewater.web.http_body import UndecodableError, decode_body, decode_header
from whitewater.web.pages import LARGEST_BODY, Page, PagesWriter
from whitewater.web.urls import normalize

WITHOUT_PAGES = frozenset({"request", "revisit", "metadata", "warcinfo", "continuation"})
WITH_PAGES = frozenset({"response", "resource", "conversion"})
# Reading records holds the GIL: from this many bytes on, the workers are processes.
LARGE_BYTES = 64_000_000
# A capture without a valid date counts as the oldest.
NO_DATE = np.iinfo(np.int64).min
MAGIC = b"WARC/"
REMEDY = "Download the file again."
_STATUS = re.compile(r"HTTP/\S*\s+([0-9]{3})(?:\s|$)", re.IGNORECASE)


# A digest of the page's URL, and the date in microseconds since 1970.
CAPTURE = np.dtype([("url", "S16"), ("date", np.int64)])
Captures = npt.NDArray[np.void]  # of `CAPTURE`, (pages,), in the order of the pages


def read_warcs(files: Sequence[Path], writer: PagesWriter, *, run: Run[Any]) -> dict[str, int]:
    """Add the latest capture of each URL; return the number of records by kind. Raises like `warc_records`."""
    parts = [writer.path / f"part-{number:05d}" for number in range(len(files))]
    large = len(files) > 1 and sum(path.stat().st_size for path in files) > LARGE_BYTES
    with run.workers(large=large) as workers:
        results = list(workers.map(read_warc, list(zip(files, parts, strict=True)), label="fetch", ordered=True))
    is_superseded = find_superseded(np.concatenate([captures for _, captures in results]))
    ends = np.cumsum([len(captures) for _, captures in results])
    for part, excluded in zip(parts, np.split(is_superseded, ends[:-1]), strict=True):
        writer.append_folder(part, excluded=excluded)
    counts = Counter[str]()
    for file_counts, _ in results:
        counts.update(file_counts)
    return {**counts, "pages": writer.pages, "superseded": int(is_superseded.sum())}


def read_warc(task: tuple[Path, Path]) -> tuple[Counter[str], Captures]:
    """Write the pages of a file into a new folder; return the number of records by kind, and the captures."""
    file, folder = task
    shutil.rmtree(folder, ignore_errors=True)
    counts, captures = Counter[str](records=0, truncated=0), list[tuple[bytes, int]]()
    writer = PagesWriter(folder)
    for headers, kind, page in warc_records(file):
        counts.update(("records", kind))
        if page:
            writer.add(page)
            url = xxhash.xxh3_128_digest((normalize(page.url) or page.url).encode("utf-8", "replace"))
            captures.append((url, parse_date(headers.get("WARC-Date"))))
            counts["truncated"] += "WARC-Truncated" in headers
    writer.flush()
    return counts, np.array(captures, CAPTURE)


def warc_records(path: Path) -> Iterator[tuple[HeaderMap, str, Page | None]]:
    """Yield the headers, the kind and the page, if it has one, of each record of a plain or gzip file.

    Raises InputError if the file is empty, unreadable or not a WARC, or if a gzip member or a record is cut off,
    damaged or of another length than it says.
    """
    with open_text(path) as stream:
        head = stream.read(len(MAGIC))
        if not head:
            raise InputError(f"{path} is empty. {REMEDY}")
        if head != MAGIC:
            raise InputError(f"{path} is not a WARC file: it begins with {head!r}. Check pagerank.fetch.warc.files.")
        stream.seek(0)
        location = "its beginning"
        try:
            for record in ArchiveIterator(stream, parse_http=False):
                url, length = (record.headers.get(name) or "" for name in ("WARC-Target-URI", "Content-Length"))
                url = url.removeprefix("<").removesuffix(">")  # as wget writes it
                # In a gzip file, the position is that in the decompressed file.
                location = f"the record near byte {record.stream_pos:,} ({url or 'without URI'})"
                if not (length.isascii() and length.isdigit()):
                    raise InputError(f"{path} is cut or damaged: {location} has the Content-Length {length}. {REMEDY}")
                yield record.headers, *_read_record(record, url)
                record.reader.consume()
                if missing := record.content_length - record.reader.tell():
                    raise InputError(f"{path} is cut: {location} lacks {missing:,} of its {length} bytes. {REMEDY}")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            fault = "cut off" if isinstance(error, EOFError) else "damaged"
            raise InputError(f"{path} is {fault} in the gzip member at byte {_broken_member(path):,} ({error}). "
                             f"{REMEDY}") from error  # fmt: skip
        except OSError as error:
            raise InputError(f"{path} is damaged: there is no record after {location} ({error}), or its Content-Length "
                             f"is wrong. {REMEDY}") from error  # fmt: skip


def _broken_member(path: Path) -> int:
    """Return the offset of the first gzip member that is cut off or damaged."""
    begin, data, member = 0, b"", None
    with path.open("rb") as file, suppress(zlib.error):
        while data := data or file.read(1 << 14):
            member = member or zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            member.decompress(data)
            data = member.unused_data
            if member.eof:
                begin, member = file.tell() - len(data), None
    return begin


def _read_record(record: WarcRecord, url: str) -> tuple[str, Page | None]:
    """Return the kind of a record, and its page if the kind is ``pages``."""
    kind = str(record.record_type)
    if kind not in WITH_PAGES:
        return (kind if kind in WITHOUT_PAGES else "other"), None
    faults = {
        "malformed": not url,
        "not_http": not url.lower().startswith(("http:", "https:")),
        "segmented": "WARC-Segment-Number" in record.headers,
        "too_large": record.content_length > LARGEST_BODY,
    }
    if fault := next((name for name, is_present in faults.items() if is_present), None):
        return fault, None
    if kind == "response":
        return _read_response(url, record)
    content_type = record.headers.get("Content-Type")
    if kind == "conversion" and content_type == "text/plain":
        content_type = "text/plain; charset=utf-8"  # WET files are UTF-8
    return "pages", Page(url, 200, content_type, None, record.reader.read())


def find_superseded(captures: Captures) -> npt.NDArray[np.bool_]:
    """Return bool (pages,): whether the same URL has a later capture, or one of the same date further on."""
    # `lexsort` is stable, so captures of the same date stay in order.
    order = np.lexsort((captures["date"], captures["url"]))
    urls = captures["url"][order]
    is_superseded = np.zeros(len(captures), bool)
    is_superseded[order[:-1]] = urls[1:] == urls[:-1]
    return is_superseded


def parse_date(date: str | None) -> int:
    """Return a WARC-Date (UTC, precision from years to microseconds) in microseconds since 1970, or `NO_DATE`."""
    try:
        return int(np.datetime64((date or "").strip().removesuffix("Z"), "us").astype(np.int64))
    except ValueError:
        return NO_DATE


def _read_response(url: str, record: WarcRecord) -> tuple[str, Page | None]:
    record.is_http = True
    record.parse_http(quirks_mode=True, max_header_len=LARGEST_BODY)
    headers = record.http_headers
    match = _STATUS.match(headers.status_line or "")
    if match is None:
        return "malformed", None
    status = int(match[1])
    transfer, content = (headers.get(f"{name}-Encoding") or "" for name in ("Transfer", "Content"))
    try:
        body = decode_body(
            record.reader.read(), transfer_encoding=transfer, content_encoding=content, limit=LARGEST_BODY
        )
    except UndecodableError:
        return "undecodable", None
    if len(body) > LARGEST_BODY:
        return "too_large", None
    content_type = decode_header(headers.get_bytes(b"Content-Type"))
    reference = decode_header(headers.get_bytes(b"Location")) if 300 <= status < 400 else None
    location = None
    with suppress(ValueError):  # an invalid URL, such as http://[
        location = None if reference is None else urljoin(url, reference.strip())
    return "pages", Page(url, status, content_type, location, body)
