"""Genotypes of many samples, in memory and in a folder: two bits each if they are diploid.

Two-bit code: bits ``2k`` and ``2k + 1`` of byte ``b`` of a variant hold the dosage of sample ``4b + k``: 0, 1 or 2, or
3 if the call is missing. Codes after the last sample are 3. Other ploidies are int8 dosages, -1 if missing.

A folder holds the calls of all variants in one file, whose rows any number of workers can read and write in place.

- ``genotypes.json``: format, encoding, ploidy, number of variants and samples
- ``calls.npy``: if two_bit, uint8 (variants, ceil(samples / 4)); if int8, dosages, int8 (variants, samples)
- ``variants.parquet``, a row per variant: contig, position (1-based), id, reference, alternate, filter_pass, count_0 to
  count_<ploidy>, count_missing
- ``samples.parquet``, a row per sample: sample, label, count_missing
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from whitewater import lazy_pandas as pd
from whitewater.engines import Array, Device
from whitewater.errors import IntegrityError
from whitewater.io.folder import Format

Encoding = Literal["two_bit", "int8"]
FORMAT = Format("genotypes.json", 1, "genotypes")
GENOTYPES_A_BYTE = 4
MISSING_CODE = 3
MISSING_DOSAGE = -1
# Variants per slab. Passes add up whole slabs, so ranges of whole slabs give the same sums for any partitioning.
SLAB = 256
BLOCK_BYTES = 2 << 20
# Most codes read at once, in bytes; a partition may hold many times as many.
PIECE_BYTES = 64 << 20


@dataclass(frozen=True)
class Genotypes:
    """Dosages of the non-reference allele, on any device."""

    codes: Array  # uint8 (variants, ceil(samples / 4)) if packed, else int8 (variants, samples)
    samples: int
    ploidy: int = 2

    @property
    def packed(self) -> bool:
        """Whether a byte holds four genotypes."""
        return bool(self.codes.dtype == np.uint8)

    @property
    def variants(self) -> int:
        return int(self.codes.shape[0])

    @property
    def columns(self) -> int:
        """Columns of an expanded matrix: `samples`, rounded up to a multiple of four if packed."""
        return int(self.codes.shape[1]) * (GENOTYPES_A_BYTE if self.packed else 1)

    def sample_columns(self, xp: ModuleType) -> Array:
        """Return the column of each sample in an expanded matrix: int64 (samples,).

        Bytes are expanded one bit pair at a time, which vectorizes: all samples ``4b``, then all ``4b + 1``, and so on.
        """
        samples: Array = xp.arange(self.samples)
        if not self.packed:
            return samples
        return samples % GENOTYPES_A_BYTE * self.codes.shape[1] + samples // GENOTYPES_A_BYTE

    def slice(self, start: int, stop: int) -> "Genotypes":
        """Return the variants in [start, stop), without a copy."""
        return Genotypes(self.codes[start:stop], self.samples, self.ploidy)

    def to_device(self, device: Device) -> "Genotypes":
        return Genotypes(device.to_device(self.codes), self.samples, self.ploidy)


def extract_dosages(genotypes: Genotypes, samples: Array) -> Array:
    """Return the dosages of the samples at these indices: int8 (variants, indices), -1 if missing."""
    codes = genotypes.codes
    if not genotypes.packed:
        return codes[:, samples]
    shifted = codes[:, samples // GENOTYPES_A_BYTE] >> (2 * (samples % GENOTYPES_A_BYTE)).astype(np.uint8)
    # Add 1 modulo 4, then subtract it again: code 3, a missing call, becomes -1.
    return ((shifted + 1) & 3).astype(np.int8) - 1


@dataclass(frozen=True)
class GenotypeFolder:
    """An open folder of genotypes, as `genotypes.json` describes it."""

    path: Path
    encoding: Encoding
    ploidy: int
    variants: int
    samples: int

    @property
    def row_bytes(self) -> int:
        return -(-self.samples // GENOTYPES_A_BYTE) if self.encoding == "two_bit" else self.samples

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint8 if self.encoding == "two_bit" else np.int8)

    @cached_property
    def empty(self) -> Genotypes:
        """Genotypes of all samples at no variant, which know the layout of an expanded matrix."""
        return Genotypes(np.empty((0, self.row_bytes), self.dtype), self.samples, self.ploidy)

    def read(self, start: int, stop: int) -> Genotypes:
        """Read the variants in [start, stop) into host memory. Raises IntegrityError if the file ends before."""
        codes = np.empty((stop - start, self.row_bytes), self.dtype)
        self.read_into(codes, start)
        return Genotypes(codes, self.samples, self.ploidy)

    def read_into(self, codes: npt.NDArray[Any], start: int) -> None:
        """Fill ``codes``, in C order, with the variants from ``start`` on; see `read`."""
        with FORMAT.explain_errors(self._calls_path), self._calls_path.open("rb") as file:
            file.seek(self._offset + start * self.row_bytes)
            size = file.readinto(codes.data.cast("B")) if codes.size else 0
        if size != codes.nbytes:
            raise IntegrityError(f"{self._calls_path} ends before variant {start + len(codes)}. {FORMAT.remedy}")

    def read_rows(self, rows: npt.NDArray[np.int64]) -> Genotypes:
        """Read the variants at ``rows``, ascending, block by block; see `read`."""
        codes = np.empty((len(rows), self.row_bytes), self.dtype)
        cuts = np.flatnonzero(np.diff(rows // self.block_variants, prepend=-1, append=-1)).tolist()
        for first, last in pairwise(cuts):
            block = rows[first:last]
            codes[first:last] = self.read(int(block[0]), int(block[-1]) + 1).codes[block - block[0]]
        return Genotypes(codes, self.samples, self.ploidy)

    def write(self, start: int, codes: npt.NDArray[Any]) -> None:
        with self._calls_path.open("r+b") as file:
            file.seek(self._offset + start * self.row_bytes)
            file.write(np.ascontiguousarray(codes).data)

    @property
    def block_variants(self) -> int:
        """Variants per block: whole slabs of about `BLOCK_BYTES`."""
        return SLAB * max(1, BLOCK_BYTES // (SLAB * max(1, self.row_bytes)))

    def ranges(self, *, maximum: int = 64) -> list[tuple[int, int]]:
        """Split the variants into ranges of whole blocks, which depend only on the shape of the data."""
        blocks = max(1, -(-self.variants // self.block_variants))
        size = self.block_variants * -(-blocks // maximum)
        return [(start, min(start + size, self.variants)) for start in range(0, self.variants, size)]

    def variants_table(self, columns: list[str] | None = None) -> "pd.DataFrame":
        return FORMAT.table(self.path / "variants.parquet", columns, rows=self.variants).to_pandas()

    def samples_table(self) -> "pd.DataFrame":
        return FORMAT.table(self.path / "samples.parquet", rows=self.samples).to_pandas()

    def finish(self, *, variants: "pd.DataFrame", samples: "pd.DataFrame") -> None:
        """Write the tables and, last, the file that marks the folder as complete."""
        if len(variants) != self.variants or len(samples) != self.samples:
            raise IntegrityError(
                f"{self.path}: {len(variants)} variants and {len(samples)} samples are described, but it holds "
                f"{self.variants} and {self.samples}. Report this as a bug."
            )
        variants.to_parquet(self.path / "variants.parquet", index=False)
        samples.to_parquet(self.path / "samples.parquet", index=False)
        FORMAT.write(self.path, {name: value for name, value in asdict(self).items() if name != "path"})

    @property
    def _calls_path(self) -> Path:
        return self.path / "calls.npy"

    @cached_property
    def _offset(self) -> int:
        """Bytes before the first row."""
        return FORMAT.array(self._calls_path, (self.variants, self.row_bytes), self.dtype).offset


def open_genotypes(path: Path) -> GenotypeFolder:
    """Open a folder of genotypes. Raises InputError if it is not one, or of another format."""
    return FORMAT.read(path, GenotypeFolder)


def create_genotypes(path: Path, *, encoding: Encoding, ploidy: int, variants: int, samples: int) -> GenotypeFolder:
    """Create a folder with room for all calls. Write the calls next, then call `GenotypeFolder.finish`."""
    path.mkdir(parents=True, exist_ok=True)
    folder = GenotypeFolder(path, encoding, ploidy, variants, samples)
    np.lib.format.open_memmap(folder._calls_path, "w+", folder.dtype, (variants, folder.row_bytes), version=(1, 0))
    return folder
