"""The features that suit a source: which groups there are, and that the log has what they need."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import yaml

from whitewater.errors import ConfigError
from whitewater.features.config import Fit, Role
from whitewater.features.log_folder import FIRST, TYPES, LogColumn
from whitewater.features.schema import Field, Schema
from whitewater_apps.recsys.config import Simulate, Source
from whitewater_apps.recsys.sources.movielens import COLUMNS
from whitewater_apps.recsys.sources.rows import CRITEO, columns_of
from whitewater_apps.recsys.steps.fit import build_graph, default_features

GROUPS = {
    "generated": ["plain", "numeric", "offsets", "categories", "targets", "crosses", "past_counts"],
    "criteo": ["plain", "numeric", "categories", "targets", "crosses", "past_counts"],
    "movielens": ["users", "items", "genres", "plain", "year", "targets", "past_counts", "past_means"],
}
KINDS: Mapping[Role, str] = {"continuous": "float64", "categorical": "string"}


def log_of(source: str) -> list[LogColumn]:
    """The columns of a source's log."""
    if source == "movielens":
        return [*FIRST, *COLUMNS]
    settings = Simulate()
    numbers = [f"I{number + 1}" for number in range(settings.continuous)]
    texts = [f"C{number + 1}" for number in range(settings.categorical)]
    found = columns_of(CRITEO if source == "criteo" else ["time", "label", *numbers, *texts])
    return [*FIRST, *(LogColumn(each.name, each.role, KINDS[each.role]) for each in found if each.role in KINDS)]


def roles(columns: list[LogColumn]) -> dict[str, Role]:
    return {each.name: each.role for each in columns}


def schema(columns: list[LogColumn]) -> Schema:
    return Schema(tuple(Field(each.name, TYPES[each.type]) for each in columns))


@pytest.mark.parametrize("source", ["generated", "criteo", "movielens"])
def test_the_groups_are_features_of_the_sources_log(source: Source) -> None:
    columns = log_of(source)
    found = default_features(source, roles(columns))
    assert [group.name for group in found] == GROUPS[source]
    build_graph(found, roles(columns), schema(columns))
    used = {name for group in found for each in group.columns for name in ((each,) if isinstance(each, str) else each)}
    assert used == {each.name for each in columns if each.role not in ("label", "time", "key")}


def test_columns_about_an_offset_keep_what_tells_them_apart() -> None:
    found = {group.name: group for group in default_features("generated", roles(log_of("generated")))}
    assert found["offsets"].columns == ("I12", "I13")
    assert "I13" not in found["numeric"].columns
    assert "LogOp" in found["numeric"].operators
    assert "LogOp" not in found["offsets"].operators


def test_a_group_without_columns_is_left_out() -> None:
    columns: dict[str, Role] = {"C1": "categorical", "C2": "categorical"}
    assert [group.name for group in default_features("generated", columns)] == ["categories", "targets", "past_counts"]


def test_the_features_of_files_must_be_said_and_the_example_is_a_configuration() -> None:
    with pytest.raises(ConfigError, match=r"recsys\.fit\.features is empty") as raised:
        default_features("files", {"a": "continuous"})
    example = yaml.safe_load(str(raised.value).partition("\n")[2])
    fit = Fit.model_validate(example["recsys"]["fit"])
    numbers = [LogColumn(name, "continuous", "float64") for name in ("price", "count_a")]
    texts = [LogColumn(name, "categorical", "string") for name in ("user", "country", "device")]
    columns = [*FIRST, *numbers, *texts]
    build_graph(fit.features, roles(columns), schema(columns))


@pytest.mark.parametrize("name", ["categorical", "label", "key"])
def test_a_group_may_not_be_called_like_a_role_of_columns(name: str) -> None:
    with pytest.raises(ValueError, match=f"a group named {name}, as a role of columns is"):
        Fit.model_validate({"features": [{"name": name, "columns": ["I1"], "operators": ["Normalize"]}]})
