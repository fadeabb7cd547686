"""Parquet files: columns of a row group as blocks, and a block as a file.

On the CPU the flat columns that writers usually make are decoded by `whitewater.tables.parquet.chunk`; columns of any
other form (another encoding, codec or type) are read by pyarrow, with the same result. On the GPU cuDF reads and
writes; columns of a type that it would read otherwise take the way over the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from whitewater.engines import Array, Device
from whitewater.tables.blocks import Encoded, Kind, RawBlock


def row_group_blocks(
    device: Device, path: Path, row_group: int, columns: Mapping[str, Kind], *, block_rows: int
) -> Iterator[RawBlock]:
    """Read columns of one row group of a Parquet file, at most ``block_rows`` rows at a time, in file order.

    One block without rows if the row group has none. On the CPU memory grows with the block, not with the row group; a
    GPU holds the whole row group.

    Raises InputError where the file is damaged, or a column is missing or has a value that cannot be of its kind.
    """
    if device.name == "gpu":
        from whitewater.tables.parquet import blocks_gpu

        return blocks_gpu.row_group_blocks(path, row_group, columns, block_rows=block_rows)
    from whitewater.tables.parquet import blocks_cpu

    return blocks_cpu.row_group_blocks(path, row_group, columns, block_rows=block_rows)


def write_parquet(device: Device, block: Mapping[str, Array | Encoded], path: Path, kinds: Mapping[str, Kind]) -> None:
    """Write a block as one Parquet file of one row group, nulls as nulls, timestamps as ``timestamp[us]``."""
    if device.name == "gpu":
        from whitewater.tables.parquet import blocks_gpu

        blocks_gpu.write_parquet(block, path, kinds)
    else:
        from whitewater.tables.parquet import blocks_cpu

        blocks_cpu.write_parquet(block, path, kinds)
