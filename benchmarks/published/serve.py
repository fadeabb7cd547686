"""The process of one variant: set up once, then it answers calls; see `benchmarks.served`.

``python -m benchmarks.published.serve frame groupby polars --work '{"device": "cpu", ...}'``, then a line ``call`` for
each call on the standard input, and ``answer`` for what it gave.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass
from typing import IO, Any

from benchmarks.published.row import CallCase, Timed, Work, load
from benchmarks.published.work import read_work
from benchmarks.served import ANSWER, CALL, DONE, READY
from whitewater.errors import WhitewaterError


def main() -> None:
    """Serve calls until the input ends."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published.serve", description=__doc__)
    parser.add_argument("row")
    parser.add_argument("case")
    parser.add_argument("variant")
    parser.add_argument("--work", required=True, help="JSON, as `work.as_argument` gives it")
    parser.add_argument(
        "--counted", action="store_true", help="its CPU time is counted from outside, as that of a child of another"
    )
    given: Any = parser.parse_args()
    # What libraries print must not come between the lines of the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    case = load(given.row).case(given.case)
    if not isinstance(case, CallCase):
        parser.error(f"{given.row} {given.case} is measured by whole processes, not by calls")
    try:
        _serve(given, case, answers)
    except WhitewaterError as error:
        # Its message says what to do; where in the code it was raised does not.
        sys.exit(f"{type(error).__name__}: {error}")


def _serve(given: Any, case: CallCase, answers: IO[str]) -> None:
    work = read_work(given.work)
    variant = case.variant(given.variant, work.device.name)
    with variant.prepare(work) as timed:
        _say(answers, READY)
        called = None
        for line in sys.stdin:
            if line.strip() == CALL:
                called = _call(timed, work)
                _say(answers, DONE)
            elif line.strip() == ANSWER and called is not None:
                _say(answers, json.dumps(_answer(called, timed, counted=given.counted)))
                # Its memory is not that of the next call.
                called = None


@dataclass(frozen=True)
class _Called:
    """What a call returned, and what it took."""

    result: Any
    seconds: float
    cpu_seconds: float
    peak_device_bytes: int | None


def _call(timed: Timed, work: Work) -> _Called:
    processor, start = time.process_time(), time.perf_counter()
    result = timed.call()
    work.device.synchronize()
    seconds, cpu = time.perf_counter() - start, time.process_time() - processor
    return _Called(result, seconds, cpu, work.device.peak_memory())


def _answer(called: _Called, timed: Timed, *, counted: bool) -> dict[str, Any]:
    return {
        "compute_seconds": called.seconds,
        "cpu_seconds": None if counted else called.cpu_seconds,
        "answer": timed.answer(called.result),
        "phases": timed.phases(),
        "peak_device_bytes": called.peak_device_bytes,
    }


def _say(answers: IO[str], line: str) -> None:
    answers.write(f"{line}\n")
    answers.flush()


if __name__ == "__main__":
    main()
