"""Show what runs on a GPU, piece by piece: `python -m benchmarks.gpu_proof [PIECE ...]`; see benchmarks/README.md."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import filter as matching
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

from benchmarks.gpu_proof import applications, large, measured
from benchmarks.gpu_proof.proof import PAGE, RECORDED, ROOT, Found, NotHereError, Piece, Proof, Work, page
from benchmarks.machine import Revision, describe_machine, device_memory_used, installed_versions, revision
from benchmarks.measure import PACKAGES
from benchmarks.process_tree import run
from benchmarks.published.measuring import PACKAGES as PEERS
from benchmarks.published.row import NAMES
from benchmarks.results_file import read
from whitewater.engines.gpu_check import require_device
from whitewater.errors import ConfigError
from whitewater.io.store import write_bytes
from whitewater.log import log_output

# The quickest, and those that tell most, first.
PIECES = {
    "empty_step": Piece("a step without work, beside the CPU's", measured.empty_step),
    "tests": Piece("tests/gpu", measured.suite),
    **{name: Piece(f"{name} from generated data to the report's figures, against the CPU's results",
                   partial(applications.end_to_end, name)) for name in applications.RULES},
    "taxi_tips": Piece("tips of 100 million trips", measured.taxi_tips),
    "pca": Piece("nine components of 100,000 samples x 100,000 variants", large.pca),
    "rank": Piece("PageRank of a billion edges", large.rank),
    "recsys_features": Piece("features of 10 million rows of 39 columns", measured.recsys_features),
    "array_random": Piece("R7 at its published size: 2 TB are drawn",
                          partial(measured.published, "array_random", scale=1.0)),
    **{f"{name}-two-gpus": Piece(f"{name} on a cluster of two GPUs", partial(applications.end_to_end, name, workers=2))
       for name in applications.RULES},
    **{f"published-{row}": Piece(f"published row {row}, at the size of `make bench`", partial(measured.published, row))
       for row in NAMES},
}  # fmt: skip
FOUND, NOT_HERE, SECONDS, SAID_LINES = "found.json", 3, 480.0, 30


def main(arguments: Sequence[str] | None = None) -> int:
    """Show the pieces that are asked for, and write their records; return 1 if a piece failed or was stopped."""
    given = _arguments(arguments)
    with log_output(None, name="benchmarks gpu_proof"):
        names = _chosen(given.pieces)
        if given.here:
            return _show_here(PIECES[names[0]], given)
        if given.list:
            print("\n".join(f"{name:<28} {PIECES[name].title}" for name in names))
            return 0
        if given.page:
            return _write_page()
        require_device(given.device)
        # What was only tried out is not a record of what runs on a GPU.
        shown = (given.device, given.scale) == ("gpu", 1)
        output = given.output or (RECORDED if shown else Path(tempfile.mkdtemp(prefix="gpu-proof-records-")))
        print(f"Records are written to {output}.")
        status = max([_show(name, output / f"{name}.json", given) for name in names])
        if output == RECORDED:
            _write_page()
        return status


def _arguments(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_proof", description=__doc__, allow_abbrev=False)
    parser.add_argument("pieces", nargs="*", metavar="PIECE", help="names, or patterns such as 'published-*' (all)")
    parser.add_argument("--list", action="store_true", help="list the pieces, and show none")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE} from the records, and show none")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="gpu", help="cpu only tries the pieces out (gpu)")
    parser.add_argument("--scale", type=float, default=1.0, help="size as a fraction of what is to be shown (1)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"a piece is stopped after them ({SECONDS:g})")
    parser.add_argument("--output", type=Path, help=f"folder of records ({RECORDED}; of what is tried out a new one)")
    parser.add_argument("--again", action="store_true", help="also pieces that passed on this commit and hardware")
    parser.add_argument("--commit", help="commit of a copy that is not a repository")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _chosen(patterns: Sequence[str]) -> list[str]:
    """Return the names that patterns stand for, all of them where there are none.

    Raises ConfigError if a pattern stands for none.
    """
    for pattern in patterns:
        if not matching(PIECES, pattern):
            raise ConfigError(f"there is no piece {pattern!r}. Pieces are {', '.join(PIECES)}.")
    return [name for name in PIECES if not patterns or any(matching([name], each) for each in patterns)]


def _write_page() -> int:
    write_bytes(PAGE, page({name: piece.title for name, piece in PIECES.items()}, RECORDED).encode())
    return 0


def _show_here(piece: Piece, given: Any) -> int:
    """Show a piece in this process and folder, and write what is found."""
    try:
        piece.show(Work(given.device, given.scale, len(os.sched_getaffinity(0)))).write(Path(FOUND))
    except NotHereError as error:
        print(error, file=sys.stderr)
        return NOT_HERE
    return 0


def _show(name: str, path: Path, given: Any) -> int:
    """Show a piece in a process and a scratch folder of its own, unless its record is there; return the exit status."""
    source = Revision(commit=given.commit, changed=False) if given.commit else revision(ROOT)
    proof = Proof(
        piece=name, state="stopped", device=given.device, scale=given.scale, limit=given.seconds,
        started=datetime.now(UTC).isoformat(timespec="seconds"), command=("python", *sys.orig_argv[1:]),
        machine=describe_machine(), versions=installed_versions((*PACKAGES, *PEERS)), revision=source,
    )  # fmt: skip
    if path.exists() and not given.again and read(path, Proof).stands_for(proof):
        print(f"{name}: passed before", flush=True)
        return 0
    with tempfile.TemporaryDirectory(prefix="gpu-proof-") as folder, _watched_device_memory() as peaks:
        proof = _run(proof, Path(folder))
        proof = proof.model_copy(update={"peak_device_bytes": max(peaks, default=None)})
    proof.write(path)
    print(f"{name}: {proof.state} in {proof.seconds:.0f} s{proof.said and f': {proof.said}'}", flush=True)
    return 1 if proof.state in ("failed", "stopped") else 0


def _run(proof: Proof, folder: Path) -> Proof:
    """Run a piece to its end and return its record; what it printed last is told where it did not pass."""
    paths = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", "benchmarks.gpu_proof", "--here", proof.piece, "--device", proof.device,
               "--scale", str(proof.scale)]  # fmt: skip
    environment = {"PYTHONPATH": os.pathsep.join(paths)}
    cost = run(command, environment=environment, timeout=proof.limit, folder=folder)
    applications.stop_cluster(folder)
    found = Found.read(folder / FOUND) if (folder / FOUND).exists() else None
    said = "\n".join([*cost.output.splitlines(), *cost.errors.splitlines()][-SAID_LINES:])
    if cost.wall_seconds >= proof.limit:
        state, said = "stopped", f"stopped after {proof.limit:g} s; at last:\n{said}"
    elif cost.exit_status == NOT_HERE:
        state = "not possible here"
    elif found is None or cost.exit_status:
        state = "failed"
    else:
        said = "\n".join(f"{name}: {fault}" for name, fault in found.checks.items() if fault)
        state = "failed" if said else "passed"
    measured_ = {"seconds": cost.wall_seconds, "peak_memory_bytes": cost.peak_memory_bytes}
    return proof.model_copy(update={"state": state, "said": said, "found": found, **measured_})


@contextmanager
def _watched_device_memory() -> Iterator[list[int]]:
    """Ask the driver twice a second meanwhile what is used of the GPUs; yield what the fullest had, nothing without."""
    used, ended = list(filter(None, [device_memory_used()])), Event()

    def watch() -> None:
        while used and not ended.wait(0.5):
            used.append(device_memory_used() or 0)

    watching = Thread(target=watch)
    watching.start()
    try:
        yield used
    finally:
        ended.set()
        watching.join()


if __name__ == "__main__":
    # What is asked to end ends the piece that it runs, too, and removes its folder.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
