"""What users of the recsys application are promised, asked of whole commands, in the lines that a project writes."""

from whitewater.testing.guarantees import Case, guarantees

TINY = {
    "simulate": {"rows": 2000, "continuous": 3, "categorical": 4, "largest_cardinality": 50},
    "train": {"trees": 5, "depth": 3, "without_each_group": False},
}
# The order of files is that of days, and counts.
RECSYS = Case("recsys", step="fit", output="workflow", tables=("metrics.json", "drift.json"), files="", disk="4k")
TestRecsys = guarantees(RECSYS, tiny=TINY)
