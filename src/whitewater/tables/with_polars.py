"""What applications do with tables, in Polars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import polars as pl
import polars.selectors as cs
import pyarrow as pa

from whitewater.engines import Array, Device
from whitewater.tables.fixed_point import LIMIT, integers
from whitewater.tables.group_statistics import ADDED, BINS, TOO_LARGE, as_sums, check
from whitewater.tables.partitions import Partition
from whitewater.tables.rules import Rule

Quantity = Callable[[str], pl.Expr]


def scan(partition: Partition, schema: pa.Schema) -> pl.LazyFrame:
    """Scan the parts of a partition, and add for each row its ``file``, int64, and whether it is a ``duplicate``, bool.

    A column of the schema that all the parts lack is one null for the whole partition, which costs nothing.
    """
    parts = [pl.scan_parquet(part.path).with_columns(file=pl.lit(part.file, pl.Int64)) for part in partition.parts]
    rows = pl.concat(parts, how="diagonal")
    types, present = pl.DataFrame(schema.empty_table()).schema, rows.collect_schema()
    lacking = [pl.lit(None, type_).alias(name) for name, type_ in types.items() if name not in present]
    return rows.with_columns(*lacking, duplicate=pl.lit(pl.Series(partition.duplicates())))


def hash_rows(partition: Partition, columns: Sequence[str]) -> Array:
    """Return a uint64 of the file and some columns of each row, the same for equal ones."""
    return scan(partition, pa.schema([])).select("file", *columns).collect().hash_rows().to_numpy()


def take_rows(partition: Partition, rows: Array, *, schema: pa.Schema) -> pa.Table:
    """Return the columns of a schema, and ``file``, of the rows at the given positions."""
    taken = scan(partition, schema).select(*schema.names, "file").collect()[rows]
    return taken.to_arrow().cast(schema.append(pa.field("file", pa.int64())))


def broken(rules: Sequence[Rule], quantity: Quantity) -> pl.Expr:
    """Return an int64 mask of the rules that each row breaks, bit *i* being that of ``rules[i]``."""
    # Where a test is null, it is of a null, which breaks no rule; the sum leaves it out.
    bits = (_breaks(rule, quantity).cast(pl.Int64) * (1 << bit) for bit, rule in enumerate(rules))
    return pl.sum_horizontal(pl.lit(0, pl.Int64), *bits)


def kept(rules: Iterable[Rule], quantity: Quantity) -> pl.Expr:
    """Return whether each row breaks no rule: faster than ``broken(...) == 0``, for no mask is made."""
    return ~pl.any_horizontal(pl.lit(False), *(_breaks(rule, quantity).fill_null(False) for rule in rules))


def _breaks(rule: Rule, quantity: Quantity) -> pl.Expr:
    value = quantity(rule.quantity)
    if rule.test == "missing":
        return value.is_null()
    if rule.test == "in":
        return value.is_in(rule.operand)
    if rule.test == "not in":
        return ~value.is_in(rule.operand)
    meets: pl.Expr = rule.test(value, rule.operand)
    return meets


def count_rows(rows: pl.LazyFrame, *keys: str) -> Counter[tuple[int | None, ...]]:
    """Count the rows of each combination of integers in the key columns, None for null."""
    return Counter({tuple(key): count for *key, count in rows.group_by(keys).len().collect().iter_rows()})


def to_arrays(rows: pl.DataFrame, names: Sequence[str], device: Device) -> dict[str, Array]:
    """Return columns as arrays of float64, NaN for null; times are microseconds. One that the rows lack is all null."""
    present = rows.select(cs.by_name(names, require_all=False)).with_columns(cs.temporal().dt.timestamp("us"))
    numbers, null = present.cast(pl.Float64), device.xp.full(len(rows), float("nan"))
    return {name: device.to_device(numbers[name].to_numpy()) if name in numbers.columns else null for name in names}


def sums_by_bin(
    rows: pl.LazyFrame, keys: Sequence[pa.Schema], value: str, *, refusal: str = TOO_LARGE
) -> list[pa.Table]:
    """Return the sums of a float64 column by each of the keys; see `whitewater.tables.group_statistics`.

    ``keys`` are names of columns, and their types in the tables. A value that is null or NaN is none.

    Raises InputError with ``refusal`` if values are negative, infinite, or not below 2**20.
    """
    given = pl.col(value).fill_nan(None)
    known = pl.when((given >= 0) & (given < LIMIT)).then(given).otherwise(0.0)
    whole = _integer(known * BINS)
    numbers = rows.with_columns(
        rows=pl.lit(1, pl.Int64),
        values=_integer(given.is_not_null()),
        bin=whole + _integer(known * BINS > whole),
        **integers(known, _integer),
    )
    queries = [numbers.group_by(*each.names, "bin").agg(pl.col(*ADDED).sum()) for each in keys]
    refused = rows.select(((given < 0) | (given >= LIMIT)).sum())
    # One query, so that the rows are read once.
    *sums, count = pl.collect_all([*queries, refused], engine="streaming")
    check(count.item(), refusal)
    tables = (each.to_arrow(compat_level=pl.CompatLevel.oldest()) for each in sums)
    return [as_sums(table, each) for table, each in zip(tables, keys, strict=True)]


def _integer(numbers: pl.Expr) -> pl.Expr:
    return numbers.cast(pl.Int64)
