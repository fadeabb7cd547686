"""What users of the minimal application are promised, asked of whole commands, in the lines that a project writes."""

from whitewater.testing.guarantees import Case, guarantees

TABLES = ("wind_by_hour.parquet", "wind_by_hour.csv")
SMALLER = {"read": {"block_rows": 1_000}}
MINIMAL = Case("minimal", step="read", output="readings", tables=TABLES, smaller_blocks=SMALLER)
TestMinimal = guarantees(MINIMAL, tiny={"fetch": {"stations": 2}})
