"""Genotypes in Zarr stores, format 2 or 3, of two layouts.

VCF Zarr: https://github.com/sgkit-dev/vcf-zarr-spec, from version 0.1. MalariaGEN: a group per contig, with calldata/GT
and variants/POS, REF and ALT.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from whitewater.errors import InputError, shorten_list
from whitewater.genotypes.config import Malariagen, Vcz
from whitewater.genotypes.sources.source import Part, Source, Text, check_unique, make_part, make_variants, row_blocks
from whitewater.io.remote import local_path
from whitewater.io.zarr_arrays import Array, Group, open_group

CALLS, SAMPLES, ALLELES = "call_genotype", "sample_id", "variant_allele"
REQUIRED = ("variant_contig", "variant_position", ALLELES)
# In the specification, masks are true for what is missing. It lacks variant_filter_pass and variant_mask.
FLAGS = ("variant_id_mask", "variant_filter", "variant_filter_pass", "variant_mask")
# Arrays in which bio2zarr omits chunks of zeros: the first contig, no masked id, no filter. It omits them in
# call_genotype, too, but there a lost chunk would be taken for reference calls.
WRITER, OMITTED = "bio2zarr", frozenset({"variant_contig", "variant_id_mask", "variant_filter"})
PASS = "PASS"  # noqa: S105 - the name of a filter
LAYOUT = "the layout of MalariaGEN"
GENOTYPES, POSITION, REFERENCE, ALTERNATE = "calldata/GT", "variants/POS", "variants/REF", "variants/ALT"
SITES = (POSITION, REFERENCE, ALTERNATE)
TABLES = (ALLELES, "variant_filter", ALTERNATE)  # arrays that may have two dimensions
FILTER_PASS = "variants/filter_pass"  # noqa: S105 - the name of an array


def open_vcz(settings: Vcz) -> Source:
    """Open a VCF Zarr store. Raises InputError if an array is missing, or shapes or types disagree."""
    group = _open_store(settings.store, settings)
    if str(group.attributes.get("source", "")).startswith(WRITER):
        group = replace(group, filled=group.filled | OMITTED)
    _require(group, (CALLS, SAMPLES, *REQUIRED), layout="VCF Zarr")
    arrays = {name: group.array(name) for name in (*REQUIRED, "variant_id", *FLAGS) if name in group}
    alleles = arrays[ALLELES]
    if len(alleles.shape) != 2 or alleles.dtype.kind not in "OU":
        raise InputError(f"{group.name}: {ALLELES} holds {alleles.dtype} and has the shape {alleles.shape}; it should "
                         "hold text and be (variants, alleles).")  # fmt: skip
    filters = _names(group, "filter_id", "filters") if "variant_filter" in group else np.array([], object)
    for name in FLAGS:
        if name in arrays and arrays[name].dtype != np.bool_:
            raise InputError(f"{arrays[name].place} holds {arrays[name].dtype}, but should hold bool.")
    applied = arrays.get("variant_filter")
    if applied is not None and applied.shape[1:] != filters.shape:
        raise InputError(f"{applied.place} has the shape {applied.shape}, but there are {len(filters)} filters.")
    read = partial(_read_vcz, arrays=arrays, contigs=_names(group, "contig_id", "contigs"), filters=filters)
    tables = [partial(read, rows) for rows in row_blocks(alleles.shape[0], chunk=alleles.chunks[0])]
    calls = group.array(CALLS)
    part = make_part(calls, tables, alleles=alleles.shape[1], ploidy=settings.ploidy)
    _require_rows(arrays.values(), part.variants, what="variants")
    _require_rows([group.array(SAMPLES)], calls.shape[1], what="samples")
    return Source((part,), _samples(group, SAMPLES), _origins(settings.store, (CALLS, SAMPLES, *arrays)))


def _read_vcz(rows: slice, *, arrays: Mapping[str, Array], contigs: Text, filters: Text) -> pd.DataFrame:
    """Return rows of the variants table.

    A variant fails if a filter other than PASS applies to it, ``variant_filter_pass`` is false, or ``variant_mask`` is
    true.
    """
    values = {name: array.read((rows,)) for name, array in arrays.items() if name != "variant_position"}
    contig, ids = values["variant_contig"], values.get("variant_id")
    if contig.dtype.kind not in "iu" or contig.min() < 0 or contig.max() >= len(contigs):
        raise InputError(f"{arrays['variant_contig'].place} holds {contig.min()} to {contig.max()}, but there are "
                         f"{len(contigs)} contigs. The store is damaged.")  # fmt: skip
    if ids is not None:
        ids = np.where(values.get("variant_id_mask", False), "", ids.astype(object))
    passed = values.get("variant_filter_pass", np.ones(len(contig), bool)) & ~values.get("variant_mask", np.False_)
    if "variant_filter" in values:
        passed &= ~values["variant_filter"][:, filters != PASS].any(axis=1)
    position, alleles = _read_positions(arrays["variant_position"], rows), values[ALLELES].astype(object)
    return make_variants(contig=contigs[contig], position=position, ids=ids, alleles=alleles, filter_pass=passed)


def _read_positions(array: Array, rows: slice) -> NDArray[Any]:
    """Read positions. Raises InputError unless they are integers from 0 to below 2**63."""
    position = array.read((rows,))
    if array.dtype.kind not in "iu" or position.min() < 0 or position.max() >= 2**63:
        raise InputError(f"{array.place} holds {array.dtype} from {position.min()} to {position.max()}, which are no "
                         "positions: those are integers from 0. The store is damaged.")  # fmt: skip
    return position


def _names(group: Group, array: str, attribute: str) -> Text:
    """Return names from an array of the store, or, in version 0.1, from an attribute."""
    stored = group.array(array).read() if array in group else group.attributes.get(attribute)
    names = np.array(stored, object)
    if names.ndim != 1:
        raise InputError(f"{group.name} has no list of names in an array {array} or an attribute {attribute}.")
    return names


def open_malariagen(settings: Malariagen) -> Source:
    """Open a store of genotypes and one of sites, possibly the same, in the layout of MalariaGEN.

    Raises InputError if arrays or contigs are missing, or shapes disagree.
    """
    calls = _open_store(settings.store, settings)
    sites = _open_store(settings.sites, settings) if settings.sites else calls
    names, ending = [*settings.contigs], f"/{GENOTYPES}"
    if not names:
        names = [name.removesuffix(ending) for name in calls.names() if name.endswith(ending)] or ["<contig>"]
    contigs = tuple(_open_contig(name, calls, sites, ploidy=settings.ploidy) for name in names)
    _require(calls, ["samples"], layout=LAYOUT)
    samples = _samples(calls, "samples")
    for name, contig in zip(names, contigs, strict=True):
        array = calls.array(f"{name}/{GENOTYPES}")
        if array.shape[1] != len(samples) or contig.ploidy != contigs[0].ploidy:
            raise InputError(f"{array.place} has the shape {array.shape}, but there are {len(samples)} samples of "
                             f"ploidy {contigs[0].ploidy}. The store is damaged or incomplete.")  # fmt: skip
    of_calls = _origins(settings.store, ["samples", *(f"{name}/{GENOTYPES}" for name in names)])
    of_sites = _origins(settings.sites or settings.store, [f"{name}/{site}" for name in names for site in SITES])
    # Sites list all possible alternates of a position, whether they occur or not.
    return Source(contigs, samples, tuple(dict.fromkeys([*of_calls, *of_sites])), lists_all_alleles=True)


def _open_contig(name: str, calls: Group, sites: Group, *, ploidy: int) -> Part:
    _require(calls, [f"{name}/{GENOTYPES}"], layout=LAYOUT)
    _require(sites, [f"{name}/{site}" for site in SITES], layout=LAYOUT)
    arrays = {site: sites.array(f"{name}/{site}") for site in SITES}
    groups = [calls] if sites is calls else [calls, sites]
    filters = [group.array(f"{name}/{FILTER_PASS}") for group in groups if f"{name}/{FILTER_PASS}" in group]
    alternates = arrays[ALTERNATE]
    read = partial(_read_sites, contig=name, arrays=arrays, filters=filters)
    tables = [partial(read, rows) for rows in row_blocks(alternates.shape[0], chunk=alternates.chunks[0])]
    alleles = 1 + (alternates.shape[1] if len(alternates.shape) == 2 else 1)
    part = make_part(calls.array(f"{name}/{GENOTYPES}"), tables, alleles=alleles, ploidy=ploidy)
    _require_rows([*arrays.values(), *filters], part.variants, what=f"variants in {name}/{GENOTYPES}")
    return part


def _read_sites(rows: slice, *, contig: str, arrays: Mapping[str, Array], filters: Sequence[Array]) -> pd.DataFrame:
    """Return rows of the variants table."""
    reference, alternates = (arrays[name].read((rows,)).astype(object) for name in (REFERENCE, ALTERNATE))
    contigs, position = np.full(len(reference), contig, object), _read_positions(arrays[POSITION], rows)
    alleles = np.column_stack([reference, alternates])
    passed = np.logical_and.reduce([np.ones(len(reference), bool), *(array.read((rows,)) for array in filters)])
    return make_variants(contig=contigs, position=position, ids=None, alleles=alleles, filter_pass=passed)


def _open_store(store: str, settings: Vcz) -> Group:
    access = settings.model_dump(include={"anonymous", "endpoint", "retries", "timeout"})
    return open_group(str(local_path(store) or store), filled=settings.filled_arrays, **access)


def _samples(group: Group, array: str) -> tuple[str, ...]:
    samples = tuple(map(str, group.array(array).read().astype(object)))
    check_unique(samples, place=f"{group.name}: {array}")
    return samples


def _require(group: Group, names: Iterable[str], *, layout: str) -> None:
    """Raise InputError if arrays are missing, with the names of those and of what the store holds."""
    if not (missing := [name for name in names if name not in group]):
        return
    contents = ""
    with suppress(InputError):  # if it cannot be listed
        names = group.names()
        contents = f"; it holds {shorten_list(names)}" if names else "; it is empty"
    raise InputError(f"{group.name} lacks {', '.join(missing)}, which {layout} has{contents}. Check that it is a store "
                     "of this layout.")  # fmt: skip


def _require_rows(arrays: Iterable[Array], rows: int, *, what: str) -> None:
    """Raise InputError if an array does not have ``rows`` rows."""
    for array in arrays:
        if array.shape[:1] != (rows,) or len(array.shape) > 1 + array.name.endswith(TABLES):
            raise InputError(f"{array.place} has the shape {array.shape}, but there are {rows} {what}. The store is "
                             "damaged or incomplete.")  # fmt: skip


def _origins(store: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the directories of the arrays if the store is a local directory, else the store."""
    path = local_path(store)
    if path is None or not path.is_dir():
        return (store,)
    return tuple(str(path / name) for name in names)
