"""R6: an inner join of 1e9 rows with 1e7 rows on 5e6 keys, and the sum of a column.

The left table has ``x``, float64 uniform in [0, 1), and ``id``, int64 uniform in [0, keys); the right one ``y`` and
``id`` likewise. A key has two rows of the right table on average, so that the result, ``x``, ``id`` and ``y``, has
twice as many rows as the left one. The join is done when the result is in memory, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from benchmarks.published.array_join import matches
from benchmarks.published.dask_cluster import dask_client, frames_of
from benchmarks.published.fingerprint import added, fingerprint
from benchmarks.published.row import BOTH, SEED, CallCase, Published, Row, Timed, Variant, Work
from benchmarks.report import Size
from whitewater.engines import Device

LEFT_ROWS, RIGHT_ROWS, KEYS = 1_000_000_000, 10_000_000, 5_000_000
# Partitions of each table, at every scale, so that the graph of the tasks stays the same.
PARTITIONS = 16
TABLES = {"x": 0, "y": 1}
ROW_BYTES = 16


def left_rows(work: Work) -> int:
    """Return the rows of the left table."""
    return scaled(LEFT_ROWS, work)


def right_rows(work: Work) -> int:
    """Return the rows of the right table."""
    return scaled(RIGHT_ROWS, work)


def keys(work: Work) -> int:
    """Return the keys that there can be."""
    return scaled(KEYS, work)


def scaled(number: int, work: Work) -> int:
    """Return a number at the scale of the work, at least 1."""
    return max(1, round(number * work.scale))


def draw_partition(
    number: int, *, name: str, rows: int, keys: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return values and keys of a partition of the table whose values are called ``name``: the same anywhere."""
    rng = np.random.default_rng([SEED, TABLES[name], number])
    size = rows * (number + 1) // PARTITIONS - rows * number // PARTITIONS
    return rng.random(size), rng.integers(0, keys, size)


def frame_partition(number: int, *, device: Device, name: str, rows: int, keys: int) -> Any:
    """Return a partition as a frame of the device; a task of a worker."""
    values, ids = draw_partition(number, name=name, rows=rows, keys=keys)
    return frames_of(device).DataFrame({name: device.to_device(values), "id": device.to_device(ids)})


def draw(work: Work, name: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return values and keys of a whole table, on the host."""
    rows = left_rows(work) if name == "x" else right_rows(work)
    parts = [draw_partition(number, name=name, rows=rows, keys=keys(work)) for number in range(PARTITIONS)]
    return np.concatenate([values for values, _ in parts]), np.concatenate([ids for _, ids in parts])


def dask_table(work: Work, name: str) -> Any:
    """Return a table as Dask's, not yet computed."""
    import dask.dataframe as dd

    rows = left_rows(work) if name == "x" else right_rows(work)
    part = partial(frame_partition, device=work.device, name=name, rows=rows, keys=keys(work))
    return dd.from_map(part, range(PARTITIONS), meta=frame_partition(0, device=work.device, name=name, rows=0, keys=1))


def answer_of_columns(x: Any, ids: Any, y: Any) -> dict[str, int]:
    """Return the number of rows, the sum of their keys, and a sum of hashes of whole rows."""
    return {"rows": len(ids), "keys": int(ids.sum()), "fingerprint": fingerprint(ids, x, y)}


def answer_of_table(table: Any) -> dict[str, int]:
    """Return the answer of a table with the columns x, id and y, of any library; a task of a worker."""
    return answer_of_columns(*(table[name].to_numpy() for name in ("x", "id", "y")))


def answer_of_parts(answers: Any) -> JsonValue:
    """Return the answer of a table, given that of each of its parts."""
    parts = list(answers)
    return {
        "rows": sum(part["rows"] for part in parts),
        "keys": sum(part["keys"] for part in parts),
        "fingerprint": str(added(part["fingerprint"] for part in parts)),
    }


def answer_of_dask(client: Any, table: Any) -> JsonValue:
    """Return the answer of a persisted table of Dask, whose partitions stay where they are, and release it."""
    from dask.delayed import delayed
    from distributed import futures_of

    parts = [delayed(answer_of_table)(part) for part in table.to_delayed()]
    answer = answer_of_parts(client.gather(client.compute(parts)))
    # Its expressions refer to each other, so that Python would free it at some later call, which has no room for it.
    for future in futures_of(table):
        future.release()
    return answer


@contextmanager
def join_as_published(work: Work) -> Iterator[Timed]:
    """Dask's merge, persisted in the memory of its workers, which hold both tables."""
    from distributed import wait

    with dask_client(work.device, work.cluster, threads=work.threads) as client:
        left, right = dask_table(work, "x").persist(), dask_table(work, "y").persist()
        wait([left, right])
        calls = count()

        def join() -> Any:
            # Dask names a result after what it is computed from, and does not compute it again while anything holds it.
            # The suffix, which no column gets, makes each call another one.
            out = left.merge(right, on=["id"], suffixes=("_x", f"_y{next(calls)}")).persist()
            wait(out)
            return out

        yield Timed(join, answer=partial(answer_of_dask, client))


@contextmanager
def join_by_arrays(work: Work) -> Iterator[Timed]:
    """Join by NumPy or CuPy, by sorting the right table and searching for the left one, see `array_join`."""
    device = work.device
    (x, left), (y, right) = (tuple(device.to_device(column) for column in draw(work, name)) for name in TABLES)

    def joined() -> tuple[Any, Any, Any]:
        of_left, of_right = matches(device.xp, left, right)
        return x[of_left], left[of_left], y[of_right]

    yield Timed(
        joined,
        answer=lambda pairs: answer_of_parts([answer_of_columns(*(device.to_host(column) for column in pairs))]),
    )


@contextmanager
def join_by_pandas(work: Work) -> Iterator[Timed]:
    """Pandas, on one thread."""
    import pandas as pd

    left, right = (pd.DataFrame(columns_of(work, name)) for name in TABLES)
    yield Timed(lambda: left.merge(right, on="id"), answer=answer_of_whole)


@contextmanager
def join_by_polars(work: Work) -> Iterator[Timed]:
    """Polars on all threads."""
    import polars

    left, right = (polars.DataFrame(columns_of(work, name)) for name in TABLES)
    yield Timed(lambda: left.join(right, on="id"), answer=answer_of_whole)


@contextmanager
def join_by_duckdb(work: Work) -> Iterator[Timed]:
    """Ask in SQL over Arrow's memory, for a table of Arrow."""
    import duckdb
    import pyarrow as pa

    # The order of the rows, which nobody asks for, would cost memory and time.
    with duckdb.connect(config={"threads": work.threads, "preserve_insertion_order": False}) as connection:
        for table, name in (("lefts", "x"), ("rights", "y")):
            connection.register(table, pa.table(columns_of(work, name)))
        query = "select x, id, y from lefts join rights using (id)"
        yield Timed(lambda: connection.sql(query).to_arrow_table(), answer=answer_of_whole)


def columns_of(work: Work, name: str) -> dict[str, npt.NDArray[Any]]:
    """Return a table as columns by name, on the host."""
    values, ids = draw(work, name)
    return {name: values, "id": ids}


def answer_of_whole(table: Any) -> JsonValue:
    """Return the answer of a table that is not in parts."""
    return answer_of_parts([answer_of_table(table)])


@contextmanager
def sum_as_published(work: Work) -> Iterator[Timed]:
    """Dask's sum of a column that its workers hold."""
    from distributed import wait

    with dask_client(work.device, work.cluster, threads=work.threads):
        left = dask_table(work, "x").persist()
        wait(left)
        yield Timed(lambda: left.x.sum().compute(), answer=float)


@contextmanager
def sum_on_threads(work: Work) -> Iterator[Timed]:
    """NumPy's or CuPy's sum of a part on each thread."""
    xp = work.device.xp
    parts = xp.array_split(work.device.to_device(draw(work, "x")[0]), work.threads)
    with ThreadPoolExecutor(work.threads) as pool:
        yield Timed(lambda: sum(float(part) for part in pool.map(xp.sum, parts)), answer=float)


@contextmanager
def sum_by_numpy(work: Work) -> Iterator[Timed]:
    """NumPy, on one thread."""
    yield Timed(draw(work, "x")[0].sum, answer=float)


@contextmanager
def sum_by_pandas(work: Work) -> Iterator[Timed]:
    """Pandas, on one thread."""
    import pandas as pd

    yield Timed(pd.DataFrame(columns_of(work, "x"))["x"].sum, answer=float)


@contextmanager
def sum_by_polars(work: Work) -> Iterator[Timed]:
    """Polars on all threads."""
    import polars

    yield Timed(polars.DataFrame(columns_of(work, "x"))["x"].sum, answer=float)


def size(work: Work) -> Size:
    """Return the size of both tables."""
    return Size(rows=left_rows(work), bytes=ROW_BYTES * (left_rows(work) + right_rows(work)), basis="memory")


def size_of_sum(work: Work) -> Size:
    """Return the size of the column that is added up."""
    return Size(rows=left_rows(work), bytes=8 * left_rows(work), basis="memory")


ROW = Row(
    id="R6",
    name="join_dask",
    title="inner join of 1e9 rows with 1e7 rows on 5e6 keys, and `left.x.sum()`",
    cases=(
        CallCase(
            name="join",
            variants=(
                Variant("tuned", join_by_arrays, devices=BOTH, memory=7.0),
                Variant("as_published", join_as_published, devices=BOTH, memory=8.0),
                Variant("pandas", join_by_pandas, memory=7.0),
                Variant("polars", join_by_polars, packages=("polars",), memory=6.0),
                Variant("duckdb", join_by_duckdb, packages=("duckdb",), memory=6.0),
            ),
            oracle="pandas",
            size=size,
        ),
        CallCase(
            name="sum",
            variants=(
                Variant("tuned", sum_on_threads, devices=BOTH, memory=2.0),
                Variant("as_published", sum_as_published, devices=BOTH, memory=2.0),
                Variant("numpy", sum_by_numpy, memory=2.0),
                Variant("pandas", sum_by_pandas, memory=2.0),
                Variant("polars", sum_by_polars, packages=("polars",), memory=2.0),
            ),
            oracle="numpy",
            size=size_of_sum,
            operations=lambda work: float(left_rows(work)),
            published=(Published("Dask and cuDF, 8 GPUs", 0.25),),
        ),
    ),
)
