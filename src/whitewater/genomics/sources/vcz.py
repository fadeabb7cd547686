"""VCF Zarr stores (https://github.com/sgkit-dev/vcf-zarr-spec, versions 0.1 and later; Zarr formats 2 and 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError
from whitewater.genomics.sources.calls import Calls
from whitewater.genomics.sources.sites import Text, check_unique, sites
from whitewater.genomics.sources.source import Source
from whitewater.genomics.sources.stores import open_store, origins, read_text, require, require_rows

if TYPE_CHECKING:
    import pandas as pd

    from whitewater.config.genomics import Vcz
    from whitewater.zarr_arrays import Array, Group

CALLS, SAMPLES, ALLELES = "call_genotype", "sample_id", "variant_allele"
NEEDED = ("variant_contig", "variant_position", ALLELES)
# In the specification a mask is true where something is missing; variant_filter_pass and variant_mask are not in it.
FLAGS = ("variant_id_mask", "variant_filter", "variant_filter_pass", "variant_mask")
OF_VARIANTS = (*NEEDED, "variant_id", *FLAGS)
# Arrays of which bio2zarr leaves out chunks of zeros: the first contig, no masked id, no filter. It leaves out those of
# call_genotype, too, but what was lost there would be taken for calls of the reference.
WRITER, OMITTED = "bio2zarr", frozenset({"variant_contig", "variant_id_mask", "variant_filter"})
PASS = "PASS"  # noqa: S105 - the name of a filter


@dataclass(frozen=True)
class Variants:
    """The arrays of the variants by name, and the names that contigs and filters have."""

    sites: Mapping[str, Array]
    contigs: Text
    filters: Text

    def rows(self, rows: slice) -> pd.DataFrame:
        """Return rows of the table of the variants.

        A variant fails where a filter other than PASS applies to it (no filter at all is no failure), where
        ``variant_filter_pass`` is false, or where ``variant_mask`` is true.
        """
        contig = self._read("variant_contig", rows)
        if contig.min() < 0 or contig.max() >= len(self.contigs):
            raise InputError(f"{self.sites['variant_contig'].place} holds {contig.min()} to {contig.max()}, but "
                             f"there are {len(self.contigs)} contigs. The store is damaged.")  # fmt: skip
        return sites(
            contig=self.contigs[contig],
            position=self._read("variant_position", rows),
            names=self._names(rows),
            alleles=self._read(ALLELES, rows).astype(object),
            filter_pass=self._filter_pass(rows),
        )

    def _read(self, name: str, rows: slice) -> npt.NDArray[Any]:
        return self.sites[name].read((rows,))

    def _names(self, rows: slice) -> Text | None:
        if "variant_id" not in self.sites:
            return None
        names = self._read("variant_id", rows).astype(object)
        if "variant_id_mask" in self.sites:
            names[self._read("variant_id_mask", rows)] = ""
        return names

    def _filter_pass(self, rows: slice) -> npt.NDArray[np.bool_]:
        passed = np.ones(rows.stop - rows.start, bool)
        if "variant_filter" in self.sites:
            passed &= ~self._read("variant_filter", rows)[:, self.filters != PASS].any(axis=1)
        if "variant_filter_pass" in self.sites:
            passed &= self._read("variant_filter_pass", rows)
        if "variant_mask" in self.sites:
            passed &= ~self._read("variant_mask", rows)
        return passed


def open_vcz(settings: Vcz) -> Source:
    """Open a store of VCF Zarr.

    Raises InputError if an array is absent, or the shapes or types of the arrays disagree.
    """
    group = open_store(settings.store, settings)
    if str(group.attributes.get("source", "")).startswith(WRITER):
        group = replace(group, filled=group.filled | OMITTED)
    require(group, (CALLS, SAMPLES, *NEEDED), layout="VCF Zarr")
    found = {name: group.array(name) for name in OF_VARIANTS if name in group}
    alleles = found[ALLELES]
    if len(alleles.shape) != 2:
        raise InputError(f"{group.name}: {ALLELES} has the shape {alleles.shape}; it should be (variants, alleles).")
    filters = _names(group, "filter_id", "filters") if "variant_filter" in group else np.array([], object)
    _check_flags(found, filters)
    variants = Variants(found, _names(group, "contig_id", "contigs"), filters)
    calls = Calls(group.array(CALLS), alleles.shape[1], variants.rows, alleles.chunks[0], settings.ploidy)
    calls.check()
    require_rows(found.values(), calls.variants, of="variants")
    require_rows([group.array(SAMPLES)], calls.samples, of="samples")
    samples = tuple(read_text(group.array(SAMPLES)))
    check_unique(samples, place=f"{group.name}: {SAMPLES}")
    return Source((calls,), samples, origins(settings.store, (CALLS, SAMPLES, *found)))


def _names(group: Group, array: str, attribute: str) -> Text:
    """Return names that are an array of the store, or an attribute of one of version 0.1."""
    if array in group:
        return read_text(group.array(array))
    if attribute in group.attributes:
        return np.array(group.attributes[attribute], object)
    raise InputError(f"{group.name} has neither an array {array} nor an attribute {attribute}, which VCF Zarr demands.")


def _check_flags(arrays: Mapping[str, Array], filters: Text) -> None:
    """Refuse flags that are numbers, and filters without names."""
    for name in FLAGS:
        array = arrays.get(name)
        if array is not None and array.dtype != np.bool_:
            raise InputError(f"{array.place} holds {array.dtype}, but should hold bool.")
    array = arrays.get("variant_filter")
    if array is not None and array.shape[1:] != filters.shape:
        raise InputError(f"{array.place} has the shape {array.shape}, but there are "
                         f"{len(filters)} filters.")  # fmt: skip
