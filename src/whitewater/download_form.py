"""Whether a download is what its name promises, or the page of a proxy, a login or an error in its place."""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path

from whitewater.text_files import GZIP

HEAD = 4096
PARQUET = b"PAR1"
# How pages and messages of servers begin; no table, edge list or archive that is read here does.
PAGE = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:<(?:!doctype|!--|\?xml|html|head|body|script|error)|\{\s*")', re.IGNORECASE)


def fault_of(path: Path, *, name: str) -> str:
    """Say what is wrong with a download, by its ``name`` on the server; empty if nothing is seen.

    Parquet must begin and end as Parquet does, gzip begin and zip end as theirs; text, compressed or not, must not
    begin as HTML, XML or JSON does.
    """
    with path.open("rb") as file:
        head = file.read(HEAD)
    lower = name.lower()
    if not head:
        return "is empty"
    if lower.endswith((".parquet", ".pq")) and not (head.startswith(PARQUET) and _tail(path) == PARQUET):
        return f"is not a whole Parquet file: it begins with {head[:4]!r}"
    if lower.endswith(".zip") and not zipfile.is_zipfile(path):
        return f"is not a whole zip file: it begins with {head[:4]!r}"
    if lower.endswith((".gz", ".bgz")):
        if not head.startswith(GZIP):
            return f"is not a gzip file: it begins with {head[:20]!r}"
        head = _unpacked(head)
    if PAGE.match(head):
        return f"is a page or a message, not data: it begins with {head[:20]!r}"
    return ""


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-min(len(PARQUET), path.stat().st_size), 2)
        return file.read()


def _unpacked(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD)
    except zlib.error:
        return b""  # told by the step that reads it, with the place
