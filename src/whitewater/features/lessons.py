"""The lessons of a pass over the data: the statistics that it learns, and what they have in common."""

from __future__ import annotations

from dataclasses import dataclass

from whitewater.features.dataset import Dataset
from whitewater.features.operator import Applying, Fitting, Statistic
from whitewater.features.plan import Learned, Origin, Plan


@dataclass(frozen=True)
class Lesson:
    """A statistic to learn for a stage."""

    stage: int
    statistic: Statistic


@dataclass(frozen=True)
class Material:
    """What the lessons of a pass have in common."""

    plan: Plan
    learned: Learned
    dataset: Dataset
    fitting: Fitting

    def columns(self, lesson: Lesson) -> list[str]:
        """Return the columns of the data that a lesson reads."""
        return self.plan.data_columns(self.observed_columns(lesson), training=True)

    def observed_columns(self, lesson: Lesson) -> dict[str, Origin]:
        """Return the columns that a lesson observes, and where each comes from."""
        origins = self.plan.stages[lesson.stage].origins
        return {name: origins.get(name) for name in lesson.statistic.columns}

    @property
    def applying(self) -> Applying:
        """How columns are made: as in training."""
        return Applying(self.fitting.device, training=True)
