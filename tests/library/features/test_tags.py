"""Tags, properties and names change; values do not."""

import pytest

from tests.library.features.operator_cases import applied, applied_by_row, categories, fields_of, lists, numbers
from whitewater.errors import ConfigError
from whitewater.features.columns.column import Block
from whitewater.features.operator import Operator
from whitewater.features.operators.by_column import (
    AddMetadata,
    Rename,
    TagAsItemFeatures,
    TagAsItemID,
    TagAsUserFeatures,
    TagAsUserID,
)

BLOCK: Block = {
    "n": numbers([1, None, 3], "int8"),
    "c": categories(["a", None, "a"]),
    "l": lists([[1], [], [2, 3]]),
}
VALUES = {"n": [1, None, 3], "c": ["a", None, "a"], "l": [[1], [], [2, 3]]}


@pytest.mark.parametrize(
    ("operator", "tags"),
    [
        (AddMetadata(tags=("x", "y")), ("x", "y")),
        (TagAsUserID(), ("user_id", "user", "id")),
        (TagAsItemID(), ("item_id", "item", "id")),
        (TagAsUserFeatures(), ("user",)),
        (TagAsItemFeatures(), ("item",)),
    ],
)
def test_tags_are_added_to_columns_of_every_kind(operator: Operator, tags: tuple[str, ...]) -> None:
    assert applied(operator, BLOCK) == applied_by_row(operator, BLOCK) == VALUES
    fields = {name: field.with_tags("before", tags[-1]) for name, field in fields_of(BLOCK).items()}
    for field in operator.output(tuple(BLOCK), fields):
        assert field.tags == ("before", tags[-1], *tags[:-1])


def test_properties_are_added_and_replaced() -> None:
    operator = AddMetadata(properties={"unit": "s", "scale": 2})
    (field,) = AddMetadata(properties={"scale": 3}).output(("n",), {"n": operator.output(("n",), fields_of(BLOCK))[0]})
    assert dict(field.properties) == {"unit": "s", "scale": 3}


def test_columns_get_other_names() -> None:
    renamed = {f"{name}_raw": values for name, values in VALUES.items()}
    assert applied(Rename(postfix="_raw"), BLOCK) == applied_by_row(Rename(postfix="_raw"), BLOCK) == renamed
    assert applied(Rename(name="m"), {"n": BLOCK["n"]}) == {"m": VALUES["n"]}


def test_names_that_would_be_given_twice_or_not_at_all_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"Rename\(name='m'\) takes one column, not n, c"):
        Rename(name="m").output(("n", "c"), fields_of(BLOCK))
    for wrong in ({}, {"name": "m", "postfix": "_raw"}, {"postfix": ""}):
        with pytest.raises(ConfigError):
            Rename(**wrong)
