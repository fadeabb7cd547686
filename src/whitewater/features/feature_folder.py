"""A folder of features: what a workflow made of a log, ready to be loaded in batches.

``features.json``, written last, makes a folder one of features: columns with type, tags and properties, files in order,
and whether their rows are shuffled, with which seed. The Parquet files have plain pages, neither encoded nor
compressed, so that a loader maps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from whitewater.features.schema import Schema, described, field_of
from whitewater.io.folder import Format, RowGroup

FORMAT = Format("features.json", 1, "features", remedy="Run the step features again.")


@dataclass(frozen=True)
class FeatureFile:
    """A file of the folder: its name, and its rows."""

    name: str
    rows: int


@dataclass(frozen=True)
class FeatureFolder:
    """An open folder of features."""

    path: Path
    # The columns in the order of the files, with their tags: that of their group of features, or label, or key
    schema: Schema
    files: tuple[FeatureFile, ...]  # the files, in order; none of them is empty
    seed: int | None  # seed of the order of the rows; None where they are in the order of the log

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(file.rows for file in self.files)

    def row_groups(self) -> list[RowGroup]:
        """Return the row groups, in the order of the rows; see `Format.row_groups`."""
        return [group for file in self.files for group in FORMAT.row_groups(self.path / file.name, rows=file.rows)]


def open_features(path: Path) -> FeatureFolder:
    """Open a folder of features. Raises InputError if it is none, is of another format, or lacks a file."""
    folder = FORMAT.read(path, _folder)
    FORMAT.check_files(path, [file.name for file in folder.files])
    return folder


def write_features(path: Path, schema: Schema, files: Sequence[FeatureFile], *, seed: int | None) -> None:
    """Write the file that makes a folder of Parquet files one of features; ``seed`` is None where rows are in order."""
    value = {
        "rows": sum(file.rows for file in files),
        "shuffled": seed is not None,
        "seed": seed,
        "columns": [described(field) for field in schema],
        "files": [asdict(file) for file in files],
    }
    FORMAT.write(path, value)


def file_name(number: int) -> str:
    """Return the name of a file by its place."""
    return f"part-{number:05d}.parquet"


def _folder(
    path: Path, *, columns: list[Any], files: list[Any], rows: int, seed: int | None, **_: Any
) -> FeatureFolder:
    schema = Schema(tuple(map(field_of, columns)))
    folder = FeatureFolder(path, schema, tuple(FeatureFile(**each) for each in files), seed)
    if folder.rows != rows:
        raise ValueError(f"its files have {folder.rows} rows, not {rows}")
    return folder
