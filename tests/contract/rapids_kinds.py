"""What GPU code handles, as far as its source tells: names and objects of RAPIDS, and what calls of RAPIDS give."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from tests.contract.record import NAMESPACES

RAPIDS = frozenset(
    {"cudf", "cugraph", "cuml", "cupy", "cupyx", "dask_cuda", "nvforest", "pylibcudf", "pylibcugraph", "pynvml", "rmm"}
)


@dataclass(frozen=True)
class Name:
    """A module, function or class, by its full name."""

    path: str


@dataclass(frozen=True)
class Instance:
    """An object of a class of RAPIDS, by the name of the class among `tests.contract.record.NAMESPACES`."""

    of: str


@dataclass(frozen=True)
class Items:
    """A sequence or mapping whose elements are alike."""

    each: Kind


@dataclass(frozen=True)
class Several:
    """A tuple."""

    parts: tuple[Kind, ...]


@dataclass(frozen=True)
class Other:
    """An object of Python, NumPy, pyarrow or our own; or, unless ``known``, one that cannot be told."""

    known: bool = True


Kind = Name | Instance | Items | Several | Other
HOST, UNKNOWN = Other(), Other(known=False)
ARRAY, FRAME, SERIES = Instance("cupy.ndarray"), Instance("cudf.DataFrame"), Instance("cudf.Series")
PARTS, ROWS = Instance("dask_cudf.DataFrame"), Instance("cupyx.scipy.sparse.csr_matrix")
INDEX, GENOTYPES, COLUMN = Instance("cudf.Index"), Instance("Genotypes"), Instance("Column")

# What annotations of our own types mean in GPU code.
ANNOTATIONS: dict[str, Kind] = {
    "Any": UNKNOWN,
    "Array": ARRAY,
    "Block": Items(ARRAY),
    "Frame": FRAME,
    "Series": SERIES,
    "csr_matrix": ROWS,
    "Sequence[Array]": Items(ARRAY),
    "Array | Encoded": ARRAY,
    "Genotypes": GENOTYPES,
    **dict.fromkeys(("Column", "Numbers | Categories", "Numbers", "Categories", "Lists"), COLUMN),
    "tuple[Array, Array]": Items(ARRAY),
}
# Parameters of GPU functions that any object may be, by function and parameter.
PARAMETERS: dict[str, Kind] = {
    "gpu_mark_correlated.stops": HOST,
    "_from_series.series": SERIES,
}
# Functions of ours that take and return arrays of the host, though GPU code calls them.
ON_HOST = frozenset({"from_arrow", "_to_arrow", "_statistics"})
# Fields of our own objects; `Encoded` may stand where an array does.
FIELDS: dict[Kind, dict[str, Kind]] = {
    ARRAY: {"codes": ARRAY, "vocabulary": HOST},
    # The values of lists are a column, but asked for its arrays as if they were one.
    COLUMN: {"dictionary": HOST, **dict.fromkeys(("codes", "values", "valid", "offsets"), ARRAY)},
    GENOTYPES: {"codes": ARRAY, **dict.fromkeys(("samples", "ploidy", "packed", "variants", "columns"), HOST)},
}
# What calls give, and attributes hold. A call that is not listed gives what the last line for its namespace says.
GIVES: dict[str, Kind] = {
    "cudf.read_parquet": FRAME,
    "cudf.to_datetime": SERIES,
    "cudf.Series.to_cupy": ARRAY,
    "cudf.Series.factorize": Several((ARRAY, INDEX)),
    "cudf.Series.values": ARRAY,
    "cudf.Series.str": Instance("cudf.Series.str"),
    "cudf.Series.list": Instance("cudf.Series.list"),
    **dict.fromkeys((f"cudf.Series.{each}" for each in ("dtype", "to_arrow", "to_numpy", "to_pandas")), HOST),
    **dict.fromkeys((f"cudf.DataFrame.to_{each}" for each in ("arrow", "pandas", "parquet")), HOST),
    "cudf.Index.to_arrow": HOST,
    "cugraph.Graph.from_dask_cudf_edgelist": HOST,
    **dict.fromkeys((f"cugraph.dask.{each}" for each in ("leiden", "louvain", "pagerank")), Several((PARTS, HOST))),
    "cugraph.dask.weakly_connected_components": PARTS,
    "dask_cudf.DataFrame.compute": FRAME,
    "cupyx.scipy.sparse.csr_matrix": ROWS,
    **dict.fromkeys((f"cupyx.scipy.sparse.csr_matrix.{each}" for each in ("data", "indices", "indptr")), ARRAY),
    "cupyx.scipy.sparse.csr_matrix.": ROWS,
    "pylibcugraph.personalized_pagerank": Several((ARRAY, ARRAY, HOST)),
    "pylibcugraph.weakly_connected_components": Items(ARRAY),
    "pylibcugraph.": Items(ARRAY),
    "cupy.asnumpy": HOST,
    "cupy.nonzero": Items(ARRAY),
    "cupy.ndarray.dtype": HOST,
    "cupy.ndarray.shape": HOST,
    "cupy.ndarray.size": HOST,
    "dask_cuda.LocalCUDACluster": HOST,
    "nvforest.load_from_treelite_model": Instance("nvforest.GPUForestInferenceRegressor"),
    "rmm.mr.get_current_device_resource": Instance("rmm.mr.UpstreamResourceAdaptor"),
    "rmm.mr.UpstreamResourceAdaptor.get_upstream": Instance("rmm.mr.StatisticsResourceAdaptor"),
    "rmm.mr.StatisticsResourceAdaptor.allocation_counts": Instance("rmm.statistics.Statistics"),
    "rmm.statistics.Statistics.peak_bytes": HOST,
    "cudf.": UNKNOWN,
    "cudf.DataFrame.": FRAME,
    "cudf.DataFrame.groupby.": FRAME,
    "cudf.Series.": SERIES,
    "cudf.Series.str.": SERIES,
    "cudf.Series.list.": SERIES,
    "cudf.Index.": UNKNOWN,
    "cupy.": ARRAY,
    "cupy.ndarray.": ARRAY,
    "cupy.cuda.": HOST,
    "cupy.cuda.runtime.": HOST,
    "pynvml.": HOST,
    "rmm.statistics.": HOST,
}


def annotated(annotation: ast.expr | None) -> Kind:
    """Return what an annotation says of an object in GPU code."""
    text = ast.unparse(annotation).strip("'\"") if annotation else ""
    if text in NAMESPACES:
        return Instance(text)
    return ANNOTATIONS.get(text, HOST)


def is_rapids(name: Name) -> bool:
    """Tell whether a name is one of RAPIDS."""
    return name.path.split(".")[0] in RAPIDS


def element(kind: Kind) -> Kind:
    """Return what a loop over an object gives."""
    if isinstance(kind, Items):
        return kind.each
    if isinstance(kind, Several):
        return combined(kind.parts)
    return kind if kind in (UNKNOWN, ARRAY) else HOST


def combined(kinds: Sequence[Kind]) -> Kind:
    """Return what an operation on these gives: of the device, where one of them is."""
    for kind in kinds:
        if isinstance(kind, Instance):
            return kind
    return UNKNOWN if UNKNOWN in kinds else HOST
