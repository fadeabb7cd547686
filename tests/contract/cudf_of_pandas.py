"""pandas with what cuDF has beside it, for code that only a GPU runs: here its lines run, watched as frames are."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.contract.device_array import watched
from tests.contract.frame_calls import Backend, HostFrame, frames_as_cudf
from tests.contract.signatures import Call
from tests.contract.strict_device import cupy_of_devices


def _from_arrow(table: pa.Table) -> Any:
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _read_parquet(
    path: Path,
    *,
    columns: Sequence[str] | None,
    row_groups: Sequence[Any] | None,
    dataset_kwargs: Any,
    use_pandas_metadata: bool = True,
) -> Any:
    """Read row groups, of one file or of each of several; what pandas wrote as an index becomes the index again.

    That is so whatever ``use_pandas_metadata`` says where such a column is asked for.
    """
    assert dataset_kwargs == {"partitioning": None}
    file = pq.ParquetFile(path)
    groups = range(file.num_row_groups) if row_groups is None else np.ravel(row_groups).tolist()
    return _from_arrow(file.read_row_groups(groups, columns))


def _to_pandas(self: pd.DataFrame) -> pd.DataFrame:
    return HostFrame(self)


def _to_parquet(self: pd.DataFrame, path: Path, *, index: bool, compression: str, **_: object) -> None:
    pq.write_table(pa.Table.from_pandas(self, preserve_index=index), path, compression=compression)


MEMBERS: dict[Any, dict[str, Any]] = {
    pd.DataFrame: {
        "from_arrow": staticmethod(watched("cudf.DataFrame.from_arrow", _from_arrow)),
        "to_arrow": lambda self, preserve_index: pa.Table.from_pandas(self, preserve_index=preserve_index),
        "to_pandas": _to_pandas,
        "nans_to_nulls": lambda self: self,
        "to_parquet": _to_parquet,
    },
    pd.Series: {"to_pandas": lambda self: self},
    pd.Index: {"to_pandas": lambda self: self},
}


@contextmanager
def cudf_of_pandas() -> Iterator[dict[Call, list[str]]]:
    """Let ``import cudf`` and ``import cupy`` give stand-ins; yield a mapping that fills with what is asked of them."""
    with pytest.MonkeyPatch.context() as patch:
        cudf = Backend("cudf")
        vars(cudf)["read_parquet"] = watched("cudf.read_parquet", _read_parquet)
        with frames_as_cudf(arrays=True) as calls:
            for owner, members in MEMBERS.items():
                for name, member in members.items():
                    patch.setattr(owner, name, member, raising=False)
            for stand_in in (cudf, cupy_of_devices()):
                patch.setitem(sys.modules, stand_in.__name__, stand_in)
            yield calls
