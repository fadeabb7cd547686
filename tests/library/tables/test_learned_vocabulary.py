"""A column of text, whose vocabulary is learned, is the same in the parts of both engines."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.tables import with_dask, with_polars
from whitewater.tables.casts import Clock
from whitewater.tables.eras import Source
from whitewater.tables.raw_files import open_all, units, write_unit

SCHEMA = pa.schema({"station": pa.string(), "minutes": pa.float64(), "issues": pa.int32()})
SOURCE = Source(
    {"station": "station", "minutes": "minutes"}, {"station": "text", "minutes": "number"}, ("station",),
    ("a log", "ours"), rows="rides", setting="files", clock=Clock("UTC"),
)  # fmt: skip


def test_both_engines_write_the_same_text_of_10_000_stations(tmp_path: Path) -> None:
    rows = [f"{1000 + number / 100:.2f},{number}" for number in range(10_000)]
    (tmp_path / "log.csv").write_text("\n".join(["station,minutes", *rows, ",7", "1000.00,8"]) + "\n")
    files = open_all([tmp_path / "log.csv"], SOURCE)
    [unit] = units(files, rows=20_000)
    read_and_write: dict[str, tuple[Callable[..., Any], Callable[..., None]]] = {
        "polars": (partial(with_polars.read_frames, schema=SCHEMA), with_polars.write_frame),
        "dask": (partial(with_dask.read_frames, backend="pandas"), with_dask.write_frame),
    }
    for name, (read, write) in read_and_write.items():
        (tmp_path / name).mkdir()
        frames = read(unit, rows=20_000, codes={})
        write_unit(unit, frames, tmp_path / name, schema=SCHEMA, write=write, count=lambda _: Counter())
    polars, dask = (tmp_path / name / "part-0000-0000-0000.parquet" for name in read_and_write)
    assert polars.read_bytes() == dask.read_bytes()
    assert pq.read_table(polars).schema == SCHEMA
    assert pq.read_table(polars)["station"].to_pylist() == [*(row.split(",")[0] for row in rows), None, "1000.00"]
