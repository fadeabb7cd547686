"""Settings of the search for a model."""

from typing import Annotated

from pydantic import Field

from whitewater.config.base import Section


class Forest(Section):
    """Grid of the random forest."""

    trees: tuple[Annotated[int, Field(ge=1)], ...] = Field((20,), min_length=1, description="Numbers of trees to try.")
    depths: tuple[Annotated[int, Field(ge=1)], ...] = Field((6, 10), min_length=1, description="Maximal depths to try.")
    rows_per_tree: int = Field(
        5_000, ge=100, description="Maximal rows that each tree draws, with replacement; the time grows with it."
    )


class Search(Section):
    """Cross-validation, its candidates, and the scores of held-out rows."""

    folds: int = Field(5, ge=2, description="Folds of the cross-validation inside the training rows.")
    ridge_alphas: tuple[Annotated[float, Field(gt=0)], ...] = Field(
        (1.0, 100.0, 10_000.0), min_length=1, description="Ridge penalties to try, on standardized columns."
    )
    forest: Forest = Forest()
    bootstrap: int = Field(200, ge=20, description="Bootstrap replicates for each interval.")
    seed: int = Field(7, ge=0, lt=2**32, description="Seed of the forest and the bootstrap.")
