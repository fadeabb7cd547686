"""What a process imports to run a compiled loop: no more than it needs."""

import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[3] / "src"
MULTIPLIES = """
import numba
import numpy as np
import whitewater.engines.kernel

@numba.njit
def solved(matrix, vector):
    return np.linalg.solve(matrix, vector) @ vector

print(solved(2 * np.eye(3), np.ones(3)))
"""
ADDS = """
import sys
import numpy as np
from whitewater.engines.kernel import kernel

@kernel
def total(numbers):
    return numbers.sum()

assert total(np.arange(4)) == 6
print("scipy.linalg" in sys.modules)
"""


def printed(program: str, folder: Path) -> str:
    # In a file, because Numba keeps compiled loops of files only.
    (folder / "program.py").write_text(program)
    command = [sys.executable, str(folder / "program.py")]
    return subprocess.run(
        command, env={"PYTHONPATH": str(SOURCES)}, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_kernel_runs_without_scipys_linear_algebra(tmp_path: Path) -> None:
    assert printed(ADDS, tmp_path) == "False"


@pytest.mark.slow
@pytest.mark.slow
def test_a_loop_that_needs_linear_algebra_still_gets_it(tmp_path: Path) -> None:
    assert printed(MULTIPLIES, tmp_path) == "1.5"
