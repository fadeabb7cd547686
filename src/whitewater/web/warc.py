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

The reader of `fastwarc` takes the end of a file for the end of a record. So `gzip` unpacks the file, checking length
and checksum of each member, and the length of a record is checked once it was read; only of the four bytes that end a
record some may be missing, or belong to its length. What nobody can see is a file cut exactly between two records:
compare its size or checksum with those where it came from.

Each file is read by one worker, into a folder of its own, and the captures are told apart by a digest of their URL and
their date, 24 bytes a page. Only then, and only where there are superseded pages, files of pages are written again
without them. So bodies take the memory of one row group for each worker.

Source: ISO 28500:2017, the WARC file format 1.1; RFC 1952, gzip.
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
from whitewater.web.http_body import UndecodableError, decoded, header_text
from whitewater.web.pages import LARGEST_BODY, Page, PagesWriter

NO_PAGES = frozenset({"request", "revisit", "metadata", "warcinfo", "continuation"})
WITH_PAGES = frozenset({"response", "resource", "conversion"})
# From this on, workers are processes, since making pages of records holds the lock of the interpreter.
LARGE_BYTES = 64_000_000
# A capture without a date that can be read counts as the oldest.
NO_DATE = np.iinfo(np.int64).min
MAGIC = b"WARC/"
REMEDY = "Get the file again."
_PIECE_BYTES = 1 << 14
_STATUS = re.compile(r"HTTP/\S*\s+([0-9]{3})(?:\s|$)", re.IGNORECASE)


# A page of a file: a digest of its URL, and its date in microseconds.
CAPTURE = np.dtype([("url", "S16"), ("date", np.int64)])
Captures = npt.NDArray[np.void]  # of `CAPTURE`, (pages,), in the order of the pages


def read_warcs(files: Sequence[Path], writer: PagesWriter, *, run: Run[Any]) -> dict[str, int]:
    """Add the pages of files of web archives, the latest capture of each URL; return how many records were what.

    Raises as `warc_records`.
    """
    parts = [writer.path / f"part-{number:05d}" for number in range(len(files))]
    large = len(files) > 1 and sum(path.stat().st_size for path in files) > LARGE_BYTES
    with run.workers(large=large) as workers:
        found = list(workers.map(read_warc, list(zip(files, parts, strict=True)), label="fetch", ordered=True))
    is_superseded = superseded(np.concatenate([captures for _, captures in found]))
    ends = np.cumsum([len(captures) for _, captures in found])
    for part, left_out in zip(parts, np.split(is_superseded, ends[:-1]), strict=True):
        writer.take(part, left_out=left_out)
    counts = Counter[str]()
    for in_file, _ in found:
        counts.update(in_file)
    return {**counts, "pages": writer.pages, "superseded": int(is_superseded.sum())}


def read_warc(task: tuple[Path, Path]) -> tuple[Counter[str], Captures]:
    """Write the pages of a file into a folder of pages, which is replaced; return what its records are, and these."""
    file, folder = task
    shutil.rmtree(folder, ignore_errors=True)
    counts, captures = Counter[str](records=0, truncated=0), list[tuple[bytes, int]]()
    writer = PagesWriter(folder)
    for headers, kind, page in warc_records(file):
        counts.update(("records", kind))
        if page:
            writer.add(page)
            url = xxhash.xxh3_128_digest(page.url.encode("utf-8", "replace"))
            captures.append((url, microseconds(headers.get("WARC-Date"))))
            counts["truncated"] += "WARC-Truncated" in headers
    writer.flush()
    return counts, np.array(captures, CAPTURE)


def warc_records(path: Path) -> Iterator[tuple[HeaderMap, str, Page | None]]:
    """Yield the headers of each record of a file, plain or gzip, what the record is, and its page if it is one.

    Raises InputError if the file is empty, cannot be read or is not a WARC, if a gzip member or a record is cut or
    damaged, or if the length of a record is wrong.
    """
    with open_text(path) as stream:
        head = stream.read(len(MAGIC))
        if not head:
            raise InputError(f"{path} is empty. {REMEDY}")
        if head != MAGIC:
            raise InputError(f"{path} is not a WARC file: it begins with {head!r}. Check pagerank.fetch.warc.files.")
        stream.seek(0)
        place = "its beginning"
        try:
            for record in ArchiveIterator(stream, parse_http=False):
                url, length = (record.headers.get(name) or "" for name in ("WARC-Target-URI", "Content-Length"))
                # In a gzip file, the place is that in the text of the whole file.
                place = f"the record near byte {record.stream_pos:,} ({url or 'without URI'})"
                if not (length.isascii() and length.isdigit()):
                    raise InputError(f"{path} is cut or damaged: {place} has the Content-Length {length}. {REMEDY}")
                yield record.headers, *_read_record(record, url)
                record.reader.consume()
                if lacking := record.content_length - record.reader.tell():
                    raise InputError(f"{path} is cut: {place} lacks {lacking:,} of its {length} bytes. {REMEDY}")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            fault = "cut off" if isinstance(error, EOFError) else "damaged"
            raise InputError(f"{path} is {fault} in the gzip member at byte {_broken_member(path):,} ({error}). "
                             f"{REMEDY}") from error  # fmt: skip
        except OSError as error:
            raise InputError(f"{path} is damaged: what follows {place} is not a record ({error}), or that does not end "
                             f"where its Content-Length says. {REMEDY}") from error  # fmt: skip


def _broken_member(path: Path) -> int:
    """Return the byte at which the first gzip member that is cut off or damaged begins."""
    begin, data, member = 0, b"", None
    with path.open("rb") as file, suppress(zlib.error):
        while data := data or file.read(_PIECE_BYTES):
            member = member or zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            member.decompress(data)
            data = member.unused_data
            if member.eof:
                begin, member = file.tell() - len(data), None
    return begin


def _read_record(record: WarcRecord, url: str) -> tuple[str, Page | None]:
    """Return what a record is, and its page if that is ``pages``."""
    kind = str(record.record_type)
    if kind not in WITH_PAGES:
        return (kind if kind in NO_PAGES else "other"), None
    obstacles = {
        "malformed": not url,
        "not_http": not url.lower().startswith(("http:", "https:")),
        "segmented": "WARC-Segment-Number" in record.headers,
        "too_large": record.content_length > LARGEST_BODY,
    }
    if obstacle := next((name for name, is_there in obstacles.items() if is_there), None):
        return obstacle, None
    if kind == "response":
        return _read_response(url, record)
    content_type = record.headers.get("Content-Type")
    if kind == "conversion" and content_type == "text/plain":
        content_type = "text/plain; charset=utf-8"  # as text that was converted (WET) is
    return "pages", Page(url, 200, content_type, None, record.reader.read())


def superseded(captures: Captures) -> npt.NDArray[np.bool_]:
    """Return bool (pages,): whether there is a capture of the same URL that is later, or as late and further on."""
    # `lexsort` is stable, so captures of a URL at the same time stay in their order.
    order = np.lexsort((captures["date"], captures["url"]))
    urls = captures["url"][order]
    is_superseded = np.zeros(len(captures), bool)
    is_superseded[order[:-1]] = urls[1:] == urls[:-1]
    return is_superseded


def microseconds(date: str | None) -> int:
    """Return a WARC-Date (UTC, from years to fractions of seconds) in microseconds since 1970; `NO_DATE` of none."""
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
        body = decoded(record.reader.read(), transfer_encoding=transfer, content_encoding=content, limit=LARGEST_BODY)
    except UndecodableError:
        return "undecodable", None
    if len(body) > LARGEST_BODY:
        return "too_large", None
    content_type = header_text(headers.get_bytes(b"Content-Type"))
    location = header_text(headers.get_bytes(b"Location")) if 300 <= status < 400 else None
    try:
        location = None if location is None else urljoin(url, location.strip())
    except ValueError:  # not an address, such as http://[
        location = None
    return "pages", Page(url, status, content_type, location, body)
