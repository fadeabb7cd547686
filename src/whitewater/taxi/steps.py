"""The steps of the taxi application: where each one is, and the section of the configuration that it gets."""

from whitewater.config import taxi
from whitewater.registry import Step

STEPS = {
    "fetch": Step("whitewater.taxi.fetch:fetch", taxi.Fetch),
    "standardise": Step("whitewater.taxi.standardise:standardise", taxi.Standardise),
    "clean": Step("whitewater.taxi.clean:clean", taxi.Clean),
    "tips": Step("whitewater.taxi.tips:tips", taxi.Tips),
    "model": Step("whitewater.taxi.model:model", taxi.Model),
    "predict": Step("whitewater.taxi.predict:predict", taxi.Predict),
    "plot": Step("whitewater.taxi.plot:plot", taxi.Plot),
    "manifest": Step("whitewater.manifest:manifest", taxi.Taxi),
}
