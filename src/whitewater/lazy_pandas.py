"""pandas, imported when one of its names is first asked for, so that a step without tables of pandas starts fast."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame, Index, Int16Dtype, Series, concat, errors, factorize, read_csv, read_parquet, unique

__all__ = [
    "DataFrame", "Index", "Int16Dtype", "Series", "concat", "errors", "factorize", "read_csv", "read_parquet", "unique",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    import pandas

    return getattr(pandas, name)
