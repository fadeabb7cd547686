"""pandas, imported on first use, so that a step without pandas tables starts fast."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame, Index, Series, concat, errors, factorize, read_csv, read_parquet

__all__ = ["DataFrame", "Index", "Series", "concat", "errors", "factorize", "read_csv", "read_parquet"]


def __getattr__(name: str) -> Any:
    import pandas

    return getattr(pandas, name)
