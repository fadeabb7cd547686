"""Kernels of counts and sums over time."""

from __future__ import annotations

from whitewater.devices.kernel import kernel
from whitewater.devices.protocol import Array


@kernel
def add_up_runs(values: Array, starts: Array, totals: Array) -> None:
    """Add up the values of each run from its first on, so that nothing of another run, or of later, is in a total.

    Parameters
    ----------
    values
        float64 (values,).
    starts
        int64 (runs + 1,): run *i* is ``values[starts[i]:starts[i + 1]]``.
    totals
        float64 (values,), filled: the sum of the run up to and with the value.
    """
    for run in range(len(starts) - 1):
        total = 0.0
        for place in range(starts[run], starts[run + 1]):
            total += values[place]
            totals[place] = total
