"""Step `pack`: copy the kept variants to a folder of their own, for the passes of the PCA."""

import logging
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from whitewater.config.base import Section
from whitewater.genotypes.genotypes import GenotypeFolder, create_genotypes, open_genotypes
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.genomics.decisions import read_decisions

logger = logging.getLogger(__name__)


def pack(run: Run[Section], *, genotypes: Path, variants: Path, packed: Output) -> None:
    """Copy the kept variants in the order and encoding of the source."""
    source = open_genotypes(genotypes)
    _, rows = read_decisions(variants, source)
    target = create_genotypes(
        packed, encoding=source.encoding, ploidy=source.ploidy, variants=len(rows), samples=source.samples
    )
    with run.workers() as workers:
        work = partial(copy, source=source, target=target)
        written = sum(workers.map(work, target.ranges(), label="pack", shared={"rows": rows}))
    target.finish(variants=source.variants_table().iloc[rows], samples=source.samples_table())
    size = sum(path.stat().st_size for path in target.path.rglob("*") if path.is_file())
    per_genotype = size / (written * target.samples)
    run.note(variants=written, bytes=size, bytes_per_genotype=per_genotype, encoding=target.encoding)
    logger.info("%d variants packed as %s: %.3f bytes per genotype", written, target.encoding, per_genotype)


def copy(
    bounds: tuple[int, int], *, source: GenotypeFolder, target: GenotypeFolder, rows: npt.NDArray[np.int64]
) -> int:
    """Copy rows of the source to a range of the target, block by block; return their number."""
    start, stop = bounds
    for first in range(start, stop, target.block_variants):
        target.write(first, source.read_rows(rows[first : min(first + target.block_variants, stop)]).codes)
    return stop - start


if __name__ == "__main__":
    main(pack)
