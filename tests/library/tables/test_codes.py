"""Texts and numbers become codes, and NaN becomes null, in either engine and whatever type of text a file has."""

from collections.abc import Callable
from math import nan

import polars as pl
import pyarrow as pa
import pytest

from whitewater.tables import with_dask, with_polars
from whitewater.tables.eras import Codes, Era, RawColumn

TEXTS = ["1", None, " Cash ", "", "no code", "7", "3.0", "1"]
PAYMENTS = [1, None, 2, None, None, None, 3, 1]
ISSUES = [0, 0, 0, 0, 1, 1, 0, 0]
RAW_FARES = [nan, 0.5, None, -1.0, 0.0, nan, 2.0, 3.0]
FARES = [None, 0.5, None, -1.0, 0.0, None, 2.0, 3.0]
SCHEMA = pa.schema([("payment", pa.int8()), ("fare", pa.float64()), ("issues", pa.int64())])
CODES = {"payment": Codes(6, {"credit": 1, "cash": 2})}
TEXT, NUMBERS = (
    Era({"payment": RawColumn("Payment", kind), "fare": RawColumn("Fare", "number")}, ()) for kind in ("text", "number")
)


def with_categories(texts: list[str | None]) -> pa.Table:
    return pa.table({"Payment": pa.array(texts, pa.string()).dictionary_encode(), "Fare": RAW_FARES[: len(texts)]})


def with_plain_text(texts: list[str | None]) -> pa.Table:
    return pa.table({"Payment": pa.array(texts, pa.string()), "Fare": RAW_FARES[: len(texts)]})


def polars_rows(table: pa.Table, era: Era = TEXT) -> pa.Table:
    raw = pl.DataFrame(pl.from_arrow(table)).lazy()
    return with_polars.to_arrow(with_polars.in_schema(raw, era, SCHEMA, CODES).collect(), SCHEMA)


def pandas_rows(table: pa.Table, era: Era = TEXT) -> pa.Table:
    return with_dask.to_arrow(with_dask.in_schema(with_dask.from_arrow(table, "pandas"), era, CODES), SCHEMA)


@pytest.mark.parametrize(
    ("raw", "rows"),
    [(with_categories, polars_rows), (with_plain_text, polars_rows), (with_categories, pandas_rows)],
)
def test_codes_of_texts(raw: Callable[[list[str | None]], pa.Table], rows: Callable[[pa.Table], pa.Table]) -> None:
    assert rows(raw(TEXTS)).to_pydict() == {"payment": PAYMENTS, "fare": FARES, "issues": ISSUES}
    assert rows(raw([None, None])).to_pydict() == {"payment": [None, None], "fare": FARES[:2], "issues": [0, 0]}


@pytest.mark.parametrize("rows", [polars_rows, pandas_rows])
@pytest.mark.parametrize("numbers", [[0, 6, 7, -1, 2**8 + 1, 2**40, None], [0.0, 6.0, 6.5, -1.0, 257.0, 1e300, None]])
def test_codes_of_numbers(rows: Callable[[pa.Table, Era], pa.Table], numbers: list[float | None]) -> None:
    found = rows(pa.table({"Payment": pa.array(numbers), "Fare": RAW_FARES[: len(numbers)]}), NUMBERS)
    payments, issues = [0, 6, None, None, None, None, None], [0, 0, 1, 1, 1, 1, 0]
    assert found.to_pydict() == {"payment": payments, "fare": FARES[: len(numbers)], "issues": issues}
