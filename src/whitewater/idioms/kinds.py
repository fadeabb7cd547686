"""What an expression holds, as far as a reader of one function can tell: a frame, a column, an array, or not known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Form = Literal["frame", "column", "array", "groups", "number", "path"]

# The modules whose functions make frames and arrays; `xp` and `frames` are those of a device, which may be a GPU's.
FRAME_MODULES = {
    "pandas": "pandas",
    "cudf": "cudf",
    "dask.dataframe": "dask",
    "dask_cudf": "dask",
    "frames": "device",
}
ARRAY_MODULES = {"numpy": "numpy", "cupy": "cupy", "dask.array": "dask", "xp": "device"}

_NOT_ONE_FRAME = {"read_html", "read_pickle"}
_FRAME_MAKERS = {"DataFrame", "concat", "merge", "from_pandas", "from_delayed", "from_map", "pivot_table", "melt"}
# A reader that is given one of these returns blocks, or a dictionary.
_OF_SEVERAL = {"chunksize", "iterator", "sheet_name"}

_LIKE = {"zeros_like", "ones_like", "empty_like", "full_like"}
SHAPED = {"zeros", "ones", "empty", "full"}
LINES = {"arange", "linspace", "logspace", "flatnonzero", "ravel", "bincount", "fromiter", "hanning", "searchsorted"}
ELEMENTWISE = {
    "abs", "absolute", "sqrt", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "tanh",
    "where", "clip", "sign", "floor", "ceil", "rint", "round", "isnan", "isfinite", "square", "maximum", "minimum",
    "cumsum", "cumprod", "sort", "argsort", "asarray", "ascontiguousarray", "array", "copy",
    "asnumpy", "asfortranarray",
} | _LIKE  # fmt: skip
REDUCTIONS = {"sum", "mean", "max", "min", "prod", "std", "var", "any", "all", "dot", "vdot", "count_nonzero", "norm"}

_SAME_FRAME = {
    "abs", "append", "assign", "astype", "bfill", "clip", "copy", "cumsum", "diff", "drop", "drop_duplicates",
    "dropna", "ffill", "fillna", "head", "join", "map_partitions", "mask", "merge", "nlargest", "nsmallest",
    "persist", "query", "rename", "repartition", "replace", "reset_index", "round", "sample", "set_index", "shift",
    "sort_index", "sort_values", "tail", "where",
}  # fmt: skip
_MASKS = {"isna", "isnull", "notna", "notnull", "isin", "between", "eq", "ne", "lt", "le", "gt", "ge"}
_SAME_ARRAY = {"astype", "copy", "clip", "round", "cumsum", "cumprod", "persist", "rechunk", "conj"}
_WINDOWS = {"resample", "rolling", "expanding", "ewm"}
# What a frame has besides its columns: `df.shape` is no column called "shape".
NOT_COLUMNS = {
    "T", "at", "attrs", "axes", "columns", "divisions", "dtypes", "empty", "flags", "iat", "iloc", "index",
    "known_divisions", "loc", "ndim", "npartitions", "partitions", "plot", "shape", "size", "style", "values",
    "values_host",
}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """What an expression holds.

    Attributes
    ----------
    form
        ``frame``, ``column`` (a series), ``array``, ``groups`` (of a group-by, or windows), ``number`` or ``path``.
    library
        Whose: ``pandas``, ``cudf``, ``dask``, ``numpy``, ``cupy``, or ``device`` (that of the device, perhaps a GPU's);
        empty where it is not known.
    dimensions
        Of an array, where they are known.
    """

    form: Form
    library: str = ""
    dimensions: int | None = None

    @property
    def on_device(self) -> bool:
        """Whether the values are, or may be, in a GPU's memory."""
        return self.library in {"cudf", "cupy", "device"}


def joined(first: Kind, second: Kind) -> Kind | None:
    """Return what is common to two kinds, or None where they are of different forms."""
    if first.form != second.form:
        return None
    return Kind(
        first.form,
        first.library if first.library == second.library else "",
        first.dimensions if first.dimensions == second.dimensions else None,
    )


def of_frame_function(library: str, function: str, keywords: set[str]) -> Kind | None:
    """Return what a function of pandas, cuDF or Dask DataFrame returns."""
    if function == "Series":
        return Kind("column", library)
    is_reader = function.startswith("read_") and function not in _NOT_ONE_FRAME and not keywords & _OF_SEVERAL
    return Kind("frame", library) if is_reader or function in _FRAME_MAKERS else None


def of_array_function(library: str, function: str, first: int | None) -> Kind | None:
    """Return what a function of NumPy, CuPy or Dask Array returns; `first` are the dimensions of its first argument."""
    if function == "asnumpy":
        return Kind("array", "numpy", first)
    if function in LINES:
        return Kind("array", library, 1)
    return Kind("array", library, first) if function in SHAPED or function in ELEMENTWISE else None


def of_method(receiver: Kind, method: str) -> Kind | None:
    """Return what a method of a frame, column or array returns."""
    if receiver.form in {"frame", "column"}:
        return _of_table_method(receiver, method)
    if receiver.form != "array":
        return None
    if method in {"ravel", "flatten"}:
        return replace(receiver, dimensions=1)
    if method == "get" and receiver.library == "cupy":
        return replace(receiver, library="numpy")
    return receiver if method in _SAME_ARRAY else None


def _of_table_method(receiver: Kind, method: str) -> Kind | None:
    if method in _SAME_FRAME or (method in _MASKS):
        return receiver
    if method in _WINDOWS:
        return Kind("groups", receiver.library)
    if method in {"compute", "to_pandas"}:
        return replace(receiver, library="pandas")
    if method == "to_frame":
        return replace(receiver, form="frame")
    return values_of(receiver) if method in {"to_numpy", "to_cupy"} else None


def values_of(receiver: Kind) -> Kind:
    """Return the array of a frame's or column's values."""
    return Kind("array", receiver.library, 2 if receiver.form == "frame" else 1)
