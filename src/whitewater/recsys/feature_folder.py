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

from whitewater.errors import InputError, IntegrityError
from whitewater.recsys.schema import Schema, described, field_of
from whitewater.store import read_json, write_json

FORMAT = 1
NAME = "features.json"
_REPAIR = "Run the step features again."


@dataclass(frozen=True)
class FeatureFile:
    """A file of the folder: its name, and its rows."""

    name: str
    rows: int


@dataclass(frozen=True)
class FeatureFolder:
    """An open folder of features.

    Attributes
    ----------
    path
        The folder.
    schema
        The columns in the order of the files, with their tags: that of their group of features, or label, or key.
    files
        The files, in order; none of them is empty.
    seed
        Seed of the order of the rows; None where they are in the order of the log.
    """

    path: Path
    schema: Schema
    files: tuple[FeatureFile, ...]
    seed: int | None

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(file.rows for file in self.files)

    @property
    def shuffled(self) -> bool:
        """Whether the rows are shuffled."""
        return self.seed is not None

    def row_groups(self) -> list[tuple[Path, int, int]]:
        """Return file, number and rows of each row group, in the order of the rows.

        Raises
        ------
        InputError
            If a file is missing, or none of Parquet.
        IntegrityError
            If a file has other rows than it should have.
        """
        from whitewater.devices.parquet import opened

        found: list[tuple[Path, int, int]] = []
        for file in self.files:
            with opened(self.path / file.name) as parquet:
                footer = parquet.metadata
            if footer.num_rows != file.rows:
                raise IntegrityError(f"{self.path / file.name} has {footer.num_rows} rows, not {file.rows}. {_REPAIR}")
            found += [
                (self.path / file.name, group, footer.row_group(group).num_rows)
                for group in range(footer.num_row_groups)
            ]
        return found


def open_features(path: Path) -> FeatureFolder:
    """Open a folder of features.

    Raises
    ------
    InputError
        If it is none, is of another format, or lacks a file.
    """
    found = read_json(path / NAME)
    version = found.get("format") if isinstance(found, dict) else None
    if version != FORMAT:
        raise InputError(f"{path} has format {version}; this version reads {FORMAT}. {_REPAIR}")
    try:
        folder = _described(path, found)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path / NAME} describes no features: {error!r}. {_REPAIR}") from error
    for file in folder.files:
        if not (path / file.name).is_file():
            raise InputError(f"{path} lacks {file.name}. {_REPAIR}")
    return folder


def write_features(path: Path, schema: Schema, files: Sequence[FeatureFile], *, seed: int | None) -> None:
    """Write the file that makes a folder of Parquet files one of features; ``seed`` is None where rows are in order."""
    value: dict[str, Any] = {
        "format": FORMAT,
        "rows": sum(file.rows for file in files),
        "shuffled": seed is not None,
        "seed": seed,
        "columns": [described(field) for field in schema],
        "files": [asdict(file) for file in files],
    }
    write_json(path / NAME, value)


def file_name(number: int) -> str:
    """Return the name of a file by its place."""
    return f"part-{number:05d}.parquet"


def _described(path: Path, found: dict[str, Any]) -> FeatureFolder:
    files = tuple(FeatureFile(**each) for each in found["files"])
    if any(Path(file.name).name != file.name for file in files):
        raise ValueError("a file is not in the folder")
    folder = FeatureFolder(path, Schema(tuple(map(field_of, found["columns"]))), files, found["seed"])
    if folder.rows != found["rows"]:
        raise ValueError(f"its files have {folder.rows} rows, not {found['rows']}")
    return folder
