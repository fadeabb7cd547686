"""One piece in a process of its own, in its scratch folder: `python -m benchmarks.gpu_proof.one PIECE ...`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.gpu_proof.pieces import PIECES
from benchmarks.gpu_proof.proof import FOUND, NOT_HERE, NotHereError, Work
from whitewater.errors import WhitewaterError


def main() -> int:
    """Show the piece and write what was found; a traceback is told unless the error is one of ours."""
    parser = argparse.ArgumentParser()
    parser.add_argument("piece", choices=PIECES)
    parser.add_argument("--device", required=True)
    parser.add_argument("--scale", type=float, required=True)
    parser.add_argument("--threads", type=int, required=True)
    given = parser.parse_args()
    try:
        PIECES[given.piece].show(Work(given.device, given.scale, given.threads)).write(Path(FOUND))
    except WhitewaterError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return NOT_HERE if isinstance(error, NotHereError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
