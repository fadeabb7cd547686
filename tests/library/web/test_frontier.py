"""The frontier of a crawl: what it holds after a stop, and the order in which it gives URLs."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from whitewater.errors import InputError, ResourceError
from whitewater.web.config import Crawl
from whitewater.web.crawl.frontier import Frontier, Visit, key, open_frontier
from whitewater.web.pages import Page

SETTINGS = Crawl(start_urls=("http://a.example/",))


class StopError(Exception):
    """What a test stops a crawl with."""


@contextmanager
def stopped(directory: Path, settings: Crawl) -> Iterator[Frontier]:
    """A frontier whose crawl is stopped at the end of the block."""
    with suppress(StopError), open_frontier(directory, settings) as frontier:
        yield frontier
        raise StopError


def visit(path: str, depth: int = 0, redirects: int = 0, host: str = "a.example") -> Visit:
    return Visit(f"http://{host}/{path}", depth, redirects)


def kept(path: str) -> Page:
    return Page(f"http://a.example/{path}", 200, "text/html", None, path.encode() * 100)


def chosen(frontier: Frontier) -> list[str]:
    """The URLs of the round, which are settled by this."""
    found = []
    for host in frontier.choose(most=0, deepest=9):
        while following := frontier.next_of(host):
            found.append(following.url.partition("://")[2])
            frontier.settle(following.url, "fetched")
    return found


def test_a_round_is_the_first_urls_of_the_least_depth_by_their_bytes(tmp_path: Path) -> None:
    with open_frontier(tmp_path, SETTINGS) as frontier:
        frontier.add([visit("b"), visit("a"), visit("Z"), visit("0", depth=1), visit("c", host="b.example")])
        assert frontier.choose(most=3, deepest=9)
        assert chosen(frontier) == ["a.example/Z", "a.example/a", "a.example/b"]
        assert frontier.choose(most=3, deepest=9)
        assert chosen(frontier) == ["b.example/c"]
        assert frontier.choose(most=3, deepest=9)
        assert chosen(frontier) == ["a.example/0"]
        assert not frontier.choose(most=3, deepest=9)


def test_what_is_too_deep_or_too_much_is_not_chosen_but_counted(tmp_path: Path) -> None:
    with open_frontier(tmp_path, SETTINGS) as frontier:
        frontier.add([visit("a"), visit("b"), visit("c", depth=4), visit("d", depth=5)])
        assert not frontier.choose(most=0, deepest=3)
        assert frontier.choose(most=1, deepest=3)
        chosen(frontier)
        assert frontier.counts(deepest=3) == {"beyond_depth": 2, "beyond_limits": 1, "fetched": 1}


@pytest.mark.parametrize("order", list(itertools.permutations([(3, 0), (2, 4), (2, 5)])))
def test_a_url_has_the_depth_of_the_shortest_way_to_it(tmp_path: Path, order: list[tuple[int, int]]) -> None:
    with open_frontier(tmp_path, SETTINGS) as frontier:
        for depth, redirects in order:
            frontier.add([visit("a", depth, redirects)])
        frontier.choose(most=1, deepest=9)
        assert frontier.next_of("a.example") == visit("a", 2, 4)


def test_after_a_stop_the_round_goes_on_and_pages_are_there(tmp_path: Path) -> None:
    with stopped(tmp_path, SETTINGS) as frontier:
        frontier.add([visit(name) for name in "abcd"])
        frontier.choose(most=3, deepest=9)
        frontier.settle("http://a.example/a", "fetched", page=kept("a"), visits=[visit("0")], skipped=[("scheme", 2)])
        frontier.add(counts=[("seconds", 5.0)])
    with open_frontier(tmp_path, SETTINGS) as frontier:
        frontier.add([visit(name) for name in "abcd"])
        assert (frontier.pages, frontier.seconds) == (1, 5.0)
        assert frontier.counts(deepest=9) == {"beyond_limits": 4, "fetched": 1, "scheme": 2}
        assert frontier.choose(most=9, deepest=9)
        assert chosen(frontier) == ["a.example/b", "a.example/c"]
        assert frontier.choose(most=9, deepest=9)
        assert chosen(frontier) == ["a.example/0", "a.example/d"]
        assert list(frontier.read()) == [kept("a")]


def test_a_page_is_stored_with_all_that_it_brings_or_not_at_all(tmp_path: Path) -> None:
    with open_frontier(tmp_path, SETTINGS) as frontier:
        frontier.add([visit("a")])
        frontier.choose(most=1, deepest=9)
        visits = [Visit(None, 0, 0)]  # type: ignore[arg-type]
        with pytest.raises(sqlite3.IntegrityError):
            frontier.settle("http://a.example/a", "fetched", page=kept("a"), visits=visits, skipped=[("x", 1)])
        assert (frontier.pages, list(frontier.read()), frontier.counts(deepest=9)) == (0, [], {"beyond_limits": 1})
        assert frontier.next_of("a.example") == visit("a")


def test_a_finished_crawl_begins_anew_and_a_stopped_one_of_other_settings_stays(tmp_path: Path) -> None:
    other = SETTINGS.model_copy(update={"maximum_depth": 3})
    with stopped(tmp_path, other) as frontier:
        frontier.add([visit("a")])
    for _ in range(2):
        with open_frontier(tmp_path, SETTINGS) as frontier:
            assert frontier.counts(deepest=9) == {}
            frontier.add([visit("a")])
        assert {path.name for path in tmp_path.iterdir()} == {
            f"{key(SETTINGS)}.finished.sqlite",
            f"{key(other)}.sqlite",
        }
    with open_frontier(tmp_path, other) as frontier:
        assert frontier.counts(deepest=9) == {"beyond_limits": 1}
    assert [path.name for path in tmp_path.iterdir()] == [f"{key(other)}.finished.sqlite"]


def test_a_crawl_is_defined_by_what_changes_its_pages() -> None:
    same = {"delay": 9.0, "timeout": 9.0, "retries": 9, "concurrency": 9, "maximum_seconds": 9.0}
    other = {
        "start_urls": ("http://b.example/",), "allowed_hosts": ("b.example",), "user_agent": "b", "maximum_pages": 9,
        "maximum_depth": 9, "maximum_bytes": 9,
    }  # fmt: skip
    assert set(same) | set(other) == set(Crawl.model_fields)
    assert {key(SETTINGS.model_copy(update={name: value})) for name, value in same.items()} == {key(SETTINGS)}
    assert len({key(SETTINGS), *(key(SETTINGS.model_copy(update={name: other[name]})) for name in other)}) == 7


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    (tmp_path / f"{key(SETTINGS)}.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(InputError, match=rf"{key(SETTINGS)}\.sqlite.*Remove it"), open_frontier(tmp_path, SETTINGS):
        pass


def test_a_full_disk_keeps_what_was_fetched(tmp_path: Path) -> None:
    names = [f"{number:03d}" for number in range(2000)]

    def fill() -> None:
        with open_frontier(tmp_path, SETTINGS) as frontier:
            frontier._connection.execute("PRAGMA max_page_count = 30")
            for name in names:
                frontier.add([visit(name)])
                frontier.settle(visit(name).url, "fetched", page=kept(name))

    with pytest.raises(ResourceError, match="The fetched pages are kept"):
        fill()
    with open_frontier(tmp_path, SETTINGS) as frontier:
        stored = [page.url for page in frontier.read()]
        assert len(stored) > 10
        assert stored == [visit(name).url for name in names[: len(stored)]]
