"""Step `project`: scores of samples that the components were not computed from, and of a second data set."""

import logging
import shutil
from functools import partial, reduce
from operator import add
from pathlib import Path

import numpy as np
import numpy.typing as npt

from whitewater import lazy_pandas as pd
from whitewater.engines import Array, Device
from whitewater.errors import InputError, redact
from whitewater.genotypes.codes import slab_rows
from whitewater.genotypes.genotypes import PIECE_BYTES, GenotypeFolder, Genotypes, open_genotypes
from whitewater.genotypes.pca.loadings import Loadings, read_loadings
from whitewater.genotypes.pca.passes import Partition, RawGenotypes
from whitewater.genotypes.pca.projection import VARIANTS_A_COMPONENT, Matches, match_variants, scores, sum_over_variants
from whitewater.genotypes.sources.opening import list_paths, open_source
from whitewater.genotypes.sources.source import Source, Tally
from whitewater.io.places import refuse_changes
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import Project
from whitewater_apps.genomics.steps.ingest import describe_origins

logger = logging.getLogger(__name__)


def project(run: Run[Project], *, packed: Path, samples: Path, loadings: Path, projected: Output) -> None:
    """Project unused samples, and those of the second data set, on the principal components.

    Raises InputError if the second data set cannot be read, has too few of the variants, or another ploidy, and
    IntegrityError if one of its local files changes while it is read.
    """
    fitted = read_loadings(loadings)
    selection = pd.read_parquet(samples)
    tables = [_project_unused(run, open_genotypes(packed), selection.loc[~selection["used"]], fitted)]
    if run.settings.second.source != "none":
        # VCF files are converted at the path of the output, which is always cleared.
        with refuse_changes(list_paths(run.settings.second)):
            tables.append(_project_second(run, fitted, scratch=projected))
        if projected.is_dir():
            shutil.rmtree(projected)
    table = pd.concat(tables, ignore_index=True)
    table.to_parquet(projected, index=False)
    lost = int(table["PC1"].isna().sum())
    run.note(projected=len(table) - lost, without_scores=lost)
    logger.info("%d samples projected; %d have no scores: column reason tells why", len(table) - lost, lost)


def _project_unused(
    run: Run[Project], folder: GenotypeFolder, samples: "pd.DataFrame", loadings: Loadings
) -> "pd.DataFrame":
    """Project samples of the first data set; the index of ``samples`` is their row in the folder."""
    if folder.variants != len(loadings.weights):
        raise InputError(f"{folder.path} has {folder.variants} variants, the loadings have {len(loadings.weights)}: "
                         "they are of different runs. Run pca again.")  # fmt: skip
    rows = samples.index.to_numpy()
    totals = np.empty((0, len(loadings.eigenvalues) + 2))
    with run.workers() as workers:
        genotypes = RawGenotypes(folder, run.device, run.local_device, workers)
        parts = genotypes.map(_sum_partition, genotypes.partitions(), label="project", samples=rows, loadings=loadings)
        if len(rows):
            totals = run.local_device.to_host(reduce(add, parts))
    return _add_scores(run, samples.assign(data_set="first"), totals, loadings=loadings)


def _sum_partition(partition: Partition, *, samples: npt.NDArray[np.intp], loadings: Loadings) -> Array:
    device, folder = partition.device, partition.folder
    indices, rows = device.to_device(samples), np.arange(partition.start, partition.stop)
    size = min(slab_rows(device, len(samples)), max(1, PIECE_BYTES // folder.row_bytes))
    parts = (
        sum_over_variants(slab, indices, rows[first : first + slab.variants], loadings=loadings, device=device)
        for first, slab in partition.slabs(size)
    )
    return reduce(add, parts)


def _project_second(run: Run[Project], loadings: Loadings, *, scratch: Path) -> "pd.DataFrame":
    source = open_source(run.settings.second, {}, scratch=scratch, threads=run.threads)
    place = redact(source.origins[0])
    key = f"genomics.project.second.{run.settings.second.source}.ploidy"
    if source.ploidy != loadings.ploidy:
        raise InputError(f"project.second {place} has ploidy {source.ploidy}, but the components are of ploidy "
                         f"{loadings.ploidy}. Give a data set of the same ploidy; if only some of its calls have more "
                         f"alleles, set {key}.")  # fmt: skip
    variants = source.variants_table()
    matches = match_variants(loadings.variants, variants, keep_ambiguous=run.settings.ambiguous == "keep")
    logger.info("variants of the second data set: %s", matches.counts)
    run.note(second_data_set=matches.counts, second_files=describe_origins(source.origins, threads=run.threads))
    share = len(matches.first) / len(loadings.weights)
    if share < run.settings.minimum_matched:
        raise InputError(
            f"project.second {place} holds {100 * share:.1f} % of the {len(loadings.weights)} variants "
            f"of the components, less than project.minimum_matched ({100 * run.settings.minimum_matched:.0f} %): "
            f"{matches.counts}. Check that both name variants alike and count the same genome build, or lower it."
        )
    with run.workers(small=True) as workers:
        work = partial(_sum_source, matches=matches, loadings=loadings, device=run.device)
        totals, tally = next(workers.map(work, [source], label="project the second data set"))
    source.check_ploidy(variants, tally, key=key)
    samples = pd.DataFrame({"sample": source.samples, "label": None})
    return _add_scores(run, samples.assign(reason="second data set", data_set="second"), totals, loadings=loadings)


def _sum_source(
    source: Source, *, matches: Matches, loadings: Loadings, device: Device
) -> tuple[npt.NDArray[np.float64], Tally]:
    """Sum over the matched variants of a data set, and count its calls."""
    tally, samples = source.tally(0, source.variants), device.to_device(np.arange(len(source.samples)))

    def sum_range(bounds: tuple[int, int]) -> Array:
        start, stop = bounds
        inside = (matches.second >= start) & (matches.second < stop)
        all_dosages, part = source.read_dosages(start, stop)
        tally.add(part)
        dosages = all_dosages[matches.second[inside] - start]
        swapped = matches.swapped[inside]
        other_allele = dosages[swapped]
        dosages[swapped] = np.where(other_allele < 0, other_allele, loadings.ploidy - other_allele)
        genotypes = Genotypes(dosages, dosages.shape[1], loadings.ploidy).to_device(device)
        return sum_over_variants(genotypes, samples, matches.first[inside], loadings=loadings, device=device)

    return device.to_host(reduce(add, map(sum_range, source.ranges()))), tally


def _add_scores(
    run: Run[Project], samples: "pd.DataFrame", totals: npt.NDArray[np.float64], *, loadings: Loadings
) -> "pd.DataFrame":
    """Return the samples with their scores; if these are NaN, the reason says why."""
    called, pcs = totals[:, -1].astype(np.int64), scores(totals, loadings=loadings, method=run.settings.method)
    needed = VARIANTS_A_COMPONENT * pcs.shape[1]
    few = [f"; called at {number} of the variants of the components, {needed} are needed" for number in called.tolist()]
    unclear = "; its called variants do not tell the components apart"
    suffix = np.where(np.isnan(pcs[:, 0]), np.where(called < needed, few, unclear), "")
    # Text even without samples, so that the columns of an empty table have types.
    table = samples[["sample", "label", "data_set", "reason"]].astype("str").reset_index(drop=True)
    table["reason"] += suffix
    return table.assign(variants=called, **{f"PC{number}": column for number, column in enumerate(pcs.T, start=1)})


if __name__ == "__main__":
    main(project)
