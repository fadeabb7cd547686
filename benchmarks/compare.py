"""What is faster or slower in one file of measurements than in another: ``python -m benchmarks.compare BEFORE AFTER``.

The files are results of all rows, of one row, or a single report. A variant is *faster* or *slower* where the intervals
of its two medians do not overlap. Each interval holds its true median with at least 95 %, so that a verdict on medians
that are equal is wrong with at most 10 %, and with about 1 % where the two spread alike. Below six samples an interval
is the whole range of them: then only disjoint ranges are a verdict, which is marked. What else changed between the two
runs, such as the load of the machine, is part of the difference; so run both as near to each other as you can.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from benchmarks import standing
from benchmarks.process_tree import MeasurementError
from benchmarks.published.amounts import CERTAIN, interval
from benchmarks.report import Report
from benchmarks.results_file import read_reports
from benchmarks.spread import Spread
from whitewater.log import log_output

Verdict = Literal["faster", "slower", "no difference", "too few samples", "no verdict"]
RULE = (
    "Faster or slower: the intervals of the medians, each of at least 95 %, are disjoint (for equal medians wrong with "
    "10 % at most). Fewer than six samples: only disjoint ranges count, marked *."
)

FEWEST_TOGETHER = 5


@dataclass(frozen=True)
class Compared:
    """A variant of a case before and after.

    ``ratio`` is that of the medians, after / before, ``low`` and ``high`` the ratios of the ends of the intervals that
    are nearest and farthest. ``certain`` is false where an interval is worth less than 95 %. ``reason`` says why there
    is no verdict.
    """

    case: str
    variant: str
    verdict: Verdict
    before: Spread | None = None
    after: Spread | None = None
    certain: bool = True
    reason: str = ""

    @property
    def ratio(self) -> tuple[float, float, float] | None:
        """The ratio of the medians after / before, and the least and the largest of the intervals."""
        if self.before is None or self.after is None:
            return None
        return (
            self.after.median / self.before.median,
            self.after.low / self.before.high,
            self.after.high / self.before.low,
        )


def compare(before: Mapping[str, Report], after: Mapping[str, Report]) -> list[Compared]:
    """Return each variant of each case that both have; those of a case of another size have no verdict."""
    return [
        compared
        for name, report in before.items()
        if name in after
        for compared in _compare_case(name, report, after[name])
    ]


def together(compared: Sequence[Compared]) -> Iterator[str]:
    """Yield a line that tells whether all variants, and so the machine rather than the code, became slower."""
    ratios = [each.ratio[0] for each in compared if each.ratio]
    if len(ratios) >= FEWEST_TOGETHER:
        yield (
            f"All {len(ratios)} together: after / before is {median(ratios):.2f} by the median. Where it is far from 1 "
            "the machine was slower or faster as such, and a single verdict tells little."
        )


def only_in_one(before: Mapping[str, Report], after: Mapping[str, Report]) -> Iterator[str]:
    """Yield a line for each case and variant that only one of the files has."""
    for these, others, which in ((before, after, "before"), (after, before, "after")):
        for name, report in these.items():
            if name not in others:
                yield f"only {which}: {name}"
                continue
            missing = [variant for variant in report.outcomes if variant not in others[name].outcomes]
            yield from (f"only {which}: {name}, {variant}" for variant in missing)


def differing(before: Mapping[str, Report], after: Mapping[str, Report]) -> Iterator[str]:
    """Yield a line for each thing beside the times in which the runs of the same cases differ."""
    lines = {
        f"{key}: {old} -> {new}"
        for name, report in before.items()
        if name in after
        for key, old, new in _differences(_circumstances(report), _circumstances(after[name]))
    }
    yield from sorted(lines)


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for key in {**before, **after}:
        if before.get(key) != after.get(key):
            yield key, before.get(key), after.get(key)


def _circumstances(report: Report) -> dict[str, Any]:
    """Return what a run was made on and with."""
    machine = report.machine.model_dump(exclude={"load_average_before"})
    chosen: dict[str, Any] = {key: report.parameters[key] for key in ("device", "cluster") if key in report.parameters}
    source = report.revision.model_dump()
    return {**machine, **source, "threads": report.plan.threads, **chosen, **report.versions}


def _compare_case(name: str, before: Report, after: Report) -> Iterator[Compared]:
    refused = _refused(before, after)
    for variant in before.outcomes:
        if variant not in after.outcomes:
            continue
        if refused is None:
            yield _compare_variant(name, variant, before, after)
        else:
            yield Compared(name, variant, "no verdict", reason=refused)


def _refused(before: Report, after: Report) -> str | None:
    """Return why two reports of a case cannot be compared, if so."""
    if before.sampling != after.sampling:
        return f"samples are of a {before.sampling} before and of a {after.sampling} after"
    old, new = before.parameters.get("scale"), after.parameters.get("scale")
    if old != new:
        return f"its scale is {old} before and {new} after"
    if before.size != after.size:
        sizes = [f"{each.size.rows:,} rows, {each.size.bytes:,} bytes ({each.size.basis})" for each in (before, after)]
        return f"its size is {sizes[0]} before and {sizes[1]} after"
    return None


def _compare_variant(name: str, variant: str, before: Report, after: Report) -> Compared:
    old, new = standing.figure(before, variant), standing.figure(after, variant)
    if old is None or new is None:
        reasons = {"before": standing.why_none(before, variant), "after": standing.why_none(after, variant)}
        reason = "; ".join(f"{when} {why}" for when, why in reasons.items() if why)
        return Compared(name, variant, "no verdict", old, new, reason=reason)
    certain = min(old.coverage, new.coverage) >= CERTAIN
    return Compared(name, variant, _verdict(old, new, certain=certain), old, new, certain=certain)


def _verdict(before: Spread, after: Spread, *, certain: bool) -> Verdict:
    if after.low > before.high:
        return "slower"
    if after.high < before.low:
        return "faster"
    return "no difference" if certain else "too few samples"


def text(compared: Sequence[Compared], *, first: Sequence[str], last: Sequence[str]) -> str:
    """Return what differs besides, the variants with their verdicts, and what only one file has, as lines."""
    names = max((len(each.case) for each in compared), default=4)
    header = f"{'case':<{names}} {'variant':<20} {'before':>26} {'after':>26} {'after / before':>20}  verdict"
    return "\n".join([*first, "", RULE, "", header, *(_line(each, names) for each in compared), *last])


def _line(of: Compared, names: int) -> str:
    old, new = (interval(each) if each else "-" for each in (of.before, of.after))
    ratio = "{:.2f} ({:.2f} - {:.2f})".format(*of.ratio) if of.ratio else "-"
    marked = of.verdict in ("faster", "slower") and not of.certain
    verdict = f"{of.verdict}{' *' if marked else ''}{f': {of.reason}' if of.reason else ''}"
    return f"{of.case:<{names}} {of.variant:<20} {old:>26} {new:>26} {ratio:>20}  {verdict}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the comparison; status 1 where a chosen variant is slower and that is to fail."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", allow_abbrev=False)
    parser.add_argument("before", type=Path, help="results, a row's reports or one report, JSON")
    parser.add_argument("after", type=Path, help="the same, measured later")
    parser.add_argument("--variants", nargs="+", help="compare these alone")
    parser.add_argument("--fail-on-slower", action="store_true", help="end with status 1 where a variant is slower")
    given: Any = parser.parse_args(arguments)
    with log_output(None, name="benchmarks compare"):
        before, after = read_reports(given.before), read_reports(given.after)
        compared = [each for each in compare(before, after) if not given.variants or each.variant in given.variants]
        if not compared:
            raise MeasurementError("The two files have none of these variants in common. Name two runs of one case.")
        first, last = list(differing(before, after)), [*together(compared), *only_in_one(before, after)]
        print(text(compared, first=first or ["Same machine, versions and commit."], last=last))
        slower = [each for each in compared if each.verdict == "slower"]
    return 1 if slower and given.fail_on_slower else 0


if __name__ == "__main__":
    sys.exit(main())
