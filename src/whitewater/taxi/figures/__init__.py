"""The pictures of the taxi application: functions of tables that return Matplotlib figures."""

from whitewater.taxi.figures.place import tip_fraction_by_borough, tip_fraction_by_zone
from whitewater.taxi.figures.prediction import MODELS, predicted_against_observed
from whitewater.taxi.figures.quality import data_quality
from whitewater.taxi.figures.time import tip_fraction_by_hour, tip_fraction_by_weekday_hour

__all__ = [
    "MODELS",
    "data_quality",
    "predicted_against_observed",
    "tip_fraction_by_borough",
    "tip_fraction_by_hour",
    "tip_fraction_by_weekday_hour",
    "tip_fraction_by_zone",
]
