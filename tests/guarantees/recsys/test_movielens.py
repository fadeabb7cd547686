"""A release of MovieLens: its periods are not called days, rows are counted as rows, and years are found in titles."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from tests.guarantees.running import Clone

RESULTS = "results/recsys/cpu"
RATINGS, ITEMS, FIRST, SPAN = 1000, 20, 1400, 213 * 86_400
TITLES = {
    1412: ("Land Before Time III: The Time of the Great Giving (1995) (V)", 1995),
    1413: ("Blood of 1492 (1998) Director's Cut", 1998),
    1414: ("2001: A Space Odyssey (1968)", 1968),
    1415: ("Unknown", None),
}


@pytest.fixture
def release(fresh: Clone) -> Clone:
    """A clone whose source is a release like 100K: ratings of 213 days, and two genres or three for each item."""
    random = np.random.default_rng(1)
    (fresh / "ml").mkdir()
    times = 880_000_000 + random.integers(0, SPAN, RATINGS)
    users, items = random.integers(1, 20, RATINGS), FIRST + random.integers(0, ITEMS, RATINGS)
    lines = zip(users, items, random.integers(1, 6, RATINGS), times, strict=True)
    (fresh / "ml/u.data").write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
    films = []
    for item in range(FIRST, FIRST + ITEMS):
        title, _ = TITLES.get(item, ("Film (1990)", 1990))
        flags = ["1" if flag in (1, 2, 4 + item % 7) else "0" for flag in range(19)]
        films.append("|".join([str(item), title, "01-Jan-1995", "", "x", *flags]) + "\n")
    (fresh / "ml/u.item").write_text("".join(films))
    return fresh


def settings() -> dict[str, object]:
    source = {"source": "movielens", "movielens": {"path": "ml"}}
    return {"fetch": source, "train": {"trees": 3, "depth": 2, "without_each_group": False}}


def comments(clone: Clone, picture: str) -> str:
    """Return the words of a picture, which are comments beside their outlines."""
    drawn = (clone / f"{RESULTS}/plots/{picture}.svg").read_text()
    return " ".join(" ".join(re.findall("<!--(.*?)-->", drawn)).split())


def test_periods_are_called_periods_and_years_are_the_last_of_titles(release: Clone) -> None:
    ended = release.run("recsys", settings(), f"{RESULTS}/drift.json")
    assert ended.status == 0, ended.terminal
    found = release.json(f"{RESULTS}/drift.json")
    assert (found["period"], len(found["days"])) == ("period", 20)
    assert "over 20 periods" in ended.terminal
    log = pd.concat(map(pd.read_parquet, (release / "data/recsys/events").glob("*.parquet")))
    years = log.groupby("item")["year"].first().astype(object)
    assert {item: None if pd.isna(years[item]) else years[item] for item in TITLES} == {
        item: year for item, (_, year) in TITLES.items()
    }


@pytest.mark.slow
def test_headline_and_pictures_tell_rows_for_rows_and_periods_for_periods(release: Clone) -> None:
    ended = release.run("recsys", settings())
    assert ended.status == 0, ended.terminal
    told = release.start("python", "-m", "whitewater", "results", PYTHONPATH="src").ended().terminal
    assert "from the first period" in told
    assert not re.search(r"\bdays?\b", told)
    words = comments(release, "drift")
    assert "Drift from the first period" in words
    assert not re.search(r"\bdays?\b", words, re.IGNORECASE)
    trained = release.json("data/recsys/split.json")["parts"]["train"]["rows"]
    assert f"3 vocabularies of {trained} training rows" in comments(release, "categories")


def test_files_without_times_are_compared_file_by_file(fresh: Clone) -> None:
    for number in range(3):
        lines = "".join(f"{row % 2},{row % 7}\n" for row in range(number, 200))
        (fresh / f"log-{number}.csv").write_text("clicked,price\n" + lines)
    columns = [{"name": "clicked", "role": "label"}, {"name": "price", "role": "continuous"}]
    source = {"source": "files", "files": {"files": ["log-*.csv"], "columns": columns}}
    ended = fresh.run("recsys", {"fetch": source}, f"{RESULTS}/drift.json")
    assert ended.status == 0, ended.terminal
    assert fresh.json(f"{RESULTS}/drift.json")["period"] == "file"
    assert "over 3 files" in ended.terminal
