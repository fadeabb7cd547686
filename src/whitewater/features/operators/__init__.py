"""The operators of workflows: those that a configuration or a stored workflow may name, and no others."""

from whitewater.features.operators.arithmetic import Bucketize, Clip, LambdaOp, LogOp
from whitewater.features.operators.by_column import (
    AddMetadata,
    ListSlice,
    Rename,
    TagAsItemFeatures,
    TagAsItemID,
    TagAsUserFeatures,
    TagAsUserID,
)
from whitewater.features.operators.categorify import Categorify, HashBucket, HashedCross
from whitewater.features.operators.encodings import JoinGroupby, PastCount, PastMean, TargetEncoding
from whitewater.features.operators.join import JoinExternal
from whitewater.features.operators.scale_and_fill import FillMedian, FillMissing, Normalize, NormalizeMinMax

__all__ = [
    "AddMetadata", "Bucketize", "Categorify", "Clip", "FillMedian", "FillMissing", "HashBucket", "HashedCross",
    "JoinExternal", "JoinGroupby", "LambdaOp", "ListSlice", "LogOp", "Normalize", "NormalizeMinMax", "PastCount",
    "PastMean", "Rename", "TagAsItemFeatures", "TagAsItemID", "TagAsUserFeatures", "TagAsUserID", "TargetEncoding",
]  # fmt: skip
OPERATORS = tuple(__all__)
