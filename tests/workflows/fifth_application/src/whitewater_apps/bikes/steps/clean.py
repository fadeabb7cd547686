"""Step `clean`: each ride is kept, or goes to quarantine with all its reasons."""

from pathlib import Path

import pandas as pd

from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.bikes.config import Clean


def clean(run: Run[Clean], *, rides: Path, kept: Output, quarantine: Output) -> None:
    """Split the rides into plausible ones and others."""
    table = pd.read_csv(rides, parse_dates=["started_at", "ended_at"])
    table["seconds"] = (table["ended_at"] - table["started_at"]) // pd.Timedelta(1, "s")
    broken = pd.DataFrame(
        {
            "too_short": table["seconds"] < run.settings.minimum_seconds,
            "too_long": table["seconds"] > run.settings.maximum_hours * 3600,
        }
    )
    rejected = broken.any(axis=1)
    table[~rejected].to_parquet(kept, index=False)
    table.assign(reasons=broken.dot(broken.columns + ";"))[rejected].to_parquet(quarantine, index=False)
    run.note(rows=len(table), kept=int((~rejected).sum()), rejected=int(rejected.sum()))


if __name__ == "__main__":
    main(clean)
