"""Source `movielens`: a release of MovieLens, its zip file or its folder, of any size and age.

============================ ================================= ================================= ========
release                      ratings                           movies                            text
============================ ================================= ================================= ========
100K                         ``u.data``, tabs                  ``u.item``, bars, a flag a genre  Latin-1
1M, 10M                      ``ratings.dat``, double colons    ``movies.dat``, double colons     see below
20M, 25M, 32M, latest        ``ratings.csv``, header           ``movies.csv``, header, quotes    UTF-8
============================ ================================= ================================= ========

``movies.dat`` is Latin-1 in 1M and UTF-8 in 10M: it is read as UTF-8 if it is that.

A rating is a row: ``user`` and ``item`` (ids), ``genres`` of the item (none if its list is empty or the item unknown)
and ``year`` in its title, if there is one. The label is 1 where the rating is at least ``positive``; the rating itself
is left out, since it tells the label. Rows are in the order of time, those of one time in that of the file, and
``row_id`` is the place in this order. The days of ratings are thousands, many with few rows, so ``day`` is one of at
most `PERIODS` periods with about equally many rows; rows of one time are in one.

Source: the README of each release, https://grouplens.org/datasets/movielens/.
"""

from __future__ import annotations

import csv
import io
import logging
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.engines.memory import forecast
from whitewater.errors import InputError
from whitewater.features.log_folder import DAY, ROW_ID, TIME, LogColumn, LogFile, LogWriter, file_name
from whitewater.io.download import Input
from whitewater.io.text_files import BYTE_ORDER_MARK, line_blocks, open_text
from whitewater.step import Run
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater_apps.recsys.config import Fetch, FileColumn, Movielens
from whitewater_apps.recsys.sources.layout import Layout
from whitewater_apps.recsys.sources.spans import Tally, refuse_malformed
from whitewater_apps.recsys.sources.text import Format, read_rows

logger = logging.getLogger(__name__)

PERIODS = 20
COLUMNS = (
    LogColumn("user", "categorical", "int64"),
    LogColumn("item", "categorical", "int64"),
    LogColumn("genres", "list", "list<string>"),
    LogColumn("year", "continuous", "int32"),
)
# Several times what the largest release has.
LARGEST_RATINGS = 4 << 30
_HEADER = b"userId\tmovieId\trating\ttimestamp"
_ROW_BYTES, _SHORTEST_LINE = 48, 18
_IDS = {"user": "int32", "item": "int32"}
_TYPES = {"user": pa.int32(), "item": pa.int32(), "rating": pa.float64(), "timestamp": pa.int64()}
_READ_COLUMNS = (
    FileColumn(name="user", role="key"),
    FileColumn(name="item", role="key"),
    FileColumn(name="rating", role="label"),
    FileColumn(name="timestamp", role="time", unit="s"),
)
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
    """A file of a release, or a member of its zip file: what the user calls the file, and how many bytes there are."""

    path: str
    origin: str
    size: int
    name: str = ""

    @property
    def label(self) -> str:
        """What it is called."""
        return f"{self.origin}/{self.name}" if self.name else self.origin


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
_KNOWN = ", or ".join(f"{release.ratings} and {release.movies}" for release in RELEASES)


def release_files(settings: Movielens) -> list[str]:
    """Return the files of a release: ratings and movies of a folder, or what the settings name, a zip file.

    Raises InputError if a folder holds no release, or several.
    """
    folder = Path(settings.path).expanduser()
    if "://" in settings.path or not folder.is_dir():
        return [settings.path]
    found = _pairs([folder]) or _pairs(sorted(each for each in folder.iterdir() if each.is_dir()))
    if len(found) > 1:
        raise InputError(f"{settings.path} holds several releases of MovieLens: "
                         f"{', '.join(ratings for ratings, _ in found)}. Name the folder of one in {KEY}.")  # fmt: skip
    if found:
        return found[0]
    raise InputError(f"{settings.path} holds no release of MovieLens, which is {_KNOWN}. Check {KEY}.")


def _pairs(places: Sequence[Path]) -> list[list[str]]:
    """Return the ratings and movies that are in folders."""
    pairs = [[place / each.ratings, place / each.movies] for place in places for each in RELEASES]
    return [[str(path) for path in pair] for pair in pairs if all(path.is_file() for path in pair)]


def find_release(files: Sequence[Input]) -> tuple[Release, Member, Member]:
    """Return how a release is read, its ratings and its movies; those of a zip file by the last part of their names.

    Raises InputError if the files hold no release.
    """
    origin = ", ".join(file.origin for file in files)
    given = [Member(file.path, file.origin, file.bytes) for file in files]
    if len(files) == 1:
        try:
            with zipfile.ZipFile(files[0].path) as archive:
                members = [each for each in archive.infolist() if not each.is_dir()]
        except (OSError, zipfile.BadZipFile) as error:
            raise InputError(f"{origin} is cut, damaged, or no release of MovieLens: {error}. Check {KEY}.") from error
        given = [Member(files[0].path, origin, each.file_size, each.filename) for each in members]
    for release in RELEASES:
        names = (release.ratings, release.movies)
        found = [[each for each in given if PurePosixPath(each.name or each.path).name == name] for name in names]
        if all(len(each) == 1 for each in found):
            (ratings,), (movies,) = found
            return release, ratings, movies
    raise InputError(f"{origin} holds no release of MovieLens, which is {_KNOWN}, each once. Name one zip file, or a "
                     f"folder, in {KEY}.")  # fmt: skip


def items_of(release: Release, movies: Member) -> Items:
    """Read what a release tells of movies. Raises InputError if it cannot be understood."""
    refuse_size(movies, LARGEST_MOVIES)
    with open_text(movies.path, movies.origin, member=movies.name) as stream:
        data = stream.read()
    try:
        found = {int(item): (genres, _year(title)) for item, title, genres in release.read_movies(_decoded(data))}
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise InputError(f"{movies.label} is none of MovieLens: {error!r}. Check {KEY}.") from error
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
        raise InputError(f"{member.label} is {member.size:,} bytes, which no release has: at most {largest:,} are "
                         f"read. Check {KEY}.")  # fmt: skip


def read_movielens(files: Sequence[Input], log: Path, *, run: Run[Fetch]) -> Mapping[str, int]:
    """Write the log of a release: a zip file, or ratings and movies.

    Raises
    ------
    InputError
        If a file is none of a release, is damaged, or unfolds to more than any release; or lines are malformed, of the
        ratings more than `whitewater_apps.recsys.sources.spans.MALFORMED_SHARE`.
    ResourceError
        If there is not the memory to sort the ratings.
    """
    release, ratings, movies = find_release(files)
    items = items_of(release, movies)
    found, counts = _ratings(release, ratings, run.settings.movielens.positive)
    unknown = int(np.count_nonzero(items.places(to_numpy(found["item"])) == len(items.ids)))
    if unknown:
        logger.warning("%s has no entry for the items of %d ratings: they have no genres", movies.label, unknown)
    writer = LogWriter(log, "movielens", COLUMNS, "seconds", run.settings.row_group_rows, "period")
    files_written = [
        _write(number, span, found, items, writer=writer) for number, span in enumerate(_periods(to_numpy(found[TIME])))
    ]
    counts = {**counts, "of_unknown_items": unknown}
    writer.finish(files_written, counts=counts)
    return counts


def _ratings(release: Release, ratings: Member, positive: float) -> tuple[pa.Table, dict[str, int]]:
    """Return user, item, label and time of ratings in the order of time, and what was counted."""
    refuse_size(ratings, LARGEST_RATINGS)
    forecast(ratings.size // _SHORTEST_LINE * _ROW_BYTES, what="Sorting the ratings by time",
             remedy="Use a smaller release.")  # fmt: skip
    # All fields are numbers.
    lines = line_blocks(ratings.path, origin=ratings.origin, member=ratings.name)
    given: Iterator[bytes] = (block.replace(release.separator, b"\t") for block in lines)
    if release.header:
        given = _after_header(given, ratings.label)
    layout = Layout(_READ_COLUMNS, _IDS, positive, frozenset(_IDS))
    format_, tally = Format(tuple(_TYPES), "\t", quoted=False, types=_TYPES), Tally()
    read = read_rows(given, format_, layout, tally, origin=ratings.label, header=int(release.header))
    parts = [pa.table(dict(rows.columns)) for rows in read]
    refuse_malformed(ratings.label, [tally])
    if not parts:
        raise InputError(f"{ratings.label} has no ratings. Check {KEY}.")
    found = pa.concat_tables(parts).combine_chunks()
    order = to_arrow(np.argsort(to_numpy(found[TIME]), kind="stable"))
    return found.take(order), {"lines": tally.lines, "empty": tally.empty, "malformed": tally.malformed}


def _periods(times: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return where each period of ascending times begins and ends."""
    ranks = [number * len(times) // PERIODS for number in range(PERIODS)]
    begins = np.unique(np.searchsorted(times, times[ranks]))
    return list(pairwise([*begins.tolist(), len(times)]))


def _after_header(given: Iterator[bytes], origin: str) -> Iterator[bytes]:
    first = next(given, b"")
    line, _, rest = first.partition(b"\n")
    if line.strip().removeprefix(BYTE_ORDER_MARK) != _HEADER:
        wanted = ", ".join(_HEADER.decode().split())
        raise InputError(f"{origin} does not begin with {wanted}, but with {line[:80]!r}. Check {KEY}.")
    if rest:
        yield rest
    yield from given


def _write(number: int, span: tuple[int, int], ratings: pa.Table, items: Items, *, writer: LogWriter) -> LogFile:
    begin, end = span
    with writer.file(file_name(number), day=number) as file:
        for first in range(begin, end, writer.row_group_rows):
            rows = ratings.slice(first, min(writer.row_group_rows, end - first))
            places = to_arrow(items.places(to_numpy(rows["item"])))
            columns = {
                **dict(zip(rows.column_names, rows.columns, strict=True)),
                ROW_ID: to_arrow(np.arange(first, first + len(rows))),
                DAY: to_arrow(np.full(len(rows), number, np.int32)),
                "genres": items.genres.take(places),
                "year": items.year.take(places),
            }
            file.write(pa.table(columns).select(writer.schema.names).cast(writer.schema))
    return file.file
