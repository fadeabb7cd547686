"""Calls that bind to what RAPIDS has, and yet fail there or give something else than on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.contract.record import COMPARISONS
from tests.contract.signatures import Call

# Arguments with which a call binds and fails all the same, or gives something else than on the CPU.
REFUSED = {
    ("cudf.DataFrame.groupby", "as_index"): "other values than True are refused by dask_cudf",
    ("cudf.DataFrame.merge", "indicator"): "not implemented",
    ("cudf.DataFrame.merge", "validate"): "not implemented",
    ("cudf.DataFrame.sample", "random_state"): "CuPy's random streams are not NumPy's",
    ("cudf.DataFrame.sort_values", "key"): "not implemented",
    ("cudf.to_datetime", "errors"): "implemented for scalars only",
    ("dask_cuda.LocalCUDACluster", "rmm_pool_size"): "contradicts rmm_async",
}
# Arguments without which a call gives something else than on the CPU, or fails.
REQUIRED = {
    ("cudf.DataFrame.groupby", "sort"): "groups come in no order by default",
    ("cudf.DataFrame.merge", "how"): "rows come in no order: sort them by a unique key afterwards",
    ("cudf.read_csv", "dtype"): "types are guessed otherwise than by pandas",
    ("cudf.read_csv", "names"): "the header is not the file's own",
    ("cudf.read_parquet", "dataset_kwargs"): "folders' names become columns, and Hive's null among them fails",
    ("cudf.read_parquet", "use_pandas_metadata"): "an index is read that was not asked for",
    ("cudf.Series.str.replace", "regex"): "patterns are regular expressions by default, in pandas text",
    ("cudf.DataFrame.to_parquet", "index"): "an index would become a column",
    ("cudf.DataFrame.to_parquet", "force_nullable_schema"): "columns are required in files that have no null of them",
    ("dask_cuda.LocalCUDACluster", "host"): "workers would listen on all interfaces",
}
# What is there in name only, or gives something else.
ABSENT = {
    **dict.fromkeys(
        (f"cudf.{each}.{name}" for each in ("Series", "Index") for name in ("__iter__", "tolist", "to_list")),
        "copies one element at a time, and is refused",
    ),
    **dict.fromkeys(
        (f"cudf.{each}.__array__" for each in ("DataFrame", "Series", "Index")), "copies to the host, and is refused"
    ),
    **dict.fromkeys(("cudf.DataFrame.iterrows", "cudf.DataFrame.itertuples"), "goes through rows, and is refused"),
    **dict.fromkeys(
        ("cudf.DataFrame.apply", "cudf.DataFrame.map", "cudf.Series.apply"), "compiles a function of one value by Numba"
    ),
    "cudf.Series.hash_values": "other hashes than pandas'",
}

# What binds and runs on both, and gives something else in cuDF; docs/cudf.md says why each use of ours is safe.
COMPARED = tuple(f"cudf.Series.{name}" for name in (*COMPARISONS, "__and__", "__or__", "__xor__"))
DIFFERS = {
    **dict.fromkeys(COMPARED, "null where an operand is null"),
    "cudf.Series.where": "a null condition is neither true nor false",
    "cudf.Series.astype": "nulls stay null, whatever the type",
    "cudf.Series.fillna": "fills NaN and null alike, and keeps the type",
    "cudf.Series.isna": "true of NaN and of null",
    "cudf.Series.notna": "false of NaN and of null",
    "cudf.Series.map": "nulls, and what a dictionary lacks, are null; a function is compiled",
    "cudf.Series.sum": "of a column without values 0, of type int64 for booleans",
    "cudf.Series.values": "an array of CuPy; booleans with nulls are refused",
    "cudf.Series.str": "patterns are regular expressions of libcudf; null stays null",
    "cudf.Series.dt": "parts of a time are int16, and null where the time is",
    "cudf.Series.cat": "the code of a null is null, not -1",
    "cudf.DataFrame.__getitem__": "rows where a mask is null are left out, as where it is false",
    "cudf.DataFrame.groupby": "groups come in no order unless sort=True; NaN and null are two groups",
    "cudf.DataFrame.merge": "rows come in no order",
    "cudf.DataFrame.sort_values": "stable, whatever kind says; null is last, behind NaN",
    "cudf.DataFrame.drop_duplicates": "NaN and null are two values",
    "cudf.DataFrame.to_parquet": "a writer of its own: other bytes, the same rows",
    "cudf.concat": "columns of different types become the wider one; a column of nulls has no type of its own",
    "cudf.read_parquet": "names of directories become columns; integers with nulls stay integers",
    "cudf.to_datetime": "errors='coerce' is refused for columns",
}


def known_gaps(calls: Mapping[Call, Sequence[str]]) -> list[str]:
    """Return the calls that bind, and yet fail or give something else than on the CPU."""
    found = []
    for call, places in calls.items():
        if call.used:
            continue
        found += [f"{places}: {call}: {reason}" for (name, keyword), reason in REFUSED.items()
                  if call.name == name and keyword in call.keywords]  # fmt: skip
        found += [f"{places}: {call} without {keyword}: {reason}" for (name, keyword), reason in REQUIRED.items()
                  if call.name == name and keyword not in call.keywords]  # fmt: skip
        found += [f"{places}: {call}: {reason}" for name, reason in ABSENT.items() if call.name == name]
    return found
