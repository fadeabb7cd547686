"""Settings of features, and the roles of columns."""

from typing import Any, Literal, Self, get_args

from pydantic import Field, model_validator

from whitewater.config.base import Section

Role = Literal["label", "continuous", "categorical", "list", "time", "key"]


class Feature(Section):
    """A group of features: columns, and the operators applied to them."""

    name: str = Field(min_length=1, pattern=r"^[a-z][a-z0-9_]*$", description="Name of the group.")
    columns: tuple[str | tuple[str, ...], ...] = Field(
        min_length=1, description="Columns; a glob such as C* stands for all matching columns, a list is a combination."
    )
    operators: tuple[str | dict[str, dict[str, Any]], ...] = Field(
        description="Operators in order: a name, or a name with parameters, such as {Clip: {min_value: 0}}."
    )


class Fit(Section):
    """What is learned from the training rows."""

    features: tuple[Feature, ...] = Field(
        (), description="Groups of features; empty: the defaults of the source (files have none)."
    )
    memory_share: float = Field(
        0.6, gt=0, le=1, description="Share of the available memory that tables of categories may use."
    )

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [feature.name for feature in self.features]
        if duplicates := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"features has more than one group named {', '.join(duplicates)}: rename all but one")
        if roles := sorted({*names} & {*get_args(Role)}):
            raise ValueError(f"features has a group named {', '.join(roles)}, as a role of columns is: rename it")
        return self
