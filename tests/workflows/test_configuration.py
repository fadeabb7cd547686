"""What a user sets reaches the steps that use it and no other; what cannot be used is refused before any job."""

import shutil
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.workflows.running import ROOT, Clone

# Makes any machine one without a usable GPU.
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}


def dry_run(clone: Clone, overrides: Mapping[str, Any] | None = None, *arguments: str, name: str = "mine.yaml") -> str:
    """Return what a dry run with overrides prints."""
    files = ("tiny.yaml", clone.write(name, overrides)) if overrides else ("tiny.yaml",)
    ended = clone.snakemake("--dry-run", *arguments, files=files, **NO_GPU)
    assert ended.status == 0, ended.terminal
    return ended.terminal


def jobs(clone: Clone, overrides: Mapping[str, Any] | None = None, *arguments: str) -> set[str]:
    """Return the rules that would run."""
    from tests.workflows.running import Ended

    return Ended(0, dry_run(clone, overrides, *arguments)).jobs
