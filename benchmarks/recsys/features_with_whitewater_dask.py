"""Whitewater by the engine dask: frames of pandas, which on a GPU are cuDF's, on threads."""

from __future__ import annotations

from functools import partial

from benchmarks.recsys.features_variant import main
from benchmarks.recsys.features_with_whitewater import make
from whitewater.process import exit_fast, start_fast

if __name__ == "__main__":
    start_fast()
    main(partial(make, engine="dask"))
    exit_fast(0)
