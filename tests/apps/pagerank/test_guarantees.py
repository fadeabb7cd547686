"""What users of the pagerank application are promised, asked of whole commands, in the lines that a project writes."""

from whitewater.testing.guarantees import Case, guarantees

TINY = {"simulate": {"pages": 60, "words": 40, "topics": 3}}
# An archive of pages does not have the queries that are simulated with them.
PAGERANK = Case(
    "pagerank", step="renumber", output="graph", tables=("ranks.parquet", "vertices.parquet"), files="", disk="4k"
)
TestPagerank = guarantees(PAGERANK, tiny=TINY)
