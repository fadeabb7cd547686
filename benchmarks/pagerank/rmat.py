"""Edges by the recursive matrix model (R-MAT), in Parquet, made once.

A power-law graph as Graph500 specifies it: each edge falls into a quadrant of the adjacency matrix with probabilities
0.57, 0.19, 0.19, 0.05, level by level; then the vertices are renamed by a random permutation, so that ids tell nothing.

Source: D. Chakrabarti, Y. Zhan and C. Faloutsos, "R-MAT: A Recursive Model for Graph Mining", SDM 2004; Graph500.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

QUADRANTS = (0.57, 0.19, 0.19, 0.05)
ROW_GROUP = 1 << 20
ROW_GROUPS_A_FILE = 8


@dataclass(frozen=True)
class Edges:
    """A folder of edges as Whitewater's step `edges` leaves it; the peers read its Parquet files."""

    folder: Path
    edges: int

    @property
    def files(self) -> list[Path]:
        """The Parquet files, columns ``source`` and ``target``, int64."""
        return sorted(self.folder.glob("edges-*.parquet"))

    @property
    def file_bytes(self) -> int:
        """Bytes of the files."""
        return sum(path.stat().st_size for path in self.files)


def prepare(directory: Path, *, scale: int, edges: int, seed: int) -> Edges:
    """Make ``edges`` edges among 2**scale vertices, unless they are there."""
    folder = directory / f"rmat-{scale}-{edges}-{seed}"
    described = folder / "edges.json"
    if not described.exists():
        folder.mkdir(parents=True, exist_ok=True)
        generator = np.random.default_rng(seed)
        names = generator.permutation(np.int64(1) << scale)
        for number, first in enumerate(range(0, edges, ROW_GROUP * ROW_GROUPS_A_FILE)):
            count = min(ROW_GROUP * ROW_GROUPS_A_FILE, edges - first)
            _write(folder / f"edges-{number:05d}.parquet", names[ends(generator, scale, count)])
        form = {"format": 1, "edges": edges, "weighted": False, "directed": True, "named": False, "vertices": None}
        described.write_text(json.dumps({**form, "counts": {"rows": edges}}))
    return Edges(folder, edges)


def ends(generator: np.random.Generator, scale: int, count: int, *, xp: ModuleType = np) -> npt.NDArray[np.int64]:
    """Return sources and targets, int64 (2, count), of ``xp``, the library of the generator."""
    found: npt.NDArray[np.int64] = xp.zeros((2, count), xp.int64)
    bounds = xp.asarray(np.cumsum(QUADRANTS)[:3])
    for _ in range(scale):
        quadrant = xp.searchsorted(bounds, generator.random(count, np.float32), side="right")
        found = 2 * found + xp.stack([quadrant >> 1, quadrant & 1])
    return found


def _write(path: Path, ends: npt.NDArray[np.int64]) -> None:
    table = pa.table({"source": ends[0], "target": ends[1]})
    pq.write_table(table, path, row_group_size=ROW_GROUP, compression="snappy")
