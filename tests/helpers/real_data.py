"""Real records, found through the environment variable REAL_DATA."""

import os
from pathlib import Path

import pytest

needs_real_data = pytest.mark.skipif("REAL_DATA" not in os.environ, reason="REAL_DATA names no folder of real records")


def real_data(*parts: str) -> Path:
    """Return a path below the folder of real records."""
    return Path(os.environ["REAL_DATA"], *parts)
