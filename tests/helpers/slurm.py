"""A SLURM of two nodes on the loopback interface, from the programs on the PATH, with nothing outside one folder."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import which

DAEMONS = ("munged", "slurmctld", "slurmd")
COMMANDS = ("sbatch", "srun", "squeue", "scontrol", "sinfo", "scancel")
NODES = ("one", "two")
# Where `make test-slow` puts Snakemake's plugin, of envs/slurm.lock.
PLUGIN = Path(sys.prefix) / "slurm"
SECONDS = 60.0
# Memory is that of a test's jobs: with less, jobs wait for each other.
CONF = """\
ClusterName=whitewater
SlurmctldHost={machine}(127.0.0.1)
SlurmctldPort={ports[0]}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
MpiDefault=none
ReturnToService=2
MinJobAge=3600
NodeName=one NodeHostname={machine} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=8000
NodeName=two NodeHostname={machine} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=8000
PartitionName=all Nodes=one,two Default=YES
"""


def missing() -> str:
    """Say why SLURM cannot run here, or nothing."""
    absent = [name for name in (*DAEMONS, *COMMANDS) if which(name) is None]
    if absent:
        return f"not on the PATH: {', '.join(absent)} (Debian: slurmctld, slurmd, slurm-client and munge)"
    if os.geteuid() != 0:
        return "slurmd starts jobs as their users, which only root may"
    return "" if PLUGIN.is_dir() else f"there is no {PLUGIN}, which `make test-slow` installs of envs/slurm.lock"


@dataclass(frozen=True)
class Job:
    """A job: its number, its state, the MB of memory that it asked for, and its comment, which names the rule."""

    number: str
    state: str
    memory: int
    comment: str


@dataclass(frozen=True)
class Slurm:
    """One that runs: a folder, with its commands in ``bin``, which is to be first on the PATH."""

    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        """What Snakemake finds its commands and the plugin by."""
        folders = (f"{self.folder}/bin", str(Path(sys.executable).parent), os.environ["PATH"])
        return {"PATH": os.pathsep.join(folders), "PYTHONPATH": str(PLUGIN)}

    def command(self, *words: str) -> str:
        """Run one of its commands and return what it says."""
        return subprocess.check_output([f"{self.folder}/bin/{words[0]}", *words[1:]], text=True)

    def jobs(self) -> list[Job]:
        """Return all jobs there were, in order."""
        lines = self.command(
            "squeue", "--states=all", "--sort=i", "--noconvert", "--noheader", "--format=%i %T %m %k"
        ).splitlines()
        rows = [line.split() for line in lines]
        return [Job(number, state, int(memory.removesuffix("M")), name) for number, state, memory, name in rows]


@contextmanager
def started(folder: Path) -> Iterator[Slurm]:
    """Start one, and end it with all its jobs."""
    (folder / "state").mkdir()
    (folder / "munge.key").write_bytes(secrets.token_bytes(128))
    (folder / "munge.key").chmod(0o400)
    conf = folder / "slurm.conf"
    conf.write_text(CONF.format(folder=folder, machine=socket.gethostname().partition(".")[0], ports=_free_ports(3)))
    # A job's own srun is not given the variable SLURM_CONF by Snakemake's plugin.
    (folder / "bin").mkdir()
    for name in COMMANDS:
        wrapper = folder / "bin" / name
        wrapper.write_text(f'#!/bin/sh\nSLURM_CONF={conf} exec {which(name)} "$@"\n')
        wrapper.chmod(0o755)
    munge = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
    daemons = [
        ["munged", "--force", "--foreground", f"--socket={folder}/munge.socket", *munge],
        ["slurmctld", "-D", "-f", str(conf)],
        *(["slurmd", "-D", "-f", str(conf), "-N", node] for node in NODES),
    ]
    with (folder / "daemons.log").open("wb") as log:
        processes = [subprocess.Popen(each, stdout=log, stderr=log, start_new_session=True) for each in daemons]
    try:
        slurm = Slurm(folder)
        _wait_for_nodes(slurm)
        yield slurm
    finally:
        subprocess.run([f"{folder}/bin/scancel", "--user=root"], check=False, capture_output=True)
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(SECONDS)


def _wait_for_nodes(slurm: Slurm) -> None:
    limit = time.monotonic() + SECONDS
    states: list[str] = []
    while states != ["idle"] * len(NODES):
        assert time.monotonic() < limit, (slurm.folder / "daemons.log").read_text()
        time.sleep(0.2)
        sinfo = subprocess.run(
            [f"{slurm.folder}/bin/sinfo", "--noheader", "--Node", "--format=%t"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        states = sinfo.stdout.split()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
