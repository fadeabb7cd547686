"""The process of one variant: set up once, then it answers calls; see `benchmarks.served`.

``python -m benchmarks.published.serve frame groupby polars --work '{"device": "cpu", ...}'``, then a line ``call`` for
each call on the standard input.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import IO, Any

from benchmarks.published.row import CallCase, Timed, Work, load
from benchmarks.published.work import read_work
from benchmarks.served import CALL, READY


def main() -> None:
    """Serve calls until the input ends."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published.serve", description=__doc__)
    parser.add_argument("row")
    parser.add_argument("case")
    parser.add_argument("variant")
    parser.add_argument("--work", required=True, help="JSON, as `work.as_argument` gives it")
    given: Any = parser.parse_args()
    # What libraries print must not come between the lines of the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    case = load(given.row).case(given.case)
    if not isinstance(case, CallCase):
        parser.error(f"{given.row} {given.case} is measured by whole processes, not by calls")
    variant = next(each for each in case.variants if each.name == given.variant)
    work = read_work(given.work)
    with variant.prepare(work) as timed:
        _say(answers, READY)
        for line in sys.stdin:
            if line.strip() == CALL:
                _say(answers, json.dumps(_called(timed, work)))


def _called(timed: Timed, work: Work) -> dict[str, Any]:
    processor, start = time.process_time(), time.perf_counter()
    result = timed.call()
    work.device.synchronize()
    seconds, cpu = time.perf_counter() - start, time.process_time() - processor
    return {
        "compute_seconds": seconds,
        "cpu_seconds": cpu,
        "answer": timed.answer(result),
        "phases": timed.phases(),
        "peak_device_bytes": work.device.peak_memory(),
    }


def _say(answers: IO[str], line: str) -> None:
    answers.write(f"{line}\n")
    answers.flush()


if __name__ == "__main__":
    main()
