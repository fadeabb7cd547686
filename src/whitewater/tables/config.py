"""Settings of raw files, and of rules that are bounds."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from whitewater.config.base import Section

# Bounds of a `Range`: on each side there is one at most.
LOWER, UPPER = ("above", "at_least"), ("below", "at_most")
SAME_SIDE = {"above": "at_least", "at_least": "above", "below": "at_most", "at_most": "below"}


class RawFiles(Section):
    """How raw files are read."""

    block_rows: int = Field(
        500_000, ge=1_000, description="Rows read at once; memory grows with it, results do not change."
    )
    max_malformed_fraction: float = Field(
        0.01, ge=0, le=1, description="Share of rows that cannot be parsed above which a file is refused."
    )


class Range(Section):
    """Bounds of a quantity, one on each side at most; a null passes."""

    above: float | None = Field(None, description="Values must be greater.")
    at_least: float | None = Field(None, description="Values must be greater or equal.")
    below: float | None = Field(None, description="Values must be less.")
    at_most: float | None = Field(None, description="Values must be less or equal.")

    @classmethod
    def over_default(cls, given: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
        """Leave out a default bound, which config/taxi.yaml also states, whose side has another one."""
        return {
            bound: value
            for bound, value in {**default, **given}.items()
            if given.get(SAME_SIDE.get(bound, "")) is None or value != default.get(bound)
        }

    @model_validator(mode="after")
    def _some_value_is_within(self) -> Self:
        bounds = self.model_dump(exclude_none=True)
        for bound, other in SAME_SIDE.items():
            if bound in bounds and other in bounds:
                raise ValueError(f"{bound} and {other} are both given: set one of them to null")
        low, high = (next((key for key in keys if key in bounds), "") for keys in (LOWER, UPPER))
        strict = low == "above" or high == "below"
        if low and high and (bounds[low] > bounds[high] or (strict and bounds[low] == bounds[high])):
            raise ValueError(
                f"no value is {low.replace('_', ' ')} {bounds[low]:g} and {high.replace('_', ' ')} {bounds[high]:g}: "
                "change one of them, or remove it with null (a bound that is not given keeps its default)"
            )
        return self
