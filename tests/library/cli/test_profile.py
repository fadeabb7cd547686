"""What a profile asks for and this machine lacks; programs that are there are scripts made here."""

from pathlib import Path

import pytest

from whitewater.cli import doctor
from whitewater.cli.doctor import Check
from whitewater.config.resolve import resolve

ROOT = Path(__file__).parents[3]
SLURM = dict.fromkeys(doctor.SLURM_COMMANDS, "")


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def install(folder: Path, **scripts: str) -> None:
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)


def checks_of(folder: Path, options: str, *, device: str = "cpu") -> dict[str, Check]:
    (folder / "config.yaml").write_text(options)
    found = doctor.check_profile(folder, doctor.read_profile(folder), device=device)
    return {check.name: check for check in found}


def test_the_profile_that_runs_here_asks_for_nothing() -> None:
    default = ROOT / "profiles/default"
    assert list(doctor.check_profile(default, doctor.read_profile(default), device="gpu")) == []


def test_an_absent_plugin_is_told_with_what_installs_it(tmp_path: Path) -> None:
    check = checks_of(tmp_path, "executor: nowhere")["executor plugin"]
    assert (check.status, check.found) == ("fail", "snakemake-executor-plugin-nowhere is not installed")
    assert "pip install snakemake-executor-plugin-nowhere" in check.fix


@pytest.mark.parametrize(
    ("scripts", "device", "status", "found"),
    [
        ({}, "cpu", "fail", "not on the PATH: sbatch, srun, squeue, scontrol, sinfo, scancel"),
        ({"sinfo": "echo >&2 'sinfo: error: no controller'; exit 1"}, "cpu", "fail", "sinfo: error: no controller"),
        ({"sinfo": "echo 'all* down 3 32 (null)'"}, "cpu", "fail", "no partition is up"),
        ({"sinfo": "echo 'all* up 3 32+ (null)'"}, "cpu", "ok", "all*: 3 nodes"),
        (
            {"sinfo": "echo 'all* up 3 8 (null)'"},
            "cpu",
            "fail",
            "jobs may ask for 16 cores, and no node has more than 8",
        ),
        ({"sinfo": "echo 'all* up 3 32+ (null)'"}, "gpu", "fail", "no partition that is up has GPUs"),
        ({"sinfo": "echo 'all* up 3 32 gpu:h200:8'"}, "gpu", "ok", "all*: 3 nodes"),
    ],
)
def test_slurm_is_asked_for_its_partitions(
    tmp_path: Path, commands: Path, *, scripts: dict[str, str], device: str, status: str, found: str
) -> None:
    if scripts:
        install(commands, **SLURM | scripts)
    check = checks_of(tmp_path, "{executor: slurm, max-threads: 16}", device=device)["SLURM"]
    assert (check.status, check.found, check.fix == "") == (status, found, status == "ok")


def test_a_slurm_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "ANSWER_SECONDS", 0.5)
    install(commands, **SLURM | {"sinfo": "exec /bin/sleep 60"})
    check = checks_of(tmp_path, "executor: slurm")["SLURM"]
    assert check.status == "fail"
    assert "timed out after 0.5 seconds" in check.found


@pytest.mark.parametrize("name", ["conda", "apptainer"])
def test_what_deploys_software_is_started(tmp_path: Path, commands: Path, name: str) -> None:
    asked = f"software-deployment-method: {name}"
    assert checks_of(tmp_path, asked)[name].found == "not on the PATH"
    install(commands, **{name: "echo >&2 broken; exit 1"})
    assert "broken" in checks_of(tmp_path, asked)[name].found
    install(commands, **{name: f"echo {name} 1.0"})
    assert checks_of(tmp_path, f"sdm: [{name}]")[name].found == f"{name} 1.0"


def test_where_jobs_run_elsewhere_this_machine_needs_no_gpu() -> None:
    config = resolve({"device": "gpu"}, [])
    names = {check.name: check for check in doctor.run(config, root=ROOT, profile=ROOT / "profiles/slurm")}
    assert names["GPU and driver"].status in {"ok", "skip"}


def test_a_profile_that_is_absent_is_one_failed_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--workflow-profile", "no/such"]) == 1
    assert "no/such/config.yaml: No such file" in capsys.readouterr().out
