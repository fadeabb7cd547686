"""Parts are grouped in their order, and equal tables become equal bytes."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from whitewater.tables.partitions import Part, group_parts, write_table


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [([], []), ([4, 4, 4], [[4, 4], [4]]), ([20, 1, 9, 1], [[20], [1, 9], [1]]), ([10], [[10]])],
)
def test_parts_are_grouped_in_order_to_at_most_so_many_rows(sizes: list[int], groups: list[list[int]]) -> None:
    parts = [Part(Path(f"{number}.parquet"), 0, rows) for number, rows in enumerate(sizes)]
    found = group_parts(parts, rows=10)
    assert [[part.rows for part in each.parts] for each in found] == groups
    assert [part for each in found for part in each.parts] == parts
    assert [each.name for each in found] == [each.parts[0].path.name for each in found]


def test_bytes_do_not_depend_on_chunks_or_metadata(tmp_path: Path) -> None:
    whole = pa.table({"time": pa.array(range(5_000), pa.timestamp("us")), "fare": [float(i % 7) for i in range(5_000)]})
    chunks = pa.concat_tables([whole.slice(0, 1_111), whole.slice(1_111)]).replace_schema_metadata({"pandas": "{}"})
    write_table(whole, tmp_path / "whole.parquet")
    write_table(chunks, tmp_path / "chunks.parquet")
    assert (tmp_path / "whole.parquet").read_bytes() == (tmp_path / "chunks.parquet").read_bytes()
    assert pq.read_table(tmp_path / "chunks.parquet").equals(whole)
    assert pq.read_metadata(tmp_path / "whole.parquet").num_row_groups == 1
