"""The operators of workflows: those that a configuration or a stored workflow may name, and no others.

A module is imported when its operator is first asked for, because each costs a process milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whitewater.recsys.operators.arithmetic import Clip, LogOp
    from whitewater.recsys.operators.bucketize import Bucketize
    from whitewater.recsys.operators.categorify import Categorify
    from whitewater.recsys.operators.fill import FillMedian, FillMissing
    from whitewater.recsys.operators.hash_bucket import HashBucket
    from whitewater.recsys.operators.hashed_cross import HashedCross
    from whitewater.recsys.operators.join_external import JoinExternal
    from whitewater.recsys.operators.join_groupby import JoinGroupby
    from whitewater.recsys.operators.lambda_op import LambdaOp
    from whitewater.recsys.operators.list_slice import ListSlice
    from whitewater.recsys.operators.normalize import Normalize, NormalizeMinMax
    from whitewater.recsys.operators.operator import Operator
    from whitewater.recsys.operators.past import PastCount, PastMean
    from whitewater.recsys.operators.tags import (
        AddMetadata,
        Rename,
        TagAsItemFeatures,
        TagAsItemID,
        TagAsUserFeatures,
        TagAsUserID,
    )
    from whitewater.recsys.operators.target_encoding import TargetEncoding

__all__ = [
    "OPERATORS", "AddMetadata", "Bucketize", "Categorify", "Clip", "FillMedian", "FillMissing", "HashBucket",
    "HashedCross", "JoinExternal", "JoinGroupby", "LambdaOp", "ListSlice", "LogOp", "Normalize", "NormalizeMinMax",
    "PastCount", "PastMean", "Rename", "TagAsItemFeatures", "TagAsItemID", "TagAsUserFeatures", "TagAsUserID",
    "TargetEncoding",
]  # fmt: skip

_MODULES = {
    "AddMetadata": "tags",
    "Bucketize": "bucketize",
    "Categorify": "categorify",
    "Clip": "arithmetic",
    "FillMedian": "fill",
    "FillMissing": "fill",
    "HashBucket": "hash_bucket",
    "HashedCross": "hashed_cross",
    "JoinExternal": "join_external",
    "JoinGroupby": "join_groupby",
    "LambdaOp": "lambda_op",
    "ListSlice": "list_slice",
    "LogOp": "arithmetic",
    "Normalize": "normalize",
    "NormalizeMinMax": "normalize",
    "PastCount": "past",
    "PastMean": "past",
    "Rename": "tags",
    "TagAsItemFeatures": "tags",
    "TagAsItemID": "tags",
    "TagAsUserFeatures": "tags",
    "TagAsUserID": "tags",
    "TargetEncoding": "target_encoding",
}


class _Operators(Mapping[str, "type[Operator]"]):
    """Operators by name."""

    def __getitem__(self, name: str) -> type[Operator]:
        operator: type[Operator] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return operator

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


OPERATORS: Mapping[str, type[Operator]] = _Operators()


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return OPERATORS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
