"""The groups of features that suit a source, where the configuration names none.

Numbers are counts with long tails: they go through ``log1p``, whose smallest value that has a meaning is 0, and then on
one scale. Nulls are filled last, so that neither mean nor deviation counts what was filled in; that they were null is
a feature too. Columns that are no counts but values about a large offset, such as Unix times, would lose what tells
them apart by the logarithm, so they go on one scale as they are; in the generated log these are known.

The group ``plain`` has the numbers as they came, on one scale: what the others are worth is told against it.

What is learnt of labels is learnt safely: target encoding out of fold, counts and means of the past by earlier periods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from whitewater.errors import ConfigError
from whitewater.features.config import Feature, Role
from whitewater.features.log_folder import DAY, LABEL
from whitewater_apps.recsys.config import Source
from whitewater_apps.recsys.synthetic.numbers import kind

Operators = tuple[str | dict[str, dict[str, Any]], ...]
# Pairs of columns with few values, of the generated log and of Criteo's.
PAIRS = (("C8", "C10"), ("C9", "C17"), ("C6", "C20"))
PLAIN = "plain"
_PLAIN: Operators = ({"Rename": {"postfix": "_plain"}}, "Normalize")
_LAST: Operators = ("Normalize", {"FillMedian": {"add_binary_cols": True}})
_COUNTS: Operators = ({"Clip": {"min_value": 0}}, "LogOp", *_LAST)
_TARGETS: Operators = ({"TargetEncoding": {"target": LABEL, "kfold": 5, "p_smooth": 20}},)
_EXAMPLE = """\
recsys:
  fit:
    features:
      - name: numbers
        columns: [price, "count_*"]
        operators: [{Clip: {min_value: 0}}, LogOp, Normalize, {FillMissing: {fill_val: 0}}]
      - name: categories
        columns: [user, [country, device]]
        operators: [{Categorify: {freq_threshold: 5}}]"""


def features(source: Source, columns: Mapping[str, Role]) -> tuple[Feature, ...]:
    """Return the groups of features of a source's log, given the role of each column.

    Raises ConfigError for files, whose columns mean what only their owner knows.
    """
    if source == "files":
        raise ConfigError(
            f"recsys.fit.features is empty, but what suits the columns of files is not known. List groups, such as\n"
            f"{_EXAMPLE}"
        )
    if source == "movielens":
        return tuple(_of_ratings())
    return tuple(_of_clicks(source, columns))


def _of_clicks(source: Source, columns: Mapping[str, Role]) -> Iterator[Feature]:
    numbers = [name for name, role in columns.items() if role == "continuous"]
    categories = [name for name, role in columns.items() if role == "categorical"]
    shifted = [name for name in numbers if source == "generated" and _has_offset(name)]
    counts = [name for name in numbers if name not in shifted]
    pairs = [pair for pair in PAIRS if set(pair) <= set(categories)]
    # The days of Criteo's files are known, but not their times.
    past = {} if source == "generated" else {"time": DAY, "period": 1}
    yield from _group(PLAIN, numbers, *_PLAIN)
    yield from _group("numeric", counts, *_COUNTS)
    yield from _group("offsets", shifted, *_LAST)
    yield from _group("categories", categories, {"Categorify": {"freq_threshold": 5}})
    yield from _group("targets", categories, *_TARGETS)
    yield from _group("crosses", pairs, *_TARGETS)
    yield from _group("past_counts", categories, {"PastCount": past}, "LogOp", "Normalize")


def _of_ratings() -> Iterator[Feature]:
    ids = ("user", "item")
    yield from _group("users", ["user"], {"Categorify": {"freq_threshold": 5}}, "TagAsUserID")
    yield from _group("items", ["item"], {"Categorify": {"freq_threshold": 5}}, "TagAsItemID")
    yield from _group("genres", ["genres"], "Categorify", "TagAsItemFeatures")
    yield from _group(PLAIN, ["year"], *_PLAIN)
    yield from _group("year", ["year"], *_LAST, "TagAsItemFeatures")
    yield from _group("targets", ids, *_TARGETS)
    yield from _group("past_counts", ids, "PastCount", "LogOp", "Normalize")
    yield from _group("past_means", ids, {"PastMean": {"target": LABEL}})


def _has_offset(name: str) -> bool:
    """Say whether a column of the generated log has values about a large offset."""
    return kind(int(name.removeprefix("I")) - 1).form in ("time", "shifted")


def _group(
    name: str, columns: Sequence[str | tuple[str, ...]], *operators: str | dict[str, dict[str, Any]]
) -> Iterator[Feature]:
    """Yield the group if there are columns for it."""
    if columns:
        yield Feature(name=name, columns=tuple(columns), operators=operators)
