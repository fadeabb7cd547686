"""A cluster that was started once serves the steps of all applications, and changes none of their results."""

import os
import shlex
import sys
import time
from collections.abc import Iterator
from shutil import which
from urllib.request import urlopen

import psutil
import pytest
from distributed import Client

from tests.guarantees.running import (
    Clone,
    Ended,
    Running,
    eventually,
    leftovers,
    make_certificate,
    of_documentation,
    own_source,
    sha256,
)  # fmt: skip

FILE = ".whitewater/cluster.json"
USE = f"cluster={{scheduler_file: {FILE}}}"
# Of each application what no other step of it reads, but for pictures and UMAP, which have no workers.
LAST = (
    "results/taxi/cpu/model",
    "results/taxi/cpu/tips_by_hour.parquet",
    "results/genomics/cpu/relatedness.json",
    "results/genomics/cpu/projected.parquet",
    "results/pagerank/cpu/communities.json",
    "results/pagerank/cpu/queries.json",
    "results/recsys/cpu/metrics.json",
    "results/recsys/cpu/drift.json",
)
# Logs of steps of each application, whose tasks workers run.
STEPS = ("taxi/cpu/standardize", "taxi/cpu/clean", "genomics/cpu/pca", "pagerank/parse", "recsys/cpu/fit")
TIPS = {"trips": "results/taxi/cpu/trips", "zones": "data/taxi/zones.csv", "tables": "tips_by_hour.parquet"}


def cluster(clone: Clone, *arguments: str) -> Ended:
    """Run `whitewater cluster` in a clone."""
    return clone.start(sys.executable, "-m", "whitewater", "cluster", *arguments, PYTHONPATH="src").ended()


def start(clone: Clone, *arguments: str) -> None:
    """Start a cluster as docs/clusters.md says."""
    ended = cluster(clone, "start", *arguments)
    assert ended.status == 0, ended.terminal


def start_again(clone: Clone, step: str) -> tuple[Running, list[str]]:
    """Start a step again on the cluster, with the paths and settings of its record; return what it makes, too."""
    record = clone.json(f"logs/{step}.json")
    made = {name: each["path"] for name, each in record["outputs"].items()}
    paths = {name.replace("_", "-"): path for name, path in (record["inputs"] | made).items()}
    running = clone.start_step(
        record["step"],
        paths,
        application=record["application"],
        settings=record["settings"],
        cluster={"scheduler_file": FILE},
    )
    return running, list(made.values())


def processes(clone: Clone) -> list[psutil.Process]:
    """Return the processes of the cluster, that of the scheduler first."""
    first = psutil.Process(clone.json(FILE)["pid"])
    return [first, *first.children(recursive=True)]


def living(given: list[psutil.Process]) -> list[psutil.Process]:
    """Return the processes that are alive; who adopts an orphan may look away for a while when it has ended."""
    return [each for each in given if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def in_the_middle(clone: Clone, step: str) -> tuple[psutil.Process, Running, list[str]]:
    """Start a step again, and stop a worker in a task of it; return the worker's process, and that of `start_again`.

    A step that has ended before a task was seen is started once more.
    """
    with Client(scheduler_file=str(clone / FILE)) as client:
        for _ in range(5):
            run, made = start_again(clone, step)
            while run.process.poll() is None:
                for address in (address for address, tasks in client.processing().items() if tasks):
                    worker = psutil.Process(client.run(os.getpid, workers=[address])[address])
                    worker.suspend()
                    time.sleep(0.05)  # for what it sent before
                    if client.processing()[address]:
                        return worker, run, made
                    worker.resume()
            ended = run.ended()
            assert ended.status == 0, ended.terminal
    raise AssertionError(f"no task of {step} was seen")


def same(clone: Clone, finished: Clone, *paths: str) -> None:
    """Compare results, bit by bit."""
    assert {path: sha256(clone / path) for path in paths} == {path: sha256(finished / path) for path in paths}
    assert leftovers(clone) == []


@pytest.fixture(scope="module")
def clustered(finished: Clone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """A copy of the finished clone in which a cluster of two processes runs."""
    clone = finished.copy(tmp_path_factory.mktemp("clustered") / "clone")
    start(clone, "--workers", "2")
    yield clone
    alive = processes(clone)
    ended = cluster(clone, "stop")
    assert ended.status == 0, ended.terminal
    assert living(alive) == []
    assert not (clone / FILE).exists()
    clone.end()


@pytest.fixture
def alone(copied: Clone) -> Iterator[Clone]:
    """A copy of the finished clone, for a cluster of its own."""
    yield copied
    if (copied / FILE).exists():
        cluster(copied, "stop")


@pytest.mark.slow
def test_all_applications_have_the_same_results_and_the_cluster_holds_nothing_afterwards(
    clustered: Clone, finished: Clone
) -> None:
    ended = clustered.snakemake("--config", USE, "--forceall", "--", *LAST)
    assert ended.status == 0, ended.messages or ended.terminal
    for application in ("taxi", "genomics", "pagerank", "recsys"):
        manifest = finished.json(f"results/{application}/cpu/manifest.json")
        same(clustered, finished, *(each["path"] for each in manifest["outputs"]))
    records = [f"logs/{step.replace('_', '/cpu/')}.json" for step in ("taxi_model", "genomics_pca", "recsys_features")]
    assert [clustered.json(record)["facts"]["workers"]["count"] for record in records] == [2, 2, 2]
    status = cluster(clustered, "status")
    assert status.status == 0
    assert "tasks      none" in status.terminal
    assert "workers    2" in status.terminal


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_what_a_killed_worker_was_working_on_is_done_again(clustered: Clone, finished: Clone, step: str) -> None:
    worker, run, made = in_the_middle(clustered, step)
    worker.kill()
    ended = run.ended()
    assert ended.status == 0, ended.terminal
    same(clustered, finished, *made)


@pytest.mark.slow
def test_a_killed_step_leaves_the_cluster_to_the_next(clustered: Clone, finished: Clone) -> None:
    worker, run, made = in_the_middle(clustered, STEPS[0])
    run.kill()
    worker.resume()
    run, _ = start_again(clustered, STEPS[0])
    ended = run.ended()
    assert ended.status == 0, ended.terminal
    same(clustered, finished, *made)
    assert "tasks      none" in cluster(clustered, "status").terminal


def tips(clone: Clone, **settings: str) -> Ended:
    """Run a step by hand on the cluster, and compare what it makes with what it made without."""
    ended = clone.step("tips", TIPS, cluster={"scheduler_file": FILE, **settings})
    if ended.status == 0:
        assert (clone / TIPS["tables"]).read_bytes() == (clone / f"results/taxi/cpu/{TIPS['tables']}").read_bytes()
    return ended


@pytest.mark.slow
def test_workers_that_started_before_code_was_edited_are_refused_until_they_are_started_again(alone: Clone) -> None:
    own_source(alone)
    start(alone, "--workers", "1")
    assert tips(alone).status == 0
    edited = alone / "src/whitewater_apps/taxi/with_dask.py"
    edited.write_text(f"{edited.read_text()}# edited\n")
    refused = tips(alone).message
    assert "whitewater_apps.taxi.with_dask" in refused
    assert "whitewater cluster stop" in refused
    assert cluster(alone, "stop").status == 0
    start(alone, "--workers", "1")
    assert tips(alone).status == 0


@pytest.mark.slow
def test_a_cluster_that_dies_is_told_by_the_step_that_used_it_and_by_the_next(alone: Clone) -> None:
    start(alone, "--workers", "1")
    _, run, _ = in_the_middle(alone, STEPS[0])
    for process in processes(alone):
        process.kill()
    assert "ended while the step used it" in run.ended().message
    assert "no Dask scheduler answers" in tips(alone).message
    # Its file is there and says where it was.
    assert "has ended" in cluster(alone, "status").message
    start(alone, "--workers", "1")
    assert tips(alone).status == 0


@pytest.mark.slow
def test_a_cluster_lives_on_this_machine_alone_until_it_is_stopped(fresh: Clone) -> None:
    started = cluster(fresh, "start", "--workers", "1", "--memory-limit", "2GB", "--dashboard")
    assert started.status == 0, started.terminal
    assert f"snakemake --cores all --config '{USE}'" in started.terminal
    address, alive = fresh.json(FILE)["address"], processes(fresh)
    dashboard = fresh.json(FILE)["dashboard"]
    assert dashboard in started.terminal
    assert b"Status" in urlopen(dashboard).read()  # noqa: S310, of 127.0.0.1, as the next line says
    listening = {each.laddr.ip for process in alive for each in process.net_connections() if each.status == "LISTEN"}
    assert listening == {"127.0.0.1"}

    assert "is already running" in cluster(fresh, "start").message
    assert fresh.start("make", "clean", f"PYTHON={sys.executable}").ended().status == 0
    status = cluster(fresh, "status")
    assert status.status == 0
    assert address in status.terminal
    assert "threads 1" in status.terminal
    assert "of 2.00 GB" in status.terminal

    stopped = cluster(fresh, "stop")
    assert (stopped.status, address in stopped.terminal) == (0, True)
    assert living(alive) == []
    assert "no cluster was started" in cluster(fresh, "stop").message
    assert "no cluster was started" in cluster(fresh, "status").message
    (fresh / FILE).write_text("[]")
    assert "was not written by a Dask scheduler" in cluster(fresh, "status").message
    assert fresh.start("make", "clean", f"PYTHON={sys.executable}").ended().status == 0
    assert not (fresh / FILE).parent.exists()


@pytest.mark.slow
def test_with_certificates_a_worker_joins_from_another_address_and_those_get_in_who_have_one(alone: Clone) -> None:
    make_certificate(alone)
    *_, first, second = of_documentation("Several machines")
    first, second = first.replace("10.0.0.1", "127.0.0.1"), second.replace("10.0.0.2", "127.0.0.2")
    ended = alone.start(*shlex.split(first.replace("--workers 4", "--workers 1"))).ended()
    assert ended.status == 0, ended.terminal
    alone.start(*shlex.split(second.replace("--nworkers 4", "--nworkers 1")))
    eventually(lambda: "workers    2" in cluster(alone, "status").terminal, what="the second worker")
    assert alone.json(FILE)["address"].startswith("tls://127.0.0.1:")
    assert "tls://127.0.0.2:" in cluster(alone, "status").terminal
    ended = tips(alone, tls_ca_file="cert.pem", tls_cert="cert.pem", tls_key="key.pem")
    assert ended.status == 0, ended.terminal
    assert alone.json("logs/tips.json")["facts"]["workers"]["count"] == 2
    assert tips(alone).message.startswith("InputError: ")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--host", "0.0.0.0"], "--host 0.0.0.0 lets other machines in"),  # noqa: S104, which is refused
        (["--tls-cert", "cert.pem"], "TLS takes all three"),
        (["--workers", "0"], "workers = 0"),
        (["--memory-limit", "much"], "Could not interpret 'much' as a byte unit"),
        pytest.param(
            ["--device", "gpu"],
            "no usable NVIDIA GPU was found",
            marks=pytest.mark.skipif(which("nvidia-smi") is not None, reason="there may be a GPU here"),
        ),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(fresh: Clone, asked: list[str], said: str) -> None:
    assert said in cluster(fresh, "start", *asked).message
    assert not (fresh / FILE).exists()
