"""Which pages are documents, and which are other addresses of them: redirects, copies, and pages that name another one.

Pages are known by ids and digests only, so a hundred million of them fit into memory; the few URLs that decide between
equals are looked up. Nothing depends on the order of the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from whitewater.errors import IntegrityError
from whitewater.pagerank import documents
from whitewater.pagerank.vertex_ids import vertex_ids

# As many as browsers follow.
MAXIMUM_REDIRECTS = 20

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Address(NamedTuple):
    """How a page was asked for, and the normal form of that."""

    asked: str
    normal: str


@dataclass(frozen=True)
class Records:
    """Pages that are documents or redirects, in any order; one array of n for each field.

    vertex
        int64, id of the URL in normal form.
    check
        int64, another digest of the same URL.
    goes_to
        int64, the id that a redirect leads to, or a document names as canonical; its own id where there is none.
    redirect
        bool.
    content
        uint64 (n, 2), digest of title, text and targets; 0 for redirects and for documents that say nothing.
    source
        uint64 (n, 2), digest of title, text and the bytes that were fetched; 0 where ``content`` is.
    length
        int64, characters of the URL.
    """

    vertex: Indices
    check: Indices
    goes_to: Indices
    redirect: Mask
    content: npt.NDArray[np.uint64]
    source: npt.NDArray[np.uint64]
    length: Indices

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self.vertex)

    def __getitem__(self, chosen: npt.NDArray[Any]) -> Records:
        """Return some of the pages."""
        return Records(*(getattr(self, each.name)[chosen] for each in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Records]) -> Self:
        """Return the pages of all parts, of which there is one at least."""
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))

    @classmethod
    def of(
        cls,
        addresses: Sequence[tuple[str, str]],
        *,
        redirect: Sequence[bool],
        content: Sequence[bytes],
        source: Sequence[bytes],
    ) -> Self:
        """Describe pages by their URLs and those they go to, both in normal form, and two digests of 16 bytes each."""
        own = [url for url, _ in addresses]
        return cls(
            vertex=vertex_ids(own),
            check=np.fromiter((xxhash.xxh3_64_intdigest(url.encode()) >> 1 for url in own), np.int64, len(own)),
            goes_to=vertex_ids([target for _, target in addresses]),
            redirect=np.array(redirect, np.bool_),
            content=np.frombuffer(b"".join(content), np.uint64).reshape(-1, 2),
            source=np.frombuffer(b"".join(source), np.uint64).reshape(-1, 2),
            length=np.fromiter(map(len, own), np.int64, len(own)),
        )


@dataclass(frozen=True)
class Resolved:
    """Which records are documents, bool (n,); the aliases (`documents.ALIASES`); how many are what."""

    kept: Mask
    aliases: pa.Table
    counts: dict[str, int]


def resolve(
    records: Records,
    *,
    merge: bool,
    look_up: Callable[[Indices], list[Address]],
    look_up_targets: Callable[[Indices], list[Indices]],
) -> Resolved:
    """Find the documents and the aliases.

    Parameters
    ----------
    records
        Pages that are documents or redirects.
    merge
        Whether documents of equal content become one, that of the shortest and then the smallest URL. Those of equal
        source are of equal content if they differ only in links among themselves.
    look_up
        Returns the addresses of records by their places.
    look_up_targets
        Returns the ids that documents link to, by their places.

    Returns
    -------
    Resolved
        The counts are ``documents``, ``redirects``, ``duplicates``, ``canonical``, ``same_address`` (pages whose
        normal form is that of another one), ``redirect_loop`` and ``redirect_too_long`` (left out); their sum is n.

    Raises
    ------
    IntegrityError
        If two different URLs have the same id.
    """
    places = _one_of_each_address(records, look_up)
    one = records[places]
    named = _canonical(one)
    first = np.arange(len(one))
    if merge:
        contents = _contents(one, named, lambda at: look_up_targets(places[at]))
        first = _first_of_equals(one, contents, named, lambda at: look_up(places[at]))
    document = first[named]
    ends, hops = _followed(_redirected(one))
    outside = one.redirect & ~_is_known(one)
    lost = one.redirect & one.redirect[ends] & ~outside[ends]
    far = one.redirect & ~lost & (hops + outside[ends] > MAXIMUM_REDIRECTS)
    stands_for = np.where(outside[ends], one.goes_to[ends], one.vertex[document[ends]])
    kept = np.zeros(len(records), np.bool_)
    is_document = ~one.redirect & (document == np.arange(len(one)))
    kept[places[is_document]] = True
    reasons = {
        "redirect": one.redirect & ~lost & ~far,
        "canonical": ~one.redirect & (named != np.arange(len(one))),
        "duplicate": ~one.redirect & (named == np.arange(len(one))) & ~is_document,
    }
    counts = {
        "documents": int(is_document.sum()),
        "redirects": int(reasons["redirect"].sum()),
        "duplicates": int(reasons["duplicate"].sum()),
        "canonical": int(reasons["canonical"].sum()),
        "same_address": len(records) - len(one),
        "redirect_loop": int(lost.sum()),
        "redirect_too_long": int(far.sum()),
    }
    return Resolved(kept, _aliases(one.vertex, stands_for, reasons), counts)


def _aliases(vertex: Indices, stands_for: Indices, reasons: dict[str, Mask]) -> pa.Table:
    tables = [
        pa.table(
            [vertex[chosen], stands_for[chosen], pa.repeat(pa.scalar(reason), int(chosen.sum()))], documents.ALIASES
        )
        for reason, chosen in reasons.items()
    ]
    return pa.concat_tables(tables)


def _one_of_each_address(records: Records, look_up: Callable[[Indices], list[Address]]) -> Indices:
    """Return the place of one record of each id, in the order of ids: a document first, then by what was asked for."""
    order = np.argsort(records.vertex, kind="stable")
    first = _first_of_run(records.vertex[order])
    if (records.check[order] != records.check[order][first]).any():
        raise IntegrityError("two URLs of these pages have the same 64-bit id. Leave the site of one of them out.")
    several = order[_shared(first)]
    chosen = records[several]
    keys = zip(
        chosen.redirect.tolist(),
        [address.asked for address in look_up(several)],
        chosen.content.tolist(),
        chosen.goes_to.tolist(),
        strict=True,
    )
    order = np.lexsort((_ranks(len(records), several, list(keys)), records.vertex))
    return order[np.unique(first)]


def _canonical(records: Records) -> Indices:
    """Return for each record, in the order of ids, the place of the document that it says it is; else its own place.

    What is named has to be a document. Those that name each other in a circle are what they are.
    """
    own = np.arange(len(records))
    place = _places(records)
    valid = ~records.redirect & (place >= 0) & ~records.redirect[place]
    following = np.where(valid, place, own)
    ends, _ = _followed(following)
    circle = ends[following[ends] != ends]
    following[circle] = circle
    return _followed(following)[0]


def _redirected(records: Records) -> Indices:
    """Return for each record, in the order of ids, the place to which it redirects; else its own place."""
    return np.where(_is_known(records) & records.redirect, _places(records), np.arange(len(records)))


def _contents(
    records: Records, named: Indices, look_up_targets: Callable[[Indices], list[Indices]]
) -> npt.NDArray[np.uint64]:
    """Return the digest of the content of each record, one for copies that differ only in links among themselves.

    So a page is found to be that at another address of it though it links to one of the two, as to "Home".
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    contents = records.content.copy()
    places = _copies(records, named)
    if not len(places):
        return contents
    digests, digest = np.unique(contents[places], axis=0, return_inverse=True)
    copies = _equal_copies(records.vertex[places], records.source[places], look_up_targets(places))
    # All digests that pages of one set of copies have become one, and so on from set to set.
    size = len(digests) + int(copies.max()) + 1
    links = csr_array((np.ones(len(places), bool), (digest.ravel(), len(digests) + copies)), (size, size))
    _, group = connected_components(links, directed=False)
    _, first = np.unique(group[: len(digests)], return_index=True)
    place = np.minimum(np.searchsorted(digests[:, 0], contents[:, 0]), len(digests) - 1)
    known = (digests[place] == contents).all(axis=1)
    contents[known] = digests[first[group[place[known]]]]
    return contents


def _copies(records: Records, named: Indices) -> Indices:
    """Return the places of documents with the source of another one but not its content."""
    places = np.flatnonzero((named == np.arange(len(records))) & records.source.any(axis=1))
    order = np.lexsort((records.source[places, 1], records.source[places, 0]))
    places = places[order]
    first = _first_of_run(records.source[places])
    differs = (records.content[places] != records.content[places][first]).any(axis=1)
    return np.sort(places[np.isin(first, first[differs])])


def _equal_copies(vertex: Indices, source: npt.NDArray[np.uint64], targets: list[Indices]) -> Indices:
    """Return the number of the set of each of some copies: they link to the same targets, their set aside.

    Sets begin as those of equal source and are parted until nothing changes, so they are the largest that there are.
    """
    _, sets = np.unique(source, axis=0, return_inverse=True)
    sets, count = sets.ravel(), 0
    while count < (count := int(sets.max()) + 1):
        digests = [_digest_beyond(*each, vertex, sets) for each in zip(sets.tolist(), targets, strict=True)]
        _, sets = np.unique(np.array(digests), return_inverse=True)
    return sets


def _digest_beyond(number: int, targets: Indices, vertex: Indices, sets: Indices) -> bytes:
    """Return a digest of a set and of the targets that are not in it; ``vertex`` ascends."""
    place = np.minimum(np.searchsorted(vertex, targets), len(vertex) - 1)
    beyond = targets[(vertex[place] != targets) | (sets[place] != number)]
    return xxhash.xxh3_128_digest(np.concatenate([[number], np.unique(beyond)]).tobytes())


def _first_of_equals(
    records: Records,
    digests: npt.NDArray[np.uint64],
    named: Indices,
    look_up: Callable[[Indices], list[Address]],
) -> Indices:
    """Return for each record the place of the first of the documents with its digest; else its own place.

    Documents that say they are another one do not count.
    """
    first_of = np.arange(len(records))
    comparable = np.flatnonzero((named == first_of) & digests.any(axis=1))
    contents = digests[comparable]
    order = np.lexsort((records.length[comparable], contents[:, 1], contents[:, 0]))
    comparable, contents = comparable[order], contents[order]
    first = _first_of_run(contents)
    as_short = comparable[_shared(first) & (records.length[comparable] == records.length[comparable][first])]
    ranks = _ranks(len(records), as_short, [address.normal for address in look_up(as_short)])
    final = np.lexsort((ranks[comparable], records.length[comparable], first))
    first_of[comparable[final]] = comparable[final][first]
    return first_of


def _followed(following: Indices) -> tuple[Indices, Indices]:
    """Return where each place leads in the end, and in how many steps; a place that leads to itself is an end.

    Steps double with every turn, so that chains of any length take few. In a circle it goes on: the end is some place
    of the circle, and every place of a circle is the end of one of them.
    """
    ends, hops = following, (following != np.arange(len(following))).astype(np.int64)
    for _ in range(len(following).bit_length()):
        hops = hops + hops[ends]
        ends = ends[ends]
    return ends, hops


def _places(records: Records) -> Indices:
    """Return the places of what the records go to, of records in the order of ids; -1 where it is not among them."""
    place = np.minimum(np.searchsorted(records.vertex, records.goes_to), max(len(records) - 1, 0))
    return np.where(records.vertex[place] == records.goes_to, place, -1)


def _is_known(records: Records) -> Mask:
    return _places(records) >= 0


def _first_of_run(values: npt.NDArray[Any]) -> Indices:
    """Return for each of sorted values, or rows of them, the place of the first that equals it."""
    differs = np.ones(len(values), np.bool_)
    change = values[1:] != values[:-1]
    differs[1:] = change.any(axis=1) if values.ndim > 1 else change
    first: Indices = np.flatnonzero(differs)[np.cumsum(differs) - 1]
    return first


def _shared(first: Indices) -> Mask:
    """Return which values, of which the first of each run is given, are not the only ones of their run."""
    several: Mask = np.bincount(first, minlength=len(first)) > 1
    return several[first]


def _ranks(size: int, places: Indices, keys: list[Any]) -> Indices:
    """Return the rank of each of the places by its key, 0 elsewhere; int64 (size,)."""
    ranks = np.zeros(size, np.int64)
    ranks[places[sorted(range(len(keys)), key=keys.__getitem__)]] = np.arange(len(keys))
    return ranks
