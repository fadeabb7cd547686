"""The recsys application, as its entry point declares it."""

from whitewater.application import Application
from whitewater_apps.recsys.config import Recsys

RECSYS = Application(
    "recsys",
    settings=Recsys,
    package="whitewater_apps.recsys",
    steps=(
        "simulate",
        "fetch",
        "split",
        "fit",
        "features",
        "drift",
        "train",
        "plot",
        "manifest",
    ),
    commands={"transform": "whitewater_apps.recsys.cli:main"},
    headline="whitewater_apps.recsys.headline:headline",
)
