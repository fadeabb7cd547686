"""The operators of workflows: those that a configuration or a stored workflow may name, and no others.

A module is imported when its operator is first asked for: all of them take 0.05 s of each process.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whitewater.features.operator import Operator
    from whitewater.features.operators.arithmetic import Bucketize, Clip, LambdaOp, LogOp
    from whitewater.features.operators.categorify import Categorify
    from whitewater.features.operators.fill import FillMedian, FillMissing
    from whitewater.features.operators.hashed import HashBucket, HashedCross
    from whitewater.features.operators.join import JoinExternal, JoinGroupby
    from whitewater.features.operators.list_slice import ListSlice
    from whitewater.features.operators.normalize import Normalize, NormalizeMinMax
    from whitewater.features.operators.past import PastCount, PastMean
    from whitewater.features.operators.tags import (
        AddMetadata,
        Rename,
        TagAsItemFeatures,
        TagAsItemID,
        TagAsUserFeatures,
        TagAsUserID,
    )
    from whitewater.features.operators.target_encoding import TargetEncoding

__all__ = [
    "AddMetadata", "Bucketize", "Categorify", "Clip", "FillMedian", "FillMissing", "HashBucket", "HashedCross",
    "JoinExternal", "JoinGroupby", "LambdaOp", "ListSlice", "LogOp", "Normalize", "NormalizeMinMax", "PastCount",
    "PastMean", "Rename", "TagAsItemFeatures", "TagAsItemID", "TagAsUserFeatures", "TagAsUserID", "TargetEncoding",
]  # fmt: skip
OPERATORS = tuple(__all__)
_OF_MODULES = {
    "arithmetic": {"Bucketize", "Clip", "LambdaOp", "LogOp"}, "categorify": {"Categorify"},
    "fill": {"FillMedian", "FillMissing"}, "hashed": {"HashBucket", "HashedCross"},
    "join": {"JoinExternal", "JoinGroupby"}, "list_slice": {"ListSlice"},
    "normalize": {"Normalize", "NormalizeMinMax"}, "past": {"PastCount", "PastMean"},
    "tags": {"AddMetadata", "Rename", "TagAsItemFeatures", "TagAsItemID", "TagAsUserFeatures", "TagAsUserID"},
    "target_encoding": {"TargetEncoding"},
}  # fmt: skip


def __getattr__(name: str) -> type[Operator]:
    for module, names in _OF_MODULES.items():
        if name in names:
            found: type[Operator] = getattr(import_module(f"{__name__}.{module}"), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
