"""The tests for a GPU run on the stand-in, too, so that a mistake in them is found where there is none."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.contract.executed import ROOT


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tests_for_a_gpu_pass_on_the_stand_in() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--stand-in", "tests/gpu"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT.parents[1])
    assert ended.returncode == 0, ended.stdout[-4000:]
    assert " passed" in ended.stdout
