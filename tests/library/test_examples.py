"""The examples in docstrings give what they show."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = (
    "engines", "features.columns.groups", "features.dataset", "features.loader",
    "features.operators.arithmetic", "features.operators.categorify", "features.operators.scale_and_fill",
    "features.serve", "features.workflow", "graphs.vertex_ids", "io.terminal_text",
    "tables.hashing", "web.urls",
)  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name: str) -> None:
    failed, tried = doctest.testmod(import_module(f"whitewater.{name}"))
    assert tried
    assert not failed
