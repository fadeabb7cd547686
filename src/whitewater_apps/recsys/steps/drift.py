"""Step `drift`: how the columns of a log change from its first day, the reference, to each later day.

A day is what the log's column ``day`` numbers: of some sources a file, or a period of about equally many rows.

The report is that of `whitewater_apps.recsys.drift_report`. All rows are counted, so nothing depends on how the log is
cut. Only where the bins of numbers end is taken from a sample of the reference, if it has more rows than `SAMPLE`.
"""

import logging
from pathlib import Path

from whitewater.features.log_folder import open_log
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.recsys.config import Drift
from whitewater_apps.recsys.drift_report import column_report, drift_report

logger = logging.getLogger(__name__)


def drift(run: Run[Drift], *, events: Path, drift: Output) -> None:
    """Compare each day with the first.

    Memory is, for each thread, that of a row group of a column, and of its categories of the first day.

    Raises InputError if a file of the log is missing or damaged.
    """
    log = open_log(events)
    names = [name for name, role in log.columns.items() if role in ("continuous", "categorical", "list")]
    with run.workers() as workers:
        shared = {"log": log, "settings": run.settings}
        columns = list(workers.map(column_report, names, label="columns compared", ordered=True, shared=shared))
    report = drift_report(log, columns, run.settings)
    write_json(drift, report)
    days, summary = len(report["days"]), report["summary"]
    if days == 1:
        logger.warning("%s has one %s only: there is nothing to compare it with", events, log.time.period)
    run.note(days=days, columns=len(columns), **{verdict: len(found) for verdict, found in summary.items()})
    drifting = ", ".join(summary["drift"])
    logger.info("drift of %d columns over %d %ss: %s", len(columns), days, log.time.period, drifting)


if __name__ == "__main__":
    main(drift)
