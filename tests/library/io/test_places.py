"""Files that are named by paths, globs and URLs are found, in place or downloaded."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from whitewater.errors import InputError
from whitewater.io.download import Downloads, Input
from whitewater.io.places import find


@pytest.fixture
def folder(folder: Path) -> Path:
    """A working directory with two files."""
    (folder / "trips").mkdir()
    for name in ("a", "b"):
        (folder / "trips" / f"{name}.csv").write_text(name)
    return folder


def found(*places: str) -> dict[str, Input]:
    return find(places, downloads=Downloads(Path("data"), {}), threads=2, key="files", example="*.parquet")


def names(*places: str) -> list[str]:
    return sorted(Path(file.path).name for file in found(*places).values())


def test_globs_paths_and_file_urls_are_used_in_place_and_once(folder: Path) -> None:
    asked = ("trips/b*", str(folder / "trips" / "a.csv"), "trips/*", f"file://{folder}/trips/a.csv")
    assert names(*asked) == ["a.csv", "b.csv"]
    assert not list(folder.glob("data/downloads/*"))


def test_globs_reach_into_folders_and_leave_out_hidden_files(folder: Path) -> None:
    (folder / "trips" / "2019" / "03").mkdir(parents=True)
    (folder / "trips" / "2019" / "03" / "c.csv").write_text("c")
    (folder / "trips" / ".a.csv.part").write_text("half")
    assert names("trips/**/*.csv*") == ["a.csv", "b.csv", "c.csv"]


def test_a_name_with_brackets_that_exists_is_not_a_glob(folder: Path) -> None:
    (folder / "trips" / "a[1].csv").write_text("a")
    assert names("trips/a[1].csv") == ["a[1].csv"]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("trips/*.parquet", r"trips/\*\.parquet matches no file"),
        ("trips/none.csv", r"trips/none\.csv does not exist"),
        ("trips", r"trips is a directory.*trips/\*\.parquet"),
        ("file:///nowhere/a.csv", "file:///nowhere/a.csv does not exist"),
        ("memory://nowhere/*.csv", "matches no file"),
        ("memory://nowhere/a.csv", "does not exist"),
    ],
)
def test_a_file_that_is_not_there_is_named(folder: Path, place: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        found("trips/a.csv", place)


def test_objects_of_a_bucket_are_found_by_glob_and_downloaded(folder: Path) -> None:
    store = fsspec.filesystem("memory")
    for name in ("x.csv", "y.csv"):
        store.pipe_file(f"/trips-bucket/2019/{name}", name.encode())
    files = found("memory://trips-bucket/2019/*.csv").values()
    assert sorted(Path(file.path).read_text() for file in files) == ["x.csv", "y.csv"]
    assert all(Path(file.path).parent == Path("data/downloads") for file in files)
    origins = sorted(file.origin for file in files)
    assert origins == ["memory:///trips-bucket/2019/x.csv", "memory:///trips-bucket/2019/y.csv"]
    store.rm("/trips-bucket", recursive=True)
