"""Parts of the genome, by contig and position, as they are named in settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

LAST_POSITION = 2**63 - 1
# Contigs that an error lists, so that a fragmented assembly does not fill the screen.
LISTED = 30


@dataclass(frozen=True)
class Region:
    """Positions from ``first`` to ``last``, 1-based, both included, of a contig."""

    contig: str
    first: int = 1
    last: int = LAST_POSITION


def parse_region(text: str) -> Region:
    """Read ``contig`` or ``contig:first-last``."""
    contig, _, positions = text.partition(":")
    if not positions:
        return Region(contig)
    first, last = map(int, positions.split("-"))
    return Region(contig, first, last)


def within(variants: pd.DataFrame, regions: Sequence[Region], *, setting: str) -> npt.NDArray[np.bool_]:
    """Mark the variants that are in any of the regions.

    Parameters
    ----------
    variants
        Table with the columns contig and position.
    setting
        The key that the regions come from, for messages.

    Raises
    ------
    InputError
        If no variant is on the contig of a region.
    """
    import pandas as pd

    codes, names = pd.factorize(variants["contig"])
    code_of = {str(name): code for code, name in enumerate(names)}
    positions = variants["position"].to_numpy()
    marked = np.zeros(len(variants), bool)
    for region in regions:
        if region.contig not in code_of:
            raise InputError(
                f"{setting} names contig {region.contig!r}, which no variant is on. There are {_listed(code_of)}."
            )
        in_positions = (positions >= region.first) & (positions <= region.last)
        marked |= in_positions & (codes == code_of[region.contig])
    return marked


def _listed(names: dict[str, int]) -> str:
    shown = ", ".join(list(names)[:LISTED])
    return shown if len(names) <= LISTED else f"{shown} and {len(names) - LISTED} more"
