"""Sources `warc` and `edges`: files that the settings name by path, glob, URL, or in a list of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from whitewater.config.pagerank import Edges, Warc
from whitewater.download import Access
from whitewater.errors import InputError
from whitewater.places import Downloads, Input, distinct, expand, obtain
from whitewater.text_files import open_text

LISTS = (".paths", ".paths.gz")


@dataclass(frozen=True)
class NamedFiles:
    """How the files of a source are got.

    Attributes
    ----------
    key
        Of the configuration, where the files are named.
    example
        Names that the files might have.
    downloads
        Where remote files go.
    anonymous
        Whether buckets are read without credentials.
    threads
        Threads that compute checksums.
    paths_base
        What the lines of lists are relative to; empty: the place of the list.
    """

    key: str
    example: str
    downloads: Downloads
    anonymous: bool
    threads: int
    paths_base: str = ""

    def find(self, names: Sequence[str]) -> tuple[list[Input], list[Input]]:
        """Return the files that paths, globs and URLs stand for, each once, by name, and the lists that name some.

        Raises
        ------
        InputError
            If there is no such file, a download fails, or a list cannot be read or is empty.
        """
        places = self._expanded(names)
        lists = [place for place in places if urlsplit(place).path.endswith(LISTS)]
        listings = self._obtained(lists)
        listed = [line for place in lists for line in self._lines(place, listings[place])]
        places = sorted(distinct([*(place for place in places if place not in listings), *self._expanded(listed)]))
        files = self._obtained(places)
        return [files[place] for place in places], [listings[place] for place in lists]

    def _expanded(self, names: Sequence[str]) -> list[str]:
        found = (expand(name, anonymous=self.anonymous, key=self.key, example=self.example) for name in names)
        return sorted(distinct([place for places in found for place in places]))

    def _obtained(self, places: Sequence[str]) -> dict[str, Input]:
        access = Access(anonymous=self.anonymous)
        return obtain(places, downloads=self.downloads, access=access, threads=self.threads, key=self.key)

    def _lines(self, place: str, listing: Input) -> list[str]:
        """Return what the lines of a list stand for."""
        name = f"{listing.path} ({listing.origin})"
        try:
            with open_text(listing.path, name) as stream:
                text = stream.read().decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{name} is no list of files: {error}. Check {self.key}.") from error
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            raise InputError(f"{name} names no files. Check {self.key}.")
        return [_resolved(self.paths_base or place, line, is_folder=bool(self.paths_base)) for line in lines]


def find_warcs(settings: Warc, *, downloads: Downloads, threads: int) -> tuple[list[Input], list[Input]]:
    """Return the files of web archives, and the lists that name some; see `NamedFiles.find`."""
    named = NamedFiles("pagerank.fetch.warc", "*.warc.gz", downloads, settings.anonymous, threads)
    return named.find(settings.files)


def find_edges(settings: Edges, *, downloads: Downloads, threads: int) -> tuple[dict[str, list[Input]], list[Input]]:
    """Return the files of edges and vertices by role, and the lists that name some; see `NamedFiles.find`."""
    named = NamedFiles("pagerank.fetch.edges", "*.txt.gz", downloads, settings.anonymous, threads, settings.paths_base)
    edges, edge_lists = named.find(settings.files)
    vertices, vertex_lists = named.find(settings.vertices)
    return {"edges": edges, "vertices": vertices}, [*edge_lists, *vertex_lists]


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
