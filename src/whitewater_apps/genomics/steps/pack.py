"""Step `pack`: the kept variants in a folder of their own, as the passes of the PCA read them."""

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
    """Copy the kept variants, in the order of the source and in its encoding."""
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
    share = size / (written * target.samples)
    run.note(variants=written, bytes=size, bytes_per_genotype=share, encoding=target.encoding)
    logger.info("%d variants packed as %s: %.3f bytes a genotype", written, target.encoding, share)


def copy(
    between: tuple[int, int], *, source: GenotypeFolder, target: GenotypeFolder, rows: npt.NDArray[np.int64]
) -> int:
    """Copy the ``rows`` of the source that a range of the target is made of, a block at a time; return their number."""
    start, stop = between
    for first in range(start, stop, target.block_variants):
        target.write(first, source.read_rows(rows[first : min(first + target.block_variants, stop)]).codes)
    return stop - start


if __name__ == "__main__":
    main(pack)
