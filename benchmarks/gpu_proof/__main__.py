"""Show what runs on a GPU, piece by piece: `python -m benchmarks.gpu_proof [PIECE ...]`; see benchmarks/README.md."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import filter as matching
from pathlib import Path
from typing import Any, Literal

from benchmarks.gpu_proof import page
from benchmarks.gpu_proof.pieces import PIECES
from benchmarks.gpu_proof.proof import FOUND, NOT_HERE, ROOT, Found, Piece, Proof
from benchmarks.machine import Revision, describe_machine, installed_versions, revision
from benchmarks.measure import PACKAGES
from benchmarks.process_tree import Cost, run
from benchmarks.published.measuring import PACKAGES as PEERS
from whitewater.engines.gpu_check import require_device
from whitewater.errors import ConfigError
from whitewater.io.store import write_bytes
from whitewater.log import logged

SECONDS = 480.0
SAID_LINES = 15


def main(arguments: Sequence[str] | None = None) -> int:
    """Show the pieces that are asked for, or write the page; return 1 if a piece failed or was stopped."""
    given = _arguments(arguments)
    with logged(None, name="benchmarks gpu_proof"):
        if given.page:
            _write_page()
            return 0
        pieces = _chosen(given.pieces)
        if given.list:
            print("\n".join(f"{name:<28} {PIECES[name].title}" for name in pieces))
            return 0
        require_device(given.device)
        output = given.output or _default_output(given.device, given.scale)
        print(f"Records are written to {output}.")
        status = max([_shown(PIECES[name], output / f"{name}.json", given) for name in pieces])
        if output == page.RECORDED:
            _write_page()
        return status


def _write_page() -> None:
    write_bytes(page.PAGE, page.text(page.RECORDED).encode())


def _arguments(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_proof", description=__doc__, allow_abbrev=False)
    parser.add_argument("pieces", nargs="*", metavar="PIECE", help="names, or patterns such as 'published-*' (all)")
    parser.add_argument("--list", action="store_true", help="list the pieces, and show none")
    parser.add_argument("--page", action="store_true", help=f"write {page.PAGE} from the records, and show none")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="gpu", help="cpu only tries the pieces out (gpu)")
    parser.add_argument("--scale", type=float, default=1.0, help="size as a fraction of what is to be shown (1)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"a piece is stopped after them ({SECONDS:g})")
    parser.add_argument("--output", type=Path, help="folder of the records; by default a new one, for gpu at scale 1 "
                        f"{page.RECORDED}")  # fmt: skip
    parser.add_argument("--again", action="store_true", help="also pieces that passed on this commit and machine")
    parser.add_argument("--commit", help="commit of a copy that is no repository")
    return parser.parse_args(arguments)


def _chosen(patterns: Sequence[str]) -> list[str]:
    """Return the names that patterns stand for, all of them where there are none.

    Raises ConfigError if a pattern stands for none.
    """
    for pattern in patterns:
        if not matching(PIECES, pattern):
            raise ConfigError(f"there is no piece {pattern!r}. Pieces are {', '.join(PIECES)}.")
    return [name for name in PIECES if not patterns or any(matching([name], each) for each in patterns)]


def _default_output(device: str, scale: float) -> Path:
    return page.RECORDED if (device, scale) == ("gpu", 1) else Path(tempfile.mkdtemp(prefix="gpu-proof-records-"))


def _shown(piece: Piece, path: Path, given: Any) -> int:
    """Show a piece unless its record is there, and return the exit status."""
    begun = _begun(piece, given)
    if path.exists() and not given.again and Proof.read(path).stands_for(begun):
        print(f"{piece.name}: passed before", flush=True)
        return 0
    with tempfile.TemporaryDirectory(prefix="gpu-proof-") as folder:
        with _device_memory(Path(folder)) as peak:
            cost = _run(piece, Path(folder), begun)
        proof = _ended(begun, cost, Path(folder, FOUND), peak_device_bytes=peak())
    proof.write(path)
    print(f"{piece.name}: {proof.state} in {proof.seconds:.0f} s{f': {proof.said}' if proof.said else ''}", flush=True)
    return 1 if proof.state in ("failed", "stopped") else 0


def _begun(piece: Piece, given: Any) -> Proof:
    """Return the record of a piece that has not run yet."""
    source = Revision(commit=given.commit, changed=False) if given.commit else revision(ROOT)
    return Proof(
        piece=piece.name, title=piece.title, state="stopped", said="", device=given.device, scale=given.scale,
        started=datetime.now(UTC).isoformat(timespec="seconds"), command=("python", *sys.orig_argv[1:]), seconds=0,
        limit=given.seconds, peak_memory_bytes=0, peak_device_bytes=None, machine=describe_machine(),
        versions=installed_versions((*PACKAGES, *PEERS)), revision=source, found=None,
    )  # fmt: skip


def _run(piece: Piece, folder: Path, begun: Proof) -> Cost:
    paths = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", "benchmarks.gpu_proof.one", piece.name, "--device", begun.device,
               "--scale", str(begun.scale), "--threads", str(begun.machine.cores)]  # fmt: skip
    return run(command, environment={"PYTHONPATH": os.pathsep.join(paths)}, timeout=begun.limit, folder=folder)


def _ended(begun: Proof, cost: Cost, path: Path, *, peak_device_bytes: int | None) -> Proof:
    """Return the record of a piece whose process has ended; what it printed is told where it failed."""
    found = Found.read(path) if path.exists() else None
    printed = "\n".join([*cost.output.splitlines(), *cost.errors.splitlines()][-SAID_LINES:])
    state: Literal["passed", "failed", "stopped", "not possible here"]
    if cost.wall_seconds >= begun.limit:
        state, said = "stopped", f"stopped after {begun.limit:g} s; at last: {printed}"
    elif cost.exit_status == NOT_HERE:
        state, said = "not possible here", printed
    elif found is None or cost.exit_status:
        state, said = "failed", printed
    else:
        faults = [f"{name}: {fault}" for name, fault in found.checks.items() if fault]
        state, said = ("failed" if faults else "passed"), "\n".join(faults)
    return begun.model_copy(
        update={
            "state": state, "said": said, "seconds": cost.wall_seconds, "found": found,
            "peak_memory_bytes": cost.peak_memory_bytes, "peak_device_bytes": peak_device_bytes,
        }
    )  # fmt: skip


@contextmanager
def _device_memory(folder: Path) -> Iterator[Any]:
    """Watch the memory of the GPUs meanwhile; yield what returns the most bytes of one, None where there is none."""
    path, mebibyte = folder / "device-memory.txt", 2**20
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--loop-ms=100"]
    with path.open("w") as file:
        watching = subprocess.Popen(query, stdout=file) if describe_machine().gpus else None
    try:
        yield (
            lambda: (
                max((int(line) for line in path.read_text().split() if line.isdigit()), default=0) * mebibyte or None
            )
        )
    finally:
        if watching:
            watching.kill()
            watching.wait()


if __name__ == "__main__":
    sys.exit(main())
