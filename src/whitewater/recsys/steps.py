"""The steps of the recsys application: where each one is, and the section of the configuration that it gets.

`features` transforms the log; `transform`, which is no step, any file.
"""

from whitewater.config import recsys
from whitewater.registry import Step

STEPS = {
    "simulate": Step("whitewater.recsys.simulate:simulate", recsys.Simulate),
    "fetch": Step("whitewater.recsys.fetch:fetch", recsys.Fetch),
    "split": Step("whitewater.recsys.split:split", recsys.Split),
    "fit": Step("whitewater.recsys.fit:fit", recsys.Fit),
    "features": Step("whitewater.recsys.features:features", recsys.Features),
    "drift": Step("whitewater.recsys.drift:drift", recsys.Drift),
    "train": Step("whitewater.recsys.train:train", recsys.Train),
    "plot": Step("whitewater.recsys.plot:plot", recsys.Plot),
    "manifest": Step("whitewater.manifest:manifest", recsys.Recsys),
}
COMMANDS = {"transform": "whitewater.recsys.transform_command:main"}
