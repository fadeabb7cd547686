"""A process that is set up once and answers calls: what a call costs, and what it says when it cannot answer."""

import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from benchmarks.measure import Variant, measure
from benchmarks.process_tree import MeasurementError
from benchmarks.report import Plan, Report, Size
from benchmarks.served import Served

MEBIBYTE = 2**20
SIZE = Size(rows=7, bytes=70, basis="memory")


def python(work: str, *, before: str = "", answering: str = "") -> tuple[str, ...]:
    source = f"""
import json, os, subprocess, sys, time
{before}
print("ready", flush=True)
calls = 0
for line in sys.stdin:
    if line == "answer\\n":
        {answering}
        print(json.dumps(dict(compute_seconds=0.5, cpu_seconds=cpu, answer=answer)), flush=True)
        continue
    calls += 1
    start = time.process_time()
    answer = None
    {work}
    cpu = time.process_time() - start
    print("done", flush=True)
"""
    return (sys.executable, "-S", "-c", source)


@contextmanager
def served(work: str, *, before: str = "", timeout: float = 60.0) -> Iterator[Served]:
    with Served(python(work, before=before), environment={}, timeout=timeout) as process:
        process.wait()
        yield process


def measured(*variants: Variant, oracle: str = "oracle") -> Report:
    plan = Plan(rounds=2)
    return measure("test", variants, oracle=oracle, plan=plan, size=SIZE, parameters={}, sampling="call")


def test_one_process_answers_all_calls_and_the_first_is_apart() -> None:
    report = measured(Variant("ours", python("answer = 3")), Variant("oracle", python("answer = 3")))
    assert report.sampling == "call"
    assert report.headline == "compute_seconds"
    assert [len(outcome.samples) for outcome in report.outcomes.values()] == [2, 2]
    assert all(outcome.warm_up is not None for outcome in report.outcomes.values())
    with served("answer = [os.getpid(), calls]") as process:
        first, second = (json.loads(process.call().output)["answer"] for _ in range(2))
    assert first[0] == second[0]
    assert [first[1], second[1]] == [1, 2]


def test_an_answer_that_turns_wrong_in_a_later_call_is_void() -> None:
    report = measured(Variant("ours", python("answer = min(calls, 2)")), Variant("oracle", python("answer = 1")))
    assert report.outcomes["ours"].void == "wrong answer: answer is 2 instead of 1"
    assert report.exit_status == 1


def test_a_variant_that_cannot_be_tried_here_is_missing_and_not_void() -> None:
    absent = Variant("absent", ("never-run",), missing="not installed: polars")
    report = measured(Variant("oracle", python("answer = 1")), absent)
    assert report.outcomes["absent"].missing == "not installed: polars"
    assert report.outcomes["absent"].void is None
    assert report.outcomes["absent"].samples == ()
    assert report.exit_status == 0


def test_the_peak_of_memory_is_that_of_the_call() -> None:
    hold = "block = bytearray(200 * 2**20) if calls == 1 else None; del block"
    with served(hold) as process:
        first, second = process.call(), process.call()
    assert first.peak_memory_bytes > 200 * MEBIBYTE
    assert second.peak_memory_bytes < 150 * MEBIBYTE


SPIN = """
import sys, time
for line in sys.stdin:
    while time.process_time() < 0.3: pass
    print(flush=True)
"""


def test_what_the_answer_takes_does_not_count() -> None:
    command = python("pass", answering="answer = len(bytearray(200 * 2**20))")
    with Served(command, environment={}, timeout=60.0) as process:
        process.wait()
        cost = process.call()
    assert json.loads(cost.output)["answer"] == 200 * MEBIBYTE
    assert cost.peak_memory_bytes < 150 * MEBIBYTE


@pytest.mark.parametrize("ends", [True, False])
def test_the_cpu_time_of_children_counts_whether_they_have_ended_or_not(ends: bool) -> None:
    child = f"child = subprocess.Popen([sys.executable, '-S', '-c', {SPIN!r}], stdin=-1, stdout=-1, bufsize=0)"
    talk = "child.stdin.write(bytes([10])); child.stdout.readline()"
    end = "; child.stdin.close(); child.wait()" if ends else ""
    with served(f"{talk}{end}", before=child) as process:
        assert 0.2 < process.call().cpu_seconds < 3.0


def test_a_process_that_ends_says_why() -> None:
    with (
        served('sys.exit("no space left")') as process,
        pytest.raises(MeasurementError, match="status 1: no space left"),
    ):
        process.call()
    with (
        served("pass", before='sys.exit("no such file")') as process,
        pytest.raises(MeasurementError, match="no such file"),
    ):
        process.call()


def test_a_call_that_takes_too_long_is_stopped_with_its_children() -> None:
    with tempfile.NamedTemporaryFile() as known:
        child = f"child = subprocess.Popen(['sleep', '60']); open({known.name!r}, 'w').write(str(child.pid))"
        with (
            served("time.sleep(60)", before=child, timeout=0.5) as process,
            pytest.raises(MeasurementError, match=r"took more than 0\.5 s"),
        ):
            process.call()
        pid = int(known.read())
    limit = time.monotonic() + 10
    while _runs(pid) and time.monotonic() < limit:
        time.sleep(0.01)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    """Whether a process is there; one that was killed may still wait for its parent to ask how it ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False
