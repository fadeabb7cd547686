"""The pieces, in the order in which they are shown: the quickest and the most telling first."""

from __future__ import annotations

from functools import partial

from benchmarks.gpu_proof import applications, large, measured
from benchmarks.gpu_proof.proof import Piece
from benchmarks.published.row import NAMES

PIECES = {
    piece.name: piece
    for piece in (
        Piece("empty_step", "a step without work, beside the CPU's", measured.empty_step),
        Piece("tests", "tests/gpu in one process", measured.suite),
        *(
            Piece(
                name,
                f"{name} end to end on generated data, against the CPU's results",
                partial(applications.show, name),
            )
            for name in applications.RULES
        ),
        Piece("taxi_tips", "tips of 100 million trips", measured.taxi_tips),
        Piece("pca", "ten components of 100,000 samples x 100,000 variants", large.pca),
        Piece("rank", "PageRank of a billion edges", large.rank),
        Piece("recsys_features", "features of 10 million rows of 39 columns", measured.recsys_features),
        Piece(
            "array_random",
            "R7 at its published size, 2 TB of random numbers",
            partial(measured.published, "array_random"),
        ),
        *(
            Piece(
                f"published-{row}",
                f"the published row {row}, at the size of `make bench`",
                partial(measured.published, row),
            )
            for row in NAMES
        ),
    )
}
