"""Compare what one step or application left on two devices: integers, text and nulls exactly, floats by a rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import dataset
from pydantic import JsonValue

from benchmarks.measure import differences
from whitewater.io.store import read_json

# Of Snakemake, and locks; and pictures, whose bytes are those of the machine's fonts.
NOT_COMPARED = (".*", "*/.*", "manifest.json", "plots/*")


@dataclass(frozen=True)
class Rule:
    """How outputs whose path matches may differ: floats by ``tolerance``, relative or, below 1, absolute.

    Where they are ``summed`` it bounds the sum of the differences of a column of floats, each of which may be tiny.
    Columns and keys of JSON in ``left_out`` need not be the same, since libraries draw and search differently there.
    A folder that is compared as a ``whole`` holds Parquet of one table, whose rows are in any order, or a Zarr group.
    Where it is not ``compared`` the file must only be there.
    """

    pattern: str
    tolerance: float = 1e-9
    summed: bool = False
    left_out: tuple[str, ...] = ()
    whole: Literal["table", "group"] | None = None
    compared: bool = True


EXACT = Rule("*", 0.0)


def compare(found: Path, expected: Path, rules: Sequence[Rule]) -> dict[str, str]:
    """Return what differs in each output of a folder, nothing where it is the same; the first matching rule counts."""
    whole = {rule.pattern: rule for rule in rules if rule.whole}
    names = {
        name for name in (*_files(found), *_files(expected)) if not any(fnmatch(name, f"{top}/*") for top in whole)
    }
    paths = {**{name: _rule(name, rules) for name in sorted(names)}, **whole}
    return {name: _fault(found / name, expected / name, rule) for name, rule in paths.items()}


def _files(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not any(fnmatch(name, pattern) for pattern in NOT_COMPARED):
            yield name


def _rule(name: str, rules: Sequence[Rule]) -> Rule:
    return next((rule for rule in rules if fnmatch(name, rule.pattern)), EXACT)


def _fault(found: Path, expected: Path, rule: Rule) -> str:
    for path in (found, expected):
        if not path.exists():
            return f"{path} is missing"
    if not rule.compared or (found.is_file() and found.read_bytes() == expected.read_bytes()):
        return ""
    faults = list(_faults(found, expected, rule))
    return "; ".join(faults[:3]) + (f"; and {len(faults) - 3} more" if len(faults) > 3 else "")


def _faults(found: Path, expected: Path, rule: Rule) -> Iterator[str]:
    match rule.whole or expected.suffix:
        case "table":
            yield from table_faults(_data_set(found), _data_set(expected), rule)
        case "group":
            yield from _group_faults(found, expected, rule)
        case ".parquet":
            yield from table_faults(pq.read_table(found), pq.read_table(expected), rule)
        case ".csv":
            one, other = (pa.Table.from_pandas(pd.read_csv(path), preserve_index=False) for path in (found, expected))
            yield from table_faults(one, other, rule)
        case ".json":
            one, other = (_without(read_json(path), rule.left_out) for path in (found, expected))
            yield from differences(one, other, tolerance=rule.tolerance, path="")
        case _:
            yield "its bytes differ"


def table_faults(found: pa.Table, expected: pa.Table, rule: Rule = EXACT) -> Iterator[str]:
    """Yield where tables differ, a column at a time."""
    if not found.schema.equals(expected.schema) or len(found) != len(expected):
        one, other = (
            f"{len(each)} rows of {each.schema.to_string(show_schema_metadata=False)}" for each in (found, expected)
        )
        yield f"{one} instead of {other}".replace("\n", ", ")
        return
    for name in expected.column_names:
        if name not in rule.left_out:
            one, other = (table[name].combine_chunks() for table in (found, expected))
            yield from (f"{name}: {fault}" for fault in _column_faults(one, other, rule))


def _column_faults(found: Any, expected: Any, rule: Rule) -> Iterator[str]:
    if pa.types.is_list(expected.type) and found.value_lengths().equals(expected.value_lengths()):
        yield from _column_faults(found.flatten(), expected.flatten(), rule)
    elif pa.types.is_floating(expected.type) and found.is_valid().equals(expected.is_valid()):
        one, other = (each.to_numpy(zero_copy_only=False) for each in (found, expected))
        yield from _array_faults(one, other, rule)
    elif not found.equals(expected):
        yield "values or nulls differ"


def _array_faults(found: Any, expected: Any, rule: Rule) -> Iterator[str]:
    if rule.summed:
        apart = np.where(np.isnan(found) & np.isnan(expected), 0, np.abs(found - expected))
        if not apart.sum() <= rule.tolerance:
            yield f"the differences add up to {apart.sum():.3g}"
        return
    close = np.isclose(found, expected, rtol=rule.tolerance, atol=rule.tolerance, equal_nan=True)
    if not close.all():
        yield f"{int((~close).sum())} of {close.size} differ, by up to {np.nanmax(np.abs(found - expected)):.3g}"


def _group_faults(found: Path, expected: Path, rule: Rule) -> Iterator[str]:
    import zarr

    groups: list[Any] = [zarr.open_group(path, mode="r") for path in (found, expected)]
    for name in sorted({name for group in groups for name in group.array_keys()}):
        mine, theirs = (np.asarray(group[name][...]) if name in group else np.empty(0) for group in groups)
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            yield f"{name} is {mine.dtype} {mine.shape} instead of {theirs.dtype} {theirs.shape}"
        elif theirs.dtype.kind == "f":
            yield from (f"{name}: {fault}" for fault in _array_faults(mine, theirs, rule))
        elif not np.array_equal(mine, theirs):
            yield f"{name}: values differ"


def _data_set(folder: Path) -> pa.Table:
    """Return all rows of the files of a folder, in an order that the values determine."""
    table = dataset.dataset(sorted(map(str, folder.rglob("*.parquet"))), partitioning=None).to_table()
    keys = [(field.name, "ascending") for field in table.schema if not pa.types.is_nested(field.type)]
    return table.sort_by(keys)


def _without(value: JsonValue, names: Sequence[str]) -> JsonValue:
    if isinstance(value, dict):
        return {key: _without(each, names) for key, each in value.items() if key not in names}
    return [_without(each, names) for each in value] if isinstance(value, list) else value
