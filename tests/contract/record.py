"""Writes `rapids-26.10.json`: the calls that RAPIDS accepts, read from the installed packages; it needs no GPU.

    make .venv-rapids/.gpu && .venv-rapids/bin/python -m tests.contract.record

Each public name of the namespaces below is a key. Its value is the signature of a callable, with ``...`` for defaults,
`CALLABLE` where the package does not tell the signature, or `VALUE` for what is not called.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from importlib import import_module, metadata
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from tests.contract.signatures import CALLABLE, RECORDED, VALUE, parse

DISTRIBUTIONS = (
    "cudf-cu13", "cugraph-cu13", "cuml-cu13", "cupy-cuda13x", "dask-cuda", "dask-cudf-cu13", "nvforest-cu13",
    "pylibcugraph-cu13", "rmm-cu13",
)  # fmt: skip
# Modules and classes whose public names are recorded, by the name under which code reaches them, and where that is no
# path where they lie. `cupy.random` lists its `Generator` only from when that was asked for.
_NAMES = """
cudf cudf.DataFrame cudf.Series cudf.core.series.TimedeltaProperties cudf.Index cugraph
cugraph.Graph cugraph.dask cugraph.dask.comms.comms cuml.ensemble cuml.ensemble.RandomForestRegressor cuml.linear_model
cuml.linear_model.LogisticRegression cuml.linear_model.Ridge cuml.manifold cuml.manifold.UMAP cupy cupy.cuda
cupy.cuda.runtime cupy.linalg cupy.ndarray cupy.random.Generator cupy.random cupy.random.RandomState cupy.ufunc cupyx
cupyx.scipy.sparse cupyx.scipy.sparse.csr_matrix dask_cuda dask_cudf.DataFrame dask_cudf.Series nvforest
nvforest.GPUForestInferenceRegressor pylibcugraph pynvml rmm.allocators.cupy rmm.mr rmm.mr.StatisticsResourceAdaptor
rmm.mr.UpstreamResourceAdaptor
"""
NAMESPACES = {
    **{name: name for name in _NAMES.split()},
    "cudf.DataFrame.groupby": "cudf.core.groupby.groupby:DataFrameGroupBy",
    "cudf.Series.groupby": "cudf.core.groupby.groupby:SeriesGroupBy",
    "cudf.Series.dt": "cudf.core.series:DatetimeProperties",
    "cudf.Series.str": "cudf.core.accessors.string:StringMethods",
    "cudf.Series.cat": "cudf.core.accessors.categorical:CategoricalAccessor",
}
# What hands keywords on to a base class, or to a function: the keywords of both are its own, and no others.
FORWARDS = {
    "cudf.DataFrame.to_parquet": "cudf.io.parquet:to_parquet",
    "dask_cuda.LocalCUDACluster": "distributed:LocalCluster",
}
COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
# What frames are asked by Python's operators, and by functions of Python and NumPy that take any object.
OPERATORS = (
    *COMPARISONS,
    *(f"__{prefix}{name}__" for name in _ARITHMETIC for prefix in ("", "r")),
    *(f"__{name}__" for name in ("neg", "invert", "abs", "getitem", "setitem", "iter", "contains", "len", "bool")),
    *(f"__{name}__" for name in ("float", "int", "array", "array_ufunc")),
)
# What a fitted estimator has, as its documentation lists it: "    coef_ : array, shape (n_features)".
_ATTRIBUTE = re.compile(r"^\s*(\w+_)\s*:", re.MULTILINE)
_PUBLIC = re.compile(r"[^_]")
# The operators of arrays are called like methods; of pynvml and of cuGraph, which have functions by the hundred, and of
# Dask's frames, most of which are Dask's own, what is used.
_USED = {
    "pynvml": re.compile(r"nvml(Init|Shutdown|SystemGetDriverVersion)$"),
    "cupy.ndarray": re.compile(r"__[a-z]|[^_]"),
    **dict.fromkeys(("cudf.DataFrame", "cudf.Series", "cudf.Index"), re.compile(rf"({'|'.join(OPERATORS)})$|[^_]")),
    **dict.fromkeys(("cudf.DataFrame.groupby", "cudf.Series.groupby"), re.compile("__getitem__$|[^_]")),
    "cugraph": re.compile(r"(Graph|pagerank|leiden|louvain)$"),
    "cugraph.Graph": re.compile(r"from_(cudf|dask_cudf)_edgelist$"),
    "cugraph.dask": re.compile(r"(pagerank|leiden|louvain|weakly_connected_components)$"),
    "cugraph.dask.comms.comms": re.compile(r"(initialize|destroy)$"),
    "cupyx.scipy.sparse": re.compile(r"csr_matrix$"),
    "cupyx.scipy.sparse.csr_matrix": re.compile(r"(data|indices|indptr|tocsr|transpose)$"),
    "dask_cudf.DataFrame": re.compile(r"(compute|groupby|merge|persist|to_delayed)$"),
    "dask_cudf.Series": re.compile(r"(compute|sum)$"),
    "pylibcugraph": re.compile(
        r"(GraphProperties|ResourceHandle|SGGraph|leiden|louvain|personalized_pagerank|weakly_connected_components)$"
    ),
    "rmm.allocators.cupy": re.compile(r"rmm_cupy_allocator$"),
}
# Cython writes the signature into the first line of the documentation: "ndarray.sort(self, int axis=-1, kind=None)".
_DOCUMENTED = re.compile(r"^[\w.]+\((?P<parameters>.*)\)(?: *->.*)?$")


def describe(name: str) -> str | None:
    """Return what the packages say of a name: a signature, `CALLABLE`, `VALUE`, or None where it does not exist."""
    namespace, _, attribute = name.rpartition(".")
    owner = resolve_name(NAMESPACES[namespace])
    if not hasattr(owner, attribute):
        return VALUE if attribute in _attributes(owner) else None
    value = getattr(owner, attribute)
    if not callable(value):
        return VALUE
    signature = _forwarded(value, resolve_name(FORWARDS[name])) if name in FORWARDS else _signature(value)
    if signature is None:
        return CALLABLE
    return text(_without_self(signature) if _is_method(owner, attribute) else signature)


def text(signature: inspect.Signature) -> str:
    """Return a signature without annotations, its defaults as ``...``, which is how it is stored."""
    bare = [
        parameter.replace(
            annotation=parameter.empty, default=parameter.empty if parameter.default is parameter.empty else ...
        )
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty)).replace("Ellipsis", "...")


def names() -> Iterator[str]:
    """Yield the names of all namespaces that a program may use; of arrays the operators, too."""
    for namespace, location in NAMESPACES.items():
        owner = resolve_name(location)
        used = _USED.get(namespace, _PUBLIC)
        for name in sorted({*filter(used.match, dir(owner)), *_attributes(owner)}):
            # Which submodules there are depends on what was imported before.
            if not inspect.ismodule(getattr(owner, name, None)):
                yield f"{namespace}.{name}"


def recording() -> dict[str, Any]:
    """Return the content of the file."""
    packages = {name: metadata.version(name) for name in DISTRIBUTIONS}
    calls = {name: found for name in names() if (found := describe(name)) is not None}
    return {"rapids": "26.10", "packages": packages, "calls": calls}


def _attributes(owner: Any) -> list[str]:
    """Return the attributes that objects of a class have and the class has not: of estimators and sparse matrices."""
    if not inspect.isclass(owner):
        return []
    if owner.__name__ == "csr_matrix":
        return ["data", "indices", "indptr"]
    return _ATTRIBUTE.findall(owner.__doc__ or "")


def _signature(value: Any) -> inspect.Signature | None:
    if type(value).__name__ == "ufunc" and isinstance(value.nin, int):
        operands = [f"x{number}" for number in range(1, value.nin + 1)]
        return parse(f"({', '.join(operands)}, /, out=None, *, dtype=None)")
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return _documented(value)


def _documented(value: Any) -> inspect.Signature | None:
    if inspect.isclass(value) and value.__module__.startswith("pylibcugraph."):
        return _constructor(value)
    lines = (value.__doc__ or "").strip().splitlines()
    found = _DOCUMENTED.match(lines[0]) if lines else None
    if found is None or "..." in found["parameters"]:
        return None
    try:
        return parse(f"({', '.join(map(_untyped, _split(found['parameters'])))})")
    except SyntaxError:
        return None


def _constructor(value: type) -> inspect.Signature | None:
    """Read how a class of Cython is called from its source, which pylibcugraph ships beside the module."""
    module = Path(import_module(value.__module__).__file__ or "")
    source = module.with_name(f"{value.__module__.rpartition('.')[2]}.pyx").read_text()
    found = re.search(
        rf"^cdef class {value.__name__}\b.*?def __cinit__\(self,?(.*?)\):", source, re.DOTALL | re.MULTILINE
    )
    return parse(f"({', '.join(map(_untyped, _split(found[1])))})") if found else None


def _split(parameters: str) -> list[str]:
    """Split at the commas that are outside brackets."""
    return [each.strip() for each in re.split(r",(?![^\[({]*[\])}])", parameters) if each.strip()]


def _untyped(parameter: str) -> str:
    """Return a parameter as Python writes it: Cython and type hints put types around the name."""
    name, equals, _ = parameter.partition("=")
    bare = name.split(":")[0].strip().split(" ")[-1]
    return f"{bare}=None" if equals else bare


def _forwarded(value: Any, base: Any) -> inspect.Signature:
    own, inherited = inspect.signature(value), inspect.signature(base)
    named = {
        parameter.name: parameter for parameter in own.parameters.values() if parameter.kind != parameter.VAR_KEYWORD
    }
    more = [
        parameter.replace(kind=parameter.KEYWORD_ONLY)
        for parameter in inherited.parameters.values()
        if parameter.default is not parameter.empty and parameter.name not in named
    ]
    return own.replace(parameters=[*named.values(), *more])


def _is_method(owner: Any, attribute: str) -> bool:
    """Tell whether the first parameter is the object itself."""
    if not inspect.isclass(owner):
        return False
    return not isinstance(inspect.getattr_static(owner, attribute), (classmethod, staticmethod, type))


def _without_self(signature: inspect.Signature) -> inspect.Signature:
    parameters = list(signature.parameters.values())
    return signature.replace(parameters=parameters[1:]) if parameters else signature


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(recording(), indent=0) + "\n")
