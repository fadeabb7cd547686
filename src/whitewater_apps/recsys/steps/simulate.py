"""The source `generated`: a seeded log of clicks by day, in the manner of Criteo's, whose label is understood.

A file a day, ``day-00.parquet`` and following, rows in order of time: ``time`` (Unix time in seconds, int64), ``label``
(int8, 1 is a click), numbers ``I1``... and categories ``C1``... (text). The model is documented in
`whitewater_apps.recsys.synthetic`: `numbers`, `categories` (popularity and texts) and `days` (times and the label).

Days, and blocks of rows in them, have random numbers of their own: equal settings give equal bytes, whatever the number
of threads.
"""

import logging
from pathlib import Path

from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.recsys.config import Simulate
from whitewater_apps.recsys.synthetic.days import Plan, day, plan, rows_of_days, schema

logger = logging.getLogger(__name__)

# Dictionaries of texts larger than this would be written out row by row.
DICTIONARY_BYTES = 64 << 20


def simulate(run: Run[Simulate], *, simulated: Output) -> None:
    """Write a folder of a Parquet file for each day; a day that gets none of the rows has a file without rows."""
    simulated.mkdir()
    of = plan(run.settings)
    rows = rows_of_days(run.settings)
    # As many digits as the last day needs: names are then in the order of the days.
    digits = max(2, len(str(len(rows) - 1)))
    tasks = [(number, each, simulated / f"day-{number:0{digits}d}.parquet") for number, each in enumerate(rows)]
    with run.workers() as workers:
        clicks = sum(workers.map(write_day, tasks, label="simulating days", shared={"of": of}))
    roles = {role: [f"C{column + 1}" for column in columns] for role, columns in of.roles.items()}
    run.note(rows=sum(rows), clicks=clicks, cardinalities=of.cardinalities, roles=roles)
    logger.info("simulated %d rows of %d days", sum(rows), run.settings.days)


def write_day(task: tuple[int, int, Path], *, of: Plan) -> int:
    """Write the file of a day, given its number, rows and path; return its clicks. Memory is that of a block."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    number, rows, path = task
    clicks = 0
    # Without Arrow's schema, so that readers see texts; statistics of texts would take as long as the rest.
    with pq.ParquetWriter(path, schema(of.settings), store_schema=False, write_statistics=False,
                          dictionary_pagesize_limit=DICTIONARY_BYTES) as writer:  # fmt: skip
        for block in day(of, number, rows=rows).blocks():
            writer.write_table(block, row_group_size=len(block))
            clicks += pc.sum(block["label"]).as_py()
    return clicks


if __name__ == "__main__":
    main(simulate)
