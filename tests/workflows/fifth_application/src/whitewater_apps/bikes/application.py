"""The bike share application, as its entry point declares it."""

from whitewater.application import Application
from whitewater_apps.bikes.config import Bikes

BIKES = Application(
    "bikes",
    settings=Bikes,
    package="whitewater_apps.bikes",
    steps=("simulate", "clean", "durations", "manifest"),
    headline="whitewater_apps.bikes.steps.durations:headline",
)
