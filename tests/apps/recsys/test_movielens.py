"""Releases of MovieLens, of each layout, in a folder and in a zip file: what was written into them is the log."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers.recsys_logs import Row, records, run_fetch, table, write
from whitewater.errors import InputError, ResourceError
from whitewater.features.log_folder import Log

FLAGS = ["unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama",
         "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War",
         "Western"]  # fmt: skip


@dataclass(frozen=True)
class Film:
    item: int
    title: str
    year: int | None
    genres: tuple[str, ...]


@dataclass(frozen=True)
class Rating:
    user: int
    item: int
    rating: float
    time: int


FILMS = (
    Film(1, "Toy Story (1995)", 1995, ("Animation", "Children's", "Comedy")),
    Film(2, 'Misérables, Les: "the film" (1998)', 1998, ("Drama",)),
    Film(7, "2001: A Space Odyssey (1968) ", 1968, ("Sci-Fi",)),
    Film(30, "Untitled", None, ()),
    Film(32, "Death Note: Desu n\xf4to (2006\u20132007)", 2006, ("Mystery",)),
    Film(1412, "Land Before Time III: The Time of the Great Giving (1995) (V)", 1995, ("Animation",)),
    Film(1413, "Year (2001) of Three (1984/II) (TV)", 1984, ("Drama",)),
    Film(31, "Nikita (La Femme Nikita) (1990)", 1990, ("Action", "Western")),
)
UNKNOWN_ITEM = 99
Layout = Callable[[Sequence[Rating]], dict[str, bytes]]


def ratings(rows: int = 300, *, halves: bool = False) -> list[Rating]:
    """Ratings in no order, many of one time."""
    source = random.Random(7)
    items = [*(film.item for film in FILMS), UNKNOWN_ITEM]
    return [
        Rating(
            source.randint(1, 9),
            source.choice(items),
            source.randint(1, 5) - (0.5 if halves else 0),
            880_000_000 + source.randint(0, 100),
        )
        for _ in range(rows)
    ]


def latin_1(text: str) -> bytes:
    """Encode a text as the old releases do, which have no dashes."""
    return text.replace("\u2013", "-").encode("latin-1")


def release_100k(given: Sequence[Rating]) -> dict[str, bytes]:
    films = "".join(
        f"{film.item}|{film.title}|01-Jan-1995||http://x/?{film.title.partition(' ')[0]}+(1906)|"
        + "|".join(str(int(flag in film.genres)) for flag in FLAGS) + "\n"
        for film in FILMS
    )  # fmt: skip
    lines = "".join(f"{each.user}\t{each.item}\t{each.rating:g}\t{each.time}\n" for each in given)
    return {
        "u.data": lines.encode(),
        "u.item": films.replace("\u2013", "-").encode("latin-1"),
        "u1.base": b"no ratings",
        "README": b"",
    }


def release_1m(given: Sequence[Rating]) -> dict[str, bytes]:
    return with_colons(given, latin_1)


def release_10m(given: Sequence[Rating]) -> dict[str, bytes]:
    return with_colons(given, str.encode)


def with_colons(given: Sequence[Rating], encode: Callable[[str], bytes]) -> dict[str, bytes]:
    films = "".join(f"{film.item}::{film.title}::{'|'.join(film.genres)}\n" for film in FILMS)
    lines = "".join(f"{each.user}::{each.item}::{each.rating:g}::{each.time}\n" for each in given)
    return {"ratings.dat": lines.encode(), "movies.dat": encode(films), "users.dat": b"1::F::1::10::48067\n"}


def release_25m(given: Sequence[Rating]) -> dict[str, bytes]:
    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if set(text) & set(',"') else text

    films = "".join(
        f"{film.item},{quoted(film.title)},{'|'.join(film.genres) or '(no genres listed)'}\r\n" for film in FILMS
    )
    lines = "".join(f"{each.user},{each.item},{each.rating},{each.time}\r\n" for each in given)
    return {
        "ratings.csv": b"userId,movieId,rating,timestamp\r\n" + lines.encode(),
        "movies.csv": b"movieId,title,genres\r\n" + films.encode(),
        "tags.csv": b"userId,movieId,tag,timestamp\r\n",
    }


LAYOUTS = [release_100k, release_1m, release_10m, release_25m]


def put(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        write(folder / name, content)
    return folder


def zipped(path: Path, files: dict[str, bytes], *, folder: str = "ml/") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(folder, b"")
        for name, content in files.items():
            archive.writestr(folder + name, content)
    return path


def ratings_of(log: Log) -> list[Row]:
    """The rows of a log, without its periods."""
    return [{name: value for name, value in row.items() if name != "day"} for row in records(log)]


def expected(given: Sequence[Rating], *, positive: float = 4) -> list[Row]:
    """What a log of ratings is, without its periods."""
    films = {film.item: film for film in FILMS}
    rows = []
    for place, each in enumerate(sorted(given, key=lambda rating: rating.time)):
        film = films.get(each.item, Film(each.item, "", None, ()))
        rows.append({"row_id": place, "time": each.time, "label": int(each.rating >= positive), "user": each.user,
                     "item": each.item, "genres": list(film.genres), "year": film.year})  # fmt: skip
    return rows


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", ["folder", "folder in a folder", "zip"])
def test_every_release_is_the_same_log(folder: Path, layout: Layout, form: str) -> None:
    given = ratings(halves=layout in (release_10m, release_25m))
    files = layout(given)
    if form == "zip":
        path = zipped(folder / "ml.zip", files)
    else:
        path = put(folder / "in" / ("ml" if form == "folder in a folder" else ""), files)
        path = folder / "in"
    log = run_fetch("movielens", path=str(path))
    assert ratings_of(log) == expected(given)
    assert log.columns == {"row_id": "key", "day": "key", "time": "time", "label": "label", "user": "categorical",
                           "item": "categorical", "genres": "list", "year": "continuous"}  # fmt: skip
    assert log.time.unit == "seconds"
    unknown = sum(each.item == UNKNOWN_ITEM for each in given)
    assert log.counts == {"lines": 300, "empty": 0, "malformed": 0, "of_unknown_items": unknown}
    read = json.loads((folder / "data/recsys/inputs.json").read_text())["files"]
    assert len(read) == (1 if form == "zip" else 2)


def test_a_rating_of_the_threshold_is_positive(folder: Path) -> None:
    given = ratings(halves=True)
    log = run_fetch("movielens", path=str(put(folder / "ml", release_25m(given))), positive=2.5)
    assert ratings_of(log) == expected(given, positive=2.5)
    assert 0 < sum(row["label"] for row in table(log).to_pylist()) < 300


def test_periods_have_about_equally_many_rows_and_rows_of_one_time_are_in_one(folder: Path) -> None:
    given = ratings(3000)
    log = run_fetch("movielens", path=str(put(folder / "ml", release_1m(given))), row_group_rows=1000)
    found = table(log)
    assert found.column("day").to_pylist() == sorted(found.column("day").to_pylist())
    assert [file.day for file in log.files] == list(range(20))
    assert all(100 < file.rows < 200 for file in log.files)
    days: dict[int, set[int]] = {}
    for time, day in zip(found.column("time").to_pylist(), found.column("day").to_pylist(), strict=True):
        days.setdefault(time, set()).add(day)
    assert {len(each) for each in days.values()} == {1}


def test_malformed_ratings_are_told_by_line(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    given = ratings(400)
    files = release_1m(given)
    lines = files["ratings.dat"].decode().splitlines()
    lines[10:10] = ["1::2::5", "1::::5::880000000", "1::2::5::soon"]
    log = run_fetch("movielens", path=str(put(folder / "ml", files | {"ratings.dat": "\n".join(lines).encode()})))
    assert log.counts["malformed"] == 3
    assert ratings_of(log) == expected(given)
    for line in (11, 12, 13):
        assert f"line {line}: " in caplog.text


def test_members_are_found_by_name_and_nothing_is_unpacked(folder: Path) -> None:
    given = ratings()
    files = release_25m(given)
    path = zipped(folder / "ml.zip", files, folder="../../ml/")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/ml/._ratings.csv", b"no ratings")
        archive.writestr("/etc/other", b"x")
    log = run_fetch("movielens", path=str(path))
    assert ratings_of(log) == expected(given)
    assert {each.name for each in folder.rglob("*") if each.is_file() and "events" not in each.parts} <= {
        "ml.zip", "inputs.json", "fetch.json", ".fetch.lock", ".recsys-fetch.owner",
    }  # fmt: skip


def test_a_zip_file_with_two_releases_or_none_is_refused(folder: Path) -> None:
    path = zipped(folder / "ml.zip", {f"{part}/{name}": content for part in "ab"
                                        for name, content in release_1m(ratings(5)).items()})  # fmt: skip
    with pytest.raises(InputError, match=r"holds several releases of MovieLens: ml/a/ratings\.dat, ml/b/ratings\.dat"):
        run_fetch("movielens", path=str(path))
    with pytest.raises(InputError, match=r"holds no release of MovieLens, which is ratings\.csv and movies\.csv, or"):
        run_fetch("movielens", path=str(put(folder / "empty", {"ratings.csv": b""})))


def test_a_folder_with_two_releases_is_refused(folder: Path) -> None:
    put(folder / "ml" / "one", release_1m(ratings(5)))
    put(folder / "ml" / "two", release_25m(ratings(5)))
    with pytest.raises(InputError, match=r"several releases of MovieLens: .*one.*two.*Name the folder of one"):
        run_fetch("movielens", path=str(folder / "ml"))


def test_a_torn_or_changed_zip_file_is_refused(folder: Path) -> None:
    files = release_1m(ratings(3000))
    content = zipped(folder / "ml.zip", files).read_bytes()
    (folder / "ml.zip").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="cut, damaged, or no release"):
        run_fetch("movielens", path=str(folder / "ml.zip"))
    with zipfile.ZipFile(folder / "stored.zip", "w", zipfile.ZIP_STORED) as archive:
        for name, each in files.items():
            archive.writestr(name, each)
    changed = (folder / "stored.zip").read_bytes().replace(b"::880000", b"::881000", 1)
    (folder / "stored.zip").write_bytes(changed)
    with pytest.raises(InputError, match="Bad CRC-32"):
        run_fetch("movielens", path=str(folder / "stored.zip"))
    assert not (folder / "data/recsys/events").exists()


@pytest.mark.parametrize("large", ["ratings.dat", "movies.dat"])
def test_what_unfolds_to_more_than_memory_is_refused_before_it_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, large: str
) -> None:
    path = zipped(folder / "ml.zip", release_1m(ratings()) | {large: b"1::1::1::1\n" * 100_000})
    monkeypatch.setattr("whitewater.engines.memory.available", lambda: 2_000_000)
    with pytest.raises(ResourceError, match="Sorting the ratings by time needs about"):
        run_fetch("movielens", path=str(path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ratings.csv": b"a,b,c,d\n1,2,3,4\n"}, "does not begin with userId, movieId, rating, timestamp"),
        ({"ratings.csv": b"userId,movieId,rating,timestamp\n"}, "has no ratings"),
        ({"ratings.csv": b""}, r"ratings\.csv is empty"),
        ({"movies.csv": b"movieId,title\n1,a\n"}, r"movies\.csv is not a file of MovieLens"),
        ({"movies.csv": b"movieId,title,genres\nx,a,b\n"}, r"movies\.csv is not a file of MovieLens"),
        ({"movies.csv": b"movieId,title,genres\n1,a,b\n2,Jumanji (1995)\n"}, r"movies\.csv.*line 3 is cut"),
        ({"movies.csv": b""}, r"movies\.csv.*its columns are missing"),
    ],
)
def test_files_of_another_kind_are_refused(folder: Path, change: dict[str, bytes], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_fetch("movielens", path=str(put(folder / "ml", release_25m(ratings()) | change)))


def test_an_encrypted_member_is_refused(folder: Path) -> None:
    path = zipped(folder / "ml.zip", release_1m(ratings()))
    content = bytearray(path.read_bytes())
    at = content.rindex(b"PK\x01\x02", 0, content.rindex(b"ml/ratings.dat"))
    content[at + 8] |= 1  # the flag of encryption, in the directory of the archive
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match="cannot be unpacked"):
        run_fetch("movielens", path=str(path))
