"""Releases of MovieLens: their files, in a folder or a zip file, and what they tell of movies."""

from __future__ import annotations

import csv
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.config.recsys import Movielens
from whitewater.download import Input
from whitewater.errors import InputError

# Genres by the place of their flag in u.item.
GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
NO_GENRES = "(no genres listed)"
# What is read of movies at most: many times what the largest release has.
LARGEST_MOVIES = 64 << 20
KEY = "recsys.fetch.movielens.path"
# The last one of a title is its year: "Fire (1995) (V)" has a medium behind it, and a title may hold another year.
_YEAR = re.compile(r"\((\d{4})(?:[-\u2013]\d{0,4}|/[IVXL]+)?\)")


@dataclass(frozen=True)
class Member:
    """A file of a release: what bytes are read from, how many there are, and what it is called."""

    stream: IO[bytes]
    size: int
    origin: str


@dataclass(frozen=True)
class Release:
    """How the files of some releases are called, and read."""

    ratings: str
    movies: str
    separator: bytes
    header: bool
    read_movies: Callable[[str], Iterator[tuple[str, str, list[str]]]]


@dataclass(frozen=True)
class Items:
    """What is known of items: ids, ascending int64 (items,); genres and years of them, then of one not among them."""

    ids: npt.NDArray[np.int64]
    genres: pa.Array
    year: pa.Array

    def places(self, items: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return the places of ids, int32 (rows,), in genres and year, int64 (rows,)."""
        at = np.searchsorted(self.ids, items)
        known = np.append(self.ids, -1)[at] == items
        return np.where(known, at, len(self.ids))


def _genres_of(text: str) -> list[str]:
    return [] if text in ("", NO_GENRES) else text.split("|")


def _lines(text: str) -> Iterator[str]:
    """Yield lines that are not empty. Titles may hold characters that `str.splitlines` takes for ends of lines."""
    return (line.rstrip("\r") for line in text.split("\n") if line.strip())


def _movies_of_flags(text: str) -> Iterator[tuple[str, str, list[str]]]:
    for line in _lines(text):
        item, title, _, _, _, *flags = line.split("|")
        yield item, title, [genre for genre, flag in zip(GENRES, flags, strict=True) if flag == "1"]


def _movies_of_colons(text: str) -> Iterator[tuple[str, str, list[str]]]:
    for line in _lines(text):
        item, rest = line.split("::", 1)
        title, genres = rest.rsplit("::", 1)
        yield item, title, _genres_of(genres)


def _movies_of_csv(text: str) -> Iterator[tuple[str, str, list[str]]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    names = reader.fieldnames or ()
    if len(set(names)) < len(names):
        raise ValueError(f"its columns are {', '.join(names)}, one of them twice")
    for line in reader:
        yield line["movieId"], line["title"], _genres_of(line["genres"])


RELEASES = (
    Release("ratings.csv", "movies.csv", b",", header=True, read_movies=_movies_of_csv),
    Release("ratings.dat", "movies.dat", b"::", header=False, read_movies=_movies_of_colons),
    Release("u.data", "u.item", b"\t", header=False, read_movies=_movies_of_flags),
)


def release_files(settings: Movielens) -> list[str]:
    """Return the files of a release: ratings and movies of a folder, or what the settings name, a zip file.

    Raises
    ------
    InputError
        If a folder holds no release, or several.
    """
    folder = Path(settings.path).expanduser()
    if "://" in settings.path or not folder.is_dir():
        return [settings.path]
    below = sorted(each for each in folder.iterdir() if each.is_dir())
    found = _pairs([folder]) or _pairs(below)
    if len(found) > 1:
        raise InputError(f"{settings.path} holds several releases of MovieLens: "
                         f"{', '.join(ratings for ratings, _ in found)}. Name the folder of one in {KEY}.")  # fmt: skip
    if found:
        return list(found[0])
    raise InputError(f"{settings.path} holds no release of MovieLens, which is {_known()}. Check {KEY}.")


def _pairs(places: Sequence[Path]) -> list[tuple[str, str]]:
    """Return the ratings and movies that are in folders."""
    pairs = [(place / release.ratings, place / release.movies) for place in places for release in RELEASES]
    return [(str(ratings), str(movies)) for ratings, movies in pairs if ratings.is_file() and movies.is_file()]


@contextmanager
def open_release(files: Sequence[Input]) -> Iterator[tuple[Release, Member, Member]]:
    """Open how a release is read, its ratings and its movies.

    A zip file is not unpacked: its members are streams, which are found by the last part of their names.

    Raises
    ------
    InputError
        If the file holds no release, or, also while the members are read, if it is cut or damaged.
    """
    origin = files[0].origin
    try:
        with ExitStack() as stack:
            if len(files) == 1:
                yield _members(stack.enter_context(zipfile.ZipFile(files[0].path)), origin, stack)
            else:
                members = [
                    Member(stack.enter_context(Path(file.path).open("rb")), file.bytes, file.origin) for file in files
                ]
                yield _release_of(files), members[0], members[1]
    # RuntimeError and NotImplementedError: a member is encrypted, or compressed in an unknown way.
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError) as error:
        raise InputError(f"{origin} is cut, damaged, or no release of MovieLens: {error}. Check {KEY}.") from error


def _release_of(files: Sequence[Input]) -> Release:
    names = [Path(file.path).name for file in files]
    for release in RELEASES:
        if names == [release.ratings, release.movies]:
            return release
    raise InputError(f"{', '.join(file.origin for file in files)} are no release of MovieLens. Name one zip file, or a "
                     f"folder, in {KEY}.")  # fmt: skip


def _members(archive: zipfile.ZipFile, origin: str, stack: ExitStack) -> tuple[Release, Member, Member]:
    for release in RELEASES:
        found = [
            [each for each in archive.infolist() if PurePosixPath(each.filename).name == name and not each.is_dir()]
            for name in (release.ratings, release.movies)
        ]
        if all(len(each) == 1 for each in found):
            ratings, movies = (
                Member(stack.enter_context(archive.open(each)), each.file_size, f"{origin}: {each.filename}")
                for (each,) in found
            )
            return release, ratings, movies
    raise InputError(f"{origin} holds no release of MovieLens, which is {_known()}, each once. Check {KEY}.")


def _known() -> str:
    return ", or ".join(f"{release.ratings} and {release.movies}" for release in RELEASES)


def items_of(release: Release, movies: Member) -> Items:
    """Read what a release tells of movies. Raises InputError if it cannot be understood."""
    refuse_size(movies, LARGEST_MOVIES)
    data = movies.stream.read()
    try:
        found = {int(item): (genres, _year(title)) for item, title, genres in release.read_movies(_decoded(data))}
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise InputError(f"{movies.origin} is none of MovieLens: {error!r}. Check {KEY}.") from error
    ids = sorted(found)
    known = [found[item] for item in ids]
    return Items(
        np.array(ids, np.int64),
        _array([genres for genres, _ in known] + [[]], pa.list_(pa.string())),
        _array([year for _, year in known] + [None], pa.int32()),
    )


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _year(title: str) -> int | None:
    years = _YEAR.findall(title)
    return int(years[-1]) if years else None


def _array(values: Sequence[object], type_: pa.DataType) -> pa.Array:
    return pa.array(values, type_, from_pandas=False)


def refuse_size(member: Member, largest: int) -> None:
    """Raise InputError if a file is larger than any release's, which a zip file could be made to unfold to."""
    if member.size > largest:
        raise InputError(f"{member.origin} is {member.size:,} bytes, which no release has: at most {largest:,} are "
                         f"read. Check {KEY}.")  # fmt: skip
