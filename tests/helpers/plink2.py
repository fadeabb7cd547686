"""PLINK as an oracle: its programs run on its files, and these read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

needs_plink2 = pytest.mark.skipif(shutil.which("plink2") is None, reason="the program plink2 is not installed")
needs_plink19 = pytest.mark.skipif(shutil.which("plink1.9") is None, reason="the program plink1.9 is not installed")
HEADER = 3


def read_plink(prefix: Path) -> npt.NDArray[np.int8]:
    """Return the dosages of A1 of PLINK 1 files, (variants, samples), -1 where the call is missing."""
    samples = _path(prefix, "fam").read_text().count("\n")
    variants = _path(prefix, "bim").read_text().count("\n")
    packed = np.fromfile(_path(prefix, "bed"), np.uint8, offset=HEADER).reshape(variants, -1)
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
