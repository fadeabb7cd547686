"""Which pages are documents, and which are other addresses of them: redirects, copies, and pages that name another one.

Pages are known by ids and digests only, so a hundred million of them fit into memory; the few URLs that decide between
equals are looked up. Nothing depends on the order of the pages.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from whitewater.errors import IntegrityError
from whitewater.graphs.vertex_ids import places_of, vertex_id
from whitewater.text import documents

# As many as browsers follow.
MAXIMUM_REDIRECTS = 20

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Address(NamedTuple):
    """How a page was asked for, and the normal form of that."""

    asked: str
    normal: str


# What is known of a page that is a document or a redirect. The digests, of 16 bytes, are empty for redirects and for
# documents that say nothing.
RECORD = np.dtype(
    [
        ("vertex", np.int64),  # id of the URL in normal form
        ("check", np.int64),  # another digest of the same URL
        ("goes_to", np.int64),  # the id that a redirect leads to, or a document names as canonical; else its own
        ("redirect", np.bool_),
        ("content", "S16"),  # digest of title, text and targets
        ("source", "S16"),  # digest of title, text and the bytes that were fetched
        ("length", np.int64),  # characters of the URL
        ("row", np.int64),  # of the page in its row group
        ("links", np.int64),  # how many rows it has in the file of links
    ]
)
Records = npt.NDArray[np.void]  # of `RECORD`, (pages,), in any order


# What becomes of a page; the redirects, duplicates and canonical ones are aliases, for a reason of that name. Left out
# are pages whose normal form is that of another one, and redirects in a circle or longer than `MAXIMUM_REDIRECTS`.
KINDS = ("documents", "redirects", "duplicates", "canonical", "same_address", "redirect_loop", "redirect_too_long")
REASONS = np.array(["", "redirect", "duplicate", "canonical"], object)


def record_of(
    url: str, goes_to: str, *, redirect: bool, content: bytes = b"", source: bytes = b"", row: int = 0, links: int = 0
) -> tuple[int | bytes, ...]:
    """Return the `RECORD` of a page, of its URL and the one that it goes to, both in normal form, and two digests."""
    check = xxhash.xxh3_64_intdigest(url.encode()) >> 1
    return vertex_id(url), check, vertex_id(goes_to), redirect, content, source, len(url), row, links


@dataclass(frozen=True)
class Resolved:
    """Which records are documents, bool (n,); the aliases (`documents.ALIASES`); records of each kind."""

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

    With ``merge`` documents of equal content become one, that of the shortest and then the smallest URL; those of equal
    source are of equal content if they differ only in links among themselves. ``look_up`` returns the addresses of
    records by their places, ``look_up_targets`` the ids that documents link to.

    The counts are of `KINDS`; their sum is n. Raises IntegrityError if two different URLs have the same id.
    """
    places = _one_of_each_address(records, look_up)
    one, own = records[places], np.arange(len(places))
    redirect = one["redirect"]
    goes_to = places_of(one["goes_to"], one["vertex"])
    named = _canonical(redirect, goes_to)
    first = own
    if merge:
        contents = _contents(one, named, lambda at: look_up_targets(places[at]))
        first = _first_of_equals(one, contents, named, lambda at: look_up(places[at]))
    document = first[named]
    ends, hops = _followed(np.where(redirect & (goes_to >= 0), goes_to, own))
    outside = redirect & (goes_to < 0)
    lost = redirect & redirect[ends] & ~outside[ends]
    far = redirect & (hops + outside[ends] > MAXIMUM_REDIRECTS)
    kind = np.select([lost, far, redirect, named != own, document != own], [5, 6, 1, 3, 2], 0)
    kept = np.zeros(len(records), np.bool_)
    kept[places[kind == 0]] = True
    counts = dict(zip(KINDS, np.bincount(kind, minlength=len(KINDS)).tolist(), strict=True))
    counts["same_address"] = len(records) - len(one)
    alias = np.isin(kind, [1, 2, 3])
    stands_for = np.where(outside[ends], one["goes_to"][ends], one["vertex"][document[ends]])
    reason = pa.array(REASONS[kind[alias]], pa.string())
    return Resolved(kept, pa.table([one["vertex"][alias], stands_for[alias], reason], documents.ALIASES), counts)


def _one_of_each_address(records: Records, look_up: Callable[[Indices], list[Address]]) -> Indices:
    """Return the place of one record of each id, in the order of ids: a document first, then by what was asked for."""
    _, one, number, count = np.unique(records["vertex"], return_index=True, return_inverse=True, return_counts=True)
    if (records["check"] != records["check"][one][number]).any():
        raise IntegrityError("two URLs of these pages have the same 64-bit id. Leave the site of one of them out.")
    several = np.flatnonzero(count[number] > 1)
    found = records[several]
    asked = [address.asked for address in look_up(several)]
    columns = (found["redirect"].tolist(), asked, found["content"].tolist(), found["goes_to"].tolist())
    ordered = several[_descending(list(zip(*columns, strict=True)))]
    one[number[ordered]] = ordered
    return one


def _canonical(redirect: Mask, goes_to: Indices) -> Indices:
    """Return for each record the place of the document that it says it is; else its own place.

    Only a document can be canonical. Documents that name each other in a circle stay as they are.
    """
    own = np.arange(len(redirect))
    following = np.where(~redirect & (goes_to >= 0) & ~redirect[goes_to], goes_to, own)
    ends, _ = _followed(following)
    circle = ends[following[ends] != ends]
    following[circle] = circle
    return _followed(following)[0]


def _contents(records: Records, named: Indices, look_up_targets: Callable[[Indices], list[Indices]]) -> Indices:
    """Return a number for the content of each record, one for copies that differ only in links among themselves.

    So a page is found to be that at another address of it though it links to one of the two, as to "Home".
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    digests, content = np.unique(records["content"], return_inverse=True)
    documents = np.flatnonzero((named == np.arange(len(records))) & (records["source"] != b""))
    _, source = np.unique(records["source"][documents], return_inverse=True)
    # Of each source, how many contents there are: copies are of one that has several.
    contents = np.bincount(np.unique(source * len(digests) + content[documents]) // len(digests))
    copied = contents[source] > 1
    places, sets = documents[copied], source[copied]
    if not len(places):
        return content
    vertex, targets = records["vertex"][places], look_up_targets(places)
    # Sets begin as those of equal source and are parted until nothing changes, so they are the largest that there are.
    count = 0
    while count < (count := len(np.unique(sets))):
        beyond = [_digest_beyond(*each, vertex, sets) for each in zip(sets.tolist(), targets, strict=True)]
        _, sets = np.unique(np.array(beyond), return_inverse=True)
    # All digests that pages of one set of copies have become one, and so on from set to set.
    size = len(digests) + count
    links = coo_array((np.ones(len(places), bool), (content[places], len(digests) + sets)), (size, size))
    _, group = connected_components(links, directed=False)
    return np.asarray(group[content], np.int64)


def _digest_beyond(number: int, targets: Indices, vertex: Indices, sets: Indices) -> bytes:
    """Return a digest of a set and of the targets that are not in it; ``vertex`` ascends."""
    place = places_of(targets, vertex)
    beyond = targets[(place < 0) | (sets[place] != number)]
    return xxhash.xxh3_128_digest(np.concatenate([[number], np.unique(beyond)]).tobytes())


def _first_of_equals(
    records: Records, content: Indices, named: Indices, look_up: Callable[[Indices], list[Address]]
) -> Indices:
    """Return for each record the place of the first of the documents with its content; else its own place.

    Documents that say they are another one do not count.
    """
    first_of = np.arange(len(records))
    comparable = np.flatnonzero((named == first_of) & (records["content"] != b""))
    # The places of the documents by content, the shortest URL last.
    ordered = comparable[np.argsort(-records["length"][comparable], kind="stable")]
    first = np.zeros(int(content.max(initial=0)) + 1, np.int64)
    first[content[ordered]] = ordered
    as_short = comparable[records["length"][comparable] == records["length"][first[content[comparable]]]]
    tied = as_short[np.bincount(content[as_short], minlength=1)[content[as_short]] > 1]
    ordered = tied[_descending([address.normal for address in look_up(tied)])]
    first[content[ordered]] = ordered
    first_of[comparable] = first[content[comparable]]
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


def _descending(keys: list[Any]) -> Indices:
    """Return the places of keys, the largest first: of values written in this order, that of the smallest key stays."""
    return np.array(sorted(range(len(keys)), key=keys.__getitem__, reverse=True), np.int64)
