"""The input of loading: features of a click log, shuffled, as the steps `fit` and `features` make them, made once."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from benchmarks.recsys.click_log import CPU, ClickLog
from benchmarks.recsys.features_variant import THRESHOLD
from whitewater.features.artifact import load
from whitewater.features.config import Feature, Fit
from whitewater.features.dataset import Dataset
from whitewater.features.feature_folder import open_features
from whitewater.features.log_folder import open_log
from whitewater.features.transform import write_results
from whitewater.step import Output, Run
from whitewater_apps.recsys.config import Features
from whitewater_apps.recsys.steps.fit import fit

FEATURES = (
    Feature(
        name="numbers", columns=("I*",), operators=("FillMissing", {"Clip": {"min_value": 0}}, "LogOp", "Normalize")
    ),
    Feature(name="ids", columns=("C*",), operators=({"Categorify": {"freq_threshold": THRESHOLD}},)),
)


@dataclass(frozen=True)
class FeatureRows:
    """A folder of features: 13 float32 and 26 int32, the label (int8) and the row's number (int64)."""

    folder: Path
    rows: int

    @property
    def file_bytes(self) -> int:
        """Bytes of the files."""
        return sum(path.stat().st_size for path in self.folder.glob("*.parquet"))


def prepare(directory: Path, log: ClickLog, *, threads: int) -> FeatureRows:
    """Make the features of a log as its training rows become, unless they are there."""
    folder = directory / log.folder.name.replace("events", "features")
    if not folder.exists():
        scratch = directory / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        workflow = scratch / "workflow"
        fit(
            Run("recsys", "fit", CPU, Fit(features=FEATURES), threads),
            train=log.folder,
            workflow=Output(workflow),
            statistics=Output(scratch / "statistics.json"),
        )
        settings = Features()
        run = Run("recsys", "features", CPU, settings, threads)
        with run.workers() as workers:
            write_results(
                load(workflow), Dataset(log.folder), scratch / "train",
                run=run, workers=workers, row_group_rows=settings.row_group_rows,
                tags=open_log(log.folder).tags, training=True, seed=settings.seed,
            )  # fmt: skip
        (scratch / "train").rename(folder)
        shutil.rmtree(scratch)
    return FeatureRows(folder, open_features(folder).rows)
