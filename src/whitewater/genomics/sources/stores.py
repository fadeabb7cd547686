"""Zarr stores of genotypes: their arrays found, checked and named."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from whitewater.errors import InputError
from whitewater.genomics.sources.sites import Text
from whitewater.remote import local_path

if TYPE_CHECKING:
    from whitewater.config.genomics import Vcz
    from whitewater.zarr_arrays import Array, Group

SHOWN = 12


def open_store(store: str, settings: Vcz) -> Group:
    """Open a Zarr store as the settings tell."""
    from whitewater.zarr_arrays import open_group

    return open_group(
        str(local_path(store) or store),
        anonymous=settings.anonymous,
        endpoint=settings.endpoint,
        retries=settings.retries,
        timeout=settings.timeout,
        filled=settings.filled_arrays,
    )


def require(group: Group, names: Iterable[str], *, layout: str) -> None:
    """Refuse a store that lacks arrays.

    Raises
    ------
    InputError
        Naming the arrays that it lacks and those that it has.
    """
    absent = [name for name in names if name not in group]
    if absent:
        raise InputError(f"{group.name} lacks {', '.join(absent)}, which {layout} has{_told(group)}. Check that it "
                         "is a store of this layout.")  # fmt: skip


def _told(group: Group) -> str:
    """Tell which arrays a store holds, if it can be listed."""
    try:
        found = group.names()
    except InputError:
        return ""
    return f"; it holds {', '.join(found[:SHOWN])}{', ...' if len(found) > SHOWN else ''}" if found else "; it is empty"


def require_rows(arrays: Iterable[Array], rows: int, *, of: str) -> None:
    """Refuse arrays whose first dimension is another one than ``rows``, the number of ``of``.

    Raises
    ------
    InputError
        Naming the array.
    """
    for array in arrays:
        if not array.shape or array.shape[0] != rows:
            raise InputError(f"{array.place} has the shape {array.shape}, but there are {rows} "
                             f"{of}. The store is damaged, or was not written to its end.")  # fmt: skip


def read_text(array: Array) -> Text:
    """Read a whole array of texts, which is a short one."""
    return array.read().astype(object)


def origins(store: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return what is read of a store: the directories of its arrays where it is a local directory, else itself."""
    path = local_path(store)
    if path is None or not path.is_dir():
        return (store,)
    return tuple(str(path / name) for name in names)
