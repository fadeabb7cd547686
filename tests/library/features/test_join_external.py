"""A join with another table is pandas' left join, and the table goes along with the workflow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.library.features.operator_cases import (
    applied,
    applied_by_row,
    categories,
    fields_of,
    fitted_on,
    numbers,
)
from whitewater.errors import ConfigError, InputError
from whitewater.features.columns.column import Block
from whitewater.features.operators.join import JoinExternal

ITEMS = {
    "item": ["b", "a", "ä", "c"],
    "shop": [7, 7, 8, 7],
    "price": [1.5, None, 3.0, float("nan")],
    "stock": [1, 2, None, 2**53 + 1],
    "new": [True, False, None, True],
    "brand": ["x", None, "", "x"],
}


@pytest.fixture
def items(tmp_path: Path) -> str:
    return written(ITEMS, tmp_path)


def written(columns: dict[str, Any], folder: Path) -> str:
    """Write a file of items and return its path."""
    path = folder / "items.parquet"
    pq.write_table(pa.table(columns), path)
    return str(path)


def oracle(rows: pd.DataFrame, on: Sequence[str], columns: Sequence[str]) -> dict[str, list[Any]]:
    """Return the columns as pandas joins them; None for null."""
    right = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in ITEMS.items()})
    joined = rows.merge(right, on=list(on), how="left")
    return {name: [None if pd.isna(value) else value for value in joined[name]] for name in columns}


def test_columns_are_joined_as_pandas_joins_them(items: str) -> None:
    keys = ["ä", "nowhere", "a", None, "b", "c", "b"]
    columns = ("price", "stock", "new", "brand")
    operator = JoinExternal(table=items, on="item", columns=columns)
    block: Block = {"item": categories(keys)}
    fitted = fitted_on(operator, [block])
    found = applied(operator, block, fitted)
    assert found == oracle(pd.DataFrame({"item": pd.Series(keys, dtype=object)}), ["item"], columns)
    assert applied_by_row(operator, block, fitted) == found


def test_keys_of_several_columns_are_joined(items: str) -> None:
    frame = pd.DataFrame({"item": ["a", "a", "ä", "c", "b"], "shop": [7, 8, 8, 7, 7]})
    operator = JoinExternal(table=items, on=("shop", "item"), columns=("brand", "price"))
    block: Block = {
        "item": categories(frame["item"].tolist()),
        "shop": numbers([*frame["shop"][:4], None], "int16"),
    }
    fitted = fitted_on(operator, [block])
    found = applied(operator, block, fitted)
    expected = oracle(frame, ["item", "shop"], ["brand", "price"])
    # The last row's shop is null, which matches nothing.
    assert found == {name: [*values[:4], None] for name, values in expected.items()}
    assert applied_by_row(operator, block, fitted) == found


def test_the_table_goes_along_so_that_the_file_is_not_needed_any_more(items: str) -> None:
    operator = JoinExternal(table=items, on="shop", columns=("price",), types={"shop": "int64", "price": "double"})
    with pytest.raises(InputError, match="1 keys are in more than one row, such as shop=7 in 3"):
        fitted_on(operator, [{"shop": numbers([7], "int64")}])
    operator = JoinExternal(table=items, on="item", columns=("price",))
    block: Block = {"item": categories(["b", "x"])}
    fitted = fitted_on(operator, [block])
    Path(items).unlink()
    stored = JoinExternal.model_validate_json(operator.model_dump_json())
    assert applied(stored, block, fitted) == {"price": [1.5, None]}
    assert fitted["table"].tables()["table"].column_names == ["item", "price"]


@pytest.mark.parametrize("on", [("user",), ("user", "shop")])
def test_many_keys_find_their_rows(on: tuple[str, ...], tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    users = random.permutation(5000)
    path = written({"user": users, "shop": users % 7, "double": 2 * users}, tmp_path)
    operator = JoinExternal(table=path, on=on, columns=("double",))
    wanted = random.integers(0, 7000, 3000)
    block: Block = {"user": numbers(wanted.tolist(), "int32"), "shop": numbers((wanted % 7).tolist(), "int8")}
    found = applied(operator, block, fitted_on(operator, [block], on), on)["double"]
    assert found == [2 * user if user < 5000 else None for user in wanted.tolist()]


def test_keys_that_are_null_are_refused(tmp_path: Path) -> None:
    path = written({"item": ["a", None], "price": [1.0, 2.0]}, tmp_path)
    operator = JoinExternal(table=path, on="item", columns=("price",))
    with pytest.raises(InputError, match="the key 'item' is null in 1 rows"):
        fitted_on(operator, [{"item": categories(["a"])}])


def test_what_the_file_has_not_is_named(items: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no column 'cost'; the columns are item, shop"):
        JoinExternal(table=items, on="item", columns=("cost", "color"))
    with pytest.raises(InputError, match=r"cannot join .*nowhere\.parquet"):
        JoinExternal(table=str(tmp_path / "nowhere.parquet"), on="item", columns=("price",))
    (tmp_path / "items.csv").write_text("item,price\na,1\n")
    with pytest.raises(InputError, match=r"items\.csv.*Correct `table`"):
        JoinExternal(table=str(tmp_path / "items.csv"), on="item", columns=("price",))


def test_keys_and_inputs_must_be_the_same_and_of_one_kind(items: str) -> None:
    by_item = JoinExternal(table=items, on="item", columns=("price",))
    fields = fields_of({"item": numbers([1], "int64"), "price": numbers([1.0]), "user": categories(["a"])})
    with pytest.raises(ConfigError, match="on item is given the columns user"):
        by_item.output(("user",), fields)
    with pytest.raises(ConfigError, match="'item' is of type int64 in the data and of type string in"):
        by_item.output(("item",), fields)
    with pytest.raises(ConfigError, match="column price is of type double, but categories are text or integers"):
        JoinExternal(table=items, on="price", columns=("item",)).output(("price",), fields)


def test_a_file_that_changed_since_the_workflow_was_made_is_refused(items: str) -> None:
    operator = JoinExternal(table=items, on="item", columns=("price",))
    written({"item": ["a"], "price": ["cheap"]}, Path(items).parent)
    with pytest.raises(InputError, match="has changed: the types of price are different"):
        fitted_on(operator, [{"item": categories(["a"])}])


def test_a_column_that_the_table_has_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    pq.write_table(
        pa.Table.from_arrays([pa.array([1]), pa.array([2.0]), pa.array([3.0])], ["item", "price", "price"]), path
    )
    with pytest.raises(InputError, match=r"columns price are there more than once\. Rename"):
        JoinExternal(table=str(path), on="item", columns=("price",))
