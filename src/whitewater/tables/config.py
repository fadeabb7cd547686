"""Settings of raw files, and of rules that are bounds."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from whitewater.config.base import Section

# The strict and the inclusive bound of each side of a `Range`.
LOWER, UPPER = ("above", "at_least"), ("below", "at_most")
SAME_SIDE = {"above": "at_least", "at_least": "above", "below": "at_most", "at_most": "below"}


class RawFiles(Section):
    """How raw files are read."""

    block_rows: int = Field(500_000, ge=1_000, description="Rows read at once. Affects memory, not results.")
    max_malformed_fraction: float = Field(0.01, ge=0, le=1, description="Largest share of malformed rows in a file.")


class Range(Section):
    """Bounds of a quantity, at most one on each side. A null value passes."""

    above: float | None = Field(None, description="Values must be greater.")
    at_least: float | None = Field(None, description="Values must be greater or equal.")
    below: float | None = Field(None, description="Values must be less.")
    at_most: float | None = Field(None, description="Values must be less or equal.")

    @classmethod
    def over_default(cls, given: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
        """Replace a default bound, which the user may repeat, by the other bound of its side if that is set."""
        return {
            bound: value
            for bound, value in {**default, **given}.items()
            if given.get(SAME_SIDE.get(bound, "")) is None or value != default.get(bound)
        }

    @model_validator(mode="after")
    def _is_satisfiable(self) -> Self:
        bounds = self.model_dump(exclude_none=True)
        for strict, inclusive in (LOWER, UPPER):
            if strict in bounds and inclusive in bounds:
                raise ValueError(f"{strict} and {inclusive} are both given: set one of them to null")
        low, high = (next((key for key in side if key in bounds), "") for side in (LOWER, UPPER))
        is_strict = low == "above" or high == "below"
        if low and high and (bounds[low] > bounds[high] or (is_strict and bounds[low] == bounds[high])):
            raise ValueError(
                f"no value is {low.replace('_', ' ')} {bounds[low]:g} and {high.replace('_', ' ')} {bounds[high]:g}: "
                "change one of them, or remove it with null (a bound that is not set keeps its default)"
            )
        return self
