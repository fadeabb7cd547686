"""The source `generated`: a seeded log of clicks by day, in the manner of Criteo's, whose label is understood.

A file a day, ``day-00.parquet`` and following, rows in order of time: ``time`` (Unix time in seconds, int64), ``label``
(int8, 1 is a click), numbers ``I1``... and categories ``C1``... (text). The model, part by part, in
`whitewater.recsys.simulation`:

- `numbers`: values are log-logistic, so their tails are power laws; counts (int32, some negative), amounts (float64),
  Unix times (int64) and values at 1e12 (float64). Null shares are Criteo's, from none to a half; they are missing at
  random, but for a mean effect of their own. Some distributions move from day to day, one share of nulls grows.
- `popularity`: the numbers of values of the columns are log-spaced from 3 to ``largest_cardinality``. Which value a row
  has follows about Zipf's law; which values are popular changes slowly, and each day brings values not seen before.
- `texts`: values are eight hexadecimal digits; a few columns have values that are awkward: the empty text, blanks,
  texts that look like nulls, accents, quotes, and one of 5000 letters.
- `effects`: the label. Its logit is the sum of an intercept and of independent effects: a linear one of the logarithm
  of six of the first thirteen numbers (of the value itself at 1e12); one drawn for each value of half of the columns of
  categories, N(0, 0.3^2); one for each pair of values of two small columns, N(0, 0.5^2), with mean 0 along both; and
  one that falls with the logarithm of the place that the value of one large column had in the order of popularity *on
  the day before*. All other columns, among them the largest, are noise. `roles` says which are which.
- `days`: busy hours and calm weekends.

Days, and blocks of rows in them, have random numbers of their own: equal settings give equal bytes, whatever the number
of threads.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from whitewater.config.recsys import Simulate
from whitewater.recsys.simulation.days import Plan, day, plan, rows_of_days, schema
from whitewater.recsys.simulation.effects import Roles
from whitewater.step import Output, Run

logger = logging.getLogger(__name__)

# Dictionaries of texts larger than this would be written out row by row.
_DICTIONARY_BYTES = 64 << 20


def simulate(run: Run[Simulate], *, simulated: Output) -> None:
    """Write a folder of a Parquet file for each day; a day that gets none of the rows has a file without rows."""
    simulated.mkdir()
    of = plan(run.settings)
    rows = rows_of_days(run.settings)
    # As many digits as the last day needs: names are then in the order of the days.
    digits = max(2, len(str(len(rows) - 1)))
    tasks = [(number, each, simulated / f"day-{number:0{digits}d}.parquet") for number, each in enumerate(rows)]
    with run.cluster() as client:
        clicks = sum(run.map(write_day, tasks, client=client, label="simulating days", shared={"of": of}))
    run.note(rows=sum(rows), clicks=clicks, cardinalities=list(of.cardinalities), roles=_named(of.roles))
    logger.info("simulated %d rows of %d days", sum(rows), run.settings.days)


def write_day(task: tuple[int, int, Path], *, of: Plan) -> int:
    """Write the file of a day, given its number, rows and path; return its clicks. Memory is that of a block."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    number, rows, path = task
    clicks = 0
    # Without Arrow's schema, so that readers see texts; statistics of texts would take as long as the rest.
    with pq.ParquetWriter(
        path,
        schema(of.settings),
        store_schema=False,
        write_statistics=False,
        dictionary_pagesize_limit=_DICTIONARY_BYTES,
    ) as writer:
        for block in day(of, number, rows=rows).blocks():
            writer.write_table(block, row_group_size=len(block))
            clicks += pc.sum(block["label"]).as_py()
    return clicks


def _named(of: Roles) -> dict[str, Any]:
    """Return the roles of the columns by their names."""
    pair = [f"C{column + 1}" for column in of.pair or ()]
    popularity = None if of.popularity is None else f"C{of.popularity + 1}"
    return {
        "effects": [f"C{column + 1}" for column in of.values],
        "pair": pair,
        "popularity": popularity,
        "noise": [f"C{column + 1}" for column in of.noise],
    }
