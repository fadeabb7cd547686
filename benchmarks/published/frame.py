"""R2: the mean of a column, the means of groups, and a join of a table with itself, of 1e7 rows.

``x`` is float64, uniform in [0, 1), and ``y`` is int64, uniform in [0, rows): ``x.mean()``; ``groupby("y").mean()``;
``merge(self, on="y")``. Group-by and merge are done when all columns of the result are in memory, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from benchmarks.published.array_join import matches
from benchmarks.published.dask_cluster import frames_of
from benchmarks.published.fingerprint import fingerprint
from benchmarks.published.row import BOTH, SEED, CallCase, Published, Row, Timed, Variant, Work
from benchmarks.report import Size

ROWS = 10_000_000
# Prime, so that a mean is weighted by its key, and by another weight than the key of a neighboring row.
WEIGHTS = 1009


def rows(work: Work) -> int:
    """Return the rows of the table."""
    return max(1, round(ROWS * work.scale))


def draw(work: Work) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return ``x``, float64 (rows,), and ``y``, int64 (rows,), on the host, the same for every variant."""
    rng = np.random.default_rng(SEED)
    return rng.random(rows(work)), rng.integers(0, rows(work), rows(work))


def answer_of_groups(keys: Any, means: Any) -> JsonValue:
    """Return the number of groups, the sum of their keys, and sums of their means that no two can interchange."""
    weights = 1 + keys % WEIGHTS
    return {
        "groups": len(keys),
        "keys": int(keys.sum()),
        "means": float(means @ weights),
        "squares": float((means * means) @ weights),
    }


def answer_of_pairs(y: Any, x_x: Any, x_y: Any) -> JsonValue:
    """Return the number of rows, the sum of their keys, and a sum of hashes of whole rows."""
    return {"rows": len(y), "keys": int(y.sum()), "fingerprint": str(fingerprint(y, x_x, x_y))}


@contextmanager
def mean_as_published(work: Work) -> Iterator[Timed]:
    """Return the mean by pandas or cuDF."""
    frame = frame_of(work)
    yield Timed(frame.x.mean, answer=float)


@contextmanager
def mean_on_threads(work: Work) -> Iterator[Timed]:
    """NumPy's or CuPy's sum of a part on each thread."""
    xp = work.device.xp
    x = work.device.to_device(draw(work)[0])
    parts = xp.array_split(x, work.threads)
    with ThreadPoolExecutor(work.threads) as pool:
        yield Timed(lambda: sum(float(part) for part in pool.map(xp.sum, parts)) / len(x), answer=float)


@contextmanager
def mean_by_numpy(work: Work) -> Iterator[Timed]:
    """NumPy, on one thread."""
    yield Timed(draw(work)[0].mean, answer=float)


@contextmanager
def mean_by_polars(work: Work) -> Iterator[Timed]:
    """Polars on all threads."""
    yield Timed(polars_frame(work)["x"].mean, answer=float)


@contextmanager
def mean_by_duckdb(work: Work) -> Iterator[Timed]:
    """Ask for the mean in SQL."""
    with duckdb_table(work) as query:
        yield Timed(lambda: query("select avg(x) as x from numbers"), answer=lambda table: float(table["x"][0].as_py()))


@contextmanager
def groups_as_published(work: Work) -> Iterator[Timed]:
    """Return the means by pandas or cuDF."""
    frame = frame_of(work)
    yield Timed(
        lambda: frame.groupby("y").mean(),
        answer=lambda means: answer_of_groups(means.index.to_numpy(), means["x"].to_numpy()),
    )


@contextmanager
def groups_by_arrays(work: Work) -> Iterator[Timed]:
    """NumPy or CuPy: keys that lie close together are places in an array of sums, others are numbered by sorting."""
    xp = work.device.xp
    x, y = (work.device.to_device(column) for column in draw(work))
    yield Timed(
        lambda: means_of_arrays(xp, y, x),
        answer=lambda means: answer_of_groups(*(work.device.to_host(column) for column in means)),
    )


def means_of_arrays(xp: Any, keys: Any, values: Any) -> tuple[Any, Any]:
    """Return each key that occurs, ascending, and the mean of its values."""
    low = int(keys.min()) if len(keys) else 0
    if len(keys) and int(keys.max()) - low < 4 * len(keys):
        counts = xp.bincount(keys - low)
        totals = xp.bincount(keys - low, weights=values)
        found = xp.flatnonzero(counts)
        return found + low, totals[found] / counts[found]
    found, numbers = xp.unique(keys, return_inverse=True)
    return found, xp.bincount(numbers, weights=values) / xp.bincount(numbers)


@contextmanager
def groups_by_polars(work: Work) -> Iterator[Timed]:
    """Polars on all threads."""
    import polars

    frame = polars_frame(work)
    yield Timed(
        lambda: frame.group_by("y").agg(polars.col("x").mean()),
        answer=lambda means: answer_of_groups(means["y"].to_numpy(), means["x"].to_numpy()),
    )


@contextmanager
def groups_by_duckdb(work: Work) -> Iterator[Timed]:
    """Ask in SQL, for a table of Arrow."""
    with duckdb_table(work) as query:
        yield Timed(
            lambda: query("select y, avg(x) as x from numbers group by y"),
            answer=lambda means: answer_of_groups(means["y"].to_numpy(), means["x"].to_numpy()),
        )


@contextmanager
def merge_as_published(work: Work) -> Iterator[Timed]:
    """Join by pandas or cuDF."""
    frame = frame_of(work)
    yield Timed(lambda: frame.merge(frame, on="y"), answer=columns_answer("y", "x_x", "x_y"))


@contextmanager
def merge_by_arrays(work: Work) -> Iterator[Timed]:
    """Join by NumPy or CuPy, by sorting and searching, see `array_join`."""
    xp = work.device.xp
    x, y = (work.device.to_device(column) for column in draw(work))

    def joined() -> tuple[Any, Any, Any]:
        left, right = matches(xp, y, y)
        return y[left], x[left], x[right]

    yield Timed(joined, answer=lambda pairs: answer_of_pairs(*(work.device.to_host(column) for column in pairs)))


@contextmanager
def merge_by_polars(work: Work) -> Iterator[Timed]:
    """Polars on all threads."""
    frame = polars_frame(work)
    yield Timed(lambda: frame.join(frame, on="y"), answer=columns_answer("y", "x", "x_right"))


@contextmanager
def merge_by_duckdb(work: Work) -> Iterator[Timed]:
    """Ask in SQL, for a table of Arrow."""
    join = "select y, one.x as x_x, other.x as x_y from numbers one join numbers other using (y)"
    with duckdb_table(work) as query:
        yield Timed(lambda: query(join), answer=columns_answer("y", "x_x", "x_y"))


def columns_answer(*names: str) -> Callable[[Any], JsonValue]:
    """Return the function that reads the answer of a join from a table with columns of these names."""
    return lambda table: answer_of_pairs(*(table[name].to_numpy() for name in names))


def frame_of(work: Work) -> Any:
    """Return the table as a frame of pandas or cuDF."""
    x, y = draw(work)
    return frames_of(work.device).DataFrame({"x": work.device.to_device(x), "y": work.device.to_device(y)})


def polars_frame(work: Work) -> Any:
    """Return the table as a frame of Polars, over the same memory."""
    import polars

    x, y = draw(work)
    return polars.DataFrame({"x": x, "y": y})


@contextmanager
def duckdb_table(work: Work) -> Iterator[Callable[[str], Any]]:
    """Open DuckDB over the table ``numbers`` in Arrow's memory; yield a function from a query to a table of Arrow."""
    import duckdb
    import pyarrow as pa

    x, y = draw(work)
    # The order of the rows, which nobody asks for, would cost memory and time.
    with duckdb.connect(config={"threads": work.threads, "preserve_insertion_order": False}) as connection:
        connection.register("numbers", pa.table({"x": x, "y": y}))
        yield lambda query: connection.sql(query).to_arrow_table()


def size(work: Work) -> Size:
    """Return the size of the table."""
    return Size(rows=rows(work), bytes=16 * rows(work), basis="memory")


def size_of_mean(work: Work) -> Size:
    """Return the size of the one column that a mean is of."""
    return Size(rows=rows(work), bytes=8 * rows(work), basis="memory")


ROW = Row(
    id="R2",
    name="frame",
    title='1e7 rows: `x.mean()`, `groupby("y").mean()`, `merge(self, on="y")`',
    cases=(
        CallCase(
            name="mean",
            variants=(
                Variant("tuned", mean_on_threads, devices=BOTH),
                Variant("as_published", mean_as_published, devices=BOTH),
                Variant("numpy", mean_by_numpy),
                Variant("polars", mean_by_polars, packages=("polars",)),
                Variant("duckdb", mean_by_duckdb, packages=("duckdb",)),
            ),
            oracle="numpy",
            size=size_of_mean,
            operations=lambda work: float(rows(work)),
            published=(Published("pandas", 0.0502), Published("cuDF", 0.00142)),
        ),
        CallCase(
            name="groupby",
            variants=(
                Variant("tuned", groups_by_arrays, devices=BOTH),
                Variant("as_published", groups_as_published, devices=BOTH),
                Variant("polars", groups_by_polars, packages=("polars",)),
                Variant("duckdb", groups_by_duckdb, packages=("duckdb",)),
            ),
            oracle="as_published",
            size=size,
            published=(Published("pandas", 1.15), Published("cuDF", 0.054)),
        ),
        CallCase(
            name="merge",
            variants=(
                Variant("tuned", merge_by_arrays, devices=BOTH),
                Variant("as_published", merge_as_published, devices=BOTH),
                Variant("polars", merge_by_polars, packages=("polars",)),
                Variant("duckdb", merge_by_duckdb, packages=("duckdb",)),
            ),
            oracle="as_published",
            size=size,
            published=(Published("pandas", 10.3), Published("cuDF", 0.28)),
        ),
    ),
)
