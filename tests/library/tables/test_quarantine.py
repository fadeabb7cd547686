"""Counts by mask become reasons and a funnel, and the rows on disk must be those that were counted."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from whitewater.errors import IntegrityError
from whitewater.tables.partitions import write_table
from whitewater.tables.quarantine import NO_ROWS, count_reasons, finish_data_sets, funnel

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
    assert pq.read_table(quarantine / NO_ROWS).column_names == ["a", "reasons", "source_file", "raw_line"]
    with pytest.raises(IntegrityError, match="holds 3 rows where 4 were written"):
        finish_data_sets(kept, quarantine, schema, {"rows_out": 4, "quarantined": 0})
