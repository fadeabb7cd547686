"""Operations on tables in Polars."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array, Device
from whitewater.engines.workers import Workers
from whitewater.errors import InputError
from whitewater.step import Run
from whitewater.tables.config import RawFiles
from whitewater.tables.eras import Codes, Era, RawColumn, Rule
from whitewater.tables.group_statistics import BINS, LIMIT, SQUARE_UNIT, TOO_LARGE, VALUE_UNIT, as_sums
from whitewater.tables.partitions import Partition, write_table
from whitewater.tables.raw_files import CheckedBlocks, Frames, Unit, arrow_blocks

Quantity = Callable[[str], pl.Expr]
# In memory at once while duplicates are searched for.
HASHES, ROWS = 2**24, 2**20
HASH, PLACE = "hash of the row", "place of the row"


def read_frames(unit: Unit, *, rows: int, schema: pa.Schema, codes: Mapping[str, Codes]) -> Frames:
    """Yield about ``rows`` rows of a unit at a time, see `in_schema`, and the malformed lines."""
    for raw, malformed in pieces(unit, rows):
        yield collect(in_schema(raw, unit.file.era, schema, codes), unit.file.name), malformed


def check_blocks(unit: Unit, *, schema: pa.Schema, rules: Sequence[Rule], run: Run[RawFiles]) -> CheckedBlocks:
    """Yield the rows of a unit in a schema, their `rule_mask`, and the malformed lines."""
    for frame, malformed in read_frames(unit, rows=run.settings.block_rows, schema=schema, codes={}):
        yield to_arrow(frame, schema), frame.select(rule_mask(rules, pl.col)).to_series().to_numpy(), malformed


def to_arrow(frame: pl.DataFrame, schema: pa.Schema) -> pa.Table:
    """Convert a frame to an Arrow table of a schema."""
    return frame.select(schema.names).to_arrow().cast(schema)


def write_frame(frame: pl.DataFrame, path: Path, schema: pa.Schema) -> None:
    """Write the columns of a schema as a Parquet file."""
    write_table(to_arrow(frame, schema), path)


def collect(rows: pl.LazyFrame, file: Path | str) -> pl.DataFrame:
    """Compute a query on a file; raises InputError if the file cannot be read."""
    try:
        return rows.collect()
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}. Get the file again, or leave it out.") from error


def in_schema(raw: pl.LazyFrame, era: Era, schema: pa.Schema, codes: Mapping[str, Codes]) -> pl.LazyFrame:
    """Convert the raw columns of an era to the columns of a schema that the era has, and add ``issues``.

    An invalid code or count becomes null, and sets bit *i* of ``issues`` if its column is the *i*-th of ``codes``. NaN
    becomes null.
    """
    # Faster than `fill_nan`.
    rows = raw.with_columns(pl.when(cs.float().is_not_nan()).then(cs.float())).select(
        *(_value(column, codes.get(name)).alias(name) for name, column in era.columns.items()),
        *(pl.lit(value).alias(name) for name, value in era.constants.items()),
    )
    present = {*era.columns, *era.constants, "issues"}
    is_code = {name: _is_code(name, codes[name]) for name in codes if name in era.columns}
    bits = {name: 1 << bit for bit, name in enumerate(codes)}
    types = pl.Schema(schema)
    # A cast that wraps is exact for valid codes, and faster than one that checks.
    wrapped = {name: pl.col(name).cast(types[name], wrap_numerical=True) for name in is_code}
    return rows.with_columns(
        *(pl.when(valid).then(wrapped[name]).alias(name) for name, valid in is_code.items()),
        issues=pl.sum_horizontal(0, *(pl.when(valid).then(0).otherwise(bits[name]) for name, valid in is_code.items())),
    ).select(pl.col(name).cast(types[name]) for name in schema.names if name in present)


def _value(column: RawColumn, codes: Codes | None) -> pl.Expr:
    value = pl.col(column.raw_name)
    if codes is None:
        return value
    if column.kind == "text":
        recode = partial(_recode, codes=codes)
        value = value.map_batches(recode, return_dtype=pl.Int64, is_elementwise=True)
    return value if codes.null is None else pl.when(value != codes.null).then(value)


def _is_code(name: str, codes: Codes) -> pl.Expr:
    value = pl.col(name)
    is_code = value.is_between(codes.least, codes.largest) & (value == value.floor())
    return is_code.fill_null(codes.nullable)


def _recode(texts: pl.Series, *, codes: Codes) -> pl.Series:
    """Return the int64 codes of texts; each distinct text is looked up once."""
    texts = texts.cast(pl.Categorical)
    words = texts.unique()
    code_of_word = [codes.code_of(word) for word in words.cast(pl.String)]
    return texts.replace_strict(words, code_of_word, return_dtype=pl.Int64).cast(pl.Int64)  # without rows still text


def pieces(unit: Unit, rows: int) -> Iterator[tuple[pl.LazyFrame, tuple[str, ...]]]:
    """Yield the raw columns of a unit, plain Parquet as a lazy scan, and the malformed lines."""
    if not unit.file.plain:
        for table, malformed in arrow_blocks(unit, rows=rows):
            yield pl.DataFrame(pl.from_arrow(table)).lazy(), malformed
        return
    raw = pl.scan_parquet(unit.file.path, glob=False, hive_partitioning=False)
    for first in unit.rows[::rows]:
        yield raw.slice(first, min(rows, unit.rows.stop - first)), ()


def scan(partition: Partition, schema: pa.Schema) -> pl.LazyFrame:
    """Scan the parts of a partition in a schema, with columns ``file``, int64, and ``duplicate``, bool."""
    parts = [pl.scan_parquet(part.path).with_columns(file=pl.lit(part.file, pl.Int64)) for part in partition.parts]
    rows = pl.concat(parts, how="diagonal")
    types, present = pl.Schema(schema), rows.collect_schema()
    nulls = [pl.lit(None, type_).alias(name) for name, type_ in types.items() if name not in present]
    return rows.with_columns(*nulls, duplicate=pl.lit(pl.Series(partition.duplicates())))


def rule_mask(rules: Sequence[Rule], quantity: Quantity) -> pl.Expr:
    """Return an int64 mask of the rules that each row breaks: bit *i* is set for ``rules[i]``."""
    # Testing a null gives null, which the sum skips: null breaks no rule.
    bits = (_breaks(rule, quantity).cast(pl.Int64) * (1 << bit) for bit, rule in enumerate(rules))
    return pl.sum_horizontal(pl.lit(0, pl.Int64), *bits)


def breaks_no_rule(rules: Iterable[Rule], quantity: Quantity) -> pl.Expr:
    """Return whether each row breaks no rule; faster than ``rule_mask(...) == 0``."""
    return ~pl.any_horizontal(pl.lit(False), *(_breaks(rule, quantity) for rule in rules)).fill_null(False)


def _breaks(rule: Rule, quantity: Quantity) -> pl.Expr:
    return rule.is_broken_by(quantity(rule.quantity), is_null="is_null", is_in="is_in")


def count_rows(rows: pl.LazyFrame, *keys: str) -> Counter[tuple[int | None, ...]]:
    """Count the rows of each combination of integers in the key columns, None for null."""
    return Counter({tuple(key): count for *key, count in rows.group_by(keys).len().collect().iter_rows()})


def to_arrays(rows: pl.DataFrame, names: Sequence[str], device: Device) -> dict[str, Array]:
    """Return columns as float64 arrays on the device, with times in microseconds; nulls and missing columns are NaN."""
    present = rows.select(cs.by_name(names, require_all=False)).with_columns(cs.temporal().dt.timestamp("us"))
    numbers, null = present.cast(pl.Float64), device.xp.full(len(rows), float("nan"))
    return {name: device.to_device(numbers[name].to_numpy()) if name in numbers.columns else null for name in names}


def sums_by_bin(
    rows: pl.LazyFrame, keys: Sequence[pa.Schema], value: str, *, refusal: str = TOO_LARGE
) -> list[pa.Table]:
    """Return the sums of a float64 column by each schema of keys; see `whitewater.tables.group_statistics`.

    NaN counts as null. Raises InputError with the text ``refusal`` if a value is negative, infinite, or 2**20 or more.
    """
    values = pl.col(value).fill_nan(None)
    or_zero = pl.when((values >= 0) & (values < LIMIT)).then(values).otherwise(0.0)
    # Polars would evaluate an expression again at each use. A column is stored.
    numbers = rows.with_columns(values=values.is_not_null().cast(pl.Int64), or_zero=or_zero)
    numbers = numbers.with_columns(
        bin=(pl.col("or_zero") * BINS).ceil().cast(pl.Int64), sum=in_units(pl.col("or_zero"))
    )
    represented = pl.col("sum") / VALUE_UNIT
    numbers = numbers.with_columns(squares=(represented * represented * SQUARE_UNIT).cast(pl.Int128))
    totals = (pl.len().alias("rows"), pl.col("values").sum(), exact_sum("sum"), exact_sum("squares"))
    queries = [numbers.group_by(*key.names, "bin").agg(*totals) for key in keys]
    out_of_bounds = rows.select(((values < 0) | (values >= LIMIT)).sum())
    # In one call, so that the rows are read once.
    *frames, count = pl.collect_all([*queries, out_of_bounds], engine="streaming")
    if number := count.item():
        raise InputError(refusal.format(count=f"{number:,}"))
    total, squares = pl.col("sum"), pl.col("squares")
    parts = {  # Arrow has none of 128 bits
        "value_0": total // 2**31,
        "value_1": total % 2**31,
        "square_0": squares // 2**62,
        "square_1": squares // 2**31 % 2**31,
        "square_2": squares % 2**31,
    }
    tables = (
        frame.with_columns(part.cast(pl.Int64).alias(name) for name, part in parts.items())
        .drop("sum", "squares")
        .to_arrow(compat_level=pl.CompatLevel.oldest())
        for frame in frames
    )
    return [as_sums(table, key) for table, key in zip(tables, keys, strict=True)]


def in_units(values: pl.Expr) -> pl.Expr:
    """Return values from 0 to below 2**20 as int64, in 1 / `VALUE_UNIT`."""
    return (values * VALUE_UNIT).cast(pl.Int64)


def exact_sum(name: str) -> pl.Expr:
    """Return the sum of a column of integers, which 64 bits may not hold."""
    return pl.col(name).cast(pl.Int128).sum()


def mark_duplicates(
    partitions: Sequence[Partition], schema: pa.Schema, *, hashed: Sequence[str], folder: Path, workers: Workers
) -> list[Partition]:
    """Find the rows that have the same bits as an earlier row of their file in every column, nulls included.

    Returns partitions with `Partition.duplicate_rows`, in ``folder``. Rows are compared in all columns of the schema if
    they have the same hash of the columns ``hashed``, which all parts must have, and which are seldom equal. Hashes and
    such rows are kept on disk; memory holds about `HASHES` hashes, or `ROWS` rows.
    """
    if not partitions:
        return []
    numbered = [*enumerate(partitions)]
    paths = [folder / f"{number}.npy" for number, _ in numbered]
    list(workers.map(partial(_write_hashes, columns=hashed, folder=folder), numbered, label="hashes"))
    hashes = [np.load(folder / f"{number}.hashes.npy", mmap_mode="r") for number, _ in numbered]
    np.save(folder / "repeated.npy", _find_repeated(hashes))
    list(workers.map(partial(_write_candidates, schema=schema, folder=folder), numbered, label="candidates"))
    for places in _find_later_rows(folder):
        for number in np.unique(places >> 32):
            rows = places[places >> 32 == number] & 0xFFFFFFFF
            np.save(paths[number], np.append(np.load(paths[number]), rows))
    return [replace(partition, duplicate_rows=path) for partition, path in zip(partitions, paths, strict=True)]


def _write_hashes(task: tuple[int, Partition], *, columns: Sequence[str], folder: Path) -> None:
    """Write a hash of the file and some columns of each row, uint64."""
    number, partition = task
    rows = scan(partition, pa.schema([])).select("file", *columns).collect()
    np.save(folder / f"{number}.hashes.npy", rows.hash_rows().to_numpy())


def _find_repeated(hashes: Sequence[Array]) -> Array:
    """Return the hashes that occur more than once, ascending."""
    pieces = np.uint64(sum(map(len, hashes)) // HASHES + 1)
    repeated = []
    for piece in range(int(pieces)):
        values = np.sort(np.concatenate([array[array % pieces == piece] for array in hashes]))
        repeated.append(np.unique(values[1:][values[1:] == values[:-1]]))
    return np.sort(np.concatenate(repeated))


def _write_candidates(task: tuple[int, Partition], *, schema: pa.Schema, folder: Path) -> None:
    """Write the distinct rows whose hash is repeated, and the positions of the rows that equal one of them."""
    number, partition = task
    hashes, repeated = np.load(folder / f"{number}.hashes.npy"), np.load(folder / "repeated.npy", mmap_mode="r")
    rows = np.flatnonzero(np.searchsorted(repeated, hashes) < np.searchsorted(repeated, hashes, side="right"))
    frame = scan(partition, schema).select("file", *schema.names).collect()[rows]
    table = frame.to_arrow().cast(pa.schema([("file", pa.int64()), *schema]))
    places = number << 32 | rows
    table = table.append_column(PLACE, pa.array(places)).append_column(HASH, pa.array(hashes[rows]))
    is_first = np.isin(places, _first_places(table))
    np.save(folder / f"{number}.npy", rows[~is_first])
    candidates = table.filter(pa.array(is_first)).sort_by(HASH)
    pq.write_table(candidates, folder / f"{number}.parquet", row_group_size=ROWS // 16)


def _find_later_rows(folder: Path) -> Iterator[Array]:
    """Yield the places, partition << 32 | row, of candidates that equal one at an earlier place."""
    files = sorted(folder.glob("*.parquet"))
    hashes = np.sort(pq.read_table(files, columns=[HASH])[HASH].to_numpy())
    bounds = [*np.unique(hashes[::ROWS]), None]
    for low, high in pairwise(bounds):
        below = [] if high is None else [(HASH, "<", high)]
        rows = pq.read_table(files, filters=[(HASH, ">=", low), *below])
        yield np.setdiff1d(rows[PLACE].to_numpy(), _first_places(rows))


def _first_places(table: pa.Table) -> Array:
    """Return the first place of each set of rows that are equal in all other columns, ascending."""
    columns = [name for name in table.column_names if name != PLACE]
    return np.sort(table.group_by(columns).aggregate([(PLACE, "min")])[f"{PLACE}_min"].to_numpy())
