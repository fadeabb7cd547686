"""The source `generated`: a seeded log of clicks by day; `whitewater_apps.recsys.synthetic` documents its model.

A file a day, ``day-00.parquet`` and following, rows in order of time: ``time`` (Unix time in seconds, int64), ``label``
(int8, 1 is a click), numbers ``I1``... and categories ``C1``... (text). Equal settings give equal bytes, whatever the
number of threads.
"""

import logging

from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.recsys.config import Simulate
from whitewater_apps.recsys.synthetic import plan, rows_of_days, write_day

logger = logging.getLogger(__name__)


def simulate(run: Run[Simulate], *, simulated: Output) -> None:
    """Write a Parquet file for each day into a folder; the file of a day may have no rows."""
    simulated.mkdir()
    model = plan(run.settings)
    rows = rows_of_days(run.settings)
    # Zero-padded, so that the names sort by day.
    digits = max(2, len(str(len(rows) - 1)))
    tasks = [(number, each, simulated / f"day-{number:0{digits}d}.parquet") for number, each in enumerate(rows)]
    with run.workers() as workers:
        list(workers.map(write_day, tasks, label="simulating days", shared={"model": model}))
    roles = {role: [f"C{column + 1}" for column in columns] for role, columns in model.roles.items()}
    run.note(rows=sum(rows), cardinalities=model.cardinalities, roles=roles)
    logger.info("simulated %d rows of %d days", sum(rows), run.settings.days)


if __name__ == "__main__":
    main(simulate)
