"""The taxi benchmark in Polars with one thing that Whitewater does: tip fractions are summed exactly, in any order.

It shows what that alone costs: each fraction is rounded to 2**-42 and summed as an integer of 128 bits.
"""

from __future__ import annotations

from functools import partial

import polars as pl

from benchmarks.taxi.variant import main
from benchmarks.taxi.with_polars import TIP_FRACTION, compute

UNIT = 2**42
EXACT_SUM = (TIP_FRACTION * UNIT).cast(pl.Int64).cast(pl.Int128).sum()

compute_exactly = partial(compute, total=EXACT_SUM, unit=UNIT)

if __name__ == "__main__":
    main(compute_exactly)
