"""Rows to learn from, whose target follows from a category and a number that may be null."""

from collections.abc import Mapping

import numpy as np

from whitewater.learn.features import Features
from whitewater.learn.sample import Sample
from whitewater.learn.trained import HOUR


class Forms(Features):
    """The hour is a category; the fare may be null."""

    never_null = frozenset({"hour"})

    def levels(self, feature: str) -> Mapping[float, str]:
        return {float(hour): f"{hour:02d}" for hour in range(24)} if feature == "hour" else {}


FORMS = Forms(("hour", "fare"))


def sample_of(rows: int = 2_000) -> Sample:
    """Return rows whose target depends on the hour and the fare, with noise, in the order of their hash."""
    random = np.random.default_rng(0)
    time = random.integers(0, 31 * 24, rows) * HOUR
    hour, fare = time // HOUR % 24.0, random.gamma(3, 5, rows)
    target = 0.15 + 0.03 * np.sin(hour / 24 * 2 * np.pi) + 0.4 / (1 + fare) + random.normal(0, 0.03, rows)
    hashes = np.sort(random.integers(0, 2**64, rows, np.uint64))
    features = np.stack([hour, np.where(random.random(rows) < 0.05, np.nan, fare)], axis=1)
    return Sample(hashes, time, target, features, rows)
