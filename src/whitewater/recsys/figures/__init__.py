"""The pictures of the recsys application: functions of summaries and folders that return Matplotlib figures."""

from whitewater.recsys.figures.auc import auc
from whitewater.recsys.figures.calibration import calibration
from whitewater.recsys.figures.categories import categories
from whitewater.recsys.figures.drift import drift
from whitewater.recsys.figures.numbers import numbers

__all__ = ["auc", "calibration", "categories", "drift", "numbers"]
