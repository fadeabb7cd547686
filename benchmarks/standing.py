"""How we stand in a report: our figure, that of the published code, the best peer, and the ratios between them.

`OURS` is a variant that runs code of src/whitewater which a step runs, too; `TUNED` one written for a benchmark.
"""

from __future__ import annotations

from benchmarks.report import Quantity, Report
from benchmarks.spread import Spread, spread

OURS, TUNED, AS_PUBLISHED = "whitewater", "tuned", "as_published"


def why_none(report: Report, variant: str) -> str | None:
    """Return why a variant has no figures that count, or None where it has some."""
    outcome = report.outcomes.get(variant)
    if outcome is None:
        return "none"
    if outcome.missing is not None:
        return outcome.missing
    if outcome.void is not None:
        return f"void: {outcome.void}"
    return None if outcome.samples else "no samples"


def figure(report: Report, variant: str, quantity: Quantity | None = None) -> Spread | None:
    """Return the spread of a quantity, by default of the headline; None where no figures of the variant count."""
    if why_none(report, variant) is not None:
        return None
    return report.outcomes[variant].summary[quantity or report.headline]


def is_peer(variant: str) -> bool:
    """Return whether a variant is neither of us nor published code; further forms of these have longer names."""
    return not variant.startswith((OURS, TUNED, AS_PUBLISHED))


def own(report: Report) -> str:
    """Return the variant that is compared with the others: ours, or the tuned one where a case has no other of us."""
    return TUNED if OURS not in report.outcomes and TUNED in report.outcomes else OURS


def peers(report: Report, quantity: Quantity | None = None) -> dict[str, Spread]:
    """Return the figures of all peers that count, the best first."""
    found = {name: each for name in report.outcomes if is_peer(name) and (each := figure(report, name, quantity))}
    return dict(sorted(found.items(), key=lambda item: item[1].median))


def ratio(report: Report, other: str, quantity: Quantity | None = None) -> Spread | None:
    """Return `own` / other, taken round by round: below 1 own needs less. None where one of them has no figures."""
    mine = own(report)
    if figure(report, mine) is None or figure(report, other) is None:
        return None
    name = quantity or report.headline
    theirs = {sample.round: getattr(sample, name) for sample in report.outcomes[other].samples}
    ours = [(getattr(each, name), theirs[each.round]) for each in report.outcomes[mine].samples if each.round in theirs]
    return spread([one / another for one, another in ours]) if ours else None
