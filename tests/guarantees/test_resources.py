"""What rules ask of a batch system is what their steps take, as their records say, and not much more."""

import re

import pytest

from tests.guarantees.running import TINY, Clone

# Snakemake runs twice around a job of SLURM, at some 110 MB.
AROUND = 220
MOST = 4
JOB = re.compile(r"^rule (\w+?)_(\w+):\n(?:    .*\n)*?    resources: (.*)$", re.MULTILINE)


@pytest.mark.parametrize("application", TINY)
def test_each_rule_asks_for_the_memory_and_the_time_of_its_step(application: str, copied: Clone) -> None:
    steps = copied.json(f"results/{application}/cpu/manifest.json")["steps"]
    terminal = copied.dry_run({}, "--forceall", "--", application).terminal
    asked = {step: dict(each.split("=") for each in said.split(", ")) for _, step, said in JOB.findall(terminal)}
    assert asked.keys() == {*steps, "manifest"}
    for step, record in steps.items():
        taken = record["peak_memory_bytes"] / 1e6 + AROUND
        assert taken < int(asked[step]["mem_mb"]) < MOST * taken, step
        assert record["seconds"] / 60 < int(asked[step]["runtime"]), step
