"""Small logs of clicks with what logs have: nulls, long tails, empty texts, a constant column, one of nulls only.

And the step `fetch`, run on files, with what it leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import resolve
from whitewater.features.log_folder import FIRST, Log, LogColumn, LogFile, LogTime, file_name, open_log
from whitewater.features.operator import Node
from whitewater.features.operators import (
    AddMetadata,
    Bucketize,
    Categorify,
    Clip,
    FillMedian,
    FillMissing,
    HashBucket,
    HashedCross,
    JoinExternal,
    JoinGroupby,
    LambdaOp,
    ListSlice,
    LogOp,
    Normalize,
    NormalizeMinMax,
    PastCount,
    PastMean,
    Rename,
    TagAsItemFeatures,
    TagAsItemID,
    TagAsUserFeatures,
    TagAsUserID,
    TargetEncoding,
)
from whitewater.step import Run, execute
from whitewater_apps.recsys.config import Fetch
from whitewater_apps.recsys.steps.fetch import fetch

Row = dict[str, Any]
OWN = (
    LogColumn("I1", "continuous", "int32"),
    LogColumn("I2", "continuous", "float64"),
    LogColumn("I3", "continuous", "int32"),
    LogColumn("C1", "categorical", "string"),
    LogColumn("C2", "categorical", "string"),
    LogColumn("C3", "categorical", "int64"),
    LogColumn("C4", "categorical", "string"),
    LogColumn("L1", "list", "list<string>"),
    LogColumn("L2", "list", "list<int64>"),
)


def clicks(rows: int, *, seed: int = 0) -> pa.Table:
    """Return rows of a log; ``row_id`` counts them."""
    generator = np.random.default_rng(seed)
    numbers = np.arange(rows)
    words = np.array(["", "a", "bb", "é", "日本", "x" * 40, *(f"w{number}" for number in range(60))])
    return pa.table(
        {
            "row_id": pa.array(numbers, pa.int64()),
            "day": pa.array(numbers * 3 // max(rows, 1), pa.int32()),
            "time": pa.array(1_600_000_000 + numbers * 100, pa.int64()),
            "label": pa.array(generator.integers(0, 2, rows), pa.int8()),
            "I1": pa.array(generator.geometric(0.05, rows), pa.int32(), mask=generator.random(rows) < 0.2),
            "I2": pa.array(generator.lognormal(0, 2, rows), mask=generator.random(rows) < 0.1),
            "I3": pa.array(np.full(rows, 7), pa.int32()),
            "C1": pa.array(words[np.minimum(generator.zipf(1.3, rows), len(words)) - 1], mask=numbers % 11 == 3),
            "C2": pa.array(words[generator.integers(0, 6, rows)]),
            "C3": pa.array(
                generator.zipf(1.5, rows).clip(max=2**40) - 2, pa.int64(), mask=generator.random(rows) < 0.1
            ),
            "C4": pa.nulls(rows, pa.string()),
            "L1": pa.array(
                [_list(words[: 1 + number % 4].tolist(), number) for number in range(rows)], pa.list_(pa.string())
            ),
            "L2": pa.array([_list(list(range(number % 4)), number) for number in range(rows)], pa.list_(pa.int64())),
        }
    )


def _list(items: list[Any], number: int) -> list[Any] | None:
    """Some lists are null, and some of their items."""
    return None if number % 13 == 5 else [None if number % 17 == 4 else item for item in items]


def write_log(table: pa.Table, folder: Path, *, columns: Sequence[LogColumn] = OWN, row_group_rows: int = 1000) -> Path:
    """Write rows as a log, a file for each day."""
    writer = Log(folder, "files", (*FIRST, *columns), LogTime("seconds"), row_group_rows)
    files = []
    days = table["day"].to_numpy()
    for day in np.unique(days).tolist():
        with writer.file(file_name(day)) as file:
            file.write(table.filter(pa.array(days == day)))
        files.append(LogFile(file.path.name, file.rows, day))
    writer.finish(files)
    return folder


def write_parts(table: pa.Table, folder: Path, sizes: list[int]) -> Path:
    """Write rows as Parquet files of so many rows each."""
    folder.mkdir()
    start = 0
    for number, size in enumerate(sizes):
        pq.write_table(table.slice(start, size), folder / f"{number:03d}.parquet")
        start += size
    return folder


def features() -> Node:
    """Return features of `clicks` by many operators, learned in two phases."""
    numbers = ["I1", "I2", "I3"] >> FillMedian() >> Clip(min_value=0) >> LogOp() >> Normalize()
    categories = ["C1", "C2", "C3", "C4", ["C1", "C3"]] >> Categorify(freq_threshold=3, encode_type="combo")
    hashed = (["C1", "C3"] >> HashBucket(num_buckets=50) >> Rename(postfix="_hash")) + (
        [["C1", "C2"]] >> HashedCross(num_buckets=1000)
    )
    encoded = ["C1", ["C1", "C2"]] >> TargetEncoding(target="label", kfold=4, p_smooth=5)
    filled = ["I2"] >> FillMissing(fill_val=-1) >> Rename(postfix="_filled")
    return numbers + categories + hashed + encoded + filled


def other_features(table: Path) -> Node:
    """Return features by the operators that `features` has not, but those that need other rows.

    ``table`` is a place for the file that is joined.
    """
    pq.write_table(pa.table({"C2": ["", "a", "bb"], "price": [1.5, None, 2.5]}), table)
    numbers = (
        (["I1"] >> NormalizeMinMax() >> Rename(postfix="_ranged"))
        + (["I2"] >> Bucketize(boundaries=(0.5, 2, 10)) >> Rename(postfix="_bucket"))
        + (["time"] >> LambdaOp(function="hour_of_day"))
    )
    of_categories = (
        (["C1", ["C1", "C2"]] >> JoinGroupby())
        + (["C1"] >> PastCount(period=5000))
        + (["C1", ["C1", "C2"]] >> PastMean(target="label", period=5000))
        + (["C2"] >> JoinExternal(table=str(table), on="C2", columns=("price",)))
    )
    lists = (["L1"] >> Categorify() >> ListSlice(start=0, end=2, pad=True)) + (["L2"] >> ListSlice(start=-2))
    tagged = (["C3"] >> TagAsUserID()) + (["C2"] >> TagAsItemID() >> AddMetadata(tags=("x",), properties={"a": [1]}))
    users = ["I3"] >> TagAsUserFeatures() >> TagAsItemFeatures()
    return numbers + of_categories + lists + tagged[["C3"]] + (users >> Rename(name="constant"))


def run_fetch(source: str, /, simulated: Path | None = None, *, threads: int = 2, **given: Any) -> Log:
    """Run the step, with settings of its section and of that of the source; return the log."""
    own = {name: given.pop(name) for name in ("row_group_rows",) if name in given}
    run = Run("recsys", "fetch", resolve("cpu"), Fetch.model_validate({"source": source, source: given, **own}
              if source != "generated" else {"source": source, **own}), threads)  # fmt: skip
    place = Path("data/recsys")
    outputs = {"events": place / "events", "inputs": place / "inputs.json"}
    inputs: dict[str, Path | dict[str, Path]] = {"simulated": {"simulated": simulated} if simulated else {}}
    execute(run, fetch, inputs=inputs, outputs=outputs, record=Path("logs/fetch.json"))
    return open_log(outputs["events"])


def table(log: Log) -> pa.Table:
    return pa.concat_tables([pq.read_table(log.path / file.name) for file in log.files])


def records(log: Log) -> list[Row]:
    found: list[Row] = table(log).to_pylist()
    return found


def column(log: Log, name: str) -> list[Any]:
    found: list[Any] = table(log).column(name).to_pylist()
    return found


def write(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
