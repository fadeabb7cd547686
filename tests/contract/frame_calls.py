"""Records what our source asks of data frames while it runs on pandas, by the names that cuDF has for it.

`frames_as_cudf` watches pandas: frames, columns, groups, accessors, and the module that ``backend_module("pandas")``
gives. A call is recorded with its arguments if a module of ours makes it, looking one frame up; what Dask and pandas
ask of pandas is theirs to answer for. Two things are done as cuDF does them: a comparison with a null is null, and
groups and the rows of joins come in another order, so that a result which relies on pandas' way differs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from inspect import isroutine
from pathlib import Path
from types import ModuleType
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from pandas.core.arrays.categorical import CategoricalAccessor
from pandas.core.groupby import DataFrameGroupBy, GroupBy, SeriesGroupBy
from pandas.core.indexes.accessors import DatetimeProperties, TimedeltaProperties
from pandas.core.strings.accessor import StringMethods

from tests.contract.device_array import DeviceArray, record, recording, unwrap, wrap
from tests.contract.record import COMPARISONS, OPERATORS
from tests.contract.signatures import Call
from whitewater.tables import with_dask

SOURCE = str(Path(__file__).parents[2] / "src")
# Folders and modules of ours whose frames are the host's: small tables of results, and simulated data.
ON_HOST = ("steps", "synthetic", "figures", "figures.py", "tip_tables.py", "genotypes", "genomics", "lazy_pandas.py")
# Classes of pandas, and maybe of Dask, and the namespace of `tests.contract.record` that has what cuDF's have.
CLASSES: dict[type, str] = {
    pd.DataFrame: "cudf.DataFrame",
    pd.Series: "cudf.Series",
    pd.Index: "cudf.Index",
    DataFrameGroupBy: "cudf.DataFrame.groupby",
    SeriesGroupBy: "cudf.Series.groupby",
    StringMethods: "cudf.Series.str",
    DatetimeProperties: "cudf.Series.dt",
    TimedeltaProperties: "cudf.core.series.TimedeltaProperties",
    CategoricalAccessor: "cudf.Series.cat",
}
GROUPED = frozenset({"cudf.DataFrame.groupby", "cudf.Series.groupby"})
# Of these, cuDF gives null where an operand is; pandas gives False, and combines nulls by the logic of three values.
NULL_OF_NULL = frozenset({*COMPARISONS, "__and__", "__or__", "__xor__"})


# The properties of a column that give arrays of the device.
AS_ARRAYS: dict[str, bool] = {}


def _plain(value: Any) -> Any:
    return unwrap(value) if isinstance(value, DeviceArray) else value


@contextmanager
def frames_as_cudf(*, arrays: bool = False) -> Iterator[dict[Call, list[str]]]:
    """Yield a mapping that fills with the calls that our source makes of frames meanwhile, and the lines that do.

    With ``arrays`` those of columns are `DeviceArray`, which frames take, too; the device is to be `StrictDevice`.
    """
    with pytest.MonkeyPatch.context() as patch, recording() as calls:
        for watched, namespace in CLASSES.items():
            plain: Any = watched.__getattribute__
            patch.setattr(watched, "__getattribute__", _attribute(plain, namespace), raising=False)
            for name in (each for each in OPERATORS if hasattr(watched, each) and namespace.startswith("cudf.")):
                patch.setattr(watched, name, _operator(getattr(watched, name), f"{namespace}.{name}"), raising=False)
        for made in (pd.DataFrame, pd.Series):
            patch.setattr(made, "__init__", _operator(made.__init__, f"cudf.{made.__name__}"))
        patch.setattr(with_dask, "pd", Backend("pandas"))
        if arrays:
            patch.setitem(AS_ARRAYS, "cudf.Series.values", True)
        yield calls


class Backend(ModuleType):
    """pandas as the library of frames that our source gets by its name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = pd.__spec__  # which importlib asks for

    def __getattr__(self, name: str) -> Any:
        value = getattr(pd, name)
        if name.startswith("_") or not is_ours(sys._getframe(1).f_code.co_filename):
            return value
        return value if value in CLASSES else _asked(f"cudf.{name}", value, self)  # constructors tell of themselves


@cache
def is_ours(file: str) -> bool:
    """Tell whether a file is of our source that may see frames of a GPU."""
    return file.startswith(SOURCE) and not {*Path(file).parts} & {*ON_HOST}


def _attribute(plain: Callable[[Any, str], Any], namespace: str) -> Callable[[Any, str], Any]:
    """Return what gets an attribute of an object, and records it where our source asks."""

    def attribute(self: Any, name: str) -> Any:
        value = plain(self, name)
        if name.startswith("_") or not is_ours(sys._getframe(1).f_code.co_filename):
            return value
        if isinstance(self, pd.DataFrame) and name == "columns":
            return value.tolist()
        if isinstance(self, pd.DataFrame | dd.DataFrame) and name in plain(self, "columns"):
            return value
        return _asked(f"{namespace}.{name}", value, self)

    return attribute


def _asked(name: str, value: Any, owner: Any) -> Any:
    """Record an attribute, or return what calls it and records the call."""
    if not isroutine(value):
        record(name, used=True)
        return wrap(np.asarray(value)) if name in AS_ARRAYS else value

    def called(*arguments: Any, **keywords: Any) -> Any:
        record(name, len(arguments), tuple(keywords))
        if name in GROUPED:
            keywords.setdefault("sort", False)
        given = {key: _plain(each) for key, each in keywords.items()}
        return as_cudf(name, value(*map(_plain, arguments), **given), (owner, *arguments))

    return called


def _operator(plain: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return what does an operator of an object, and records it where our source has it."""

    def operate(self: Any, *arguments: Any, **keywords: Any) -> Any:
        arguments = tuple(
            {key: _plain(value) for key, value in each.items()} if isinstance(each, dict) else _plain(each)
            for each in arguments
        )
        found = plain(self, *arguments, **keywords)
        if not is_ours(sys._getframe(1).f_code.co_filename):
            return found
        record(name, len(arguments), tuple(keywords))
        return as_cudf(name, found, (self, *arguments))

    return operate


def as_cudf(name: str, found: Any, operands: tuple[Any, ...]) -> Any:
    """Return what pandas gave as cuDF gives it: null where nulls are compared or combined, rows in no order."""
    namespace, _, operation = name.rpartition(".")
    if namespace == "cudf.Series" and operation in NULL_OF_NULL:
        missing = np.logical_or.reduce([each.isna().to_numpy() for each in operands if isinstance(each, pd.Series)])
        return found.astype("boolean").mask(missing) if missing.any() and found.dtype.kind == "b" else found
    if name == "cudf.Series.fillna" and found.dtype == "boolean":
        return found.astype(bool)
    if name == "cudf.DataFrame.merge":
        return in_another_order(found).reset_index(drop=True)
    groups = operands[0]
    if isinstance(groups, GroupBy) and not groups.sort and isinstance(found, pd.DataFrame | pd.Series):
        return in_another_order(found) if len(found) == groups.ngroups else found
    return found


def in_another_order(table: Any) -> Any:
    """Return a table, or column, whose rows are in no order."""
    return table.take(np.random.default_rng(len(table)).permutation(len(table)))
