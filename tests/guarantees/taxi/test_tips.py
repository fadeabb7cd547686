"""The tables of tips are a property of the trips: they do not depend on how the work was shared out."""

from tests.guarantees.running import MINE, Clone, sha256

RESULTS = "results/taxi/cpu"
TABLE = f"{RESULTS}/tips_by_hour.parquet"


def tables(clone: Clone) -> dict[str, str]:
    """Return the checksum of each table of tips."""
    return {path.name: sha256(path) for path in (clone / RESULTS).glob("tips_by_*")}


def test_tips_are_the_same_bytes_with_any_number_of_threads_in_any_run(copied: Clone) -> None:
    whole = tables(copied)
    assert len(whole) == 14
    # Many small parts, which threads finish in another order each time.
    ended = copied.run("taxi", {"standardize": {"block_rows": 1000}}, TABLE)
    assert {"taxi_standardize", "taxi_tips"} <= ended.jobs, ended.terminal
    assert tables(copied) == whole
    ended = copied.snakemake("--cores", "1", "--forcerun", "taxi_tips", "--", TABLE, files=MINE)
    assert "taxi_tips" in ended.jobs, ended.terminal
    assert tables(copied) == whole
