"""Step `ld_prune`: of variants in linkage disequilibrium some are kept, the others listed with one of those."""

import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array, Device
from whitewater.genotypes.folder import GenotypeFolder, open_genotypes
from whitewater.genotypes.genotypes import Genotypes
from whitewater.genotypes.linkage.pairs import correlated_variants
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import LdPrune
from whitewater_apps.genomics.decisions import kept_rows, read_decisions

logger = logging.getLogger(__name__)
# Of the codes that a task reads: those that a core's cache holds, or that fill a GPU.
TASK_BYTES = {"cpu": 4 << 20, "gpu": 256 << 20}
# A byte for each of the pairs that a task compares: many, where samples are few.
TASK_PAIRS = {"cpu": 32 << 20, "gpu": 1 << 30}
# A task reads the variants of one more window, so it is this many windows long at least.
TASK_WINDOWS = 4
# Samples below which PLINK refuses to prune unless it is told: independent variants look linked by chance.
FEW_SAMPLES = 50
NONE = -1


@dataclass(frozen=True)
class Candidates:
    """The variants that take part: arrays (variants,)."""

    rows: npt.NDArray[np.int64]
    contigs: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    rarer: npt.NDArray[np.int64]
    called: npt.NDArray[np.int64]
    """Copies of the rarer allele, and called alleles."""


def ld_prune(run: Run[LdPrune], *, genotypes: Path, variants: Path, pruned: Output) -> None:
    """Thin the kept variants as section ``genomics.ld_prune`` says.

    Column ``ld_partner`` is the row of a kept variant. By r2 it is the one that the variant lost to, if that is kept;
    else the first kept one that it is linked with in any window; else -1, as it is for kept and rejected variants. By
    distance it is the last kept one before the variant.
    """
    folder = open_genotypes(genotypes)
    decisions = read_decisions(variants, folder)
    candidates = _candidates(decisions, kept_rows(decisions, variants), folder)
    kept, partners = _choose(run, candidates, folder)
    pq.write_table(_decide(decisions, candidates, kept, partners, reason=_reason(run.settings)), pruned)
    run.note(candidates=len(kept), kept=int(kept.sum()), pruned=int((~kept).sum()))
    logger.info("%d variants of %d are kept", kept.sum(), len(kept))


def linked(task: tuple[int, int], *, rows: Array, stops: Array, folder: GenotypeFolder, threshold: float,
           device: Device) -> npt.NDArray[np.int32]:  # fmt: skip
    """Find the linked pairs whose first variant is from ``task[0]`` to before ``task[1]``.

    Parameters
    ----------
    rows
        int64 (variants,): rows of the variants in the folder.
    stops
        int32 (variants,): each variant is compared with those behind it to before this one.

    Returns
    -------
    array
        int32 (pairs, 2), ordered.
    """
    start, stop = task
    read = folder.read_rows(rows[start : int(stops[stop - 1])])
    # Those behind the task's own variants are compared with none: their pairs are another task's.
    reach = np.arange(1, read.variants + 1, dtype=np.int32)
    reach[: stop - start] = stops[start:stop] - start
    genotypes = Genotypes(device.to_device(read.codes), read.samples, read.ploidy)
    return correlated_variants(device, genotypes, reach, threshold) + np.int32(start)


def _candidates(decisions: pa.Table, rows: npt.NDArray[np.int64], folder: GenotypeFolder) -> Candidates:
    import pandas as pd

    columns = {name: decisions[name].take(rows) for name in ("contig", "position", "call_rate", "allele_count")}
    called = folder.ploidy * np.rint(columns["call_rate"].to_numpy() * folder.samples).astype(np.int64)
    alternate = columns["allele_count"].to_numpy()
    contigs, _ = pd.factorize(columns["contig"].to_pandas())
    return Candidates(rows, contigs, columns["position"].to_numpy(), np.minimum(alternate, called - alternate), called)


def _choose(
    run: Run[LdPrune], candidates: Candidates, folder: GenotypeFolder
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int32]]:
    """Return which candidates are kept, and the candidate that each other one is linked with."""
    from whitewater.genotypes.linkage.pruning import thin

    if run.settings.method == "none":
        return np.ones(len(candidates.rows), bool), np.full(len(candidates.rows), NONE, np.int32)
    if run.settings.method == "r2":
        return _prune(run, candidates, folder)
    partners = thin(candidates.contigs, candidates.positions, minimum_distance=run.settings.minimum_distance)
    return partners == NONE, partners


def _prune(
    run: Run[LdPrune], candidates: Candidates, folder: GenotypeFolder
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int32]]:
    from whitewater.genotypes.linkage.pruning import Pruning, windows

    settings = run.settings
    if folder.samples < FEW_SAMPLES:
        logger.warning("With %d samples, fewer than %d, independent variants look linked by chance and are removed",
                       folder.samples, FEW_SAMPLES)  # fmt: skip
    laid = windows(candidates.contigs, size=settings.window, step=settings.step)
    pruning = Pruning(laid, rarer=candidates.rarer, called=candidates.called)
    work = partial(linked, folder=folder, threshold=settings.r2, device=run.device)
    shared = {"rows": candidates.rows, "stops": laid.last_partners(len(candidates.rows))}
    found = 0
    with run.workers() as workers:
        tasks = _tasks(run, folder, len(candidates.rows), workers=len(workers.threads))
        blocks = workers.map(work, tasks, label="ld_prune", ordered=True, shared=shared)
        for (_, stop), pairs in zip(tasks, blocks, strict=True):
            pruning.add(pairs, stop=stop)
            found += len(pairs)
    run.note(linked_pairs=found)
    return pruning.partners()


def _tasks(run: Run[LdPrune], folder: GenotypeFolder, variants: int, *, workers: int) -> list[tuple[int, int]]:
    window, device = run.settings.window, run.device.name
    most = min(TASK_BYTES[device] // folder.row_bytes, TASK_PAIRS[device] // window, -(-variants // workers))
    size = max(TASK_WINDOWS * window, most)
    return [(start, min(start + size, variants)) for start in range(0, variants, size)]


def _reason(settings: LdPrune) -> str:
    if settings.method == "distance":
        return f"closer than {settings.minimum_distance} bases"
    return "linkage disequilibrium"


def _decide(
    decisions: pa.Table,
    candidates: Candidates,
    kept: npt.NDArray[np.bool_],
    partners: npt.NDArray[np.int32],
    *,
    reason: str,
) -> pa.Table:
    """Return the decisions with those on the candidates, and column ld_partner: rows of the table, or -1."""
    import pyarrow.compute as pc

    every_kept = np.zeros(len(decisions), bool)
    every_kept[candidates.rows[kept]] = True
    pruned = np.zeros(len(decisions), bool)
    pruned[candidates.rows[~kept]] = True
    partner_rows = np.full(len(decisions), NONE, np.int32)
    partner_rows[candidates.rows] = np.where(partners == NONE, NONE, candidates.rows[partners])
    reasons = pc.if_else(pruned, pa.scalar([reason], decisions["reasons"].type), decisions["reasons"])
    table = _with_column(_with_column(decisions, "kept", pa.array(every_kept)), "reasons", reasons)
    return table.append_column("ld_partner", pa.array(partner_rows))


def _with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


if __name__ == "__main__":
    main(ld_prune)
