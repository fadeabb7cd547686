"""Step `pack`: the kept variants in a folder of their own, encoded as the passes of the PCA read them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whitewater.errors import ConfigError
from whitewater.genomics.decisions import kept_rows, read_decisions
from whitewater.genomics.genotype_folder import Encoding, GenotypeFolder, create_genotypes, open_genotypes
from whitewater.genomics.sources.source import dosages_of

if TYPE_CHECKING:
    from whitewater.config.genomics import Pack
    from whitewater.step import Output, Run

logger = logging.getLogger(__name__)
DIPLOID = 2


@dataclass(frozen=True)
class Task:
    """Rows of the source that become those of the packed folder from ``start`` on."""

    start: int
    rows: npt.NDArray[np.int64]


def pack(run: Run[Pack], *, genotypes: Path, variants: Path, packed: Output) -> None:
    """Copy the kept variants, in the order of the source, in the encoding of section ``genomics.pack``."""
    source = open_genotypes(genotypes)
    rows = kept_rows(read_decisions(variants, source), variants)
    target = create_genotypes(
        packed,
        encoding=_encoding(run.settings, source),
        ploidy=source.ploidy,
        variants=len(rows),
        samples=source.samples,
    )
    tasks = [Task(start, rows[start:stop]) for start, stop in target.ranges()]
    with run.cluster() as client:
        work = partial(copy, source=source, target=target)
        written = sum(run.map(work, tasks, client=client, label="pack"))
    target.finish(variants=source.variants_table().iloc[rows], samples=source.samples_table())
    _note(run, target, written)


def copy(task: Task, *, source: GenotypeFolder, target: GenotypeFolder) -> int:
    """Copy the rows of a task, in its encoding a block at a time; return how many there were."""
    for first in range(0, len(task.rows), target.block_variants):
        genotypes = source.read_rows(task.rows[first : first + target.block_variants])
        unpack = genotypes.packed and target.encoding == "blosc"
        target.write(
            task.start + first, dosages_of(genotypes.codes, np.arange(source.samples)) if unpack else genotypes.codes
        )
    return len(task.rows)


def _encoding(settings: Pack, source: GenotypeFolder) -> Encoding:
    diploid = source.ploidy == DIPLOID
    if settings.encoding == "two_bit" and not diploid:
        raise ConfigError(f"pack.encoding is 'two_bit', which holds diploids only; these samples have ploidy "
                          f"{source.ploidy}. Set it to auto or blosc.")  # fmt: skip
    if settings.encoding == "auto":
        return "two_bit" if diploid else "blosc"
    return settings.encoding


def _note(run: Run[Pack], target: GenotypeFolder, variants: int) -> None:
    size = sum(path.stat().st_size for path in target.path.rglob("*") if path.is_file())
    share = size / (variants * target.samples)
    run.note(variants=variants, bytes=size, bytes_per_genotype=share, encoding=target.encoding)
    logger.info("%d variants packed as %s: %.3f bytes a genotype", variants, target.encoding, share)
