"""Results do not depend on the number of threads: every output of every application has the same SHA-256."""

from pathlib import Path
from typing import Any

import pytest

from tests.guarantees.running import TINY, Clone, make_clone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
# Outputs that are random by nature, and why. There are none: all that is drawn comes from seeds of the configuration.
RANDOM: dict[str, str] = {}
# More rows than the tiny run has, so that there are blocks to share out.
LARGER: dict[str, dict[str, Any]] = {
    "taxi": {"fetch": {"generated": {"scale": 0.02}}},
    "genomics": {"simulate": {"chromosome_length": 4e6}},
    "pagerank": {"simulate": {"pages": 600}},
    "recsys": {"simulate": {"rows": 40_000}},
}


def checksums(clone: Clone, application: str) -> dict[str, str]:
    """Return the SHA-256 of each output, from the manifest."""
    outputs = clone.json(f"results/{application}/cpu/manifest.json")["outputs"]
    return {each["path"]: each["sha256"] for each in outputs}


@pytest.mark.parametrize("application", TINY)
def test_one_thread_and_two_give_the_same_bytes(application: str, tmp_path: Path) -> None:
    found = []
    for threads in (1, 2):
        clone = make_clone(tmp_path / f"threads-{threads}")
        listed = clone.snakemake("--list").terminal.split()
        rules = [f"{rule}={threads}" for rule in listed if rule.startswith(f"{application}_") and rule[-4:] != "_all"]
        clone.write("mine.yaml", {application: LARGER[application]})
        ended = clone.snakemake("--set-threads", *rules, "--", application, files=("tiny.yaml", "mine.yaml"))
        assert ended.status == 0, ended.terminal
        steps = clone.json(f"results/{application}/cpu/manifest.json")["steps"]
        assert {step["threads"] for step in steps.values()} == {threads}
        found.append(checksums(clone, application))
    assert len(found[0]) >= 10
    assert {path for path in found[0].keys() | found[1].keys() if found[0].get(path) != found[1].get(path)} == set(
        RANDOM
    )
