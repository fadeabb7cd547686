"""Whether the variants of a case, which have their data at hand all at once, find room in memory and on the disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from math import floor, log10

from benchmarks.published.amounts import amount
from benchmarks.published.row import CallCase, Row, Variant, Work
from whitewater.engines import memory
from whitewater.errors import ResourceError


def too_large(case: CallCase, variant: Variant, work: Work) -> str | None:
    """Say that a variant alone needs more than there is, or return None."""
    for place, needed, free in _needs(case, [variant], work):
        if needed > free:
            return f"needs about {amount(needed, 'B')} of {place}, {amount(free, 'B')} are available"
    return None


def require(row: Row, case: CallCase, installed: Sequence[Variant], work: Work) -> None:
    """Refuse to start variants that need more than there is, before the machine stands still for want of memory.

    One that is `too_large` alone is left out, unless the others do not fit either.

    Raises
    ------
    ResourceError
        Naming the largest scale with which all fit.
    """
    kept = [each for each in installed if each.name == case.oracle or too_large(case, each, work) is None]
    if all(needed <= free for _, needed, free in _needs(case, kept, work)):
        return
    place, needed, free = max(_needs(case, installed, work), key=lambda need: need[1] / max(need[2], 1))
    raise ResourceError(
        f"{row.id} {row.name}{f', {case.name},' if case.name else ''} at scale {work.scale:g} needs about "
        f"{amount(needed, 'B')} of {place}, since its variants are measured beside each other, but "
        f"{amount(free, 'B')} are available. "
        f"Set benchmarks.{row.name}.scale to {_rounded_down(work.scale * free / needed):g} at most."
    )


def _needs(case: CallCase, variants: Sequence[Variant], work: Work) -> Iterator[tuple[str, int, int]]:
    """Yield how many bytes variants need of memory and of the disk, and how many are free.

    What runs on a GPU has its data in the memory of the GPU, which CuPy and cuDF refuse to exceed.
    """
    on_host = [each for each in variants if work.device.name == "cpu" or work.device.name not in each.devices]
    shares = {"memory": sum(each.memory for each in on_host), "disk": sum(each.disk for each in variants)}
    for place, share in shares.items():
        if share:
            free = memory.available() if place == "memory" else shutil.disk_usage(work.folder).free
            yield place, round(share * case.size(work).bytes), free


def _rounded_down(scale: float) -> float:
    """Return a scale with one digit, which sizes are proportional to."""
    if scale <= 0:
        return 0.0
    unit = 10.0 ** floor(log10(scale))
    return floor(scale / unit) * unit
