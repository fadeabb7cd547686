"""A folder of features: the results of a workflow, as Parquet files and as arrays for batches.

``features.json``, written last, marks a folder as complete. It has the columns with type, tags and properties, the
files in order, the seed of the shuffle, and the columns with nulls. Each Parquet file has all columns. Beside it are
its `matrices`, ``part-00000-00.npy`` and so on, row by row, which `whitewater.features.loader` reads.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import ConfigError, InputError, IntegrityError
from whitewater.features.columns.column import Lists, Numbers, column_of
from whitewater.features.schema import Field, Schema, column_from_json, column_json
from whitewater.io.folder import Format
from whitewater.io.store import write_atomically

FORMAT = Format("features.json", 1, "features", remedy="Run the step features again.")
CONTINUOUS, CATEGORICAL, LABEL, KEY = "continuous", "categorical", "label", "key"
# Rows copied at a time, so that they stay in the cache.
_ROWS_IN_CACHE = 4096


@dataclass(frozen=True)
class Matrix:
    """An array of each file; ``row`` is the shape of a row: ``()`` for a label or key, else ``(numbers,)``."""

    name: str
    dtype: np.dtype[Any]
    columns: tuple[str, ...]
    row: tuple[int, ...]


@dataclass(frozen=True)
class FeatureFile:
    """A file of the folder; ``nulls`` counts the nulls of each column that its arrays cannot hold."""

    name: str
    rows: int
    nulls: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class FeatureFolder:
    """An open folder of features."""

    path: Path
    schema: Schema  # columns in the order of the files; tags are the group of features, label or key
    files: tuple[FeatureFile, ...]  # in order; none is empty
    seed: int | None  # of the shuffle; None if rows are in the order of the log
    nulls: Mapping[str, int]  # nulls that arrays cannot hold, by column

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @cached_property
    def matrices(self) -> tuple[Matrix, ...]:
        return matrices(self.schema)

    def array_path(self, file: int, matrix: int) -> Path:
        """Return the path of an array, given the numbers of its file and matrix."""
        return self.path / array_name(self.files[file].name, matrix)

    def array(self, file: int, matrix: int) -> npt.NDArray[Any]:
        """Map an array of a file; raises as `whitewater.io.folder.Files.array`."""
        shape = self.files[file].rows, *self.matrices[matrix].row
        return FORMAT.array(self.array_path(file, matrix), shape, self.matrices[matrix].dtype)

    def refuse_nulls(self, columns: Iterable[str]) -> None:
        """Raise InputError if one of the columns has nulls that its array cannot hold."""
        for name in columns:
            if name in self.nulls:
                raise InputError(
                    f"{self.path}: column {name!r} has {self.nulls[name]} nulls, which arrays of its type cannot hold. "
                    "Fill them (FillMissing, FillMedian), or leave the column out."
                )


def open_features(path: Path) -> FeatureFolder:
    """Open a folder of features. Raises InputError if it is not one, has another format, or lacks a file."""
    folder = FORMAT.read(path, _folder)
    arrays = range(len(folder.matrices))
    for file in folder.files:
        FORMAT.check_files(path, [file.name, *(array_name(file.name, number) for number in arrays)])
    return folder


def write_features(path: Path, schema: Schema, files: Sequence[FeatureFile], *, seed: int | None) -> None:
    """Write ``features.json``; ``seed`` is None if rows are not shuffled."""
    value = {
        "rows": sum(file.rows for file in files),
        "shuffled": seed is not None,
        "seed": seed,
        "nulls": sum((Counter(file.nulls) for file in files), Counter()),
        "columns": [column_json(field) for field in schema],
        "files": [{"name": file.name, "rows": file.rows} for file in files],
    }
    FORMAT.write(path, value)


def write_file(path: Path, number: int, table: pa.Table, schema: Schema, *, row_group_rows: int) -> FeatureFile:
    """Write a table with the columns of the schema as a Parquet file and its arrays; nothing is written without rows.

    Row groups have about equal numbers of rows, up to ``row_group_rows``. Raises IntegrityError if the lists of a
    column with a fixed length have another length.
    """
    file = FeatureFile(f"part-{number:05d}.parquet", len(table))
    if not len(table):
        return file
    # A column without nulls is a required one: its page has only the values.
    fields = [pa.field(each.name, each.type, table[each.name].null_count > 0) for each in schema]
    row_groups = -(-len(table) // row_group_rows)
    write = partial(
        pq.write_table, pa.Table.from_arrays(table.columns, schema=pa.schema(fields)),
        row_group_size=-(-len(table) // row_groups),
        compression="none", use_dictionary=False, write_statistics=False, store_schema=False,
        # One page for each column chunk, up to 1 GiB, is written as fast as the disk.
        data_page_size=1 << 30, max_rows_per_page=1 << 30, write_batch_size=1 << 16,
    )  # fmt: skip
    write_atomically(path / file.name, write)
    nulls: Counter[str] = Counter()
    for place, matrix in enumerate(matrices(schema)):
        columns = {name: _numbers(name, table[name], matrix) for name in matrix.columns}
        if matrix.name != CONTINUOUS:
            nulls.update({name: count for name, (_, count) in columns.items() if count})
        arrays = [values for values, _ in columns.values()]
        write_atomically(path / array_name(file.name, place), partial(_write_array, matrix=matrix, columns=arrays))
    return FeatureFile(file.name, len(table), nulls)


def matrices(schema: Schema) -> tuple[Matrix, ...]:
    """Return the arrays for columns that `number_type` accepts: all numbers, all ids, and each label, key and list."""
    groups: dict[tuple[str, ...], list[Field]] = {}
    for each in schema:
        try:
            number_type(each)
        except ConfigError:
            continue
        if LABEL in each.tags:
            key: tuple[str, ...] = (LABEL, each.name)
        elif KEY in each.tags or pa.types.is_list(each.type):
            key = (each.name, each.name)
        else:
            key = (CATEGORICAL if "cardinality" in each.properties else CONTINUOUS,)
        groups.setdefault(key, []).append(each)
    arrays = []
    for (name, *own), fields in groups.items():
        length = fields[0].properties["length"] if pa.types.is_list(fields[0].type) else None
        row = () if own and length is None else (length or len(fields),)
        arrays.append(Matrix(name, np.result_type(*map(number_type, fields)), tuple(each.name for each in fields), row))
    return tuple(arrays)


def number_type(field: Field) -> np.dtype[Any]:
    """Return the dtype of a column in arrays. Raises ConfigError if arrays cannot hold it."""
    types, is_list = pa.types, pa.types.is_list(field.type)
    if is_list and "length" not in field.properties:
        raise ConfigError(
            f"column {field.name!r} has lists that differ in length. Give them one length with ListSlice(pad=True), "
            "or leave the column out of columns."
        )
    type_ = field.type.value_type if is_list else field.type
    is_integer, is_id = types.is_signed_integer(type_), "cardinality" in field.properties
    is_number = is_integer or type_ in (pa.float32(), pa.float64()) or (types.is_boolean(type_) and not is_list)
    if not is_number or (not is_integer and (KEY in field.tags or is_id)):
        raise ConfigError(
            f"column {field.name!r} is of type {field.type}, which cannot be loaded. Numbers, booleans, ids as signed "
            "integers, and lists of numbers can. Leave it out of columns, or convert it."
        )
    if KEY in field.tags:
        return np.dtype(np.int64)
    is_float = LABEL in field.tags or not is_id
    return np.dtype(np.float32 if is_float else np.int64 if type_ == pa.int64() else np.int32)


def array_name(file: str, matrix: int) -> str:
    """Return the name of an array of a file, given its index in `matrices`."""
    return f"{Path(file).stem}-{matrix:02d}.npy"


def _folder(
    path: Path, *, columns: list[Any], files: list[Any], rows: int, seed: int | None, nulls: dict[str, int], **_: Any
) -> FeatureFolder:
    schema = Schema(tuple(map(column_from_json, columns)))
    folder = FeatureFolder(path, schema, tuple(FeatureFile(**each) for each in files), seed, nulls)
    if folder.rows != rows:
        raise ValueError(f"its files have {folder.rows} rows, not {rows}")
    return folder


def _numbers(name: str, column: pa.ChunkedArray, matrix: Matrix) -> tuple[npt.NDArray[Any], int]:
    """Return the numbers of a column, (rows, numbers in a row), NaN for nulls of floats; and the number of nulls."""
    numbers = column_of(column)
    if isinstance(numbers, Lists):
        if (np.diff(numbers.offsets) != matrix.row[0]).any():
            raise IntegrityError(
                f"column {name!r} has lists of other lengths than {matrix.row[0]}. Report this as a bug."
            )
        numbers = numbers.values
    values, valid = cast("Numbers", numbers).values, cast("Numbers", numbers).valid
    if valid is not None and matrix.dtype.kind == "f":
        values = np.where(valid, values, np.nan)
    return values.reshape(len(column), -1), 0 if valid is None else int(np.count_nonzero(~valid))


def _write_array(path: Path, matrix: Matrix, columns: Sequence[npt.NDArray[Any]]) -> None:
    """Write columns, each (rows, numbers in a row), as one array; float32 may lose digits."""
    rows = len(columns[0])
    header = {"descr": np.lib.format.dtype_to_descr(matrix.dtype), "fortran_order": False, "shape": (rows, *matrix.row)}
    part = np.empty((min(rows, _ROWS_IN_CACHE), *(matrix.row or (1,))), matrix.dtype)
    with path.open("wb") as file, np.errstate(over="ignore"):
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, rows, _ROWS_IN_CACHE):
            pieces = [column[start : start + _ROWS_IN_CACHE] for column in columns]
            np.concatenate(pieces, axis=1, out=part[: len(pieces[0])], casting="unsafe")
            file.write(part[: len(pieces[0])].data)
