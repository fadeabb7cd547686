"""The operators of workflows: those that a configuration or a stored workflow may name, and no others."""

from collections.abc import Mapping

from whitewater.recsys.operator import Operator
from whitewater.recsys.operators.arithmetic import Bucketize, Clip, LogOp
from whitewater.recsys.operators.categorify import Categorify
from whitewater.recsys.operators.fill import FillMedian, FillMissing
from whitewater.recsys.operators.hashed import HashBucket, HashedCross
from whitewater.recsys.operators.join_external import JoinExternal
from whitewater.recsys.operators.join_groupby import JoinGroupby
from whitewater.recsys.operators.lambda_op import LambdaOp
from whitewater.recsys.operators.list_slice import ListSlice
from whitewater.recsys.operators.normalize import Normalize, NormalizeMinMax
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
    "AddMetadata", "Bucketize", "Categorify", "Clip", "FillMedian", "FillMissing", "HashBucket", "HashedCross",
    "JoinExternal", "JoinGroupby", "LambdaOp", "ListSlice", "LogOp", "Normalize", "NormalizeMinMax", "PastCount",
    "PastMean", "Rename", "TagAsItemFeatures", "TagAsItemID", "TagAsUserFeatures", "TagAsUserID", "TargetEncoding",
]  # fmt: skip
OPERATORS: Mapping[str, type[Operator]] = {name: globals()[name] for name in __all__}
__all__ += ["OPERATORS"]
