"""Source `html`: a folder of HTML files, whose URLs are the base URL and the path in the folder.

Symbolic links are counted but not followed, so that nothing outside the folder is read.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from whitewater.errors import ConfigError, InputError
from whitewater.io.download import Input
from whitewater.io.store import sha256
from whitewater.web.config import Html
from whitewater.web.pages import LARGEST_BODY, Page, PagesWriter
from whitewater.web.urls import UNESCAPED, normalize

ENDINGS = (".htm", ".html", ".xhtml")


def read_html(settings: Html, writer: PagesWriter) -> tuple[dict[str, int], list[Input]]:
    """Add the pages of a folder in the order of their URLs; return the number of files by kind, and the HTML files.

    Raises ConfigError if ``base_url`` is not an http or https URL; InputError if the folder does not exist, has no HTML
    files, or a file cannot be read.
    """
    folder, base = Path(settings.folder).expanduser(), normalize(settings.base_url)
    if base is None or "?" in base or "#" in settings.base_url:
        raise ConfigError(f"pagerank.fetch.html.base_url is {settings.base_url!r}: give a URL such as "
                          "https://example.org/.")  # fmt: skip
    counts, files = Counter[str](other_files=0, symbolic_links=0, too_large=0), list[Input]()
    for path in sorted(html_files(folder, counts), key=lambda path: os.fsencode(path.relative_to(folder))):
        # File names are bytes; those that are not UTF-8 are recorded with escapes.
        name = os.fsencode(path).decode("utf-8", "backslashreplace")
        try:
            if not path.is_file():  # reading a pipe would block
                raise InputError(f"{name} is not a file. Check pagerank.fetch.html.folder.")
            files.append(Input(name, name, path.stat().st_size, sha256(path)))
            if files[-1].bytes > LARGEST_BODY:
                counts["too_large"] += 1
                continue
            body = path.read_bytes()
        except OSError as error:
            _refuse(error)
        address = quote(os.fsencode(path.relative_to(folder).as_posix()), safe=UNESCAPED.replace("?", ""))
        writer.add(Page(f"{settings.base_url.removesuffix('/')}/{address}", 200, None, None, body))
    return {**counts, "pages": writer.pages, "files": writer.pages + counts.total()}, files


def html_files(folder: Path, counts: Counter[str]) -> Iterator[Path]:
    """Yield the HTML files, and count other files and links. Raises InputError if there are no HTML files."""
    is_empty = True
    for directory, folders, names in os.walk(folder, onerror=_refuse):
        for name in (*folders, *names):
            path = Path(directory, name)
            if path.is_symlink():
                counts["symbolic_links"] += 1
            elif name in names and path.suffix.lower() in ENDINGS:
                is_empty = False
                yield path
            elif name in names:
                counts["other_files"] += 1
    if is_empty:
        raise InputError(f"{folder} has no HTML files ({', '.join(ENDINGS)}). Check pagerank.fetch.html.folder.")


def _refuse(error: OSError) -> NoReturn:
    raise InputError(f"{error.filename} cannot be read: {error.strerror}. Check pagerank.fetch.html.folder.") from error
