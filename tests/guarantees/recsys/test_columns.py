"""Names of columns: one that is there twice is never chosen from, and a clash of two features names both groups."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.guarantees.running import ROOT, Clone, Ended

EVENTS = "data/recsys/events"


def read(clone: Clone, name: str, *targets: str, features: list[Any] | None = None, **roles: str) -> Ended:
    columns = [{"name": column, "role": role} for column, role in roles.items()]
    source = {"source": "files", "files": {"files": [name], "columns": columns}}
    return clone.run("recsys", {"fetch": source, "fit": {"features": features or []}}, *(targets or [EVENTS]))


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_a_column_that_is_there_twice_is_refused(fresh: Clone, name: str) -> None:
    if name == "log.csv":
        (fresh / name).write_text("clicked,price,price\n1,2,3\n")
    else:
        pq.write_table(pa.Table.from_arrays([pa.array([1])] * 3, ["clicked", "price", "price"]), fresh / name)
    ended = read(fresh, name, clicked="label", price="continuous")
    assert ended.message.startswith(f"InputError: {name} has 2 columns named 'price'")


@pytest.mark.slow
def test_the_recipe_for_a_click_log_makes_features(fresh: Clone) -> None:
    [recipe] = re.findall(
        "### Your own click log\n\n```yaml\n(.*?)```", (ROOT / "docs/recipes.md").read_text(), re.DOTALL
    )
    (fresh / "recipe.yaml").write_text(recipe.replace("~/clicks/", ""))
    clicks = {
        "clicked": [0, 1, 1, 0] * 100, "time": [1_577_836_800_000 + 3_600_000 * hour for hour in range(400)],
        "price": [1.5, 2.0, None, 7.0] * 100, "user": ["a", "b"] * 200, "item": ["x"] * 400,
    }  # fmt: skip
    pq.write_table(pa.table(clicks), fresh / "log.parquet")
    ended = fresh.snakemake("--", "results/clicks/recsys/cpu/train", files=("recipe.yaml",))
    assert ended.status == 0, ended.terminal


def test_movies_with_a_column_twice_are_refused(fresh: Clone) -> None:
    (fresh / "ml").mkdir()
    (fresh / "ml/ratings.csv").write_text("userId,movieId,rating,timestamp\n1,1,4.0,1000000000\n")
    (fresh / "ml/movies.csv").write_text("movieId,title,genres,title\n1,A (1990),Drama,B (1999)\n")
    ended = fresh.run("recsys", {"fetch": {"source": "movielens", "movielens": {"path": "ml"}}}, EVENTS)
    assert ended.message.startswith("InputError: ml/movies.csv ")
    assert "movieId, title, genres, title" in ended.message


def test_two_groups_that_make_one_column_are_both_named(fresh: Clone) -> None:
    (fresh / "log.csv").write_text("clicked,price\n" + "1,2\n0,3\n" * 50)
    groups = [{"name": name, "columns": ["price"], "operators": ["Normalize"]} for name in ("first", "second")]
    ended = read(fresh, "log.csv", "results/recsys/cpu/workflow", features=groups, clicked="label", price="continuous")
    assert ended.message.startswith("ConfigError: recsys.fit.features: two columns are called 'price': ")
    assert [name for name in ("'first'", "'second'", "Rename") if name not in ended.message] == []


def test_a_text_of_a_header_alone_has_no_rows_and_a_number_of_64_bits_without_sign_is_named(fresh: Clone) -> None:
    (fresh / "log.csv").write_text("at,clicked,price\n")
    assert "log.csv: no rows" in read(fresh, "log.csv", at="time", clicked="label", price="continuous").message
    prices = pa.array([*range(4000), 2**64 - 1, *range(4000)], pa.uint64())
    pq.write_table(pa.table({"clicked": [0] * len(prices), "price": prices}), fresh / "log.parquet")
    message = read(fresh, "log.parquet", clicked="label", price="continuous").message
    assert message.startswith(
        "InputError: log.parquet, row 4,001: column price: 18446744073709551615 is above 2**63 - 1"
    )
