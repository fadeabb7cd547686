"""Sources `warc` and `edges`: files that the settings name by path, glob, URL, or in a list of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from whitewater.errors import InputError
from whitewater.graphs.config import Edges
from whitewater.io.download import Downloads, Input
from whitewater.io.places import find
from whitewater.io.text_files import open_text
from whitewater_apps.pagerank.config import Warc

LISTS = (".paths", ".paths.gz")


Found = dict[str, Input]


def find_warcs(settings: Warc, *, downloads: Downloads, threads: int) -> tuple[list[Input], list[Input]]:
    """Return the files of web archives, and the lists that name some."""
    downloads = replace(downloads, anonymous=settings.anonymous)
    get = partial(find, downloads=downloads, threads=threads, key="pagerank.fetch.warc", example="*.warc.gz")
    return _find(settings.files, get, key="pagerank.fetch.warc")


def find_edges(settings: Edges, *, downloads: Downloads, threads: int) -> tuple[dict[str, list[Input]], list[Input]]:
    """Return the files of edges and vertices by role, and the lists that name some."""
    downloads = replace(downloads, anonymous=settings.anonymous)
    get = partial(find, downloads=downloads, threads=threads, key="pagerank.fetch.edges", example="*.txt.gz")
    edges, edge_lists = _find(settings.files, get, key="pagerank.fetch.edges", base=settings.paths_base)
    vertices, vertex_lists = _find(settings.vertices, get, key="pagerank.fetch.edges", base=settings.paths_base)
    return {"edges": edges, "vertices": vertices}, [*edge_lists, *vertex_lists]


def _find(
    names: Sequence[str], get: Callable[[Iterable[str]], Found], *, key: str, base: str = ""
) -> tuple[list[Input], list[Input]]:
    """Return the files that paths, globs and URLs stand for, each once, by name, and the lists that name some.

    The lines of lists are relative to ``base``, or where that is empty to the place of the list.

    Raises InputError if there is no such file, a download fails, or a list cannot be read or is empty.
    """
    files = get(names)
    lists = {place: files.pop(place) for place in sorted(files) if urlsplit(place).path.endswith(LISTS)}
    listed = [
        _resolved(base or place, line, is_folder=bool(base))
        for place, listing in lists.items()
        for line in _lines(listing, key=key)
    ]
    if listed:
        files = get([*files, *listed])
    return [files[place] for place in sorted(files)], list(lists.values())


def _lines(listing: Input, *, key: str) -> list[str]:
    name = f"{listing.path} ({listing.origin})"
    try:
        with open_text(listing.path, name) as stream:
            text = stream.read().decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not a list of files: {error}. Check {key}.") from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError(f"{name} names no files. Check {key}.")
    return lines


def _resolved(base: str, line: str, *, is_folder: bool) -> str:
    """Return the place of a line: itself if it is absolute, else in the folder ``base`` or beside the file ``base``."""
    if "://" in line:
        return line
    if "://" not in base:
        folder = Path(base).expanduser() if is_folder else Path(base).parent
        return str(folder / line)
    scheme, _, rest = base.partition("://")
    if is_folder:
        return f"{scheme}://{rest.rstrip('/')}/{line.lstrip('/')}"
    # urljoin knows no schemes of buckets.
    joined = urljoin(f"http://{rest.partition('?')[0]}", line)
    return f"{scheme}{joined.removeprefix('http')}"
