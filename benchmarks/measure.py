"""The harness of all benchmarks: variants of one computation, interleaved in one run.

Every sample is a fresh process, measured from outside; it prints as its last line one JSON object with the seconds of
the computation proper, without imports, its answer, and perhaps the seconds of its phases (see `Printed`). Or it is a
call: then each variant is a process that is set up once and answers each call with such a line (see `served`). All
answers are compared with the oracle's.
After one warm-up for each variant, rounds follow a Williams design: over the rounds every variant takes every
place equally often and follows every other equally often, so that drift and after-effects (caches, heat, dirty pages)
fall on all alike.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from benchmarks.machine import describe_machine, installed_versions, revision
from benchmarks.process_tree import Cost, MeasurementError, run
from benchmarks.report import Outcome, Plan, Report, Sample, Size, paired_ratios, summarize
from benchmarks.served import Served

THREAD_VARIABLES = (
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OMP_NUM_THREADS",  # also pyarrow's
    "OPENBLAS_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
PACKAGES = ("whitewater", "dask", "distributed", "numba", "numpy", "pandas", "pyarrow", "scikit-learn", "scipy")
MESSAGE_LENGTH = 2000


@dataclass(frozen=True)
class Variant:
    """One way to compute the answer.

    ``outputs`` are removed before each sample. ``inspect`` is called after each, outside what is measured, and what it
    returns is compared as part of the answer: the contents of files that were written, for example. ``missing`` says
    why the variant cannot be tried here. Of a variant that answers ``in_part`` only the keys of what was inspected
    that it gives are compared, at least one.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[Path, ...] = ()
    inspect: Callable[[], JsonValue] | None = None
    missing: str | None = None
    in_part: bool = False


class Printed(BaseModel):
    """What a variant's process prints as its last line.

    ``cpu_seconds`` are those of the process alone, where it measures them finer than the system does from outside.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    compute_seconds: float = Field(gt=0)
    answer: JsonValue
    phases: dict[str, float] = Field(default_factory=dict)
    cpu_seconds: float | None = None
    peak_device_bytes: int | None = None


@dataclass
class _Progress:
    """What is known of a variant so far."""

    variant: Variant
    sampler: Callable[[], Cost]
    void: str | None = None
    warm_up: Sample | None = None
    samples: list[Sample] = field(default_factory=list)


def measure(
    name: str,
    variants: Sequence[Variant],
    *,
    oracle: str,
    plan: Plan,
    size: Size,
    parameters: Mapping[str, JsonValue],
    packages: Iterable[str] = (),
    sampling: Literal["process", "call"] = "process",
    operations: float | None = None,
) -> Report:
    """Measure variants of one computation against each other.

    Parameters
    ----------
    name
        Name of the benchmark.
    variants
        The first is the one whose ratio to each other is reported.
    oracle
        Name of the variant whose answer is right by definition; best one that shares no code with the others.
    plan
        Rounds, time, threads and tolerance.
    size
        How much all variants work on.
    parameters
        What else defines the work, for the record.
    packages
        Packages whose versions are recorded, beside those of Whitewater.
    sampling
        Whether a sample is a fresh process, or a call in a process that stays.
    operations
        Floating-point operations that the definition takes.

    Raises
    ------
    MeasurementError
        If the oracle gives no answer, or no variant has the oracle's name.
    """
    started = datetime.now(UTC).isoformat(timespec="seconds")
    machine, source = describe_machine(), revision(Path(__file__).parent)
    with ExitStack() as stack:
        tried = [each for each in variants if each.missing is None]
        samplers = (_calls if sampling == "call" else _processes)(tried, plan=plan, stack=stack)
        progress = {each.name: _Progress(each, sampler) for each, sampler in zip(tried, samplers, strict=True)}
        if oracle not in progress:
            raise MeasurementError(f"The oracle {oracle!r} is not among the variants: {', '.join(progress)}.")
        answer = _warm_up(progress, oracle=oracle, plan=plan)
        _measure_rounds(list(progress.values()), answer=answer, plan=plan)
    subject = variants[0].name
    return Report(
        name=name,
        sampling=sampling,
        operations=operations,
        started=started,
        command=tuple(sys.orig_argv),
        size=size,
        parameters=dict(parameters),
        plan=plan,
        machine=machine,
        versions=installed_versions((*PACKAGES, *packages)),
        revision=source,
        oracle=oracle,
        answer=answer,
        outcomes={each.name: _outcome(each, progress.get(each.name), threads=plan.threads) for each in variants},
        ratios={
            each: paired_ratios(progress[subject].samples, of.samples)
            for each, of in progress.items()
            if subject in progress and each != subject and not of.void and not progress[subject].void
        },
    )


def this_python() -> str:
    """Return this interpreter, relative where it lies below the working directory, so that records name no machine."""
    here, python = Path.cwd(), Path(sys.executable)
    return str(python.relative_to(here)) if python.is_relative_to(here) else str(python)


def balanced_order(count: int, round_number: int) -> tuple[int, ...]:
    """Return the order of ``count`` variants in a round, from 0: a row of a Williams design.

    Over ``count`` rounds (twice as many where count is odd), each variant stands once (twice) in each place and
    directly follows each other once (twice). Source: E. J. Williams, Australian Journal of Scientific Research 2, 1949.
    """
    first = [(step + 1) // 2 if step % 2 else (count - step // 2) % count for step in range(count)]
    mirrored = count % 2 == 1 and round_number % 2 == 1
    shift = round_number // 2 if count % 2 else round_number
    row = [(place + shift) % count for place in first]
    return tuple(reversed(row) if mirrored else row)


def differences(answer: JsonValue, expected: JsonValue, *, tolerance: float, path: str = "answer") -> Iterator[str]:
    """Yield where an answer differs from the expected one; numbers may differ by ``tolerance`` where one is real."""
    if isinstance(answer, dict) and isinstance(expected, dict):
        for key in sorted(answer.keys() | expected.keys()):
            if key not in answer or key not in expected:
                yield f"{path}.{key} is {'missing' if key in expected else 'not expected'}"
            else:
                yield from differences(answer[key], expected[key], tolerance=tolerance, path=f"{path}.{key}")
    elif isinstance(answer, list) and isinstance(expected, list):
        if len(answer) != len(expected):
            yield f"{path} has {len(answer)} items instead of {len(expected)}"
        for index, (ours, theirs) in enumerate(zip(answer, expected, strict=False)):
            yield from differences(ours, theirs, tolerance=tolerance, path=f"{path}[{index}]")
    elif not _equal(answer, expected, tolerance=tolerance):
        yield f"{path} is {answer!r} instead of {expected!r}"


def _equal(answer: JsonValue, expected: JsonValue, *, tolerance: float) -> bool:
    real = float in (type(answer), type(expected))
    if real and isinstance(answer, int | float) and isinstance(expected, int | float):
        return math.isclose(answer, expected, rel_tol=tolerance, abs_tol=tolerance)
    return type(answer) is type(expected) and answer == expected


def _warm_up(progress: Mapping[str, _Progress], *, oracle: str, plan: Plan) -> JsonValue:
    """Run each variant once, the oracle first, and return the oracle's answer."""
    names = [oracle, *(name for name in progress if name != oracle)]
    expected: JsonValue = None
    for place, name in enumerate(names):
        of = progress[name]
        try:
            of.warm_up, answer = _sample(of, round_number=0, place=place)
        except MeasurementError as error:
            if name == oracle:
                raise
            of.void = str(error)
            continue
        if name == oracle:
            expected = answer
        of.void = _disagreement(of.variant, answer, expected, tolerance=plan.tolerance)
    return expected


def _measure_rounds(progress: Sequence[_Progress], *, answer: JsonValue, plan: Plan) -> None:
    start = time.perf_counter()
    longest = 0.0
    for round_number in range(1, plan.rounds + 1):
        round_start = time.perf_counter()
        fits = plan.seconds is None or round_start - start + longest <= plan.seconds
        if round_number > plan.at_least and not fits:
            return
        _measure_round(progress, round_number=round_number, answer=answer, plan=plan)
        longest = max(longest, time.perf_counter() - round_start)


def _measure_round(progress: Sequence[_Progress], *, round_number: int, answer: JsonValue, plan: Plan) -> None:
    for place, index in enumerate(balanced_order(len(progress), round_number - 1)):
        of = progress[index]
        if of.void is not None:
            continue
        try:
            sample, given = _sample(of, round_number=round_number, place=place)
        except MeasurementError as error:
            of.void = str(error)
            continue
        of.samples.append(sample)
        of.void = _disagreement(of.variant, given, answer, tolerance=plan.tolerance)


def _processes(variants: Sequence[Variant], *, plan: Plan, stack: ExitStack) -> list[Callable[[], Cost]]:
    """Return what takes a sample of each variant: a fresh process."""
    return [
        partial(run, each.command, environment=_environment(each, threads=plan.threads), timeout=plan.timeout)
        for each in variants
    ]


def _calls(variants: Sequence[Variant], *, plan: Plan, stack: ExitStack) -> list[Callable[[], Cost]]:
    """Return what takes a sample of each variant: a call. The processes that answer are set up all at once."""
    served = [
        stack.enter_context(
            Served(each.command, environment=_environment(each, threads=plan.threads), timeout=plan.timeout)
        )
        for each in variants
    ]
    for process in served:
        # Before the first of their contexts waits for its end, all are told to end.
        stack.callback(process.finish)
        process.wait()
    return [process.call for process in served]


def _environment(variant: Variant, *, threads: int) -> dict[str, str]:
    # With PYTHONDONTWRITEBYTECODE, Python would compile a variant's own modules anew in each sample.
    return {
        **dict.fromkeys(THREAD_VARIABLES, str(threads)),
        "PYTHONDONTWRITEBYTECODE": "",
        **variant.environment,
    }


def _sample(of: _Progress, *, round_number: int, place: int) -> tuple[Sample, JsonValue]:
    """Run a variant once; return what it cost and its answer."""
    variant = of.variant
    for output in variant.outputs:
        _remove(output)
    # Dirty pages that the previous sample left are written back now, not while this one is measured.
    os.sync()
    cost = of.sampler()
    printed = _printed(variant.name, cost)
    answer: JsonValue = printed.answer
    if variant.inspect is not None:
        answer = {"printed": printed.answer, "inspected": variant.inspect()}
    sample = Sample(
        round=round_number,
        place=place,
        wall_seconds=cost.wall_seconds,
        compute_seconds=printed.compute_seconds,
        phases=printed.phases,
        cpu_seconds=cost.cpu_seconds + (printed.cpu_seconds or 0.0),
        other_cpu_seconds=cost.other_cpu_seconds,
        peak_memory_bytes=cost.peak_memory_bytes,
        peak_anonymous_bytes=cost.peak_anonymous_bytes,
        peak_device_bytes=printed.peak_device_bytes,
    )
    stage = f"round {round_number}" if round_number else "warm-up"
    print(f"{stage}: {variant.name}: {cost.wall_seconds:.3f} s", file=sys.stderr, flush=True)
    return sample, answer


def _printed(name: str, cost: Cost) -> Printed:
    lines = cost.output.strip().splitlines()
    if cost.exit_status != 0:
        raise MeasurementError(f"{name} ended with status {cost.exit_status}: {cost.errors.strip()[-MESSAGE_LENGTH:]}")
    try:
        return Printed.model_validate_json(lines[-1] if lines else "")
    except ValidationError as error:
        raise MeasurementError(f"{name} did not print its answer as the last line of its output: {error}") from error


def _disagreement(variant: Variant, answer: JsonValue, expected: JsonValue, *, tolerance: float) -> str | None:
    if variant.in_part:
        expected = in_part(answer, expected)
    different = list(differences(answer, expected, tolerance=tolerance))
    if not different:
        return None
    more = f", and {len(different) - 3} more" if len(different) > 3 else ""
    return f"wrong answer: {'; '.join(different[:3])}{more}"


def in_part(answer: JsonValue, expected: JsonValue) -> JsonValue:
    """Return an expected answer with only those inspected keys that an answer has, too, if it has any."""
    match answer, expected:
        case {"inspected": dict(given)}, {"inspected": dict(wanted)} if given.keys() & wanted.keys():
            return {**expected, "inspected": {key: value for key, value in wanted.items() if key in given}}  # type: ignore[dict-item]
    return expected


def _remove(output: Path) -> None:
    if output.is_dir():
        shutil.rmtree(output)
    else:
        output.unlink(missing_ok=True)


def _outcome(variant: Variant, of: _Progress | None, *, threads: int) -> Outcome:
    samples = of.samples if of else []
    return Outcome(
        command=variant.command,
        environment=_environment(variant, threads=threads),
        void=of.void if of else None,
        missing=variant.missing,
        warm_up=of.warm_up if of else None,
        samples=tuple(samples),
        summary=summarize(samples),
    )
