"""Answers of DuckDB, which shares no code with ours."""

import duckdb
import pandas as pd


def sql(query: str) -> pd.DataFrame:
    """Return the answer to a query."""
    with duckdb.connect() as connection:
        answer: pd.DataFrame = connection.execute(query).df()
    return answer
