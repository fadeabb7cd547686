"""Recommender features: learned from a log once, and applied alike to tables and to single rows.

The operators are in `whitewater.features.operators`. A module is imported when a name of it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whitewater.features.dataset import Dataset
    from whitewater.features.feature_folder import open_features
    from whitewater.features.loader import Batches
    from whitewater.features.log_folder import open_log
    from whitewater.features.operators.arithmetic import register
    from whitewater.features.serve import Transformer
    from whitewater.features.workflow import Workflow

__all__ = ["Batches", "Dataset", "Transformer", "Workflow", "open_features", "open_log", "register"]
_MODULES = {
    "Batches": "loader", "Dataset": "dataset", "Transformer": "serve", "Workflow": "workflow",
    "open_features": "feature_folder", "open_log": "log_folder", "register": "operators.arithmetic",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
