"""Stores in the layout of MalariaGEN's releases: groups of contigs, with calldata/GT and variants/POS, REF and ALT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError
from whitewater.genomics.sources.calls import Calls
from whitewater.genomics.sources.sites import check_unique, row_blocks, sites
from whitewater.genomics.sources.stores import open_store, origins, read_text, require, require_rows

if TYPE_CHECKING:
    import pandas as pd

    from whitewater.config.genomics import Malariagen
    from whitewater.zarr_arrays import Array, Group

LAYOUT = "the layout of MalariaGEN"
CALLS, POSITION, REFERENCE, ALTERNATE = "calldata/GT", "variants/POS", "variants/REF", "variants/ALT"
PASS = "variants/filter_pass"  # noqa: S105 - the name of an array


@dataclass(frozen=True)
class Contig:
    """The calls of a contig, its arrays of sites by name, and those that tell where calls can be trusted."""

    name: str
    calls: Calls
    sites: Mapping[str, Array]
    passed: tuple[Array, ...]

    def rows(self, rows: slice) -> pd.DataFrame:
        """Return rows of the table of the variants."""
        reference, alternates = (self.sites[name].read((rows,)).astype(object) for name in (REFERENCE, ALTERNATE))
        number = rows.stop - rows.start
        return sites(
            contig=np.full(number, self.name, object),
            position=self.sites[POSITION].read((rows,)),
            names=None,
            alleles=np.column_stack([reference, alternates]),
            filter_pass=np.logical_and.reduce([np.ones(number, bool), *(each.read((rows,)) for each in self.passed)]),
        )


@dataclass(frozen=True)
class MalariagenSource:
    """An open store of genotypes and one of sites, which may be the same; see `Source`.

    Sites list all alternates that a position might have, whether a sample has them or not, so `encode` tells which
    alleles occur.
    """

    store: str
    sites_store: str
    contigs: tuple[Contig, ...]
    samples: tuple[str, ...]

    @property
    def variants(self) -> int:
        """The number of variants."""
        return self.starts[-1]

    @property
    def ploidy(self) -> int:
        """The number of alleles of a call."""
        return self.contigs[0].calls.ploidy

    @property
    def block_bytes(self) -> int:
        """Bytes of the largest block of calls that is read at once."""
        return max(contig.calls.block_bytes for contig in self.contigs)

    @cached_property
    def starts(self) -> list[int]:
        """Row of the first variant of each contig, and behind the last one."""
        starts: list[int] = np.cumsum([0, *(contig.calls.variants for contig in self.contigs)]).tolist()
        return starts

    def origins(self) -> tuple[str, ...]:
        """Return what is read of the stores."""
        calls = [f"{contig.name}/{CALLS}" for contig in self.contigs]
        listed = [array.name for contig in self.contigs for array in contig.sites.values()]
        return tuple(dict.fromkeys([*origins(self.store, ["samples", *calls]), *origins(self.sites_store, listed)]))

    def variants_table(self) -> pd.DataFrame:
        """Return the table of the variants, see `Source.variants_table`; ids are made, and all alternates listed."""
        import pandas as pd

        tables = [
            contig.rows(slice(*block))
            for contig in self.contigs
            for block in row_blocks(contig.calls.variants, chunk=contig.sites[ALTERNATE].chunks[0])
        ]
        return pd.concat(tables, ignore_index=True)

    def ranges(self) -> list[tuple[int, int]]:
        """Return ranges of whole chunks; none spans two contigs."""
        return [
            (offset + start, offset + stop)
            for offset, contig in zip(self.starts, self.contigs, strict=False)
            for start, stop in contig.calls.ranges()
        ]

    def encode(
        self,
        start: int,
        stop: int,
        codes: npt.NDArray[Any],
        counts: npt.NDArray[np.int32],
        missing: npt.NDArray[np.int64],
        *,
        uneven: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_]:
        """Encode one of the `ranges`, and return which alleles occur, bool (variants, most alleles of a contig)."""
        number = int(np.searchsorted(self.starts, start, side="right")) - 1
        offset, calls = self.starts[number], self.contigs[number].calls
        seen = np.zeros((stop - start, max(contig.calls.alleles for contig in self.contigs)), bool)
        calls.encode(start - offset, stop - offset, codes, counts, missing, uneven=uneven, seen=seen)
        return seen


def open_malariagen(settings: Malariagen) -> MalariagenSource:
    """Open stores in the layout of MalariaGEN.

    Raises
    ------
    InputError
        If arrays or contigs are absent, or shapes disagree.
    """
    calls = open_store(settings.store, settings)
    listed = open_store(settings.sites, settings) if settings.sites else calls
    names = settings.contigs or _contigs(calls)
    contigs = tuple(_contig(name, calls, listed, ploidy=settings.ploidy) for name in names)
    require(calls, ["samples"], layout=LAYOUT)
    samples = tuple(read_text(calls.array("samples")))
    check_unique(samples, place=f"{calls.name}: samples")
    for contig in contigs:
        if contig.calls.samples != len(samples) or contig.calls.ploidy != contigs[0].calls.ploidy:
            raise InputError(
                f"{contig.calls.name} has the shape {contig.calls.array.shape}, but there are {len(samples)} samples "
                f"of ploidy {contigs[0].calls.ploidy}. The store is damaged, or was not written to its end."
            )
    return MalariagenSource(settings.store, settings.sites or settings.store, contigs, samples)


def _contigs(group: Group) -> Sequence[str]:
    """Return the contigs that a store holds calls of, sorted."""
    names = [name.removesuffix(f"/{CALLS}") for name in group.names() if name.endswith(f"/{CALLS}")]
    if not names:
        require(group, [f"<contig>/{CALLS}"], layout=LAYOUT)
    return names


def _contig(name: str, calls: Group, listed: Group, *, ploidy: int) -> Contig:
    require(calls, [f"{name}/{CALLS}"], layout=LAYOUT)
    require(listed, [f"{name}/{site}" for site in (POSITION, REFERENCE, ALTERNATE)], layout=LAYOUT)
    found = {site: listed.array(f"{name}/{site}") for site in (POSITION, REFERENCE, ALTERNATE)}
    groups = [calls] if listed is calls else [calls, listed]
    passed = tuple(group.array(f"{name}/{PASS}") for group in groups if f"{name}/{PASS}" in group)
    columns = found[ALTERNATE].shape[1] if len(found[ALTERNATE].shape) == 2 else 1
    called = Calls(calls.array(f"{name}/{CALLS}"), alleles=1 + columns, asked_ploidy=ploidy)
    called.check()
    require_rows([*found.values(), *passed], called.variants, of=f"variants in {name}/{CALLS}")
    return Contig(name, called, found, passed)
