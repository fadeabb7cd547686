"""Operations on tables that applications share, in Polars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl
import polars.selectors as cs
import pyarrow as pa

from whitewater.engines import Array, Device
from whitewater.errors import InputError
from whitewater.tables.eras import Codes, Era, RawColumn, Rule
from whitewater.tables.group_statistics import BINS, LIMIT, SUMS, TOO_LARGE, as_sums, check, integers
from whitewater.tables.partitions import Partition, write_table
from whitewater.tables.raw_files import CheckedBlocks, Unit, UnitCounts, arrow_blocks

Quantity = Callable[[str], pl.Expr]
# Up to so many distinct texts, null included, comparisons find the codes in a fifth of the time that a look-up takes.
FEW_TEXTS = 8


def write_unit(
    unit: Unit,
    *,
    folder: Path,
    rows: int,
    schema: pa.Schema,
    codes: Mapping[str, Codes],
    count: Callable[[pl.DataFrame], Counter[tuple[int | None, ...]]],
) -> UnitCounts:
    """Write a unit of a raw file as parts of about ``rows`` rows at most, in a schema; see `in_schema`.

    Parts are ``part-FILE-UNIT-PIECE.parquet``; lines that cannot be parsed go to ``malformed-FILE-UNIT-PIECE.parquet``.
    """
    counts = UnitCounts()
    for piece, (raw, malformed) in enumerate(pieces(unit, rows)):
        name = f"{unit.stem(piece)}.parquet"
        if malformed:
            write_table(pa.table({"raw_line": pa.array(malformed, pa.string())}), folder / f"malformed-{name}")
        frame = collect(in_schema(raw, unit.file.era, schema, codes), unit.file.name)
        if len(frame):
            present = pa.schema([schema.field(column) for column in frame.columns])
            write_table(frame.to_arrow().cast(present), folder / f"part-{name}")
        counts += UnitCounts(len(malformed), next(iter(malformed), None), count(frame))
    return counts


def checked_blocks(unit: Unit, *, schema: pa.Schema, rules: Sequence[Rule], rows: int) -> CheckedBlocks:
    """Yield the rows of a unit that have a schema, what `rule_mask` says of them, and lines that cannot be parsed."""
    for raw, malformed in arrow_blocks(unit, rows=rows):
        frame = in_schema(pl.DataFrame(pl.from_arrow(raw)).lazy(), unit.file.era, schema, {})
        block = frame.with_columns(rule_mask=rule_mask(rules, pl.col)).collect()
        yield block.select(schema.names).to_arrow().cast(schema), block["rule_mask"].to_numpy(), malformed


def collect(rows: pl.LazyFrame, file: Path | str) -> pl.DataFrame:
    """Compute a query on a file; raises InputError, which names the file, if it cannot be read."""
    try:
        return rows.collect()
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}. Get the file again, or leave it out.") from error


def in_schema(raw: pl.LazyFrame, era: Era, schema: pa.Schema, codes: Mapping[str, Codes]) -> pl.LazyFrame:
    """Translate the raw columns of an era into those columns of a schema that the era has, and ``issues``.

    A code or count that is not understood becomes null, and sets bit *i* of ``issues`` if its column is the *i*-th of
    ``codes``. NaN becomes null.
    """
    rows = raw.with_columns(cs.float().fill_nan(None)).select(
        *(_value(column, codes.get(name)).alias(name) for name, column in era.columns.items()),
        *(pl.lit(value).alias(name) for name, value in era.constants.items()),
    )
    present = {*era.columns, *era.constants, "issues"}
    is_code = {name: _is_code(name, codes[name]) for name in codes if name in present}
    bits = {name: 1 << bit for bit, name in enumerate(codes)}
    types = pl.Schema(schema)
    return rows.with_columns(
        *(pl.when(valid).then(pl.col(name)).alias(name) for name, valid in is_code.items()),
        issues=pl.sum_horizontal(
            pl.lit(0), *(pl.when(valid).then(0).otherwise(bits[name]) for name, valid in is_code.items())
        ),
    ).select(pl.col(name).cast(types[name]) for name in schema.names if name in present)


def _value(column: RawColumn, codes: Codes | None) -> pl.Expr:
    value = pl.col(column.raw_name)
    if codes is None:
        return value
    if column.kind == "text":
        value = _recode(value, codes.code_of)
    return value if codes.null is None else pl.when(value != codes.null).then(value)


def _is_code(name: str, codes: Codes) -> pl.Expr:
    value = pl.col(name)
    is_code = value.is_between(codes.least, codes.largest) & (value == value.floor())
    return is_code.fill_null(codes.nullable)


def _recode(column: pl.Expr, code_of: Callable[[str | None], int | None]) -> pl.Expr:
    """Return the int64 codes of a column of texts; each distinct text is looked up once."""

    def to_codes(texts: pl.Series) -> pl.Series:
        # With null, because Polars leaves texts as they are if there is nothing to replace.
        code_of_text = {text: code_of(text) for text in (None, *texts.unique().to_list())}
        if len(code_of_text) > FEW_TEXTS:
            return texts.replace_strict(code_of_text, return_dtype=pl.Int64)
        text = pl.lit(texts)
        codes: pl.Expr = pl.when(text.is_null()).then(pl.lit(code_of_text.pop(None), pl.Int64))
        for word, code in code_of_text.items():
            codes = pl.when(text == word).then(pl.lit(code, pl.Int64)).otherwise(codes)
        return pl.select(codes).to_series()

    return column.map_batches(to_codes, return_dtype=pl.Int64, is_elementwise=True)


def pieces(unit: Unit, rows: int) -> Iterator[tuple[pl.LazyFrame, tuple[str, ...]]]:
    """Yield the raw columns of a unit, plain Parquet as a lazy scan, and the lines among them that cannot be parsed."""
    if not unit.file.plain:
        for table, malformed in arrow_blocks(unit, rows=rows):
            yield pl.DataFrame(pl.from_arrow(table)).lazy(), malformed
        return
    raw = pl.scan_parquet(unit.file.path, glob=False, hive_partitioning=False)
    for first in unit.rows[::rows]:
        yield raw.slice(first, min(rows, unit.rows.stop - first)), ()


def scan(partition: Partition, schema: pa.Schema) -> pl.LazyFrame:
    """Scan the parts of a partition, and add columns ``file``, int64, and ``duplicate``, bool.

    A column of the schema that no part has is one null for the whole partition, which costs nothing.
    """
    parts = [pl.scan_parquet(part.path).with_columns(file=pl.lit(part.file, pl.Int64)) for part in partition.parts]
    rows = pl.concat(parts, how="diagonal")
    types, present = pl.Schema(schema), rows.collect_schema()
    nulls = [pl.lit(None, type_).alias(name) for name, type_ in types.items() if name not in present]
    return rows.with_columns(*nulls, duplicate=pl.lit(pl.Series(partition.duplicates())))


def rule_mask(rules: Sequence[Rule], quantity: Quantity) -> pl.Expr:
    """Return an int64 mask of the rules that each row breaks: bit *i* is set for ``rules[i]``."""
    # The test of a null is null. The sum skips it, because a null breaks no rule.
    bits = (_breaks(rule, quantity).cast(pl.Int64) * (1 << bit) for bit, rule in enumerate(rules))
    return pl.sum_horizontal(pl.lit(0, pl.Int64), *bits)


def breaks_no_rule(rules: Iterable[Rule], quantity: Quantity) -> pl.Expr:
    """Return whether each row breaks no rule; faster than ``rule_mask(...) == 0``."""
    return ~pl.any_horizontal(pl.lit(False), *(_breaks(rule, quantity).fill_null(False) for rule in rules))


def _breaks(rule: Rule, quantity: Quantity) -> pl.Expr:
    value = quantity(rule.quantity)
    if rule.test == "missing":
        return value.is_null()
    if rule.test == "in":
        return value.is_in(rule.operand)
    if rule.test == "not in":
        return ~value.is_in(rule.operand)
    meets_test: pl.Expr = rule.test(value, rule.operand)
    return meets_test


def count_rows(rows: pl.LazyFrame, *keys: str) -> Counter[tuple[int | None, ...]]:
    """Count the rows of each combination of integers in the key columns, None for null."""
    return Counter({tuple(key): count for *key, count in rows.group_by(keys).len().collect().iter_rows()})


def to_arrays(rows: pl.DataFrame, names: Sequence[str], device: Device) -> dict[str, Array]:
    """Return columns as float64 arrays, nulls as NaN, times in microseconds. A column that the rows lack is all NaN."""
    present = rows.select(cs.by_name(names, require_all=False)).with_columns(cs.temporal().dt.timestamp("us"))
    numbers, null = present.cast(pl.Float64), device.xp.full(len(rows), float("nan"))
    return {name: device.to_device(numbers[name].to_numpy()) if name in numbers.columns else null for name in names}


def sums_by_bin(
    rows: pl.LazyFrame, keys: Sequence[pa.Schema], value: str, *, refusal: str = TOO_LARGE
) -> list[pa.Table]:
    """Return the sums of a float64 column for each of the keys; see `whitewater.tables.group_statistics`.

    ``keys`` name key columns, and give their types in the tables. Null and NaN do not count as values.

    Raises InputError with ``refusal`` if values are negative, infinite, or not below 2**20.
    """
    values = pl.col(value).fill_nan(None)
    known = pl.when((values >= 0) & (values < LIMIT)).then(values).otherwise(0.0)
    numbers = rows.with_columns(values=values.is_not_null().cast(pl.Int64), known=known)

    def integer(number: pl.Expr) -> pl.Expr:
        # As a column: Polars would compute an expression again for each of its uses, which takes eight times as long.
        nonlocal numbers
        name = f"integer {len(numbers.collect_schema())}"
        numbers = numbers.with_columns(number.cast(pl.Int64).alias(name))
        return pl.col(name)

    integer_columns = integers(pl.col("known"), integer)
    numbers = numbers.with_columns(bin=(pl.col("known") * BINS).ceil().cast(pl.Int64), **integer_columns)
    totals = (pl.len().alias("rows"), pl.col("values", *SUMS).sum())
    queries = [numbers.group_by(*key.names, "bin").agg(*totals) for key in keys]
    out_of_bounds = rows.select(((values < 0) | (values >= LIMIT)).sum())
    # One query, so that the rows are read once.
    *frames, count = pl.collect_all([*queries, out_of_bounds], engine="streaming")
    check(count.item(), refusal)
    tables = (frame.to_arrow(compat_level=pl.CompatLevel.oldest()) for frame in frames)
    return [as_sums(table, key) for table, key in zip(tables, keys, strict=True)]
