"""The taxi application, as its entry point declares it."""

from whitewater.application import Application
from whitewater_apps.taxi.config import Taxi

TAXI = Application(
    "taxi",
    settings=Taxi,
    package="whitewater_apps.taxi",
    steps=("fetch", "standardise", "clean", "tips", "model", "predict", "plot", "manifest"),
    headline="whitewater_apps.taxi.headline:headline",
)
