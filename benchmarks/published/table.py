"""The results beside the published numbers: ``python -m benchmarks.published.table RESULTS.json... --table table.md``.

Results of several devices have their columns beside each other.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import standing
from benchmarks.limits import Limits
from benchmarks.published.amounts import CERTAIN, NO_FIGURE, amount, digits, interval, ratio, seconds
from benchmarks.report import Report
from benchmarks.results_file import CaseResult, Results, read
from benchmarks.standing import AS_PUBLISHED, OURS, TUNED
from whitewater.errors import ConfigError
from whitewater.figures import words
from whitewater.io.store import write_bytes
from whitewater.log import log_output

NAMES = {"cpu": "CPU", "gpu": "GPU"}
DEFINITION = ("row", "definition", "size", "published")
MEASURED = (
    "as published", "Whitewater", "tuned for this table", "best peer", "ratio to as published", "ratio to best peer",
    "samples", "CPU time", "peak memory", "of the limit", "first call",
)  # fmt: skip
_BASES = {"memory": "memory", "file": "files"}


def markdown(results: Sequence[Results]) -> str:
    """Return one line a case, with columns for each device, and below it what the reader must know.

    Raises
    ------
    ConfigError
        If two results are of one device.
    """
    devices = [each.device for each in results]
    if len(set(devices)) != len(devices):
        raise ConfigError(f"Results of each device belong into the table once, but these are of {', '.join(devices)}.")
    cases = {(case.row, case.case): case for each in results for case in each.cases}
    prefixes = [f"{NAMES[device]}: " if len(devices) > 1 else "" for device in devices]
    header = (*DEFINITION, *(f"{prefix}{column}" for prefix in prefixes for column in MEASURED))
    lines = [header, ["---"] * len(header), *(_line(key, case, results) for key, case in cases.items())]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return "\n\n".join([_title(devices), *map(_measured_on, results), table, *_notes(results)]) + "\n"


def _title(devices: Sequence[str]) -> str:
    return f"# The published tables, run again on {' and '.join(NAMES[device] for device in devices)}"


def _line(key: tuple[str, str], case: CaseResult, results: Sequence[Results]) -> list[str]:
    """Return the cells of a case; its size is that of each device, where they differ."""
    found = [next((each for each in of.cases if (each.row, each.case) == key), None) for of in results]
    sizes = dict.fromkeys(_size(each.report) for each in found if each)
    cells = [_name(case), _escaped(case.title), "; ".join(sizes), published(case)]
    for each, of in zip(found, results, strict=True):
        cells += _measured(each.report, of.limits) if each else [NO_FIGURE] * len(MEASURED)
    return cells


def _name(case: CaseResult) -> str:
    return f"{case.id} {case.row}{f' {case.case}' if case.case else ''}"


def published(case: CaseResult) -> str:
    """Return the published figures of a case: ``NumPy 402 ms, CuPy 750 µs``."""
    return ", ".join(f"{each.on} {seconds(each.seconds)}" for each in case.published) or "no time"


def _size(report: Report) -> str:
    size, scale = report.size, report.parameters.get("scale")
    return f"scale {scale:g}: {words.count(size.rows)} rows, {amount(size.bytes, 'B')} in {_BASES[size.basis]}"


def _measured(report: Report, limits: Limits) -> list[str]:
    """Return the cells of a case on one device."""
    best = next(iter(standing.peers(report)), None)
    own = standing.own(report)
    ours = standing.figure(report, own)
    return [
        _figure(report, AS_PUBLISHED),
        _figure(report, OURS),
        _figure(report, TUNED),
        f"{best} {_figure(report, best)}" if best else NO_FIGURE,
        _ratio(report, AS_PUBLISHED),
        _ratio(report, best) if best else NO_FIGURE,
        _samples(report),
        seconds(report.outcomes[own].summary["cpu_seconds"].median) if ours else NO_FIGURE,
        _memory(report) if ours else NO_FIGURE,
        of_limit(report, limits) if ours else NO_FIGURE,
        _first_call(report),
    ]


def _figure(report: Report, variant: str) -> str:
    figure, why = standing.figure(report, variant), standing.why_none(report, variant)
    if figure is not None:
        return interval(figure)
    if why is not None and why.startswith("void"):
        return "**void**"
    return NO_FIGURE if variant not in report.outcomes else "not tried"


def _ratio(report: Report, other: str) -> str:
    found = standing.ratio(report, other)
    return ratio(found) if found else NO_FIGURE


def _samples(report: Report) -> str:
    """Return the fewest samples of a variant that counts, and what its interval is worth if that is little."""
    taken = [
        (len(outcome.samples), outcome.summary[report.headline].coverage)
        for variant, outcome in report.outcomes.items()
        if standing.figure(report, variant)
    ]
    count, coverage = min(taken, default=(0, 0.0))
    of = {"process": "processes", "call": "calls"}[report.sampling] if count != 1 else report.sampling
    return f"{count} {of}" if coverage >= CERTAIN else f"{count} {of} ({coverage:.0%})"


def _memory(report: Report) -> str:
    own = report.outcomes[standing.own(report)]
    device = max((sample.peak_device_bytes or 0 for sample in own.samples), default=0)
    host = own.summary["peak_memory_bytes"].median
    return amount(host, "B") + (f", GPU {amount(device, 'B')}" if device else "")


def of_limit(report: Report, limits: Limits) -> str:
    """Return our rate of bytes, and of operations where they are counted, and what share of the limit each is.

    Bytes in memory are compared with the copying of memory, bytes in files with the reading of a cached file, and
    operations with the product of float64 matrices.
    """
    figure = standing.figure(report, standing.own(report))
    if figure is None:
        return NO_FIGURE
    name = "copy" if report.size.basis == "memory" else "read"
    most = limits.rate("memory_copy" if report.size.basis == "memory" else "file_read_cached")
    rates = [_share(report.size.bytes / figure.median, "B/s", most, name)]
    if report.operations is not None:
        rates.append(_share(report.operations / figure.median, "op/s", limits.rate("gemm_float64"), "GEMM"))
    return ", ".join(rates)


def _share(rate: float, unit: str, most: float | None, name: str) -> str:
    share = f"{digits(100 * rate / most)} %" if most else "unknown share"
    return f"{amount(rate, unit)} ({share} of {name})"


def _first_call(report: Report) -> str:
    own = report.outcomes.get(standing.own(report))
    warm_up = own.warm_up if own else None
    return seconds(getattr(warm_up, report.headline)) if warm_up else NO_FIGURE


def _measured_on(results: Results) -> str:
    """Return the machine and its limits, in one paragraph."""
    machine = results.limits.machine
    where = f"{machine.processor}, {results.limits.threads} threads, {machine.memory_bytes / 2**30:.0f} GiB"
    gpus = f"; {'; '.join(machine.gpus)}" if machine.gpus else ""
    commits = sorted({commit_of(case.report) for case in results.cases})
    return f"{NAMES[results.device]}: {where}{gpus}; commit {', '.join(commits)}. Limits: {_limits(results.limits)}."


def _limits(limits: Limits) -> str:
    found = []
    for name, limit in limits.limits.items():
        unit = {"bytes": "B/s", "operations": "op/s"}[limit.unit]
        rate = amount(limit.rate.median, unit) if limit.rate else f"not measured ({limit.missing})"
        found.append(f"{name.replace('_', ' ')} {rate}")
    return ", ".join(found)


def commit_of(report: Report) -> str:
    """Return the commit of the source, and whether files differed from it."""
    return report.revision.commit[:12] + (" with changes" if report.revision.changed else "")


def _notes(results: Sequence[Results]) -> Iterator[str]:
    """Yield what the cells mean, and which variants have no figures and why."""
    yield (
        "Times are medians with the interval of the median, which holds it with at least 95 % probability unless "
        "*samples* gives another one; they are of calls of processes that are set up, or of whole fresh processes. "
        "*Whitewater* is code that a step of the applications runs, too; *tuned for this table* was written for it "
        "alone. Ratios are Whitewater's time, or where it has none the tuned one's, divided by the other's, round by "
        "round: below 1 it is faster. Its are *CPU time*, *peak memory* and *first call* (cold caches included). "
        "*Of the limit*: the bytes of the input, each counted once, against the measured copying of memory (*copy*, "
        "where bytes read and written count) or the reading of a cached file (*read*); operations against the product "
        "of float64 matrices (*GEMM*), also where ours computes in float32 (R10, R12), which may be above 100 %: "
        "its own limit is *gemm float32*. On a GPU the oracle of a case "
        "runs on the CPU. The published figures are of other machines and of scale 1."
    )
    lines = [
        f"- {NAMES[of.device]}, {_name(case)}: {variant}: {_escaped(why)}"
        for of in results
        for case in of.cases
        for variant in case.report.outcomes
        if (why := standing.why_none(case.report, variant)) is not None
    ]
    if lines:
        yield "Without figures:"
        yield "\n".join(lines)


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table of one or more files of results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published.table", allow_abbrev=False)
    parser.add_argument("results", type=Path, nargs="+", help="results, one file for each device, JSON")
    parser.add_argument("--table", type=Path, required=True, help="file for the table, Markdown")
    parser.add_argument("--log", type=Path, help="file for everything printed")
    given: Any = parser.parse_args(arguments)
    with log_output(given.log, name="benchmarks table"):
        write_bytes(given.table, markdown([read(path, Results) for path in given.results]).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
