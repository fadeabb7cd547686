"""docs/cudf.md names the calls that cuDF answers otherwise than pandas."""

from __future__ import annotations

import re
from pathlib import Path

from tests.contract.gaps import DIFFERS
from tests.contract.signatures import recorded

PAGE = Path(__file__).parents[2] / "docs" / "cudf.md"
ROW = re.compile(r"^\| (`.*?`) \|", re.MULTILINE)


def calls_on_the_page() -> set[str]:
    """Return the calls in the first column of the table; of several, the first says of what they are."""
    named: set[str] = set()
    for row in ROW.findall(PAGE.read_text()):
        first, *others = re.findall(r"`([\w.]+)`", row)
        owner = first.rpartition(".")[0]
        named |= {f"cudf.{first}", *(f"cudf.{owner}.{other}" for other in others)}
    return named


def test_the_page_has_the_calls_that_differ_and_no_others() -> None:
    assert calls_on_the_page() == set(DIFFERS)


def test_the_calls_are_those_of_cudf() -> None:
    accessors = {f"cudf.Series.{name}" for name in ("str", "dt", "cat")}
    assert set(DIFFERS) - accessors <= set(recorded())
    assert all(any(name.startswith(f"{each}.") for name in recorded()) for each in accessors)
