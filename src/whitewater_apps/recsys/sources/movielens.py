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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.engines.memory import forecast
from whitewater.errors import InputError
from whitewater.features.log_folder import DAY, ROW_ID, TIME, LogColumn, LogFile, LogWriter, file_name
from whitewater.io.download import Input
from whitewater.io.text_files import open_text
from whitewater.step import Run
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater_apps.recsys.config import Fetch, FileColumn, Movielens
from whitewater_apps.recsys.sources.columns import Layout
from whitewater_apps.recsys.sources.spans import Tally, refuse_malformed
from whitewater_apps.recsys.sources.text import Format, TextSpan, head_of

logger = logging.getLogger(__name__)

PERIODS = 20
COLUMNS = (
    LogColumn("user", "categorical", "int64"),
    LogColumn("item", "categorical", "int64"),
    LogColumn("genres", "list", "list<string>"),
    LogColumn("year", "continuous", "int32"),
)
# Many times what the largest release has.
LARGEST_RATINGS, LARGEST_MOVIES = 4 << 30, 64 << 20
_HEADERS = ["userId", "movieId", "rating", "timestamp"], ["movieId", "title", "genres"]
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
    separator: str
    header: bool
    read_movies: Callable[[str], Iterator[tuple[str, str, list[str]]]]


def _genres_of(text: str) -> list[str]:
    return [] if text in ("", "(no genres listed)") else text.split("|")


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
    names, *lines = csv.reader(io.StringIO(text, newline=""))
    if names != _HEADERS[1]:
        raise ValueError(f"its columns are {', '.join(names)}")
    for item, title, genres in filter(None, lines):
        yield item, title, _genres_of(genres)


RELEASES = (
    Release("ratings.csv", "movies.csv", ",", header=True, read_movies=_movies_of_csv),
    Release("ratings.dat", "movies.dat", "::", header=False, read_movies=_movies_of_colons),
    Release("u.data", "u.item", "\t", header=False, read_movies=_movies_of_flags),
)


def release_files(settings: Movielens) -> list[str]:
    """Return the files of a release: ratings and movies of a folder, or what the settings name, a zip file.

    Raises InputError if a folder holds no release, or several.
    """
    folder = Path(settings.path).expanduser()
    if "://" in settings.path or not folder.is_dir():
        return [settings.path]
    found = _releases(map(str, folder.glob("*"))) or _releases(map(str, folder.glob("*/*")))
    return list(_only(found, settings.path)[1:])


def _releases(names: Iterable[str]) -> list[tuple[Release, str, str]]:
    """Return the releases among files: ratings and movies that are in one folder."""
    paths = {PurePosixPath(name): name for name in names}
    pairs = [
        (each, path, path.with_name(each.movies)) for each in RELEASES for path in paths if path.name == each.ratings
    ]
    return [(each, paths[ratings], paths[movies]) for each, ratings, movies in pairs if movies in paths]


def _only(found: Sequence[tuple[Release, str, str]], place: str) -> tuple[Release, str, str]:
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{place} holds several releases of MovieLens: "
                         f"{', '.join(sorted(ratings for _, ratings, _ in found))}. Name the folder of one in "
                         f"{KEY}.")  # fmt: skip
    known = ", or ".join(f"{release.ratings} and {release.movies}" for release in RELEASES)
    raise InputError(f"{place} holds no release of MovieLens, which is {known}. Check {KEY}.")


def find_release(files: Sequence[Input]) -> tuple[Release, Member, Member]:
    """Return how a release is read, its ratings and its movies. Raises InputError if they hold none, or too large."""
    given = {file.path: Member(file.path, file.origin, file.bytes) for file in files}
    first = files[0]
    if len(files) == 1:
        try:
            with zipfile.ZipFile(first.path) as archive:
                members = [each for each in archive.infolist() if not each.is_dir()]
        except (OSError, zipfile.BadZipFile) as error:
            raise InputError(f"{first.origin} is cut, damaged, or no release of MovieLens: {error}. Check "
                             f"{KEY}.") from error  # fmt: skip
        given = {each.filename: Member(first.path, first.origin, each.file_size, each.filename) for each in members}
    release, ratings, movies = _only(_releases(given), first.origin)
    # A zip file could be made to unfold to any size.
    for member, most in ((given[movies], LARGEST_MOVIES), (given[ratings], LARGEST_RATINGS)):
        if member.size > most:
            raise InputError(f"{member.label} is {member.size:,} bytes, which no release has: at most {most:,} are "
                             f"read. Check {KEY}.")  # fmt: skip
    return release, given[ratings], given[movies]


def items_of(release: Release, movies: Member) -> pa.Table:
    """Return what a release tells of movies: ``item``, ``genres`` and ``year``; the last row is of all other items.

    Raises InputError if it cannot be understood.
    """
    with open_text(movies.path, movies.origin, member=movies.name) as stream:
        data = stream.read()
    try:
        found = {int(item): (genres, _year(title)) for item, title, genres in release.read_movies(_decoded(data))}
    except (ValueError, csv.Error) as error:
        raise InputError(f"{movies.label} is none of MovieLens: {error!r}. Check {KEY}.") from error
    genres, years = zip(*found.values(), ([], None), strict=True)
    arrays = {"item": pa.array([*found, None], pa.int64()), "genres": pa.array(genres, pa.list_(pa.string()))}
    return pa.table({**arrays, "year": pa.array(years, pa.int32())})


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _year(title: str) -> int | None:
    years = _YEAR.findall(title)
    return int(years[-1]) if years else None


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
    # The place of each rating's item among the items.
    found = found.append_column("place", pc.index_in(found["item"].cast(pa.int64()), items["item"]))
    unknown = found["place"].null_count
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
    forecast(ratings.size // _SHORTEST_LINE * _ROW_BYTES, what="Sorting the ratings by time",
             remedy="Use a smaller release.")  # fmt: skip
    head = head_of(ratings.path, ratings.origin, ",", member=ratings.name)
    if release.header and head.fields != _HEADERS[0]:
        raise InputError(f"{ratings.label} does not begin with {', '.join(_HEADERS[0])}, but with "
                         f"{', '.join(head.fields)[:80]!r}. Check {KEY}.")  # fmt: skip
    header = int(release.header)
    # All fields are numbers.
    format_ = Format(tuple(_TYPES), release.separator, quoted=False, types=_TYPES)
    span = TextSpan(ratings.path, ratings.origin, 0, format_, header, head.lines[header], member=ratings.name)
    tally = Tally()
    parts = [
        pa.table(dict(rows.columns))
        for rows in span.read(Layout(_READ_COLUMNS, _IDS, positive, frozenset(_IDS)), tally)
    ]
    refuse_malformed(ratings.label, tally)
    if not parts:
        raise InputError(f"{ratings.label} has no ratings. Check {KEY}.")
    found = pa.concat_tables(parts).combine_chunks()
    order = to_arrow(np.argsort(to_numpy(found[TIME]), kind="stable"))
    return found.take(order), tally.counts


def _periods(times: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return where each period of ascending times begins and ends."""
    ranks = [number * len(times) // PERIODS for number in range(PERIODS)]
    begins = np.unique(np.searchsorted(times, times[ranks]))
    return list(pairwise([*begins.tolist(), len(times)]))


def _write(number: int, span: tuple[int, int], ratings: pa.Table, items: pa.Table, *, writer: LogWriter) -> LogFile:
    begin, end = span
    rows = ratings.slice(begin, end - begin)
    known = items.take(pc.fill_null(rows["place"], len(items) - 1))
    own = {
        ROW_ID: to_arrow(np.arange(begin, end)),
        DAY: to_arrow(np.full(end - begin, number, np.int32)),
        "genres": known["genres"],
        "year": known["year"],
    }
    for name, values in own.items():
        rows = rows.append_column(name, values)
    with writer.file(file_name(number), day=number) as file:
        file.write(rows.select(writer.schema.names).cast(writer.schema))
    return file.file
