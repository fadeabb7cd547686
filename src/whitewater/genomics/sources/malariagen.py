"""Stores in the layout of MalariaGEN's releases: groups of contigs, with calldata/GT and variants/POS, REF and ALT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from whitewater.errors import InputError
from whitewater.genomics.sources.calls import Calls
from whitewater.genomics.sources.sites import check_unique, sites
from whitewater.genomics.sources.source import Source
from whitewater.genomics.sources.stores import open_store, origins, read_text, require, require_rows

if TYPE_CHECKING:
    import pandas as pd

    from whitewater.config.genomics import Malariagen
    from whitewater.zarr_arrays import Array, Group

LAYOUT = "the layout of MalariaGEN"
CALLS, POSITION, REFERENCE, ALTERNATE = "calldata/GT", "variants/POS", "variants/REF", "variants/ALT"
SITES = (POSITION, REFERENCE, ALTERNATE)
PASS = "variants/filter_pass"  # noqa: S105 - the name of an array


def open_malariagen(settings: Malariagen) -> Source:
    """Open a store of genotypes and one of sites, which may be the same, in the layout of MalariaGEN.

    Sites list all alternates that a position might have, whether a sample has them or not.

    Raises InputError if arrays or contigs are absent, or shapes disagree.
    """
    calls = open_store(settings.store, settings)
    listed = open_store(settings.sites, settings) if settings.sites else calls
    names = settings.contigs or _contigs(calls)
    contigs = tuple(_contig(name, calls, listed, ploidy=settings.ploidy) for name in names)
    require(calls, ["samples"], layout=LAYOUT)
    samples = tuple(read_text(calls.array("samples")))
    check_unique(samples, place=f"{calls.name}: samples")
    for contig in contigs:
        if contig.samples != len(samples) or contig.ploidy != contigs[0].ploidy:
            raise InputError(
                f"{contig.name} has the shape {contig.array.shape}, but there are {len(samples)} samples of ploidy "
                f"{contigs[0].ploidy}. The store is damaged, or was not written to its end."
            )
    called = origins(settings.store, ["samples", *(f"{name}/{CALLS}" for name in names)])
    of_sites = origins(settings.sites or settings.store, [f"{name}/{site}" for name in names for site in SITES])
    return Source(contigs, samples, tuple(dict.fromkeys([*called, *of_sites])), lists_all=True)


def _contigs(group: Group) -> Sequence[str]:
    """Return the contigs that a store holds calls of, sorted."""
    names = [name.removesuffix(f"/{CALLS}") for name in group.names() if name.endswith(f"/{CALLS}")]
    if not names:
        require(group, [f"<contig>/{CALLS}"], layout=LAYOUT)
    return names


def _contig(name: str, calls: Group, listed: Group, *, ploidy: int) -> Calls:
    require(calls, [f"{name}/{CALLS}"], layout=LAYOUT)
    require(listed, [f"{name}/{site}" for site in SITES], layout=LAYOUT)
    found = {site: listed.array(f"{name}/{site}") for site in SITES}
    groups = [calls] if listed is calls else [calls, listed]
    passed = [group.array(f"{name}/{PASS}") for group in groups if f"{name}/{PASS}" in group]
    columns = found[ALTERNATE].shape[1] if len(found[ALTERNATE].shape) == 2 else 1
    called = Calls(
        calls.array(f"{name}/{CALLS}"),
        alleles=1 + columns,
        rows=partial(_rows, contig=name, found=found, passed=passed),
        site_chunk=found[ALTERNATE].chunks[0],
        asked_ploidy=ploidy,
    )
    called.check()
    require_rows([*found.values(), *passed], called.variants, of=f"variants in {name}/{CALLS}")
    return called


def _rows(rows: slice, *, contig: str, found: Mapping[str, Array], passed: Sequence[Array]) -> pd.DataFrame:
    """Return rows of the table of the variants; ids are made, and all alternates listed."""
    reference, alternates = (found[name].read((rows,)).astype(object) for name in (REFERENCE, ALTERNATE))
    number = rows.stop - rows.start
    return sites(
        contig=np.full(number, contig, object),
        position=found[POSITION].read((rows,)),
        names=None,
        alleles=np.column_stack([reference, alternates]),
        filter_pass=np.logical_and.reduce([np.ones(number, bool), *(each.read((rows,)) for each in passed)]),
    )
