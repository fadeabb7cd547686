"""Rows of the table of variants, from arrays of text and numbers, and names of samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError, shorten_list

if TYPE_CHECKING:
    import pandas as pd

Text = npt.NDArray[np.object_]
NONE = ("", ".")
# Text is read in blocks, because as Python's objects it takes many times the memory that it takes in a table.
BLOCK_ROWS = 1 << 17


def row_blocks(rows: int, *, chunk: int) -> Iterator[tuple[int, int]]:
    """Cut rows into blocks of whole chunks."""
    size = chunk * max(1, -(-BLOCK_ROWS // chunk))
    return ((start, min(start + size, rows)) for start in range(0, rows, size))


def sites(
    *, contig: Text, position: npt.NDArray[Any], names: Text | None, alleles: Text, filter_pass: npt.NDArray[np.bool_]
) -> pd.DataFrame:
    """Make rows of the table of variants.

    Parameters
    ----------
    contig, position, names, filter_pass
        (variants,). A name that is empty or ``.`` is missing: such a variant's id is
        contig:position:reference:alternate; None: all are missing.
    alleles
        (variants, alleles): the reference, then its alternates; those that are empty or ``.`` pad the row.

    Returns
    -------
    DataFrame
        contig, position (int64), id, reference, alternate (several are joined by commas), alleles (int32: the number of
        alleles, padding not counted), filter_pass.
    """
    import pandas as pd

    used = np.logical_and.reduce([alleles != none for none in NONE])
    reference, alternate = np.where(used[:, 0], alleles[:, 0], ""), _joined(alleles[:, 1:], used[:, 1:])
    table = pd.DataFrame(
        {
            "contig": pd.Series(contig, dtype="str"),
            "position": position.astype(np.int64),
            "id": pd.Series(np.full(len(contig), "", object) if names is None else names, dtype="str"),
            "reference": pd.Series(reference, dtype="str"),
            "alternate": pd.Series(alternate, dtype="str"),
            "alleles": used.sum(axis=1, dtype=np.int32),
            "filter_pass": filter_pass,
        }
    )
    unnamed = table["id"].isin(NONE)
    made = table.loc[unnamed, ["contig", "position", "reference", "alternate"]].astype("str")
    table.loc[unnamed, "id"] = made["contig"].str.cat(made[["position", "reference", "alternate"]], sep=":")
    return table


def only_seen(table: pd.DataFrame, seen: npt.NDArray[np.bool_]) -> pd.DataFrame:
    """Return a table that lists all alleles that a variant might have without the alternates that no call holds.

    ``seen``, bool (variants, alleles), says whether a call holds the allele; the reference, which is first, stays
    either way, and so do ids.
    """
    import pandas as pd

    alternates, numbers = [], []
    for start, stop in row_blocks(len(table), chunk=1):
        listed = table["alternate"].iloc[start:stop].str.split(",", expand=True).fillna("").to_numpy(object)
        occurring = seen[start:stop, 1 : listed.shape[1] + 1] & (listed != "")
        alternates.append(pd.Series(_joined(listed, occurring), dtype="str"))
        numbers.append(1 + occurring.sum(axis=1, dtype=np.int32))
    return table.assign(alternate=pd.concat(alternates, ignore_index=True), alleles=np.concatenate(numbers))


def check_unique(names: Iterable[str], *, place: str) -> None:
    """Refuse duplicate names of samples with an InputError that lists them."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{place} names {len(twice)} samples more than once: {shorten_list(twice)}. Results are by "
                         "sample; make the names unique.")  # fmt: skip


def _joined(alleles: Text, used: npt.NDArray[np.bool_]) -> Text:
    """Join the used alleles of each row with commas."""
    joined = np.full(len(alleles), "", object)
    for column, chosen in zip(alleles.T, used.T, strict=True):
        first, further = chosen & (joined == ""), chosen & (joined != "")
        joined[first] = column[first]
        joined[further] += "," + column[further]
    return joined
