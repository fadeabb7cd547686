"""The operators of workflows: those that a configuration or a stored workflow may name, and no others."""

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
