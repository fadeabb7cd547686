"""The taxi benchmark in Polars with exact sums, in a process that imports what a step of Whitewater needs.

NumPy, pyarrow with its Parquet reader, and Pydantic; no module of Whitewater. It reads no schema and checks no value:
its time is a floor for a step.
"""

import numpy  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pydantic  # noqa: F401

from benchmarks.taxi.variant import main
from benchmarks.taxi.with_polars_exact import compute_exactly

if __name__ == "__main__":
    main(compute_exactly)
