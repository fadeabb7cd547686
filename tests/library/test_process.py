"""The start of a process that works on many blocks of rows."""

import json
import os
import subprocess
import sys

import pytest

from whitewater.process import usable_cores

WORK = """
import json, platform, resource, sys
import numpy as np
from whitewater.process import start_fast

if sys.argv[1] == "fast":
    start_fast()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def work(rounds):
    for _ in range(rounds):
        blocks = [np.ones(400_000) for _ in range(4)]

work(3)
before = faults()
work(50)
print(json.dumps({"faults": faults() - before, "pages": 50 * 4 * 400_000 * 8 // resource.getpagesize()}))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of glibc alone")
def test_memory_of_a_block_is_used_again_for_the_next_one() -> None:
    fast, plain = (
        json.loads(subprocess.run([sys.executable, "-c", WORK, how], capture_output=True, check=True).stdout)
        for how in ("fast", "plain")
    )
    assert fast["faults"] < fast["pages"] / 20 < plain["faults"]


def test_cores_are_counted_also_where_the_system_does_not_say_which_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    assert usable_cores() == (os.cpu_count() or 1)
