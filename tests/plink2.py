"""PLINK as an oracle: its files made from a known array, and its programs run on them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

needs_plink2 = pytest.mark.skipif(shutil.which("plink2") is None, reason="the program plink2 is not installed")
needs_plink19 = pytest.mark.skipif(shutil.which("plink1.9") is None, reason="the program plink1.9 is not installed")
MAGIC = bytes([0x6C, 0x1B, 0x01])
# PLINK's code of 0, 1, 2 copies of A1, and, last, so that -1 finds it, of a missing call.
CODES = np.array([3, 2, 0, 1], np.uint8)


def write_plink(
    prefix: Path,
    dosages: npt.NDArray[np.int8],
    positions: Sequence[int] | npt.NDArray[np.int64] | None = None,
    contigs: Sequence[str] | None = None,
) -> Path:
    """Write ``prefix``.bed, .bim and .fam; return ``prefix``.

    Variants are named v0, v1, ..., samples S0, S1, ... (family 0, sex unknown), A1 is A and A2 is G.

    Parameters
    ----------
    dosages
        (variants, samples): copies of A1, the counted allele; -1 where the call is missing.
    positions, contigs
        Of the variants; 1, 2, ... and contig 1 where not given.
    """
    variants, samples = dosages.shape
    positions = range(1, variants + 1) if positions is None else positions
    contigs = ["1"] * variants if contigs is None else contigs
    codes = np.zeros((variants, -(-samples // 4) * 4), np.uint8)
    codes[:, :samples] = CODES[dosages]
    packed = (codes.reshape(variants, -1, 4) << np.array([0, 2, 4, 6], np.uint8)).sum(axis=2, dtype=np.uint8)
    _path(prefix, "bed").write_bytes(MAGIC + packed.tobytes())
    sites = enumerate(zip(contigs, positions, strict=True))
    _path(prefix, "bim").write_text("".join(f"{contig}\tv{row}\t0\t{at}\tA\tG\n" for row, (contig, at) in sites))
    _path(prefix, "fam").write_text("".join(f"0\tS{sample}\t0\t0\t0\t-9\n" for sample in range(samples)))
    return prefix


def read_plink(prefix: Path) -> npt.NDArray[np.int8]:
    """Return the dosages of A1 of PLINK 1 files, (variants, samples), -1 where the call is missing."""
    samples = _path(prefix, "fam").read_text().count("\n")
    variants = _path(prefix, "bim").read_text().count("\n")
    packed = np.fromfile(_path(prefix, "bed"), np.uint8, offset=len(MAGIC)).reshape(variants, -1)
    codes = (packed[:, :, None] >> np.array([0, 2, 4, 6], np.uint8)) & 3
    dosages = np.array([2, -1, 1, 0], np.int8)[codes.reshape(variants, -1)[:, :samples]]
    return np.ascontiguousarray(dosages)


def plink2(*arguments: str | Path | float, cwd: Path) -> str:
    """Run PLINK 2 in a folder, on one thread, and return what it says; its output files begin with plink2."""
    return _run("plink2", *arguments, cwd=cwd)


def plink19(*arguments: str | Path | float, cwd: Path) -> str:
    """Run PLINK 1.9 in a folder, on one thread, and return what it says; its output files begin with plink."""
    return _run("plink1.9", *arguments, cwd=cwd)


def _run(program: str, *arguments: str | Path | float, cwd: Path) -> str:
    command = [program, *map(str, arguments), "--threads", "1", "--memory", "1024"]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _path(prefix: Path, suffix: str) -> Path:
    # Not with_suffix, which would cut a prefix at its last dot.
    return prefix.with_name(f"{prefix.name}.{suffix}")
