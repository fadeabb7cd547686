"""Calls that bind to what RAPIDS has, and yet fail there or give something else than on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.contract.signatures import Call, problem

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


def faults(calls: Mapping[Call, Sequence[str]]) -> list[str]:
    """Return the calls that RAPIDS refuses, and those that bind and yet fail or give something else, with why."""
    found = []
    for call in sorted(calls):
        reasons = [refused] if (refused := problem(call)) else []
        if not call.used:
            reasons += [reason for (name, keyword), reason in REFUSED.items()
                        if call.name == name and keyword in call.keywords]  # fmt: skip
            reasons += [f"without {keyword}: {reason}" for (name, keyword), reason in REQUIRED.items()
                        if call.name == name and keyword not in call.keywords]  # fmt: skip
            reasons += [ABSENT[call.name]] if call.name in ABSENT else []
        found += [f"{', '.join(calls[call])}: {call}: {reason}" for reason in reasons]
    return found
