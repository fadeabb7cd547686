"""Counts, means, deviations and medians of a value by keys, from sums by key and bin that all engines make alike.

A table of sums has a row for each key and bin that occur, with columns

- the keys, of any type, null included;
- ``bin`` and ``bin_width``, int64, in units of 1 / `BINS`: a bin holds the values above ``bin - bin_width`` and up to
  ``bin``; bin 0 holds 0 alone;
- ``rows`` and ``values``, int64: all rows, and those whose value is not null;
- `SUMS`, int64: the sums of the values and of their squares, each cut into integers of 31 bits, the highest bits first,
  so that sums over up to 2**32 - 1 rows fit in 64 bits. What is left after the last one is dropped: less than 2**-42 of
  a value, and less than 2**-53 of its square. Squares are those of float64, which IEEE 754 rounds alike everywhere.

Sums add up in any order. A table has at most `LARGEST` rows of about 100 bytes, or two for each group where that is
more: beyond that, all bins are made twice as wide, again and again. How wide they end up depends on the rows in
all and not on their partitions. Each of 1,000 groups may have 2,000 bins, each of 100,000 groups 20.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# Values are from 0 to below this.
LIMIT = 2.0**20
# Units of each integer in 1, as a power of two.
VALUE = {"value_0": 11, "value_1": 42}
SQUARE = {"square_0": -9, "square_1": 22, "square_2": 53}
SUMS = (*VALUE, *SQUARE)
VALUE_UNIT, SQUARE_UNIT = 2**42, 2**53
BINS = 2**11
LARGEST = 2**21
COUNTS = ("rows", "values")
ADDED = (*COUNTS, *SUMS)
COLUMNS = ("bin", "bin_width", *ADDED)
TOO_LARGE = (
    f"{{count}} values are negative, infinite, or {LIMIT:,.0f} or more. Leave them out, or give them in another unit."
)


def integers(values: Any) -> dict[str, Any]:
    """Return the columns of int64, by the names of `SUMS`, that stand for values and for their squares.

    ``values`` are a float64 series of pandas or cuDF, from 0 to below `LIMIT`. Polars has integers of 128 bits instead.
    """
    value = dict(_cut(values, VALUE))
    # Of what the sums of values hold, so that a small spread is not lost in what was dropped.
    held = sum(value[name] * 2.0**-power for name, power in VALUE.items())
    return {**value, **dict(_cut(held * held, SQUARE))}


def totals(sums: Mapping[str, npt.NDArray[np.int64]]) -> tuple[Any, Any]:
    """Return the sums of values in 1 / `VALUE_UNIT`, and of squares in 1 / `SQUARE_UNIT`, as integers of any size."""
    value, square = (
        sum(sums[name].astype(object) * 2 ** (max(powers.values()) - power) for name, power in powers.items())
        for powers in (VALUE, SQUARE)
    )
    return value, square


def _cut(numbers: Any, powers: Mapping[str, int]) -> Iterator[tuple[str, Any]]:
    for name, power in powers.items():
        whole = (numbers * 2.0**power).astype("int64")
        yield name, whole
        # Exact: what is left are bits of the number itself.
        numbers = numbers - whole * 2.0**-power


def as_sums(counted: pa.Table, keys: pa.Schema) -> pa.Table:
    """Return what an engine counted as a table of sums, in the finest bins."""
    table = counted.append_column("bin_width", pa.array(np.ones(len(counted), np.int64)))
    schema = _schema(keys)
    return table.select(schema.names).cast(schema).replace_schema_metadata()


def _schema(keys: pa.Schema) -> pa.Schema:
    return pa.schema([*keys, *((name, pa.int64()) for name in COLUMNS)])


def merge(parts: Iterable[Sequence[pa.Table]], keys: Sequence[pa.Schema]) -> list[pa.Table]:
    """Add up tables of sums, of which each part holds one for each of the keys, in their order.

    ``parts`` are taken one by one, and may be more than fit in memory.
    """
    waiting: list[Sequence[pa.Table]] = [[_schema(each).empty_table() for each in keys]]
    for part in parts:
        waiting.append(part)
        if sum(len(table) for tables in waiting for table in tables) > 2 * LARGEST:
            waiting = [_merge(waiting)]
    return _merge(waiting)


def summarize(sums: pa.Table, by: Sequence[str]) -> pa.Table:
    """Return the statistics of each group that ``by`` names, in the order of the keys, null last.

    ``sums`` are added up over their other keys. The columns are the keys; ``rows`` and ``values``, int64; and, float64,
    ``mean``; ``deviation``, that of a sample, null for a single value; ``median``; and ``median_error``, the greatest
    distance of the median from the exact one. All four are null where there is no value.
    """
    cells, groups = (_add_up(sums, keys).sort_by([(name, "ascending") for name in keys]) for keys in ([*by, "bin"], by))
    count = groups["values"].to_numpy()
    total, squares = totals({name: groups[name].to_numpy() for name in SUMS})
    # Of integers of any size, in which nothing cancels.
    number = np.maximum(count, 1).astype(object)
    spread = number * squares * (VALUE_UNIT**2 // SQUARE_UNIT) - total * total
    variance = spread / (number * np.maximum(number - 1, 1) * VALUE_UNIT**2)
    statistics = {
        "mean": (total / (number * VALUE_UNIT), count > 0),
        "deviation": (np.sqrt(np.maximum(variance.astype(np.float64), 0)), count > 1),
        "median": (_medians(cells, count), count > 0),
        "median_error": (groups["bin_width"].to_numpy() / BINS, count > 0),
    }
    table = groups.select([*by, *COUNTS])
    for name, (values, known) in statistics.items():
        table = table.append_column(name, pa.array(values.astype(np.float64), mask=~known))
    return table


def _merge(parts: Sequence[Sequence[pa.Table]]) -> list[pa.Table]:
    """Return the sums with each key and bin once, in bins so wide that they are few enough."""
    merged = []
    for tables in zip(*parts, strict=True):
        sums = pa.concat_tables(tables)
        keys = [name for name in sums.column_names if name not in COLUMNS]
        sums = _add_up(sums, [*keys, "bin"])
        while len(sums) > LARGEST and sums["bin_width"][0].as_py() < LIMIT * BINS:
            sums = _add_up(sums, [*keys, "bin"], wider=2)
        merged.append(sums)
    return merged


def _add_up(sums: pa.Table, by: Sequence[str], *, wider: int = 1) -> pa.Table:
    """Return one row for each group, in bins that are so many times as wide as the widest."""
    width = wider * (pc.max(sums["bin_width"]).as_py() or 1)
    bins = {"bin": -(-sums["bin"].to_numpy() // width) * width, "bin_width": np.full(len(sums), width)}
    for name, values in bins.items():
        sums = sums.set_column(sums.column_names.index(name), name, pa.array(values))
    # In memory of its own: Arrow warns where what another process sent is not aligned.
    own = pa.concat_tables([sums.schema.empty_table(), sums]).combine_chunks()
    added = [("bin_width", "max"), *((name, "sum") for name in ADDED)]
    return own.group_by(list(by)).aggregate(added).rename_columns([*by, "bin_width", *ADDED])


def _medians(cells: pa.Table, count: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the median of each group, where the j-th of n values in a bin is taken to be at (j + 1/2) / n of it.

    ``cells`` are in the order of the groups, of which each has so many values.
    """
    inside = cells["values"].to_numpy()
    after, start = np.cumsum(inside), np.cumsum(count) - count
    upper, width = cells["bin"].to_numpy(), cells["bin_width"].to_numpy()

    def value_at(rank: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        # A group without values takes those of another one.
        place = np.minimum(np.searchsorted(after, start + rank, side="right"), len(after) - 1)
        from_above = (after[place] - start - rank - 0.5) / np.maximum(inside[place], 1)
        # Bin 0 holds 0 alone.
        return np.where(upper[place] > 0, upper[place] - width[place] * from_above, 0) / BINS

    last = np.maximum(count - 1, 0)
    return (value_at(last // 2) + value_at((last + 1) // 2)) / 2
