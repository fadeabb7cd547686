"""Resolve redirects, duplicates and canonical links: which pages are documents, and which are aliases of a document.

Pages are held as ids and digests, so a hundred million of them fit into memory. Only the URLs that break a tie are
loaded. The result does not depend on the order of the pages.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from whitewater.errors import IntegrityError
from whitewater.graphs.vertex_ids import find_positions, vertex_id
from whitewater.text import documents

MAXIMUM_REDIRECTS = 20  # as in browsers

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Address(NamedTuple):
    """The URL that was requested, and its normal form."""

    requested: str
    normal: str


# A page that is a document or a redirect. The digests are empty for redirects and for documents without text and links.
RECORD = np.dtype(
    [
        ("vertex", np.int64),  # id of the URL in normal form
        ("check", np.int64),  # another digest of the same URL
        ("target", np.int64),  # id of a redirect's target or of a document's canonical URL; else the page's own id
        ("redirect", np.bool_),
        ("content", "S16"),  # digest of title, text and links
        ("source", "S16"),  # digest of title, text and the bytes that were fetched
        ("length", np.int64),  # characters of the URL
        ("row", np.int64),  # row in the row group of the page
        ("links", np.int64),  # rows in the file of links
    ]
)
Records = npt.NDArray[np.void]  # of `RECORD`, (pages,), in any order


# The kinds of pages. Redirects, duplicates and canonical ones are aliases, for the reason beside them. The last three
# are left out: another page has the same normal form, or the redirect ends in a loop or after `MAXIMUM_REDIRECTS`.
KINDS = ("documents", "redirects", "duplicates", "canonical", "same_address", "redirect_loop", "redirect_too_long")
REASONS = np.array(["", "redirect", "duplicate", "canonical"], object)


def make_record(
    url: str, target: str, *, redirect: bool, content: bytes = b"", source: bytes = b"", row: int = 0, links: int = 0
) -> tuple[int | bytes, ...]:
    """Return the `RECORD` of a page; ``url`` and ``target`` are in normal form."""
    check = xxhash.xxh3_64_intdigest(url.encode()) >> 1
    return vertex_id(url), check, vertex_id(target), redirect, content, source, len(url), row, links


@dataclass(frozen=True)
class Resolution:
    """Which records are documents, bool (n,); the aliases (`documents.ALIASES`); the number of pages of each kind."""

    is_document: Mask
    aliases: pa.Table
    counts: dict[str, int]


def resolve(
    records: Records,
    *,
    merge: bool,
    load_addresses: Callable[[Indices], list[Address]],
    load_links: Callable[[Indices], list[Indices]],
) -> Resolution:
    """Find the documents and the aliases.

    With ``merge``, documents of equal content become one: the one with the shortest, then the smallest URL. Documents
    of equal source count as equal if only links among themselves differ. ``load_addresses`` and ``load_links`` take
    indices of records, and return their addresses and the ids that they link to.

    Raises IntegrityError if two different URLs have the same id.
    """
    chosen = _choose_one_per_url(records, load_addresses)
    unique, own = records[chosen], np.arange(len(chosen))
    is_redirect = unique["redirect"]
    target = find_positions(unique["target"], unique["vertex"])
    canonical = _resolve_canonical(is_redirect, target)
    representative = own
    if merge:
        contents = _number_contents(unique, canonical, lambda indices: load_links(chosen[indices]))
        representative = _choose_representatives(
            unique, contents, canonical, lambda indices: load_addresses(chosen[indices])
        )
    document = representative[canonical]
    ends, hops = _follow_chains(np.where(is_redirect & (target >= 0), target, own))
    leaves_crawl = is_redirect & (target < 0)
    is_loop = is_redirect & is_redirect[ends] & ~leaves_crawl[ends]
    is_too_long = is_redirect & (hops + leaves_crawl[ends] > MAXIMUM_REDIRECTS)
    kind = np.select([is_loop, is_too_long, is_redirect, canonical != own, document != own], [5, 6, 1, 3, 2], 0)
    is_document = np.zeros(len(records), np.bool_)
    is_document[chosen[kind == 0]] = True
    counts = dict(zip(KINDS, np.bincount(kind, minlength=len(KINDS)).tolist(), strict=True))
    counts["same_address"] = len(records) - len(unique)
    is_alias = np.isin(kind, [1, 2, 3])
    stands_for = np.where(leaves_crawl[ends], unique["target"][ends], unique["vertex"][document[ends]])
    reason = pa.array(REASONS[kind[is_alias]], pa.string())
    aliases = pa.table([unique["vertex"][is_alias], stands_for[is_alias], reason], documents.ALIASES)
    return Resolution(is_document, aliases, counts)


def _choose_one_per_url(records: Records, load_addresses: Callable[[Indices], list[Address]]) -> Indices:
    """Return the index of one record of each id, by ascending id: a document if there is one, then the smallest URL."""
    _, chosen, number, count = np.unique(records["vertex"], return_index=True, return_inverse=True, return_counts=True)
    if (records["check"] != records["check"][chosen][number]).any():
        raise IntegrityError("two URLs of these pages have the same 64-bit id. Leave the site of one of them out.")
    repeated = np.flatnonzero(count[number] > 1)
    rows = records[repeated]
    requested = [address.requested for address in load_addresses(repeated)]
    columns = (rows["redirect"].tolist(), requested, rows["content"].tolist(), rows["target"].tolist())
    ordered = repeated[_argsort_descending(list(zip(*columns, strict=True)))]
    chosen[number[ordered]] = ordered
    return chosen


def _resolve_canonical(is_redirect: Mask, target: Indices) -> Indices:
    """Return the index of each record's canonical document, or its own.

    Only a document can be canonical. Documents that name each other in a circle stay as they are.
    """
    own = np.arange(len(is_redirect))
    successor = np.where(~is_redirect & (target >= 0) & ~is_redirect[target], target, own)
    ends, _ = _follow_chains(successor)
    circle = ends[successor[ends] != ends]
    successor[circle] = circle
    return _follow_chains(successor)[0]


def _number_contents(records: Records, canonical: Indices, load_links: Callable[[Indices], list[Indices]]) -> Indices:
    """Return a number for each content; copies that differ only in links among themselves share a number.

    So a page equals its copy at another address even if it links to one of the two, as to "Home".
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    digests, content = np.unique(records["content"], return_inverse=True)
    documents = np.flatnonzero((canonical == np.arange(len(records))) & (records["source"] != b""))
    _, source = np.unique(records["source"][documents], return_inverse=True)
    # Only a source with several contents has copies to compare.
    contents = np.bincount(np.unique(source * len(digests) + content[documents]) // len(digests))
    is_copy = contents[source] > 1
    copies, sets = documents[is_copy], source[is_copy]
    if not len(copies):
        return content
    vertex, links = records["vertex"][copies], load_links(copies)
    # Start from the sets of equal source and split them until nothing changes: this gives the largest possible sets.
    count = 0
    while count < (count := len(np.unique(sets))):
        external = [_digest_external_links(*pair, vertex, sets) for pair in zip(sets.tolist(), links, strict=True)]
        _, sets = np.unique(np.array(external), return_inverse=True)
    # All contents that occur in one set become one, and so on from set to set.
    size = len(digests) + count
    edges = coo_array((np.ones(len(copies), bool), (content[copies], len(digests) + sets)), (size, size))
    _, group = connected_components(edges, directed=False)
    return np.asarray(group[content], np.int64)


def _digest_external_links(number: int, links: Indices, vertex: Indices, sets: Indices) -> bytes:
    """Return a digest of a set and the links that leave it; ``vertex`` ascends."""
    index = find_positions(links, vertex)
    external = links[(index < 0) | (sets[index] != number)]
    return xxhash.xxh3_128_digest(np.concatenate([[number], np.unique(external)]).tobytes())


def _choose_representatives(
    records: Records, content: Indices, canonical: Indices, load_addresses: Callable[[Indices], list[Address]]
) -> Indices:
    """Return for each record the index of the document that represents its content, or its own index.

    Documents that name another one as canonical neither represent others nor are represented.
    """
    representative = np.arange(len(records))
    comparable = np.flatnonzero((canonical == representative) & (records["content"] != b""))
    # The last one written stays, so the shortest URL comes last.
    ordered = comparable[np.argsort(-records["length"][comparable], kind="stable")]
    first = np.zeros(int(content.max(initial=0)) + 1, np.int64)
    first[content[ordered]] = ordered
    shortest = comparable[records["length"][comparable] == records["length"][first[content[comparable]]]]
    tied = shortest[np.bincount(content[shortest], minlength=1)[content[shortest]] > 1]
    ordered = tied[_argsort_descending([address.normal for address in load_addresses(tied)])]
    first[content[ordered]] = ordered
    representative[comparable] = first[content[comparable]]
    return representative


def _follow_chains(successor: Indices) -> tuple[Indices, Indices]:
    """Return the end of each index's chain and the number of steps to it; an index that is its own successor is an end.

    Steps double each time, so chains of any length take few rounds. In a circle, the end is some index of the circle,
    and every index of the circle is the end of one of them.
    """
    ends, hops = successor, (successor != np.arange(len(successor))).astype(np.int64)
    for _ in range(len(successor).bit_length()):
        hops = hops + hops[ends]
        ends = ends[ends]
    return ends, hops


def _argsort_descending(keys: list[Any]) -> Indices:
    """Return the indices of the keys, largest first: written in this order, the value of the smallest key stays."""
    return np.array(sorted(range(len(keys)), key=keys.__getitem__, reverse=True), np.int64)
