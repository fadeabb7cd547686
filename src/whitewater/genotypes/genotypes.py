"""Genotypes of many samples, in memory and in a folder: two bits each where they are diploid.

Two-bit code: bits ``2k`` and ``2k + 1`` of byte ``b`` of a variant hold the dosage of sample ``4b + k``: 0, 1 or 2, or
3 where the call is missing; codes behind the last sample are 3. Other ploidies are int8 dosages, -1 where missing.

A folder has the calls of all variants in one file, and the tables of the variants and the samples:

=================== ===================================================================================================
file                what it holds
=================== ===================================================================================================
``genotypes.json``  format, encoding, ploidy, number of variants and samples
``calls.npy``       encoding two_bit: uint8 (variants, ceil(samples / 4)); int8: dosages, int8 (variants, samples)
``variants.parquet``a row a variant: contig, position (1-based), id, reference, alternate, filter_pass, count_0 ...
                    count_<ploidy>, count_missing
``samples.parquet`` a row a sample: sample, label, count_missing
=================== ===================================================================================================

A row can be read or written at its place by any number of workers, and the page cache serves it in every pass.
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
# Variants of a slab: passes add up whole slabs, so that ranges of whole slabs give the same sums however they are cut.
SLAB = 256
BLOCK_BYTES = 2 << 20
# Of codes that are read at once, at most: those of a share may be many times as large.
PIECE_BYTES = 64 << 20


@dataclass(frozen=True)
class Genotypes:
    """Dosages of the non-reference allele.

    ``codes`` is uint8 (variants, ceil(samples / 4)) where genotypes are packed, else int8 (variants, samples); on any
    device.
    """

    codes: Array
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
        """Columns of an expanded matrix: `samples`, or where packed the next multiple of four."""
        return int(self.codes.shape[1]) * (GENOTYPES_A_BYTE if self.packed else 1)

    def columns_of_samples(self, xp: ModuleType) -> Array:
        """Return which column of an expanded matrix each sample has: int64 (samples,).

        Packed genotypes are expanded bit by bit of whole bytes, which a processor does with many at once: first all
        samples ``4b``, then all ``4b + 1`` and so on.
        """
        samples: Array = xp.arange(self.samples)
        if not self.packed:
            return samples
        return samples % GENOTYPES_A_BYTE * self.codes.shape[1] + samples // GENOTYPES_A_BYTE

    def between(self, start: int, stop: int) -> "Genotypes":
        """Return the variants from ``start`` to before ``stop``, without a copy."""
        return Genotypes(self.codes[start:stop], self.samples, self.ploidy)

    def on(self, device: Device) -> "Genotypes":
        return Genotypes(device.to_device(self.codes), self.samples, self.ploidy)


def dosages_of(genotypes: Genotypes, chosen: Array) -> Array:
    """Return those of some samples: int8 (variants, chosen samples), -1 where missing; all on one device."""
    codes = genotypes.codes
    if not genotypes.packed:
        return codes[:, chosen]
    shifted = codes[:, chosen // GENOTYPES_A_BYTE] >> (2 * (chosen % GENOTYPES_A_BYTE)).astype(np.uint8)
    # One up, and down again, and a missing call, code 3, is -1.
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
    def no_variants(self) -> Genotypes:
        """Genotypes of the samples at no variant: what the columns of an expanded matrix depend on."""
        return Genotypes(np.empty((0, self.row_bytes), self.dtype), self.samples, self.ploidy)

    def read(self, start: int, stop: int) -> Genotypes:
        """Read the variants from ``start`` to before ``stop`` into the host's memory.

        Raises IntegrityError if the file ends before them.
        """
        codes = np.empty((stop - start, self.row_bytes), self.dtype)
        self.read_into(codes, start)
        return Genotypes(codes, self.samples, self.ploidy)

    def read_into(self, codes: npt.NDArray[Any], start: int) -> None:
        """Fill ``codes``, of rows in C order, with the variants from ``start`` on; see `read`."""
        with FORMAT.explained(self._calls), self._calls.open("rb") as file:
            file.seek(self._offset + start * self.row_bytes)
            size = file.readinto(codes.data.cast("B")) if codes.size else 0
        if size != codes.nbytes:
            raise IntegrityError(f"{self._calls} ends before variant {start + len(codes)}. {FORMAT.remedy}")

    def read_rows(self, rows: npt.NDArray[np.int64]) -> Genotypes:
        """Read the variants at ``rows``, ascending, and of what lies between them a block at a time; see `read`."""
        codes = np.empty((len(rows), self.row_bytes), self.dtype)
        cuts = np.flatnonzero(np.diff(rows // self.block_variants, prepend=-1, append=-1)).tolist()
        for first, last in pairwise(cuts):
            at = rows[first:last]
            codes[first:last] = self.read(int(at[0]), int(at[-1]) + 1).codes[at - at[0]]
        return Genotypes(codes, self.samples, self.ploidy)

    def write(self, start: int, codes: npt.NDArray[Any]) -> None:
        with self._calls.open("r+b") as file:
            file.seek(self._offset + start * self.row_bytes)
            file.write(np.ascontiguousarray(codes).data)

    @property
    def block_variants(self) -> int:
        """Variants of a block: whole slabs of about `BLOCK_BYTES`."""
        return SLAB * max(1, BLOCK_BYTES // (SLAB * max(1, self.row_bytes)))

    def ranges(self, *, at_most: int = 64) -> list[tuple[int, int]]:
        """Cut the variants into ranges of whole blocks, at most so many; the last may be short.

        They depend on the shape of the data only, not on workers.
        """
        blocks = max(1, -(-self.variants // self.block_variants))
        size = self.block_variants * -(-blocks // at_most)
        return [(start, min(start + size, self.variants)) for start in range(0, self.variants, size)]

    def variants_table(self, columns: list[str] | None = None) -> "pd.DataFrame":
        return FORMAT.table(self.path / "variants.parquet", columns, rows=self.variants).to_pandas()

    def samples_table(self) -> "pd.DataFrame":
        return FORMAT.table(self.path / "samples.parquet", rows=self.samples).to_pandas()

    def finish(self, *, variants: "pd.DataFrame", samples: "pd.DataFrame") -> None:
        """Write the tables, and last the file that makes the folder one of genotypes."""
        if len(variants) != self.variants or len(samples) != self.samples:
            raise IntegrityError(
                f"{self.path}: {len(variants)} variants and {len(samples)} samples are described, but there are "
                f"{self.variants} and {self.samples}. Report this as a bug."
            )
        variants.to_parquet(self.path / "variants.parquet", index=False)
        samples.to_parquet(self.path / "samples.parquet", index=False)
        FORMAT.write(self.path, {name: value for name, value in asdict(self).items() if name != "path"})

    @property
    def _calls(self) -> Path:
        return self.path / "calls.npy"

    @cached_property
    def _offset(self) -> int:
        """Bytes before the first row."""
        return FORMAT.array(self._calls, (self.variants, self.row_bytes), self.dtype).offset


def open_genotypes(path: Path) -> GenotypeFolder:
    """Open a folder of genotypes. Raises InputError if it is not one, or of another format."""
    return FORMAT.read(path, GenotypeFolder)


def create_genotypes(path: Path, *, encoding: Encoding, ploidy: int, variants: int, samples: int) -> GenotypeFolder:
    """Create a folder with room for all calls, which are written later, and described last."""
    path.mkdir(parents=True, exist_ok=True)
    folder = GenotypeFolder(path, encoding, ploidy, variants, samples)
    np.lib.format.open_memmap(folder._calls, "w+", folder.dtype, (variants, folder.row_bytes), version=(1, 0))
    return folder
