"""Another engine runs the operations again and leaves the same bytes; where it cannot run, it is refused."""

import sys

import pytest

from tests.guarantees.running import TINY, Clone

# Rules of a run without options that compute on a device, as docs/engines.md lists them.
OPERATIONS = {
    "taxi": {"standardize", "clean", "tips", "model"},
    "genomics": {"ld_prune", "relatedness", "pca", "project", "umap"},
    "pagerank": {"renumber", "rank", "communities"},
    "recsys": {"fit", "features", "train"},
}
# Rules that follow from none of these.
BEFORE = {
    "taxi_fetch",
    "genomics_simulate",
    "genomics_ingest",
    "genomics_variant_qc",
    "pagerank_simulate",
    "pagerank_fetch",
    "pagerank_parse",
    "pagerank_edges",
    "recsys_simulate",
    "recsys_fetch",
    "recsys_split",
    "recsys_drift",
}
REFUSAL = "engine is 'local', which runs on the CPU only: with device=gpu, set engine to auto or dask."


def test_another_engine_runs_the_operations_again_and_what_follows_from_them(finished: Clone) -> None:
    ended = finished.snakemake("--dry-run", "--config", "engine=dask")
    assert ended.status == 0, ended.terminal
    assert {f"{name}_{step}" for name, steps in OPERATIONS.items() for step in steps} <= ended.jobs
    assert not BEFORE & ended.jobs
    assert "Nothing to be done" in finished.snakemake("--dry-run", "--config", "engine=local").terminal


def test_local_on_a_gpu_is_refused_before_any_job_and_by_hand(fresh: Clone) -> None:
    ended = fresh.snakemake("--config", "engine=local", "device=gpu")
    assert ended.message == f"ConfigError:\n--config: {REFUSAL}"
    paths = ("--trips=trips", "--zones=zones", "--tables=tips")
    by_hand = fresh.start(
        sys.executable, "-m", "whitewater", "taxi", "tips", "--engine=local", "--device=gpu", *paths, PYTHONPATH="src"
    )
    assert by_hand.ended().message == f"ConfigError: {REFUSAL}"


@pytest.mark.slow
def test_dask_leaves_the_bytes_that_threads_leave(copied: Clone) -> None:
    before = {name: copied.json(f"results/{name}/cpu/manifest.json") for name in TINY}
    ended = copied.snakemake("--config", "engine=dask")
    assert ended.status == 0, ended.terminal
    for name, manifest in before.items():
        after = copied.json(f"results/{name}/cpu/manifest.json")
        assert {manifest["steps"][step]["engine"] for step in OPERATIONS[name]} == {"local"}
        assert {after["steps"][step]["engine"] for step in OPERATIONS[name]} == {"dask"}
        old, new = ({each["path"]: each["sha256"] for each in found["outputs"]} for found in (manifest, after))
        assert old == new, name
