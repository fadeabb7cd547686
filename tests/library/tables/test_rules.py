"""Rules break where they say, and a null breaks none but that of missing values, in either engine."""

import operator
from math import nan

import pandas as pd
import polars as pl
import pytest

from whitewater.tables import with_dask, with_polars
from whitewater.tables.eras import Rule

FARES = [5.0, None, 0.0, -1.0, 200.0]
ZONES = [1, 2, None, 3, 3]
RULES = (
    Rule("missing_fare", "fare", "missing"),
    Rule("fare_not_above_0", "fare", operator.le, 0),
    Rule("fare_not_at_most_100", "fare", operator.gt, 100),
    Rule("in_3", "zone", "in", (3,)),
    Rule("not_in_1_or_3", "zone", "not in", (1, 3)),
)
MASKS = [0, 0b10001, 0b10, 0b1010, 0b1100]


def masks_of_polars(rules: tuple[Rule, ...]) -> list[int]:
    trips = pl.DataFrame({"fare": FARES, "zone": ZONES})
    found: list[int] = trips.with_columns(mask=with_polars.rule_mask(rules, pl.col))["mask"].to_list()
    kept = trips.select(kept=with_polars.breaks_no_rule(rules, pl.col).cast(pl.Boolean))["kept"].to_list()
    assert (kept * len(trips))[: len(trips)] == [mask == 0 for mask in found]
    return found


def masks_of_pandas(rules: tuple[Rule, ...]) -> list[int]:
    trips = pd.DataFrame({"fare": [nan if fare is None else fare for fare in FARES], "zone": ZONES})
    found: list[int] = with_dask.rule_mask(rules, trips.__getitem__).tolist()
    return found


@pytest.mark.parametrize("masks", [masks_of_polars, masks_of_pandas])
def test_masks_are_those_of_the_rules_one_by_one(masks: object) -> None:
    assert callable(masks)
    assert masks(RULES) == MASKS
    assert [masks((rule,)) for rule in RULES] == [[mask >> bit & 1 for mask in MASKS] for bit in range(len(RULES))]


def test_without_rules_every_row_is_kept() -> None:
    assert masks_of_polars(()) == [0] * len(FARES)
    trips = pd.DataFrame({"fare": FARES}).assign(issues=0)
    assert with_dask.rule_mask((), trips.__getitem__, start=trips["issues"]).tolist() == [0] * len(FARES)
