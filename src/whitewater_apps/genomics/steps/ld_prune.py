"""Step `ld_prune`: of variants in linkage disequilibrium some are kept, the others listed with one of those."""

import logging
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from whitewater import lazy_pandas as pd
from whitewater.engines import Array, Device
from whitewater.genotypes.genotypes import GenotypeFolder, open_genotypes
from whitewater.genotypes.linkage import NONE, correlated_variants, prune, thin, window_ends
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import LdPrune
from whitewater_apps.genomics.decisions import read_decisions

logger = logging.getLogger(__name__)
# Of the codes that a task reads: those that a core's cache holds, or that fill a GPU.
TASK_BYTES = {"cpu": 4 << 20, "gpu": 256 << 20}
# A byte for each of the pairs that a task compares: many, where samples are few.
TASK_PAIRS = {"cpu": 32 << 20, "gpu": 1 << 30}
# A task reads the variants of one more window, so it is this many windows long at least.
TASK_WINDOWS = 4
# Samples below which PLINK refuses to prune unless it is told: independent variants look linked by chance.
FEW_SAMPLES = 50


def ld_prune(run: Run[LdPrune], *, genotypes: Path, variants: Path, pruned: Output) -> None:
    """Thin the kept variants as section ``genomics.ld_prune`` says.

    Column ``ld_partner`` is the row of a kept variant. By r2 it is the one that the variant lost to, if that is kept;
    else the first kept one that it is linked with in any window; else -1, as it is for kept and rejected variants. By
    distance it is the last kept one before the variant.
    """
    folder = open_genotypes(genotypes)
    decisions, rows = read_decisions(variants, folder)
    candidates, method = decisions.take(rows), run.settings.method
    kept, partners = np.ones(len(rows), bool), np.full(len(rows), NONE, np.int32)
    contigs, _ = pd.factorize(candidates["contig"].to_pandas())
    if method == "r2":
        kept, partners = _prune(run, candidates, contigs, rows, folder)
    if method == "distance":
        positions = candidates["position"].to_numpy()
        partners = thin(contigs, positions, minimum_distance=run.settings.minimum_distance)
        kept = partners == NONE
    pq.write_table(_decide(decisions, rows, kept, partners, settings=run.settings), pruned)
    run.note(candidates=len(kept), kept=int(kept.sum()), pruned=int((~kept).sum()))
    logger.info("%d variants of %d are kept", kept.sum(), len(kept))


def linked(task: tuple[int, int], *, rows: Array, stops: Array, folder: GenotypeFolder, threshold: float,
           device: Device) -> npt.NDArray[np.int32]:  # fmt: skip
    """Return the linked pairs whose first variant is from ``task[0]`` to before ``task[1]``, int32 (pairs, 2), ordered.

    ``rows``, int64 (variants,), are those of the variants in the folder; each is compared with the variants behind it
    to before its place in ``stops``, int32 (variants,).
    """
    start, stop = task
    read = folder.read_rows(rows[start : int(stops[stop - 1])])
    # Those behind the task's own variants are compared with none: their pairs are another task's.
    reach = np.arange(1, read.variants + 1, dtype=np.int32)
    reach[: stop - start] = stops[start:stop] - start
    return correlated_variants(device, read.on(device), reach, threshold) + np.int32(start)


def _prune(
    run: Run[LdPrune], candidates: pa.Table, contigs: Array, rows: npt.NDArray[np.int64], folder: GenotypeFolder
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int32]]:
    """Return which candidates at ``rows`` are kept, and the place of the one that each other is linked with, or -1."""
    settings, device = run.settings, run.device
    if folder.samples < FEW_SAMPLES:
        logger.warning("With %d samples, fewer than %d, independent variants look linked by chance and are removed",
                       folder.samples, FEW_SAMPLES)  # fmt: skip
    called = folder.ploidy * np.rint(candidates["call_rate"].to_numpy() * folder.samples).astype(np.int64)
    alternate = candidates["allele_count"].to_numpy()
    rarer = np.minimum(alternate, called - alternate)
    # The pairs of a contig are in memory at once.
    bounds = list(pairwise(np.flatnonzero(np.diff(contigs, prepend=NONE, append=NONE)).tolist()))
    windows = {"size": settings.window, "step": settings.step}
    stops = [window_ends(stop - start, **windows) + np.int32(start) for start, stop in bounds]
    shared = {"rows": rows, "stops": np.concatenate(stops)}
    work = partial(linked, folder=folder, threshold=settings.r2, device=device)
    kept, partners, linked_pairs = np.ones(len(rows), bool), np.full(len(rows), NONE, np.int32), 0
    with run.workers() as workers:
        a_worker = -(-len(rows) // len(workers.threads))
        most = min(TASK_BYTES[device.name] // folder.row_bytes, TASK_PAIRS[device.name] // settings.window, a_worker)
        size = max(TASK_WINDOWS * settings.window, most)
        tasks = [(first, min(first + size, stop)) for start, stop in bounds for first in range(start, stop, size)]
        blocks = workers.map(work, tasks, label="ld_prune", ordered=True, shared=shared)
        for start, stop in bounds:
            pairs = np.concatenate([next(blocks) for _ in range(start, stop, size)]) - np.int32(start)
            contig = slice(start, stop)
            kept[contig], chosen = prune(pairs, rarer=rarer[contig], called=called[contig], **windows)
            partners[contig] = np.where(chosen == NONE, NONE, chosen + start)
            linked_pairs += len(pairs)
    run.note(linked_pairs=linked_pairs)
    return kept, partners


def _decide(decisions: pa.Table, rows: Array, kept: Array, partners: Array, *, settings: LdPrune) -> pa.Table:
    """Return the decisions with those on the candidates, and column ld_partner: rows of the table, or -1."""
    by_distance = f"closer than {settings.minimum_distance} bases"
    reason = by_distance if settings.method == "distance" else "linkage disequilibrium"
    still_kept, partner_rows = np.zeros(len(decisions), bool), np.full(len(decisions), NONE, np.int32)
    still_kept[rows] = kept
    partner_rows[rows] = np.where(partners == NONE, NONE, rows[partners])
    pruned = pc.and_not(decisions["kept"], pa.array(still_kept))
    reasons = pc.if_else(pruned, pa.scalar([reason], decisions["reasons"].type), decisions["reasons"])
    columns = dict(zip(decisions.column_names, decisions.columns, strict=True))
    return pa.table({**columns, "kept": still_kept, "reasons": reasons, "ld_partner": partner_rows})


if __name__ == "__main__":
    main(ld_prune)
