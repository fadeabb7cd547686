"""How often each byte crosses between host and device in each step that asks for a GPU: a table that may only improve.

An input byte goes up once, and an output byte comes down once, where the table says so without a reason. Elsewhere it
has what was measured, why that is, and the issue that changes it: 18 graphs and genotypes. The tables of the taxi
application and the clicks of recsys are frames, which cuDF reads on the device.

The data are tiny, so that arrays of a fixed size, such as months of a calendar, weigh more here than they do at work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.contract.traffic import Traffic

ONCE = 1.02
# How much better than the table a step may be before the table has to follow.
BETTER = 0.9
WORKFLOWS = Path(__file__).parents[2] / "workflows"


@dataclass(frozen=True)
class Crossings:
    """Bytes that go up for each byte of the input, and come down for each of the output, or of the input without one.

    ``input`` are the arrays in the files that a step reads, or the columns that it asks a reader for; ``output`` are
    those in the files that it writes.
    """

    up: float = 1.0
    down: float = 1.0
    why: str = ""


# Steps that ask for a GPU for frames, which cuDF reads there; see `test_graph_frames` and `test_features_on_frames`.
OF_FRAMES = {"pagerank": {"renumber"}, "recsys": {"fit", "features"}}
# Codes go up once (`test_genomics_traffic`); of so few samples they are as many bytes as what is known of a variant.
OF_VARIANTS = "18: the table of scaled dosages has 16 bytes a variant, and so have the codes of 64 samples"
# By application, and by step and its case.
STEPS = {
    "genomics": {
        "ld_prune": Crossings(),
        "relatedness": Crossings(1.0, 1.82, "18: of each pair of tiles, a histogram"),
        "outliers": Crossings(2.81, 54.02, f"{OF_VARIANTS}; counts come down"),
        "pca gram": Crossings(1.95, 1.0, OF_VARIANTS),
        "pca randomized": Crossings(2.58, 1.0, f"{OF_VARIANTS}; matrices of a block's columns"),
        "project": Crossings(1.0, 1.83, "18: sums for least squares, of which scores are made on the host"),
        "umap": Crossings(),
    },
    "pagerank": {
        "rank networkx": Crossings(1.0, 1.64, "18: two numbers come down in each iteration"),
        "rank of_library": Crossings(0.9, 1.88, "18: two numbers come down in each iteration"),
        "communities": Crossings(),
    },
    "recsys": {
        "train": Crossings(),
    },
}  # fmt: skip


def crossing_faults(application: str, traffic: Mapping[str, Traffic]) -> Iterator[str]:
    """Yield what differs between the table and what was counted."""
    for step, expected in STEPS[application].items():
        found = traffic[step]
        for way, measured, allowed in (
            ("up", found.up_per_byte, expected.up),
            ("down", found.down_per_byte, expected.down),
        ):
            if measured > ONCE * allowed:
                yield f"{step}: {measured:.2f} bytes go {way} for each byte, not {allowed}: what crosses again?"
            elif allowed > ONCE and measured < BETTER * allowed:
                yield f"{step}: only {measured:.2f} bytes go {way} for each byte: lower {allowed} in STEPS"


def steps_with_gpu(application: str) -> set[str]:
    """Return the rules of a workflow that ask for a GPU."""
    rules = re.split(r"^ *rule (\w+):", (WORKFLOWS / application / "Snakefile").read_text(), flags=re.MULTILINE)
    return {name for name, body in zip(rules[1::2], rules[2::2], strict=True) if "gpu=" in body}


def steps_that_compute(traffic: Mapping[str, Traffic]) -> set[str]:
    """Return the steps that allocated on the device and did something there."""
    return {step.split()[0] for step, each in traffic.items() if each.allocated and each.operations}


def steps_beside_tasks(traffic: Mapping[str, Traffic]) -> set[str]:
    """Return the steps that allocated on a device outside the tasks of their workers."""
    return {step for step, each in traffic.items() if each.beside_tasks}
