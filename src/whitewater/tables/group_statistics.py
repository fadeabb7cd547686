"""Counts, means, deviations and medians of a value by group, from sums that every engine computes to the same bits.

A table of sums has a row for each combination of keys and bin that occurs, with the columns

- the keys, of any type, null included;
- ``bin`` and ``bin_width``, int64, in units of 1 / `BINS`: a bin holds the values above ``bin - bin_width`` up to
  ``bin``; bin 0 holds only 0;
- ``rows`` and ``values``, int64: the numbers of rows, and of those whose value is not null;
- `SUMS`, int64: sums of the values and of their squares. Each number is cut into integers of 31 bits, highest bits
  first, so that sums over up to 2**32 - 1 rows fit in 64 bits. The remainder is dropped: less than 2**-42 of a value,
  and less than 2**-53 of its square. Squares are in float64, which IEEE 754 rounds the same way everywhere.

Sums can be added in any order. A table has at most `LARGEST` rows of about 100 bytes, or two per group if that is more:
above that, the width of all bins is doubled until it fits. The final width depends on the rows as a whole, not on their
partitions. Each of 1,000 groups may have 2,000 bins, each of 100,000 groups 20.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# Values are at least 0 and below this.
LIMIT = 2.0**20
# The unit of each integer is 2**-power.
VALUE = {"value_0": 11, "value_1": 42}
SQUARE = {"square_0": -9, "square_1": 22, "square_2": 53}
SUMS = (*VALUE, *SQUARE)
VALUE_UNIT, SQUARE_UNIT = 2**42, 2**53
BINS = 2**11
LARGEST = 2**21
COUNTS = ("rows", "values")
SUMMED = (*COUNTS, *SUMS)
COLUMNS = ("bin", "bin_width", *SUMMED)
TOO_LARGE = f"{{count}} values are negative, infinite, or {LIMIT:,.0f} or more. Leave them out, or change their unit."


def integers(values: Any) -> dict[str, Any]:
    """Return int64 columns, named as in `SUMS`, that represent values and their squares.

    ``values`` is a float64 series of pandas or cuDF, at least 0 and below `LIMIT`. Polars has 128-bit integers instead.
    """
    value = dict(_split(values, VALUE))
    # Square what the sums of values represent, so that the dropped remainder does not distort a small deviation.
    represented = sum(value[name] * 2.0**-power for name, power in VALUE.items())
    return {**value, **dict(_split(represented * represented, SQUARE))}


def totals(sums: Mapping[str, npt.NDArray[np.int64]]) -> tuple[Any, Any]:
    """Return the sums of values in 1 / `VALUE_UNIT`, and of squares in 1 / `SQUARE_UNIT`, as Python integers."""
    value, square = (
        sum(sums[name].astype(object) * 2 ** (max(powers.values()) - power) for name, power in powers.items())
        for powers in (VALUE, SQUARE)
    )
    return value, square


def _split(numbers: Any, powers: Mapping[str, int]) -> Iterator[tuple[str, Any]]:
    for name, power in powers.items():
        integer = (numbers * 2.0**power).astype("int64")
        yield name, integer
        # Exact, as the remainder consists of bits of the number itself.
        numbers = numbers - integer * 2.0**-power


def as_sums(table: pa.Table, keys: pa.Schema) -> pa.Table:
    """Return the sums that an engine computed as a table of sums, in the narrowest bins."""
    schema = _schema(keys)
    table = table.append_column("bin_width", pa.array(np.ones(len(table), np.int64)))
    return table.select(schema.names).cast(schema).replace_schema_metadata()


def _schema(keys: pa.Schema) -> pa.Schema:
    return pa.schema([*keys, *((name, pa.int64()) for name in COLUMNS)])


def merge(parts: Iterable[Sequence[pa.Table]], keys: Sequence[pa.Schema]) -> list[pa.Table]:
    """Add up tables of sums; each part has one table per schema of keys, in that order.

    ``parts`` are consumed one by one, and may be more than fit in memory.
    """
    unmerged: list[Sequence[pa.Table]] = [[_schema(schema).empty_table() for schema in keys]]
    for part in parts:
        unmerged.append(part)
        if sum(len(table) for tables in unmerged for table in tables) > 2 * LARGEST:
            unmerged = [_merge(unmerged)]
    return _merge(unmerged)


def summarize(sums: pa.Table, by: Sequence[str]) -> pa.Table:
    """Return the statistics of each group of the keys ``by``, sorted by key, null last.

    Columns: the keys; ``rows`` and ``values``, int64; and, float64, ``mean``, ``deviation`` (sample standard deviation,
    null for a single value), ``median``, and ``median_error``, the largest possible error of the median. All four are
    null for a group without values.
    """
    bins, groups = (_add_up(sums, keys).sort_by([(name, "ascending") for name in keys]) for keys in ([*by, "bin"], by))
    count = groups["values"].to_numpy()
    total, squares = totals({name: groups[name].to_numpy() for name in SUMS})
    # Python integers, so that nothing cancels.
    number = np.maximum(count, 1).astype(object)
    spread = number * squares * (VALUE_UNIT**2 // SQUARE_UNIT) - total * total
    variance = spread / (number * np.maximum(number - 1, 1) * VALUE_UNIT**2)
    statistics = {
        "mean": (total / (number * VALUE_UNIT), count > 0),
        "deviation": (np.sqrt(np.maximum(variance.astype(np.float64), 0)), count > 1),
        "median": (_medians(bins, count), count > 0),
        "median_error": (groups["bin_width"].to_numpy() / BINS, count > 0),
    }
    table = groups.select([*by, *COUNTS])
    for name, (values, is_defined) in statistics.items():
        table = table.append_column(name, pa.array(values.astype(np.float64), mask=~is_defined))
    return table


def _merge(parts: Sequence[Sequence[pa.Table]]) -> list[pa.Table]:
    """Add up tables of sums, with bins as wide as `LARGEST` rows require."""
    merged = []
    for tables in zip(*parts, strict=True):
        sums = pa.concat_tables(tables)
        keys = [name for name in sums.column_names if name not in COLUMNS]
        sums = _add_up(sums, [*keys, "bin"])
        while len(sums) > LARGEST and sums["bin_width"][0].as_py() < LIMIT * BINS:
            sums = _add_up(sums, [*keys, "bin"], widen=2)
        merged.append(sums)
    return merged


def _add_up(sums: pa.Table, by: Sequence[str], *, widen: int = 1) -> pa.Table:
    """Return one row for each group, in bins ``widen`` times as wide as the widest."""
    width = widen * (pc.max(sums["bin_width"]).as_py() or 1)
    bins = {"bin": -(-sums["bin"].to_numpy() // width) * width, "bin_width": np.full(len(sums), width)}
    for name, values in bins.items():
        sums = sums.set_column(sums.column_names.index(name), name, pa.array(values))
    # Copied, because Arrow warns if buffers from another process are not aligned.
    copy = pa.concat_tables([sums.schema.empty_table(), sums]).combine_chunks()
    aggregations = [("bin_width", "max"), *((name, "sum") for name in SUMMED)]
    return copy.group_by(list(by)).aggregate(aggregations).rename_columns([*by, "bin_width", *SUMMED])


def _medians(bins: pa.Table, count: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the median of each group, with the j-th of n values in a bin placed at (j + 1/2) / n of its width.

    ``bins`` are sorted by group; ``count`` is the number of values in each group.
    """
    inside = bins["values"].to_numpy()
    after, start = np.cumsum(inside), np.cumsum(count) - count
    upper, width = bins["bin"].to_numpy(), bins["bin_width"].to_numpy()

    def value_at(rank: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        # A group without values gets a value of another group, which the caller masks.
        row = np.minimum(np.searchsorted(after, start + rank, side="right"), len(after) - 1)
        from_above = (after[row] - start - rank - 0.5) / np.maximum(inside[row], 1)
        # Bin 0 holds only 0.
        return np.where(upper[row] > 0, upper[row] - width[row] * from_above, 0) / BINS

    last = np.maximum(count - 1, 0)
    return (value_at(last // 2) + value_at((last + 1) // 2)) / 2
