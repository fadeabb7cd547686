"""Source `movielens`: a release of MovieLens, its zip file or its folder, of any size and age.

A rating is a row: ``user`` and ``item`` (ids), ``genres`` of the item (none if its list is empty or the item unknown)
and ``year`` in its title, if there is one. The label is 1 where the rating is at least ``positive``; the rating itself
is left out, since it tells the label. Rows are in the order of time, those of one time in that of the file, and
``row_id`` is the place in this order. The days of ratings are thousands, many with few rows, so ``day`` is one of at
most `PERIODS` periods with about equally many rows; rows of one time are in one.

Source: the README of each release, https://grouplens.org/datasets/movielens/.
"""

import csv
import io
import logging
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.engines.memory import forecast
from whitewater.errors import InputError
from whitewater.features.log_folder import FIRST, LABEL, TIME, Log, LogColumn, LogFile, LogTime, file_name
from whitewater.io.download import Input
from whitewater.io.text_files import open_text
from whitewater.step import Run
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater_apps.recsys.config import Fetch, FileColumn, Movielens
from whitewater_apps.recsys.sources.columns import Layout
from whitewater_apps.recsys.sources.rows import Span, Tally, TextFormat, read, read_head

logger = logging.getLogger(__name__)

PERIODS = 20
COLUMNS = (
    LogColumn("user", "categorical", "int64"),
    LogColumn("item", "categorical", "int64"),
    LogColumn("genres", "list", "list<string>"),
    LogColumn("year", "continuous", "int32"),
)
# The types of a rating's fields.
_TYPES = {"user": pa.int32(), "item": pa.int32(), "rating": pa.float64(), "timestamp": pa.int64()}
_RATING = Layout(
    (
        FileColumn(name="user", role="key"), FileColumn(name="item", role="key"),
        FileColumn(name="rating", role="label"), FileColumn(name="timestamp", role="time", unit="s"),
    ),
    COLUMNS[:2],
    never_null=frozenset(("user", "item")),
)  # fmt: skip
# Genres by the place of their flag in u.item.
GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
KEY = "recsys.fetch.movielens.path"
# The last match is the year: "Fire (1995) (V)" ends with a medium, and a title may hold another year.
_YEAR = re.compile(r"\((\d{4})(?:[-\u2013]\d{0,4}|/[IVXL]+)?\)")


class Part(NamedTuple):
    """The file of ratings or movies: its name, separator, and header if any."""

    name: str
    separator: str
    header: tuple[str, ...] = ()


# The ratings and movies of releases. Movies are UTF-8, or else Latin-1, as in 100K and 1M.
RELEASES = (
    # 20M, 25M, 32M and latest
    (Part("ratings.csv", ",", ("userId", "movieId", "rating", "timestamp")),
     Part("movies.csv", ",", ("movieId", "title", "genres"))),
    # 1M and 10M
    (Part("ratings.dat", "::"), Part("movies.dat", "::")),
    # 100K, whose movies have a flag for each genre
    (Part("u.data", "\t"), Part("u.item", "|")),
)  # fmt: skip


def release_files(settings: Movielens) -> list[str]:
    """Return the files of a release: ratings and movies in a folder, or the zip file."""
    folder = Path(settings.path).expanduser()
    if "://" in settings.path or not folder.is_dir():
        return [settings.path]
    return list(find_release(settings.path, map(str, folder.glob("*")), map(str, folder.glob("*/*"))))


def find_release(place: str, *listings: Iterable[str]) -> dict[str, Part]:
    """Return ratings and movies in one folder, by name, from the first list of files that has any."""
    releases: list[dict[str, Part]] = []
    for listing in listings:
        paths = {PurePosixPath(name): name for name in listing}
        releases = releases or [
            {name: ratings, paths[path.with_name(movies.name)]: movies}
            for ratings, movies in RELEASES
            for path, name in paths.items()
            if path.name == ratings.name and path.with_name(movies.name) in paths
        ]
    if len(releases) > 1:
        names = ", ".join(sorted(next(iter(release)) for release in releases))
        raise InputError(f"{place} holds several releases of MovieLens: {names}. Name the folder of one in {KEY}.")
    if not releases:
        pairs = ", or ".join(f"{ratings.name} and {movies.name}" for ratings, movies in RELEASES)
        raise InputError(f"{place} holds no release of MovieLens, which is {pairs}. Check {KEY}.")
    return releases[0]


def open_release(files: Sequence[Input]) -> list[tuple[Part, Input, str]]:
    """Return ratings and movies: their format, their file, and their name in it if it is a zip file."""
    first, *others = files
    members = {each.path: (each, "") for each in files}
    if not others:
        try:
            with zipfile.ZipFile(first.path) as archive:
                for each in (entry for entry in archive.infolist() if not entry.is_dir()):
                    unpacked = replace(first, origin=f"{first.origin}/{each.filename}", bytes=each.file_size)
                    members[each.filename] = unpacked, each.filename
        except (OSError, zipfile.BadZipFile) as error:
            raise InputError(f"{first.origin} is cut, damaged, or no release of MovieLens: {error}. Check "
                             f"{KEY}.") from error  # fmt: skip
    return [(part, *members[name]) for name, part in find_release(first.origin, members).items()]


def read_items(part: Part, movies: Input, member: str) -> pa.Table:
    """Read ``item``, ``genres`` and ``year`` of the movies of a release; the last row is for unknown items."""
    with open_text(movies.path, movies.origin, member=member) as stream:
        data = stream.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    _, separator, header = part
    if separator == "::":
        text, separator = text.replace("::", "\t"), "\t"
    lines = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, quoting=csv.QUOTE_MINIMAL if header else csv.QUOTE_NONE
    )
    items = {}
    try:
        if header and (names := tuple(next(lines, ()))) != header:
            raise ValueError(f"its columns are {', '.join(names) or 'missing'}")
        for item, *fields in filter(None, lines):
            if len(fields) < 2:
                raise ValueError(f"line {lines.line_num} is cut")
            *title, genre_list = fields
            genres = [] if genre_list in ("", "(no genres listed)") else genre_list.split("|")
            if separator == "|":
                # A date and two addresses come before a flag for each genre.
                genres = [genre for genre, flag in zip(GENRES, fields[4:], strict=True) if flag == "1"]
                title = fields[:1]
            years = _YEAR.findall(" ".join(title))
            items[int(item)] = genres, int(years[-1]) if years else None
    except (ValueError, csv.Error) as error:
        raise InputError(f"{movies.origin} is not a file of MovieLens: {error!r}. Check {KEY}.") from error
    genres_of, years_of = zip(*items.values(), ([], None), strict=True)
    arrays = {"item": pa.array([*items, None], pa.int64()), "genres": pa.array(genres_of, pa.list_(pa.string()))}
    return pa.table({**arrays, "year": pa.array(years_of, pa.int32())})


def read_movielens(files: Sequence[Input], folder: Path, *, run: Run[Fetch]) -> Log:
    """Write the log of a release: a zip file, or ratings and movies.

    Raises InputError if there is not one release, a file is damaged, or too many lines are malformed; ResourceError if
    the ratings do not fit into memory.
    """
    ratings, movies = open_release(files)
    # A malicious zip file could unpack to any size. A rating takes 64 bytes, and at least 18 in its file.
    size = ratings[1].bytes // 18 * 64 + movies[1].bytes * 8
    forecast(size, what="Sorting the ratings by time", remedy="Use a smaller release.")
    items = read_items(*movies)
    rows, counts = _ratings(*ratings, positive=run.settings.movielens.positive)
    place = pc.index_in(rows["item"], items["item"])
    unknown = place.null_count
    if unknown:
        logger.warning("%s has no entry for the items of %d ratings: they have no genres", movies[1].origin, unknown)
    place = pc.fill_null(place, len(items) - 1)
    times = to_numpy(rows[TIME])
    begins = np.unique(np.searchsorted(times, times[[number * len(times) // PERIODS for number in range(PERIODS)]]))
    writer = Log(folder, "movielens", (*FIRST, *COLUMNS), LogTime("seconds", "period"), run.settings.row_group_rows)
    written = []
    for number, (begin, end) in enumerate(pairwise([*begins.tolist(), len(times)])):
        period = rows.slice(begin, end - begin)
        movies_of_rows = items.take(place.slice(begin, end - begin))
        row_id, day = to_arrow(np.arange(begin, end)), to_arrow(np.full(end - begin, number, np.int32))
        rating = (period[name] for name in (TIME, LABEL, "user", "item"))
        with writer.file(file_name(number)) as file:
            arrays = [row_id, day, *rating, movies_of_rows["genres"], movies_of_rows["year"]]
            file.write(pa.table(arrays, writer.schema.names).cast(writer.schema))
        written.append(LogFile(file.path.name, file.rows, number))
    return writer.finish(written, counts={**counts, "of_unknown_items": unknown})


def _ratings(part: Part, ratings: Input, member: str, *, positive: float) -> tuple[pa.Table, Mapping[str, int]]:
    """Return user, item, label and time of ratings in the order of time, and the counts of lines."""
    _, separator, header = part
    head = read_head(ratings.path, ratings.origin, ",", member=member)
    if header and head.fields != header:
        raise InputError(f"{ratings.origin} does not begin with {', '.join(header)}, but with "
                         f"{', '.join(head.fields)[:80]!r}. Check {KEY}.")  # fmt: skip
    lines = bool(header)
    text = TextFormat(tuple(_TYPES), _TYPES, separator, quoted=False, member=member)
    span = Span(ratings.path, ratings.origin, 0, head.begins[lines], None, text, line=1 + lines)
    tally = Tally()
    parts = [pa.table(dict(columns)) for _, columns in read(span, replace(_RATING, positive=positive), tally)]
    tally.refuse_malformed(ratings.origin)
    if not parts:
        raise InputError(f"{ratings.origin} has no ratings. Check {KEY}.")
    table = pa.concat_tables(parts).combine_chunks()
    order = np.argsort(to_numpy(table[TIME]), kind="stable")
    return table.take(to_arrow(order)), tally.counts
