"""Frames that behave as cuDF's do where cuDF's differ from pandas', computed by pandas.

They are pandas' own to pandas and to Dask, which know nothing of them. To our source they refuse what cuDF refuses:
iterating, copying to the host without a word, methods that it lacks. What our source asks of them is recorded, to be
compared with what cuDF accepts. What cuDF does otherwise than pandas, they do: groups that are not sorted, and the rows
of a join, come in another order; of a CSV file, integers may be null, and what looks like times is times. What Dask
itself asks of cuDF they do not check.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import dask.dataframe as dd
import numpy as np
import numpy.typing as npt
import pandas as pd
from dask.dataframe import get_collection_type
from dask.dataframe.backends import DataFrameBackendEntrypoint
from dask.dataframe.dispatch import meta_nonempty

from tests.contract.device_array import DeviceArray, is_our_source, record, wrap

# Methods that copy one element at a time, which cuDF has in name only.
UNSUPPORTED = frozenset({"iterrows", "itertuples", "tolist"})


def is_asked_by_us() -> bool:
    """Tell whether our source is what called the function that asks."""
    return is_our_source(sys._getframe(2).f_code.co_filename)


class Watched:
    """An object of which our source asks only what an object of RAPIDS has: the methods of ``NAMESPACE``."""

    NAMESPACE = ""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name.startswith("_") or not is_asked_by_us() or name in super().__getattribute__("_own_names")():
            return value
        return asked(super().__getattribute__("NAMESPACE"), name, value)

    def _own_names(self) -> tuple[str, ...]:
        """Return the attributes that are not methods: columns."""
        return ()


class OnDevice(Watched):
    """A frame or series."""

    def __array__(self, *arguments: Any, **keywords: Any) -> npt.NDArray[Any]:
        if is_asked_by_us():
            raise TypeError("implicit copy to the host: use to_numpy")
        found: npt.NDArray[Any] = super().__array__(*arguments, **keywords)  # type: ignore[misc]
        return found

    def __iter__(self) -> Any:
        if is_asked_by_us():
            raise TypeError("iterating what is on the device copies one element at a time: use to_numpy")
        return super().__iter__()  # type: ignore[misc]


class DeviceSeries(OnDevice, pd.Series):
    """A column."""

    NAMESPACE = "cudf.Series"

    @property
    def _constructor(self) -> Any:
        return DeviceSeries

    @property
    def _constructor_expanddim(self) -> Any:
        return DeviceFrame


class DeviceFrame(OnDevice, pd.DataFrame):
    """A table."""

    NAMESPACE = "cudf.DataFrame"

    @property
    def _constructor(self) -> Any:
        return DeviceFrame

    @property
    def _constructor_sliced(self) -> Any:
        return DeviceSeries

    def _own_names(self) -> tuple[str, ...]:
        return tuple(map(str, pd.DataFrame.__getattribute__(self, "columns")))


class DeviceIndex:
    """The labels of rows, or groups; pandas allows no classes of others here."""

    def __init__(self, namespace: str, of_pandas: Any) -> None:
        self._namespace, self._of_pandas = namespace, of_pandas

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return asked(self._namespace, name, getattr(self._of_pandas, name))

    def __len__(self) -> int:
        return len(self._of_pandas)

    def __iter__(self) -> NoReturn:
        raise TypeError("iterating what is on the device copies one element at a time: use to_numpy")

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("implicit copy to the host: use to_numpy")


class DaskFrame(Watched, dd.DataFrame):
    """A DataFrame of Dask whose partitions are frames of the device."""

    NAMESPACE = "dask_cudf.DataFrame"

    def _own_names(self) -> tuple[str, ...]:
        return tuple(map(str, dd.DataFrame.__getattribute__(self, "columns")))


class DaskSeries(Watched, dd.Series):
    """A Series of Dask whose partitions are series of the device."""

    NAMESPACE = "dask_cudf.Series"


get_collection_type.register(DeviceFrame, lambda _: DaskFrame)
get_collection_type.register(DeviceSeries, lambda _: DaskSeries)
# Dask tries operations on rows that it makes up, to see of what kind the result is.
meta_nonempty.register(DeviceFrame, lambda meta: on_device(meta_nonempty.dispatch(pd.DataFrame)(meta)))
meta_nonempty.register(DeviceSeries, lambda meta: on_device(meta_nonempty.dispatch(pd.Series)(meta)))


def asked(namespace: str, name: str, value: Any) -> Any:
    """Return an attribute that our source asks for, or what calls the method and records the call."""
    full_name = f"{namespace}.{name}"
    if name in UNSUPPORTED:
        raise TypeError(f"cuDF has no {full_name}: use to_numpy")
    if not callable(value):
        record(full_name, used=True)
        return DeviceIndex("cudf.Index", value) if isinstance(value, pd.Index) else on_device(value)

    def method(*arguments: Any, **keywords: Any) -> Any:
        record(full_name, len(arguments), tuple(keywords))
        called: Callable[..., Any] = AS_CUDF.get(full_name, _plainly)
        return called(value, *arguments, **keywords)

    return method


def on_device(value: Any) -> Any:
    """Return what pandas returned as cuDF would: frames, columns and arrays of the device."""
    if isinstance(value, pd.DataFrame) and not isinstance(value, DeviceFrame):
        return DeviceFrame(value)
    if isinstance(value, pd.Series) and not isinstance(value, DeviceSeries):
        return DeviceSeries(value)
    return wrap(value) if isinstance(value, np.ndarray) else value


def in_another_order(table: Any) -> Any:
    """Return a table with its rows in another order than pandas'."""
    return table.take(np.random.default_rng(len(table)).permutation(len(table)))


def _plainly(method: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    found = method(*arguments, **keywords)
    return found if isinstance(found, np.ndarray) else on_device(found)


def _merged(method: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    return in_another_order(method(*arguments, **keywords))


def _grouped(method: Callable[..., Any], *arguments: Any, sort: bool = False, **keywords: Any) -> Any:
    return Groups(method(*arguments, sort=sort, **keywords), is_sorted=sort)


class Groups(DeviceIndex):
    """Groups of rows, in no order unless they were sorted."""

    def __init__(self, of_pandas: Any, *, is_sorted: bool) -> None:
        super().__init__("cudf.DataFrame.groupby", of_pandas)
        self._is_sorted = is_sorted

    def __getattr__(self, name: str) -> Any:
        method = super().__getattr__(name)

        def aggregated(*arguments: Any, **keywords: Any) -> Any:
            found = method(*arguments, **keywords)
            return found if self._is_sorted else in_another_order(found)

        return aggregated


AS_CUDF: Mapping[str, Callable[..., Any]] = {"cudf.DataFrame.merge": _merged, "cudf.DataFrame.groupby": _grouped}


class Frames(ModuleType):
    """pandas as far as it is called by names of cuDF, taking arrays of the device and giving frames of it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        function: Callable[..., Any] = OF_CUDF[name] if name in OF_CUDF else getattr(pd, name)

        def called(*arguments: Any, **keywords: Any) -> Any:
            record(f"cudf.{name}", len(arguments), tuple(keywords))
            return on_device(function(*arguments, **keywords))

        return called

    def __reduce__(self) -> NoReturn:
        raise TypeError("a module cannot be pickled: ask the device for it where it is used")


def _frame(columns: Mapping[str, Any]) -> DeviceFrame:
    host = {name: each.on_host if isinstance(each, DeviceArray) else each for name, each in columns.items()}
    return DeviceFrame(host)


def _read_csv(path: Path | str, *, byte_range: tuple[int, int] | None = None, **options: Any) -> pd.DataFrame:
    """Read a file, or the lines that begin within a range of it: integers may be null, and times are times."""
    data = Path(path).read_bytes()
    if byte_range is not None:
        start, stop = byte_range[0], byte_range[0] + byte_range[1]
        # A line that begins right after another one ends is within the range of its first byte.
        first = 0 if start == 0 else data.find(b"\n", start - 1) + 1 or len(data)
        last = len(data) if stop >= len(data) else data.find(b"\n", stop - 1) + 1 or len(data)
        data = data[first:last]
    table: pd.DataFrame = pd.read_csv(io.BytesIO(data), dtype_backend="numpy_nullable", **options)
    for name in table.columns[[pd.api.types.is_string_dtype(each) for each in table.dtypes]]:
        times = pd.to_datetime(table[name], format="%Y-%m-%d %H:%M:%S", errors="coerce")
        if times.notna().all() and name not in options.get("dtype", {}):
            table[name] = times.astype("datetime64[ns]")
    return table


OF_CUDF: Mapping[str, Callable[..., Any]] = {"DataFrame": _frame, "read_csv": _read_csv}
CUDF = Frames("cudf")


class CudfBackend(DataFrameBackendEntrypoint):
    """Stands for the backend of dask_cudf, which reads ranges of files by cuDF's `read_csv`."""

    @staticmethod
    def read_csv(urlpath: Any, **options: Any) -> Any:
        """Return a Dask DataFrame of the files of a list; what else than the block's size is given is given to cuDF."""
        blocksize: int = options.pop("blocksize")
        record("cudf.read_csv", 1, tuple(options))
        names = list(_read_csv(urlpath[0], byte_range=(0, blocksize)).columns)
        ranges = [(file, start) for file in urlpath for start in range(0, Path(file).stat().st_size, blocksize)]

        def part(of: tuple[str, int]) -> Any:
            file, start = of
            middle = {"names": names, "header": None} if start else {}
            return on_device(_read_csv(file, byte_range=(start, blocksize), **options, **middle))

        return dd.from_map(part, ranges, meta=part(ranges[0]).iloc[:0])
