"""`whitewater cluster`: start, stop and inspect a Dask cluster on this machine that several steps share.

A single GPU needs no cluster. Steps find the cluster by its file, next to its log.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whitewater.errors import ConfigError, InputError, ResourceError

if TYPE_CHECKING:
    from whitewater.engines.start import ClusterRequest

COMMANDS = {"start": "start one in the background", "stop": "end it", "status": "look at it"}
FILE = Path(".whitewater/cluster.json")
START_SECONDS, END_SECONDS, ANSWER_SECONDS, POLL = 180.0, 20.0, 5.0, 0.05


def main(arguments: Sequence[str]) -> int:
    """Start, stop or inspect a cluster and return the exit status."""
    options = _parser().parse_args(list(arguments))
    return {"start": start, "stop": stop, "status": status}[options.command](options)


def log_of(file: Path) -> Path:
    """Return the path of a cluster's log."""
    return file.with_suffix(".log")


def runs(file: Path) -> bool:
    """Tell whether any process of a cluster is alive: each holds a lock on the log."""
    try:
        with suppress(FileNotFoundError), log_of(file).open("rb") as log:
            fcntl.flock(log, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def start(options: argparse.Namespace) -> int:
    """Start a cluster in its own session, wait until all of its workers answer, and print how to use it."""
    from whitewater.script import ONE_THREAD

    request = _check_request(options)
    log = log_of(request.file)
    request.file.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        try:
            fcntl.flock(output, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"the cluster of {request.file} is already running. Use it, stop it with "
                f"`{_command('stop', request.file)}`, or give another --file."
            ) from None
        output.truncate(0)
        request.file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "whitewater.engines.start", request.model_dump_json()]
        # Its own session survives the end of this terminal.
        process = subprocess.Popen(
            command, env=os.environ | ONE_THREAD, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    try:
        process.wait()  # it forks the process of the cluster and exits
        _wait(lambda: request.file.exists() or not runs(request.file), START_SECONDS)
        if not request.file.exists():
            problem = f"did not start within {START_SECONDS:.0f} s" if runs(request.file) else "has ended"
            last = log.read_text(errors="replace").strip().rpartition("\n")[2] or "nothing"
            raise ResourceError(f"the cluster {problem}. The last line of its log, {log}: {last}")
    except BaseException as error:
        _end_group(process.pid)
        if isinstance(error, KeyboardInterrupt):
            raise ResourceError("the start was interrupted; nothing is left running.") from None
        raise
    cluster = _read(request.file)
    settings = ", ".join(f"{key}: {file}" for key, file in {"scheduler_file": request.file, **request.tls}.items())
    print(f"Started {request.device} workers at {cluster['address']}; log: {log}")
    if cluster["dashboard"]:
        print(f"Dashboard: {cluster['dashboard']}")
    print("Use them in each run, and start them again when code has changed:")
    print(f"  snakemake --cores all --config {shlex.quote(f'cluster={{{settings}}}')}")
    print(f"End them: {_command('stop', request.file)}")
    return 0


def stop(options: argparse.Namespace) -> int:
    """Stop a cluster, and wait until all of its processes have ended."""
    file: Path = options.file
    cluster = _read(file)
    if "pid" not in cluster:
        raise InputError(
            f"{file} was not written by `whitewater cluster start`: end that cluster where you started it."
        )
    if cluster["machine"] != socket.gethostname():
        raise InputError(f"the cluster of {file} runs on {cluster['machine']}: end it there.")
    if not runs(file):
        file.unlink()
        raise InputError(f"the cluster of {file} had ended already; its log is {log_of(file)}.")
    with suppress(ProcessLookupError):
        os.kill(cluster["pid"], signal.SIGTERM)
    if not _wait(lambda: not runs(file), END_SECONDS):
        # While one of its processes is alive, no other process group can have this number.
        _end_group(cluster["group"])
        if not _wait(lambda: not runs(file), END_SECONDS):
            raise ResourceError(f"the cluster of {file} does not end: kill its process group, {cluster['group']}.")
    file.unlink(missing_ok=True)
    print(f"Ended the cluster at {cluster['address']}.")
    return 0


def status(options: argparse.Namespace) -> int:
    """Print the addresses of a cluster, its tasks, and the memory of each worker."""
    from distributed import Client

    from whitewater.engines.cluster import security
    from whitewater.engines.workers import workers_of

    cluster = _read(options.file)
    if "pid" in cluster and cluster["machine"] == socket.gethostname() and not runs(options.file):
        raise InputError(f"the cluster of {options.file} has ended; its log is {log_of(options.file)}.")
    try:
        client = Client(cluster["address"], timeout=ANSWER_SECONDS, security=security(cluster.get("tls", {})))
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {cluster['address']} ({error}).") from error
    with client:
        tasks = client.run_on_scheduler(
            lambda dask_scheduler: Counter(task.state for task in dask_scheduler.tasks.values())
        )
        workers = workers_of(client)
    facts = {
        "address": cluster["address"],
        "since": cluster.get("since", "unknown"),
        "dashboard": cluster.get("dashboard"),
        "tasks": ", ".join(f"{count} {state}" for state, count in tasks.items()) or "none",
        "workers": len(workers),
    }
    print("\n".join(f"{name:9}  {fact}" for name, fact in facts.items() if fact is not None))
    for address, worker in workers.items():
        print(f"  {address}  {_describe_worker(worker)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="whitewater cluster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    begin, *rest = (commands.add_parser(name, help=purpose) for name, purpose in COMMANDS.items())
    begin.add_argument("--device", default="cpu", choices=("cpu", "gpu"), help="what workers compute on (default: cpu)")
    begin.add_argument("--workers", type=int, help="processes (default: one per core, or one per GPU)")
    begin.add_argument("--threads-per-worker", type=int, help="default: 1; on GPUs the cores divided among them")
    begin.add_argument("--memory-limit", default="0", help="limit of each worker, such as 8GB (default: 0, none)")
    begin.add_argument("--device-memory-limit", default="0.8", help="of each GPU; above it Dask spills (default: 0.8)")
    begin.add_argument("--gpu-tasks", type=int, default=4, help="tasks that use one GPU at once (default: 4)")
    begin.add_argument("--dashboard", action="store_true", help="serve Dask's dashboard to this machine only")
    begin.add_argument("--host", default="127.0.0.1", help="address to listen on; any but the default needs TLS")
    for flag, what in (("ca-file", "authority that signed them"), ("cert", "certificate"), ("key", "its key")):
        begin.add_argument(f"--tls-{flag}", default="", metavar="FILE", help=f"{what}, in PEM form")
    for command in (begin, *rest):
        command.add_argument("--file", type=Path, default=FILE, help=f"file that steps find it by (default: {FILE})")
    return parser


def _check_request(options: argparse.Namespace) -> ClusterRequest:
    """Return the requested cluster, or raise an error here, where the user sees it, if it cannot start."""
    from whitewater.engines.config import TLS
    from whitewater.engines.gpu_check import require_device
    from whitewater.engines.start import ClusterRequest

    values = {name: value for name, value in vars(options).items() if name not in ("command", *TLS)}
    values["tls"] = {name: path for name in TLS if (path := getattr(options, name))}
    request = ClusterRequest.from_option(json.dumps(values, default=str), option="cluster start")
    if len(request.tls) not in (0, 3):
        raise ConfigError("TLS takes all three of --tls-ca-file, --tls-cert and --tls-key.")
    if not request.tls and not re.fullmatch(r"localhost|::1|127(\.\d+){3}", request.host):
        raise ConfigError(
            f"--host {request.host} lets other machines in, which could run anything as you: give --tls-ca-file, "
            "--tls-cert and --tls-key as well."
        )
    for file in request.tls.values():
        if not Path(file).is_file():
            raise InputError(f"{file} does not exist.")
    require_device(request.device)
    return request


def _wait(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition, for some seconds at most, and return whether it holds."""
    limit = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < limit:
        time.sleep(POLL)
    return holds


def _command(name: str, file: Path) -> str:
    return f"whitewater cluster {name}" + ("" if file == FILE else f" --file {file}")


def _read(file: Path) -> Mapping[str, Any]:
    try:
        cluster = json.loads(file.read_bytes())
        return {**cluster, "address": str(cluster["address"])}
    except FileNotFoundError:
        raise InputError(f"no cluster was started: {file} does not exist.") from None
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{file} was not written by a Dask scheduler: {error}.") from None


def _end_group(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _describe_worker(worker: Mapping[str, Any]) -> str:
    limit = f" of {worker['memory_limit'] / 1e9:.2f} GB" if worker["memory_limit"] else ""
    text = f"threads {worker['nthreads']}, memory {worker['metrics']['memory'] / 1e9:.2f} GB{limit}"
    if "gpu" not in worker:
        return text
    used, total = worker["metrics"]["gpu"]["memory-used"], worker["gpu"]["memory-total"]
    return f"{text}, {worker['gpu']['name']}: {used / 1e9:.2f} GB of {total / 1e9:.2f} GB"
