"""VCF Zarr stores (https://github.com/sgkit-dev/vcf-zarr-spec, versions 0.1 and later; Zarr formats 2 and 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError, IntegrityError
from whitewater.genomics.sources.calls import Calls
from whitewater.genomics.sources.sites import Text, check_unique, row_blocks, sites
from whitewater.genomics.sources.stores import (
    open_store,
    origins,
    read_text,
    require,
    require_rows,
)
from whitewater.redaction import redacted
from whitewater.remote import local_path

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
class VczSource:
    """An open store of VCF Zarr, see `Source`.

    ``sites`` are the arrays of the variants by name; ``contigs`` and ``filters`` are the names that these refer to.
    ``converted`` are the files that the store was made of, if it was made to be read here.
    """

    store: str
    calls: Calls
    sites: Mapping[str, Array]
    samples: tuple[str, ...]
    contigs: Text
    filters: Text
    converted: tuple[str, ...] = ()

    @property
    def variants(self) -> int:
        """The number of variants."""
        return self.calls.variants

    @property
    def ploidy(self) -> int:
        """The number of alleles of a call."""
        return self.calls.ploidy

    @property
    def block_bytes(self) -> int:
        """Bytes of the largest block of calls that is read at once."""
        return self.calls.block_bytes

    def origins(self) -> tuple[str, ...]:
        """Return what is read of the store, or the files that it was made of."""
        return self.converted or origins(self.store, (CALLS, SAMPLES, *self.sites))

    def variants_table(self) -> pd.DataFrame:
        """Return the table of the variants, see `Source.variants_table`.

        A variant fails where a filter other than PASS applies to it (no filter at all is no failure), where
        ``variant_filter_pass`` is false, or where ``variant_mask`` is true.
        """
        import pandas as pd

        blocks = row_blocks(self.variants, chunk=self.sites[ALLELES].chunks[0])
        try:
            return pd.concat([self._rows(slice(*block)) for block in blocks], ignore_index=True)
        except IntegrityError as error:
            if absent := self._absent_chunks():
                told = ", ".join(f"{name} ({missing} of {total})" for name, (missing, total) in absent.items())
                raise IntegrityError(f"not all chunks are stored of {told}: {error}") from error
            raise

    def _absent_chunks(self) -> dict[str, tuple[int, int]]:
        """Count the chunks that are not stored, and all, of each array that lacks some; elsewhere they are too many."""
        import zarr

        path = local_path(self.store)
        if path is None:
            return {}
        group = zarr.open_group(path, mode="r")
        arrays: dict[str, Any] = {
            name: group[name] for name in (*self.sites, CALLS) if name not in self.calls.array.store.filled
        }
        counts = {name: (each.nchunks - each.nchunks_initialized, each.nchunks) for name, each in arrays.items()}
        return {name: count for name, count in counts.items() if count[0]}

    def ranges(self) -> list[tuple[int, int]]:
        """Return ranges of whole chunks."""
        return self.calls.ranges()

    def encode(
        self,
        start: int,
        stop: int,
        codes: npt.NDArray[Any],
        counts: npt.NDArray[np.int32],
        missing: npt.NDArray[np.int64],
        *,
        uneven: npt.NDArray[np.int64],
    ) -> None:
        """Encode a range, see `Source.encode`. A call with a missing allele, or of another ploidy, is missing."""
        self.calls.encode(start, stop, codes, counts, missing, uneven=uneven)

    def _rows(self, rows: slice) -> pd.DataFrame:
        contig = self._read("variant_contig", rows)
        if contig.min() < 0 or contig.max() >= len(self.contigs):
            raise InputError(f"{redacted(self.store)}: variant_contig holds {contig.min()} to {contig.max()}, but "
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


def open_vcz(settings: Vcz) -> VczSource:
    """Open a store of VCF Zarr.

    Raises
    ------
    InputError
        If an array is absent, or the shapes or types of the arrays disagree.
    """
    group = open_store(settings.store, settings)
    if str(group.attributes.get("source", "")).startswith(WRITER):
        group = replace(group, filled=group.filled | OMITTED)
    require(group, (CALLS, SAMPLES, *NEEDED), layout="VCF Zarr")
    found = {name: group.array(name) for name in OF_VARIANTS if name in group}
    alleles = found[ALLELES]
    if len(alleles.shape) != 2:
        raise InputError(f"{group.name}: {ALLELES} has the shape {alleles.shape}; it should be (variants, alleles).")
    calls = Calls(group.array(CALLS), alleles=alleles.shape[1], asked_ploidy=settings.ploidy)
    calls.check()
    require_rows(found.values(), calls.variants, of="variants")
    require_rows([group.array(SAMPLES)], calls.samples, of="samples")
    samples = tuple(read_text(group.array(SAMPLES)))
    check_unique(samples, place=f"{group.name}: {SAMPLES}")
    filters = _names(group, "filter_id", "filters") if "variant_filter" in group else np.array([], object)
    _check_flags(found, filters)
    return VczSource(
        store=settings.store,
        calls=calls,
        sites=found,
        samples=samples,
        contigs=_names(group, "contig_id", "contigs"),
        filters=filters,
    )


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
            raise InputError(f"{array.store.name}: {name} holds {array.dtype}, but should hold bool.")
    array = arrays.get("variant_filter")
    if array is not None and array.shape[1:] != filters.shape:
        raise InputError(f"{array.store.name}: variant_filter has the shape {array.shape}, but there are "
                         f"{len(filters)} filters.")  # fmt: skip
