"""Genotypes in Zarr stores of two layouts: VCF Zarr, and that of MalariaGEN's releases.

VCF Zarr: https://github.com/sgkit-dev/vcf-zarr-spec, versions 0.1 and later. MalariaGEN's layout has a group for each
contig, with calldata/GT and variants/POS, REF and ALT. Zarr formats 2 and 3.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from whitewater.errors import InputError, shorten_list
from whitewater.genotypes.config import Malariagen, Vcz
from whitewater.genotypes.sources.source import Part, Source, Text, check_unique, part_of_calls, row_blocks, sites
from whitewater.io.remote import local_path
from whitewater.io.zarr_arrays import Array, Group, open_group

CALLS, SAMPLES, ALLELES = "call_genotype", "sample_id", "variant_allele"
NEEDED = ("variant_contig", "variant_position", ALLELES)
# In the specification a mask is true where something is missing; variant_filter_pass and variant_mask are not in it.
FLAGS = ("variant_id_mask", "variant_filter", "variant_filter_pass", "variant_mask")
OF_VARIANTS = (*NEEDED, "variant_id", *FLAGS)
# Arrays of which bio2zarr leaves out chunks of zeros: the first contig, no masked id, no filter. It leaves out those of
# call_genotype, too, but what was lost there would be taken for calls of the reference.
WRITER, OMITTED = "bio2zarr", frozenset({"variant_contig", "variant_id_mask", "variant_filter"})
PASS = "PASS"  # noqa: S105 - the name of a filter
LAYOUT = "the layout of MalariaGEN"
GENOTYPES, POSITION, REFERENCE, ALTERNATE = "calldata/GT", "variants/POS", "variants/REF", "variants/ALT"
SITES = (POSITION, REFERENCE, ALTERNATE)
FILTER_PASS = "variants/filter_pass"  # noqa: S105 - the name of an array


def open_vcz(settings: Vcz) -> Source:
    """Open a store of VCF Zarr.

    Raises InputError if an array is absent, or the shapes or types of the arrays disagree.
    """
    group = _open_store(settings.store, settings)
    if str(group.attributes.get("source", "")).startswith(WRITER):
        group = replace(group, filled=group.filled | OMITTED)
    _require(group, (CALLS, SAMPLES, *NEEDED), layout="VCF Zarr")
    arrays = {name: group.array(name) for name in OF_VARIANTS if name in group}
    alleles = arrays[ALLELES]
    if len(alleles.shape) != 2:
        raise InputError(f"{group.name}: {ALLELES} has the shape {alleles.shape}; it should be (variants, alleles).")
    filters = _names(group, "filter_id", "filters") if "variant_filter" in group else np.array([], object)
    for name in FLAGS:
        if name in arrays and arrays[name].dtype != np.bool_:
            raise InputError(f"{arrays[name].place} holds {arrays[name].dtype}, but should hold bool.")
    flags = arrays.get("variant_filter")
    if flags is not None and flags.shape[1:] != filters.shape:
        raise InputError(f"{flags.place} has the shape {flags.shape}, but there are {len(filters)} filters.")
    rows = partial(_vcz_rows, arrays=arrays, contigs=_names(group, "contig_id", "contigs"), filters=filters)
    tables = [partial(rows, block) for block in row_blocks(alleles.shape[0], chunk=alleles.chunks[0])]
    calls = group.array(CALLS)
    part = part_of_calls(calls, tables, alleles=alleles.shape[1], ploidy=settings.ploidy)
    _require_rows(arrays.values(), part.variants, of="variants")
    _require_rows([group.array(SAMPLES)], calls.shape[1], of="samples")
    return Source((part,), _samples(group, SAMPLES), _origins(settings.store, (CALLS, SAMPLES, *arrays)))


def _vcz_rows(rows: slice, *, arrays: Mapping[str, Array], contigs: Text, filters: Text) -> pd.DataFrame:
    """Return rows of the table of the variants.

    A variant fails where a filter other than PASS applies to it (no filter at all is not a failure), where
    ``variant_filter_pass`` is false, or where ``variant_mask`` is true.
    """
    read = {name: array.read((rows,)) for name, array in arrays.items()}
    contig, names = read["variant_contig"], read.get("variant_id")
    if contig.min() < 0 or contig.max() >= len(contigs):
        raise InputError(f"{arrays['variant_contig'].place} holds {contig.min()} to {contig.max()}, but there are "
                         f"{len(contigs)} contigs. The store is damaged.")  # fmt: skip
    if names is not None:
        names = np.where(read.get("variant_id_mask", False), "", names.astype(object))
    passed = read.get("variant_filter_pass", np.ones(len(contig), bool)) & ~read.get("variant_mask", np.False_)
    if "variant_filter" in read:
        passed &= ~read["variant_filter"][:, filters != PASS].any(axis=1)
    position, alleles = read["variant_position"], read[ALLELES].astype(object)
    return sites(contig=contigs[contig], position=position, names=names, alleles=alleles, filter_pass=passed)


def _names(group: Group, array: str, attribute: str) -> Text:
    """Return names that are an array of the store, or an attribute of one of version 0.1."""
    if array in group:
        return group.array(array).read().astype(object)
    if attribute in group.attributes:
        return np.array(group.attributes[attribute], object)
    raise InputError(f"{group.name} has neither an array {array} nor an attribute {attribute}, which VCF Zarr demands.")


def open_malariagen(settings: Malariagen) -> Source:
    """Open a store of genotypes and one of sites, which may be the same, in the layout of MalariaGEN.

    Sites list all alternates that a position might have, whether a sample has them or not.

    Raises InputError if arrays or contigs are absent, or shapes disagree.
    """
    calls = _open_store(settings.store, settings)
    listed = _open_store(settings.sites, settings) if settings.sites else calls
    names, ending = [*settings.contigs], f"/{GENOTYPES}"
    if not names:
        names = [name.removesuffix(ending) for name in calls.names() if name.endswith(ending)] or ["<contig>"]
    contigs = tuple(_contig(name, calls, listed, ploidy=settings.ploidy) for name in names)
    _require(calls, ["samples"], layout=LAYOUT)
    samples = _samples(calls, "samples")
    for name, contig in zip(names, contigs, strict=True):
        array = calls.array(f"{name}/{GENOTYPES}")
        if array.shape[1] != len(samples) or contig.ploidy != contigs[0].ploidy:
            raise InputError(
                f"{array.place} has the shape {array.shape}, but there are {len(samples)} samples of ploidy "
                f"{contigs[0].ploidy}. The store is damaged, or was not written to its end."
            )
    called = _origins(settings.store, ["samples", *(f"{name}/{GENOTYPES}" for name in names)])
    of_sites = _origins(settings.sites or settings.store, [f"{name}/{site}" for name in names for site in SITES])
    return Source(contigs, samples, tuple(dict.fromkeys([*called, *of_sites])), lists_all=True)


def _contig(name: str, calls: Group, listed: Group, *, ploidy: int) -> Part:
    _require(calls, [f"{name}/{GENOTYPES}"], layout=LAYOUT)
    _require(listed, [f"{name}/{site}" for site in SITES], layout=LAYOUT)
    arrays = {site: listed.array(f"{name}/{site}") for site in SITES}
    groups = [calls] if listed is calls else [calls, listed]
    passed = [group.array(f"{name}/{FILTER_PASS}") for group in groups if f"{name}/{FILTER_PASS}" in group]
    alternates = arrays[ALTERNATE]
    rows = partial(_rows, contig=name, arrays=arrays, passed=passed)
    tables = [partial(rows, block) for block in row_blocks(alternates.shape[0], chunk=alternates.chunks[0])]
    alleles = 1 + (alternates.shape[1] if len(alternates.shape) == 2 else 1)
    part = part_of_calls(calls.array(f"{name}/{GENOTYPES}"), tables, alleles=alleles, ploidy=ploidy)
    _require_rows([*arrays.values(), *passed], part.variants, of=f"variants in {name}/{GENOTYPES}")
    return part


def _rows(rows: slice, *, contig: str, arrays: Mapping[str, Array], passed: Sequence[Array]) -> pd.DataFrame:
    """Return rows of the table of the variants; ids are made, and all alternates listed."""
    reference, alternates = (arrays[name].read((rows,)).astype(object) for name in (REFERENCE, ALTERNATE))
    contigs, position = np.full(len(reference), contig, object), arrays[POSITION].read((rows,))
    alleles = np.column_stack([reference, alternates])
    flags = np.logical_and.reduce([np.ones(len(reference), bool), *(each.read((rows,)) for each in passed)])
    return sites(contig=contigs, position=position, names=None, alleles=alleles, filter_pass=flags)


def _open_store(store: str, settings: Vcz) -> Group:
    access = settings.model_dump(include={"anonymous", "endpoint", "retries", "timeout"})
    return open_group(str(local_path(store) or store), filled=settings.filled_arrays, **access)


def _samples(group: Group, array: str) -> tuple[str, ...]:
    samples = tuple(group.array(array).read().astype(object))
    check_unique(samples, place=f"{group.name}: {array}")
    return samples


def _require(group: Group, names: Iterable[str], *, layout: str) -> None:
    """Refuse a store that lacks arrays with an InputError that names them, and those that it has."""
    absent = [name for name in names if name not in group]
    if not absent:
        return
    holds = ""
    with suppress(InputError):  # that it cannot be listed
        names = group.names()
        holds = f"; it holds {shorten_list(names)}" if names else "; it is empty"
    raise InputError(f"{group.name} lacks {', '.join(absent)}, which {layout} has{holds}. Check that it is a store of "
                     "this layout.")  # fmt: skip


def _require_rows(arrays: Iterable[Array], rows: int, *, of: str) -> None:
    """Refuse arrays whose first dimension is another one than ``rows``, the number of ``of``, with an InputError."""
    for array in arrays:
        if not array.shape or array.shape[0] != rows:
            raise InputError(f"{array.place} has the shape {array.shape}, but there are {rows} "
                             f"{of}. The store is damaged, or was not written to its end.")  # fmt: skip


def _origins(store: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return what is read of a store: the directories of its arrays where it is a local directory, else itself."""
    path = local_path(store)
    if path is None or not path.is_dir():
        return (store,)
    return tuple(str(path / name) for name in names)
