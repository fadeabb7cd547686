"""Step `manifest`: what was made from what, where and how."""

from pathlib import Path

from whitewater.manifest import gather
from whitewater.script import main
from whitewater.step import Inputs, Output, Run
from whitewater_apps.minimal.config import Minimal


def manifest(run: Run[Minimal], *, records: Inputs, inputs: Path, manifest: Output) -> None:
    """Gather the records of all steps, see `whitewater.manifest.gather`."""
    gather(run, records=records, inputs=inputs, manifest=manifest)


if __name__ == "__main__":
    main(manifest)
