"""Snakemake's jobs as jobs of a real SLURM, started here; results are those of a run without it."""

import json
import re
import sys
from collections.abc import Iterator

import pytest

from tests.guarantees.running import ROOT, Clone, eventually, make_certificate, sha256
from tests.helpers import slurm

WHY_NOT = slurm.missing()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(WHY_NOT), reason=f"SLURM is unproven here: {WHY_NOT}"),
]
# Without a database there is no sacct.
PROFILE = ("--workflow-profile", "profiles/slurm", "--slurm-status-command", "squeue")
APPLICATIONS = ("taxi", "recsys")
KILLED = "taxi_standardize"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm.Slurm]:
    with slurm.started(tmp_path_factory.mktemp("slurm")) as running:
        yield running


def test_two_applications_run_through_it_and_a_job_that_was_killed_is_tried_again_with_twice_the_memory(
    cluster: slurm.Slurm, fresh: Clone, finished: Clone
) -> None:
    often = ("--slurm-init-seconds-before-status-checks", "1")
    run = fresh.start_snakemake(*PROFILE, *often, "--", *APPLICATIONS, **cluster.variables)

    def running() -> slurm.Job | None:
        assert run.process.poll() is None, run.ended().terminal
        return next((job for job in of_rule(cluster, KILLED) if job.state == "RUNNING"), None)

    cluster.command("scancel", eventually(running, what=f"a job of {KILLED}").number)
    ended = run.ended()
    assert ended.status == 0, ended.terminal

    first, second = of_rule(cluster, KILLED)
    assert (first.state, second.state, second.memory) == ("CANCELLED", "COMPLETED", 2 * first.memory)
    assert {job.state for job in cluster.jobs() if job != first} == {"COMPLETED"}
    for name in APPLICATIONS:
        manifest = finished.json(f"results/{name}/cpu/manifest.json")
        for step in manifest["steps"]:
            assert of_rule(cluster, f"{name}_{step}"), step
        for each in manifest["outputs"]:
            assert sha256(fresh / each["path"]) == each["sha256"], each["path"]


def of_rule(cluster: slurm.Slurm, rule: str) -> list[slurm.Job]:
    """Return the jobs of a rule."""
    return [job for job in cluster.jobs() if re.match(rf"rule_{rule}(_wildcards|$)", job.comment)]


def test_the_job_of_two_nodes_in_the_documentation_computes_on_workers_of_both(
    cluster: slurm.Slurm, fresh: Clone, finished: Clone
) -> None:
    made = "results/taxi/cpu/tips_by_hour.parquet"
    [script] = re.findall(r"^```bash\n(.*?)^```", (ROOT / "docs/clusters.md").read_text(), re.MULTILINE | re.DOTALL)
    script = script.replace("--cpus-per-task=32", "--cpus-per-task=1 --wait")
    script = script.replace("--cores all", "--cores 1 --configfile tiny.yaml")
    script = script.replace("tls_key: key.pem}'", f"tls_key: key.pem}}' -- {made}")
    (fresh / "job.sh").write_text(script)
    (fresh / ".venv").symlink_to(sys.prefix)
    make_certificate(fresh)
    ended = fresh.start("sbatch", "--output=job.txt", "job.sh", **cluster.variables).ended()
    assert ended.status == 0, (fresh / "job.txt").read_text()
    assert sha256(fresh / made) == sha256(finished / made)
    # The second node comes while the first one computes already.
    assert fresh.json("logs/taxi/cpu/tips.json")["facts"]["workers"]["count"] == len(slurm.NODES)


def test_the_doctor_sees_the_plugin_and_how_many_cores_the_nodes_have(cluster: slurm.Slurm, fresh: Clone) -> None:
    doctor = (sys.executable, "-m", "whitewater", "doctor", "--json", "--workflow-profile", "profiles/slurm")
    checks = {check["name"]: check for check in json.loads(fresh.start(*doctor, **cluster.variables).ended().terminal)}
    assert checks["executor plugin"]["status"] == "ok"
    assert checks["SLURM"]["found"] == "jobs may ask for 16 cores, and no node has more than 2"
