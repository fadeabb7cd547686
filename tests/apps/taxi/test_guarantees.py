"""What users of the taxi application are promised, asked of whole commands, in the lines that a project writes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from whitewater.testing.guarantees import Case, guarantees


def own_files(paths: Sequence[str]) -> dict[str, Any]:
    """Return the settings that read files of trips and, where one lies beside them, the table of zones."""
    zones = {"zones": str(Path(paths[0]).with_name("zones.csv"))} if len(paths) > 1 else {}
    return {"fetch": {"source": "files", "files": {"paths": paths, **zones}}}


TINY = {
    "fetch": {"generated": {"scale": 0.001, "months": ["2019-03"], "services": ["yellow", "green"]}},
    "model": {"ridge_alphas": [1.0], "forest": {"trees": [5], "depths": [4]}, "folds": 2, "bootstrap": 20},
}
TAXI = Case(
    "taxi",
    step="standardize",
    output="standardized",
    tables=("tips_by_hour.parquet", "tips_by_zone.parquet", "model/metrics.json"),
    files="generated/*_tripdata_*",
    section=own_files,
    tables_alone=True,
)
TestTaxi = guarantees(TAXI, tiny=TINY)
