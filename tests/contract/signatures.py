"""What RAPIDS accepts, whether a call is among it, and what fails there all the same or gives something else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, Signature, signature
from pathlib import Path

CALLABLE, VALUE = "callable", "value"
NOT_INSTALLED = "RAPIDS is not installed here; `make test-contract-rapids` installs it and asks it"
RECORDED = Path(__file__).with_name("rapids-26.10.json")
# Keywords of these are names of columns.
NAMES_COLUMNS = frozenset({"cudf.DataFrame.assign", "cudf.DataFrame.groupby.agg"})

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


@dataclass(frozen=True, order=True)
class Call:
    """A call of a function or method by its full name; of a method without the object. Not a call: ``used`` is true."""

    name: str
    positional: int = 0
    keywords: tuple[str, ...] = ()
    used: bool = False

    def __str__(self) -> str:
        if self.used:
            return self.name
        arguments = ["_"] * self.positional + [f"{keyword}=_" for keyword in self.keywords]
        return f"{self.name}({', '.join(arguments)})"


@cache
def recorded() -> dict[str, str]:
    """Return what `tests.contract.record` says of each name of RAPIDS."""
    calls: dict[str, str] = json.loads(RECORDED.read_text())["calls"]
    return calls


def problem(call: Call) -> str | None:
    """Say why RAPIDS refuses a call, or return None: it is there, and its parameters take the arguments."""
    found = recorded().get(call.name)
    if found is None:
        return f"RAPIDS has no {call.name}, or tests/contract/record.py does not know of it"
    if call.used or found == CALLABLE:
        return None
    if found == VALUE:
        return f"{call.name} cannot be called"
    accepted = parse(found)
    try:
        keywords = () if call.name in NAMES_COLUMNS else call.keywords
        bound = accepted.bind(*[None] * call.positional, **dict.fromkeys(keywords))
    except TypeError as error:
        return f"{call.name}{found}: {error}"
    # What **keywords takes in is passed on to who knows where, so it proves nothing.
    swallowed = [bound.arguments[name] for name, each in accepted.parameters.items()
                 if each.kind == Parameter.VAR_KEYWORD and name in bound.arguments]  # fmt: skip
    return f"{call.name}{found}: no parameter {', '.join(swallowed[0])}" if swallowed else None


def parse(text: str) -> Signature:
    """Return the signature written as ``(a, /, b=..., *, c)``. Raises SyntaxError if it is not one of Python."""
    return signature(eval(f"lambda {text[1:-1]}: None"))  # noqa: S307, of our own file and of installed packages


def faults(calls: Mapping[Call, Sequence[str]]) -> list[str]:
    """Return the calls that RAPIDS refuses, and those that bind and yet fail or give something else, with why."""
    return [f"{', '.join(calls[call])}: {call}: {reason}" for call in sorted(calls) for reason in _reasons(call)]


def _reasons(call: Call) -> Iterator[str]:
    if refused := problem(call):
        yield refused
    if not call.used:
        yield from (why for (name, each), why in REFUSED.items() if name == call.name and each in call.keywords)
        yield from (f"without {each}: {why}" for (name, each), why in REQUIRED.items()
                    if name == call.name and each not in call.keywords)  # fmt: skip
        if call.name in ABSENT:
            yield ABSENT[call.name]
