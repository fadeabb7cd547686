"""Counts by mask become reasons and a funnel, and the rows on disk must be those that were counted."""

import operator
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.guarantees.running import listed
from tests.library.tables.test_raw_files import SOURCE
from whitewater.engines import Device
from whitewater.engines.config import Engine
from whitewater.errors import InputError, IntegrityError
from whitewater.io.store import write_json
from whitewater.step import Run
from whitewater.tables.config import RawFiles
from whitewater.tables.eras import Rule
from whitewater.tables.partitions import write_table
from whitewater.tables.quarantine import EMPTY_PART, count_reasons, finish_data_sets, funnel, split_files

REASONS = ("torn", "rare", "short", "dear")
MASKS = Counter({0b0000: 90, 0b1000: 5, 0b1100: 3, 0b0001: 2})


def test_a_row_counts_under_each_of_its_reasons() -> None:
    counts = count_reasons(MASKS, REASONS)
    assert counts == {"rows_in": 100, "rows_out": 90, "by_reason": {"torn": 2, "short": 3, "dear": 8}}


def test_a_row_leaves_the_funnel_at_its_first_reason_and_rare_ones_are_listed_where_they_are_met() -> None:
    stages = [("read", 100), ("torn", 98), ("short", 95), ("dear", 90)]
    assert [(each["rule"], each["rows"]) for each in funnel(MASKS, REASONS, rare={"rare"})] == stages
    assert [each["rule"] for each in funnel(MASKS, REASONS)] == ["read", *REASONS]


def test_a_row_that_is_missing_on_disk_is_an_error_and_no_rows_are_one_empty_file(tmp_path: Path) -> None:
    kept, quarantine, schema = tmp_path / "kept", tmp_path / "quarantine", pa.schema({"a": pa.int64()})
    write_table(pa.table({"a": [1, 2]}), kept / "year=1" / "a.parquet")
    write_table(pa.table({"a": [3]}), kept / "year=2" / "b.parquet")
    quarantine.mkdir()
    finish_data_sets(kept, quarantine, schema, {"rows_out": 3, "quarantined": 0})
    assert pq.read_table(quarantine / EMPTY_PART).column_names == ["a", "reasons", "source_file", "raw_line"]
    with pytest.raises(IntegrityError, match="holds 3 rows where 4 were written"):
        finish_data_sets(kept, quarantine, schema, {"rows_out": 4, "quarantined": 0})


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_each_line_of_a_file_is_kept_or_quarantined_and_too_many_torn_ones_are_refused(
    engine: Engine, tmp_path: Path
) -> None:
    (tmp_path / "torn.csv").write_text("sensor,value\n7,1\n8,-2\nx,3\n9,\n")
    write_json(tmp_path / "inputs.json", listed(tmp_path / "torn.csv"))
    schema = pa.schema({"sensor": pa.int8(), "value": pa.float64()})
    rules = (Rule("missing", "value", "missing"), Rule("negative", "value", operator.lt, 0))

    def split(limit: float) -> dict[str, Any]:
        run = Run("app", "read", Device(), RawFiles(max_malformed_fraction=limit), engine=engine)
        folders = {name: tmp_path / f"{name} {limit}" for name in ("kept", "quarantine")}
        return split_files(run, tmp_path / "inputs.json", SOURCE, **folders, schema=schema, rules=rules)

    reasons = {"malformed_line": 1, "missing": 1, "negative": 1}
    totals = {"rows_in": 4, "rows_out": 1, "quarantined": 3}
    file = {"path": f"{tmp_path}/torn.csv", "rows_in": 4, "rows_out": 1, "by_reason": reasons, "quarantined": 3}
    assert split(0.25) == {"totals": totals, "files": [file]}
    message = r"torn\.csv: 1 of 4 lines cannot be parsed, more than app\.read\.max_malformed_fraction \(0\.2\) allows"
    with pytest.raises(InputError, match=rf"{message}\. The first: column 'sensor': 'x' is not a number"):
        split(0.2)
