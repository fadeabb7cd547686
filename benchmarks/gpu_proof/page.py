"""The page of what was seen on a GPU, and what was not; written from the records alone."""

from __future__ import annotations

from pathlib import Path

from benchmarks.gpu_proof.pieces import PIECES
from benchmarks.gpu_proof.proof import Piece, Proof
from benchmarks.published.amounts import amount, seconds
from benchmarks.results_file import read

PAGE, RECORDED = Path("benchmarks/GPU.md"), Path("benchmarks/results/gpu")
HEAD = """# What was seen on a GPU

Written by `python -m benchmarks.gpu_proof --page` from the records in `benchmarks/results/gpu`, which `make gpu-proof`
writes on a machine with a GPU. Whatever has no record there is **not seen on hardware yet**: tests without a GPU
check it against stand-ins and recorded signatures, and say nothing about its speed.
"""
NOT_SEEN = "not seen on hardware yet"


def text(recorded: Path) -> str:
    """Return the page, of the records in a folder."""
    proofs = {name: read(path, Proof) for name in PIECES if (path := recorded / f"{name}.json").exists()}
    seen = sum(proof.state == "passed" for proof in proofs.values())
    lines = [_line(piece, proofs.get(name)) for name, piece in PIECES.items()]
    table = "\n".join(["| piece | what | seen | time | GPU memory | where |", "|---|---|---|---|---|---|", *lines])
    return "\n".join([HEAD, f"Seen: {seen} of {len(PIECES)} pieces.\n", table, *map(_details, proofs.values()), ""])


def _line(piece: Piece, proof: Proof | None) -> str:
    if proof is None:
        return f"| `{piece.name}` | {piece.title} | {NOT_SEEN} | - | - | - |"
    checks = len(proof.found.checks) if proof.found else 0
    seen = f"yes, {checks} checks" if proof.state == "passed" else f"**{proof.state}**"
    memory = amount(proof.peak_device_bytes, "B") if proof.peak_device_bytes else "-"
    where = f"{'; '.join(proof.machine.gpus) or proof.machine.processor}; commit {proof.revision.commit[:9]}"
    return f"| `{piece.name}` | {piece.title} | {seen} | {seconds(proof.seconds)} | {memory} | {where} |"


def _details(proof: Proof) -> str:
    """Return the figures of a piece, and what was said where it did not pass."""
    figures = proof.found.figures if proof.found else {}
    lines = [
        f"- {name}: {value:.4g}" if isinstance(value, float) else f"- {name}: {value}"
        for name, value in figures.items()
    ]
    said = ["```", proof.said, "```"] if proof.said else []
    return "\n".join([f"\n## {proof.piece}\n", f"{proof.title}; {proof.started}\n", *lines, *said])
