"""Step `ld_prune`: thin variants in linkage disequilibrium; each removed one is listed with a kept one."""

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
# Bytes of codes per task: as many as fit into the cache of a core, or keep a GPU busy.
TASK_BYTES = {"cpu": 4 << 20, "gpu": 256 << 20}
# Pairs per task, a byte each: the limit with few samples.
TASK_PAIRS = {"cpu": 32 << 20, "gpu": 1 << 30}
# Least number of windows per task, because a task reads the variants of one more.
TASK_WINDOWS = 4
# With fewer samples, independent variants look linked by chance; PLINK refuses to prune by default.
FEW_SAMPLES = 50


def ld_prune(run: Run[LdPrune], *, genotypes: Path, variants: Path, pruned: Output) -> None:
    """Thin the kept variants as section ``genomics.ld_prune`` says.

    Column ``ld_partner`` is the row of a kept variant, or -1. By r2, see `whitewater.genotypes.linkage.prune`. By
    distance, it is the last kept variant before this one.
    """
    folder = open_genotypes(genotypes)
    decisions, rows = read_decisions(variants, folder)
    candidates, method = decisions.take(rows), run.settings.method
    kept, partners = np.ones(len(rows), bool), np.full(len(rows), NONE, np.int32)
    contigs, _ = pd.factorize(candidates["contig"].to_pandas())
    if method == "r2":
        kept, partners = _prune(run, candidates, contigs, rows, folder)
    if method == "distance":
        partners = thin(contigs, candidates["position"].to_numpy(), minimum_distance=run.settings.minimum_distance)
        kept = partners == NONE
    pq.write_table(_update_decisions(decisions, rows, kept, partners, settings=run.settings), pruned)
    run.note(candidates=len(kept), kept=int(kept.sum()), pruned=int((~kept).sum()))
    logger.info("%d variants of %d are kept", kept.sum(), len(kept))


def find_linked_pairs(
    task: tuple[int, int], *, rows: Array, stops: Array, folder: GenotypeFolder, threshold: float, device: Device
) -> npt.NDArray[np.int32]:
    """Return the sorted linked pairs whose first variant is in [``task[0]``, ``task[1]``), int32 (pairs, 2).

    ``rows``, int64 (variants,), are the rows of the variants in the folder. Variant *i* is compared with the later
    ones before ``stops[i]``, int32 (variants,).
    """
    start, stop = task
    genotypes = folder.read_rows(rows[start : int(stops[stop - 1])])
    # Variants after the task's own are not compared: their pairs belong to another task.
    local_stops = np.arange(1, genotypes.variants + 1, dtype=np.int32)
    local_stops[: stop - start] = stops[start:stop] - start
    return correlated_variants(device, genotypes.to_device(device), local_stops, threshold) + np.int32(start)


def _prune(
    run: Run[LdPrune], candidates: pa.Table, contigs: Array, rows: npt.NDArray[np.int64], folder: GenotypeFolder
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int32]]:
    """Return which candidates are kept, and the index of the one that each other is linked with, or -1."""
    settings, device = run.settings, run.device
    if folder.samples < FEW_SAMPLES:
        logger.warning("With %d samples, fewer than %d, independent variants look linked by chance and are removed",
                       folder.samples, FEW_SAMPLES)  # fmt: skip
    called = folder.ploidy * np.rint(candidates["call_rate"].to_numpy() * folder.samples).astype(np.int64)
    alternate = candidates["allele_count"].to_numpy()
    rarer = np.minimum(alternate, called - alternate)
    # All pairs of a contig are in memory at once.
    bounds = list(pairwise(np.flatnonzero(np.diff(contigs, prepend=NONE, append=NONE)).tolist()))
    windows = {"size": settings.window, "step": settings.step}
    stops = [window_ends(stop - start, **windows) + np.int32(start) for start, stop in bounds]
    shared = {"rows": rows, "stops": np.concatenate(stops)}
    work = partial(find_linked_pairs, folder=folder, threshold=settings.r2, device=device)
    kept, partners, linked_pairs = np.ones(len(rows), bool), np.full(len(rows), NONE, np.int32), 0
    with run.workers() as workers:
        per_worker = -(-len(rows) // len(workers.threads))
        most = min(TASK_BYTES[device.name] // folder.row_bytes, TASK_PAIRS[device.name] // settings.window, per_worker)
        size = max(TASK_WINDOWS * settings.window, most)
        tasks = [(first, min(first + size, stop)) for start, stop in bounds for first in range(start, stop, size)]
        blocks = workers.map(work, tasks, label="ld_prune", ordered=True, shared=shared)
        for start, stop in bounds:
            pairs = np.concatenate([next(blocks) for _ in range(start, stop, size)]) - np.int32(start)
            contig = slice(start, stop)
            kept[contig], local_partners = prune(pairs, rarer=rarer[contig], called=called[contig], **windows)
            partners[contig] = np.where(local_partners == NONE, NONE, local_partners + start)
            linked_pairs += len(pairs)
    run.note(linked_pairs=linked_pairs)
    return kept, partners


def _update_decisions(decisions: pa.Table, rows: Array, kept: Array, partners: Array, *, settings: LdPrune) -> pa.Table:
    """Return all decisions with those on the candidates at ``rows``, and column ld_partner."""
    by_distance = f"closer than {settings.minimum_distance} bases"
    reason = by_distance if settings.method == "distance" else "linkage disequilibrium"
    kept_rows, partner_rows = np.zeros(len(decisions), bool), np.full(len(decisions), NONE, np.int32)
    kept_rows[rows] = kept
    partner_rows[rows] = np.where(partners == NONE, NONE, rows[partners])
    pruned = pc.and_not(decisions["kept"], pa.array(kept_rows))
    reasons = pc.if_else(pruned, pa.scalar([reason], decisions["reasons"].type), decisions["reasons"])
    columns = dict(zip(decisions.column_names, decisions.columns, strict=True))
    return pa.table({**columns, "kept": kept_rows, "reasons": reasons, "ld_partner": partner_rows})


if __name__ == "__main__":
    main(ld_prune)
