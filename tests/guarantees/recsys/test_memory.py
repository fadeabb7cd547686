"""However little memory is configured: vocabularies are learned all the same, tables that do not fit are refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd
import pytest

from tests.guarantees.running import Clone, Ended

RESULTS = "results/recsys/cpu"
# So little of any machine's memory that it is nothing.
NOTHING = 1e-9


def learn(clone: Clone, operators: list[Any], target: str, *, values: int) -> Ended:
    """Learn from a column in which nearly every value is another one."""
    lines = "".join(f"u{row * 7919 % values},{row % 2}\n" for row in range(values))
    (clone / "log.csv").write_text("user,clicked\n" + lines)
    columns = [{"name": "user", "role": "categorical"}, {"name": "clicked", "role": "label"}]
    source = {"source": "files", "files": {"files": ["log.csv"], "columns": columns}}
    groups = [{"name": "users", "columns": ["user"], "operators": operators}]
    return clone.run("recsys", {"fetch": source, "fit": {"memory_share": NOTHING, "features": groups}}, target)


@pytest.mark.slow
def test_values_that_have_no_room_get_the_ids_that_they_have_with_room(fresh: Clone) -> None:
    """So many values once went to thousands of files, each of which gave one value at a time, which never ended."""
    ended = learn(fresh, ["Categorify"], f"{RESULTS}/train", values=449_009)
    assert ended.status == 0, ended.terminal
    given = pd.concat(map(pd.read_parquet, (fresh / "data/recsys/train").glob("*.parquet"))).set_index("row_id")["user"]
    made = pd.concat(map(pd.read_parquet, (fresh / f"{RESULTS}/train").glob("*.parquet"))).set_index("row_id")["user"]
    counts = Counter(given)
    order = sorted(counts, key=lambda value: (-counts[value], value))
    ids = pd.Series(range(3, 3 + len(order)), index=order)
    assert (ids[given].to_numpy() == made.loc[given.index].to_numpy()).all()


@pytest.mark.parametrize(
    "operator", [{"TargetEncoding": {"target": "label"}}, {"PastCount": {"time": "day", "period": 1}}, "JoinGroupby"]
)
def test_tables_that_must_fit_are_refused_with_their_size(fresh: Clone, operator: Any) -> None:
    ended = learn(fresh, [operator], f"{RESULTS}/workflow", values=40_000)
    assert ended.message.startswith("ResourceError: user: the table of its categories takes ")
    assert "recsys.fit.memory_share" in ended.message
    assert not (fresh / f"{RESULTS}/workflow").exists()
