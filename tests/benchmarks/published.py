"""Runs the variants of a row of the published table in this process, on tiny data."""

from pathlib import Path
from typing import Any

from pydantic import JsonValue

from benchmarks.measure import differences
from benchmarks.published.row import CallCase, Work, load, missing_packages
from whitewater import engines


def tiny_work(folder: Path, *, scale: float, **options: Any) -> Work:
    return Work(device=engines.resolve("cpu"), threads=2, scale=scale, folder=folder, options=options)


def answers(row: str, case: str, work: Work) -> dict[str, JsonValue]:
    """Return the answer of each variant that runs on the CPU and whose packages are installed."""
    of = load(row).case(case)
    assert isinstance(of, CallCase)
    of.prepare(work)
    found = {}
    for variant in of.variants:
        if "cpu" in variant.devices and missing_packages(variant.packages) is None:
            with variant.prepare(work) as timed:
                found[variant.name] = timed.answer(timed.call())
    return found


def disagreements(row: str, case: str, work: Work) -> list[str]:
    """Return where an answer differs from the oracle's; each difference begins with the name of its variant."""
    of, found = load(row).case(case), answers(row, case, work)
    expected = found[of.oracle]
    assert len(found) > 1, "one variant alone cannot disagree"
    return [
        f"{name}: {difference}"
        for name, answer in found.items()
        for difference in differences(answer, expected, tolerance=of.tolerance)
    ]
