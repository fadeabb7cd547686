"""Makes reports of benchmarks from given times, without measuring."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.limits import Limit, Limits
from benchmarks.machine import Machine, Revision
from benchmarks.report import Outcome, Plan, Report, Sample, Size, paired_ratios, summarize
from benchmarks.results_file import CaseResult, Figure, Results
from benchmarks.spread import spread

MACHINE = Machine(
    processor="Abacus", cores=2, memory_bytes=2**34, gpus=(), kernel="6.1", python="3.11", load_average_before=0.0
)
REVISION = Revision(commit="0123456789abcdef", changed=False)
TEN = (1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07, 1.08, 1.09)


def sample(number: int, seconds: float) -> Sample:
    return Sample(
        round=number,
        place=0,
        wall_seconds=seconds + 0.001,
        compute_seconds=seconds,
        cpu_seconds=2 * seconds,
        other_cpu_seconds=0.0,
        peak_memory_bytes=10**8,
        peak_anonymous_bytes=10**7,
    )


def outcome(seconds: Sequence[float], *, void: str | None = None, missing: str | None = None) -> Outcome:
    samples = tuple(sample(number, each) for number, each in enumerate(seconds, start=1))
    warm_up = sample(0, 9 * seconds[0]) if seconds else None
    return Outcome(
        command=(), environment={}, void=void, missing=missing, warm_up=warm_up, samples=samples,
        summary=summarize(samples),
    )  # fmt: skip


def report(
    times: Mapping[str, Sequence[float] | Outcome], *, row: str = "frame", case: str = "mean", **fields: Any
) -> Report:
    """Return a report of variants with such compute seconds, round by round."""
    outcomes = {name: each if isinstance(each, Outcome) else outcome(each) for name, each in times.items()}
    subject = next(iter(outcomes.values()))
    given: dict[str, Any] = {
        "name": f"{row}: {case}",
        "sampling": "call",
        "started": "2026-01-01T00:00:00+00:00",
        "command": (),
        "size": Size(rows=1000, bytes=8_000_000, basis="memory"),
        "parameters": {"row": row, "case": case, "device": "cpu", "scale": 0.05, "cluster": "auto"},
        "plan": Plan(),
        "machine": MACHINE,
        "versions": {"numpy": "2.0"},
        "revision": REVISION,
        "oracle": next(iter(outcomes)),
        "answer": 1,
        "outcomes": outcomes,
        "ratios": {name: paired_ratios(subject.samples, each.samples) for name, each in outcomes.items()},
    }
    return Report(**{**given, **fields})


def limits(**rates: float) -> Limits:
    """Return limits of such rates."""
    given = {"memory_copy": 16e9, "gemm_float64": 32e9, "gemm_float32": 64e9, "file_read_cached": 8e9, **rates}
    found: dict[Any, Limit] = {
        name: Limit(
            how="by hand", unit="operations" if "gemm" in name else "bytes", amount=1.0, rate=spread([rate] * 10)
        )
        for name, rate in given.items()
    }
    return Limits(
        started="2026-01-01T00:00:00+00:00", device="cpu", threads=2, machine=MACHINE, versions={}, revision=REVISION,
        limits=found,
    )  # fmt: skip


def results(*reports: Report) -> Results:
    """Return results of R2 with a published figure."""
    figures = (Figure(on="pandas", seconds=0.0502),)
    cases = tuple(CaseResult(id="R2", title="`x.mean()`", published=figures, report=each) for each in reports)
    return Results(device="cpu", limits=limits(), cases=cases)
