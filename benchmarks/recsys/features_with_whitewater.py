"""Whitewater: a workflow of operators, fitted and applied as the steps fit and features do.

It starts and ends as Whitewater's command line does.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.recsys.features_variant import CATEGORICAL, CONTINUOUS, KEY, THRESHOLD, Work, main
from whitewater.engines.config import Engine
from whitewater.features.config import Fit
from whitewater.features.dataset import Dataset
from whitewater.features.fit import fit_workflow
from whitewater.features.operators import Categorify, Clip, FillMissing, LogOp, Normalize
from whitewater.features.transform import write_results
from whitewater.process import exit_fast, start_fast

ROW_GROUP_ROWS = 131_072


def make(work: Work, *, engine: Engine | None = None) -> None:
    """Make the features, by the engine of the placement if none is given."""
    numbers = CONTINUOUS >> FillMissing(fill_val=0) >> Clip(min_value=0) >> LogOp() >> Normalize()
    features = numbers + (CATEGORICAL >> Categorify(freq_threshold=THRESHOLD))
    run, dataset = work.placement.run("recsys", "fit", Fit(), threads=work.threads), Dataset(work.files)
    run = replace(run, engine=engine or run.engine)
    work.folder.rmdir()
    with run.workers() as workers:
        fitted = fit_workflow(features, dataset, carry=[KEY], run=run, workers=workers)
        write_results(fitted, dataset, work.folder, run=run, workers=workers, row_group_rows=ROW_GROUP_ROWS)


if __name__ == "__main__":
    start_fast()
    main(make, is_placed=True)
    exit_fast(0)
