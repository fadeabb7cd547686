"""Which pages are documents and which are other addresses of them; oracle: sets and dictionaries of URLs."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whitewater.errors import IntegrityError
from whitewater.graphs.vertex_ids import vertex_id
from whitewater.web import aliases as module
from whitewater.web.aliases import RECORD, Address, Resolution, make_record, resolve


@dataclass(frozen=True)
class Fetched:
    """A page: its URL, where it redirects or what it names as canonical, and its content; none of a redirect."""

    url: str
    to: str | None = None
    content: int = 0
    requested: str = ""
    source: int = 0
    targets: str = ""


def redirect(url: str, to: str) -> Fetched:
    return Fetched(url, to)


def page(url: str, content: int, *, canonical: str | None = None, requested: str = "") -> Fetched:
    return Fetched(url, canonical, content, requested)


def resolved(pages: list[Fetched], *, merge: bool = True) -> Resolution:
    digests = [{name: getattr(each, name).to_bytes(16, "little") for name in ("content", "source")} for each in pages]
    records = [
        make_record(each.url, each.to or each.url, redirect=each.content == 0, **digests[place])
        for place, each in enumerate(pages)
    ]

    def load_addresses(places: module.Indices) -> list[Address]:
        return [Address(pages[place].requested or pages[place].url, pages[place].url) for place in places.tolist()]

    def load_links(places: module.Indices) -> list[module.Indices]:
        return [np.array([vertex_id(target) for target in pages[place].targets], np.int64) for place in places.tolist()]

    found = resolve(np.array(records, RECORD), merge=merge, load_addresses=load_addresses, load_links=load_links)
    assert sum(found.counts.values()) == len(pages)
    return found


def documents(pages: list[Fetched], *, merge: bool = True) -> set[str]:
    kept = resolved(pages, merge=merge).is_document
    return {each.url for each, is_kept in zip(pages, kept, strict=True) if is_kept}


def aliases(pages: list[Fetched], names: str) -> dict[str, tuple[str, str]]:
    """Return the aliases by name, each with its target and the reason."""
    name_of = {vertex_id(name): name for name in names}
    table = resolved(pages).aliases
    return {name_of[row["alias"]]: (name_of[row["vertex"]], row["reason"]) for row in table.to_pylist()}


def test_chains_of_redirects_lead_to_the_last_page_fetched_or_not() -> None:
    pages = [redirect("a", "b"), redirect("b", "c"), page("c", 1), redirect("d", "e"), redirect("e", "x")]
    assert documents(pages) == {"c"}
    assert aliases(pages, "abcdex") == {letter: (end, "redirect") for letter, end in zip("abde", "ccxx", strict=True)}


def test_redirects_that_turn_in_a_circle_or_lead_into_one_are_left_out() -> None:
    pages = [redirect("a", "b"), redirect("b", "a"), redirect("c", "a"), redirect("d", "d"), page("e", 1)]
    assert aliases(pages, "abcde") == {}
    assert resolved(pages).counts["redirect_loop"] == 4


def copy(url: str, targets: str, *, content: int, source: int = 1) -> Fetched:
    return Fetched(url, None, content, source=source, targets=targets)


def test_copies_that_differ_in_links_among_themselves_are_one_document() -> None:
    # Contents leave out what a page links to itself, so these differ.
    home = [copy("a", "ax", content=1), copy("b", "ax", content=2), copy("c", "bx", content=3), page("d", 2)]
    assert documents(home) == {"a"}
    assert {name: target for name, (target, _) in aliases(home, "abcd").items()} == {"b": "a", "c": "a", "d": "a"}
    others = [copy("a", "bx", content=1), copy("b", "ay", content=2), copy("e", "a", content=4, source=2), page("f", 4)]
    assert documents(others) == {"a", "b", "e"}


def test_copies_that_link_to_copies_of_another_document_are_parted_until_they_agree() -> None:
    # "a" and "b" would be one if "c" were one with them, but that links to "x".
    pages = [copy("a", "c", content=1), copy("b", "", content=2), copy("c", "x", content=3), copy("d", "b", content=4)]
    assert documents(pages) == {"a", "b", "c"}
    assert aliases(pages, "abcd") == {"d": ("b", "duplicate")}


@pytest.mark.parametrize("last_is_fetched", [True, False])
def test_chains_that_are_longer_than_browsers_follow_are_left_out(last_is_fetched: bool) -> None:
    chain = [redirect(str(number), str(number + 1)) for number in range(25)]
    found = resolved([*chain, page("25", 1)] if last_is_fetched else chain)
    assert found.counts["redirect_too_long"] == 25 - module.MAXIMUM_REDIRECTS
    assert found.counts["redirects"] == module.MAXIMUM_REDIRECTS


def test_of_equal_pages_the_one_of_the_shortest_and_then_the_smallest_url_stands_for_all() -> None:
    pages = [page("bbb", 1), page("b", 1), page("a", 1), page("aaa", 1), page("c", 2), redirect("r", "bbb")]
    assert documents(pages) == {"a", "c"}
    assert documents(pages, merge=False) == {"a", "b", "aaa", "bbb", "c"}
    assert aliases([page("c", 1), page("b", 1), redirect("r", "c")], "bcr") == {
        "c": ("b", "duplicate"),
        "r": ("b", "redirect"),
    }


def test_a_page_is_the_one_it_names_if_that_is_a_document() -> None:
    pages = [
        page("a", 1, canonical="b"),
        page("b", 2, canonical="c"),
        page("c", 3, canonical="x"),
        page("d", 4, canonical="r"),
        redirect("r", "a"),
    ]
    assert documents(pages) == {"c", "d"}
    assert aliases(pages, "abcdrx") == {"a": ("c", "canonical"), "b": ("c", "canonical"), "r": ("c", "redirect")}


def test_pages_that_name_each_other_in_a_circle_are_what_they_are() -> None:
    pages = [page("a", 1, canonical="b"), page("b", 2, canonical="a"), page("c", 3, canonical="a")]
    assert documents(pages) == {"a", "b"}
    assert aliases(pages, "abc")["c"][1] == "canonical"
    three = [page("a", 1, canonical="b"), page("b", 2, canonical="c"), page("c", 3, canonical="a")]
    assert documents(three) == {"a", "b", "c"}


def test_a_page_that_says_it_is_another_one_does_not_stand_for_its_equals() -> None:
    pages = [page("a", 1, canonical="z"), page("bb", 1), page("cc", 1), page("z", 2)]
    assert documents(pages) == {"bb", "z"}
    assert aliases([pages[0], pages[3]], "az") == {"a": ("z", "canonical")}


def test_of_one_address_fetched_twice_a_document_counts_before_a_redirect_and_the_first_asked_for() -> None:
    pages = [
        page("a", 2, requested="a?utm=2"),
        page("a", 1, requested="a?utm=1"),
        redirect("a", "b"),
        page("b", 3),
    ]
    found = resolved(pages)
    assert found.is_document.tolist() == [False, True, False, True]
    assert found.counts["same_address"] == 2


def test_two_urls_of_one_id_are_refused() -> None:
    records = np.array([make_record(url, url, redirect=False) for url in "ab"], RECORD)
    records["vertex"][1] = records["vertex"][0]
    with pytest.raises(IntegrityError, match="same 64-bit id"):
        resolve(
            records,
            merge=True,
            load_addresses=lambda places: [Address("", "")] * len(places),
            load_links=lambda places: [np.empty(0, np.int64)] * len(places),
        )


letters = st.sampled_from("abcdefgh")
webs = st.lists(
    st.builds(redirect, letters, letters) | st.builds(lambda url, content, to: page(url, content, canonical=to),
                                                      letters, st.integers(1, 3), st.none() | letters),
    max_size=12,
)  # fmt: skip


@given(webs, st.randoms(use_true_random=False))
def test_nothing_depends_on_the_order_of_the_pages(pages: list[Fetched], shuffled: Random) -> None:
    other = list(pages)
    shuffled.shuffle(other)
    assert resolved(other).counts == resolved(pages).counts
    assert resolved(other).aliases == resolved(pages).aliases
    assert documents(other) == documents(pages)


@given(webs)
def test_every_alias_leads_to_a_document_or_to_what_was_not_fetched(pages: list[Fetched]) -> None:
    kept = documents(pages)
    fetched = {each.url for each in pages}
    for alias, (end, reason) in aliases(pages, "abcdefgh").items():
        assert alias in fetched - kept
        assert end in kept or (reason == "redirect" and end not in fetched)
