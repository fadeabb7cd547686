"""Vocabularies that memory cannot hold are learnt and applied through files, and are the same."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recsys_operators import CPU, applied, categories, fields_of, rows_of
from whitewater.devices.columns import Block
from whitewater.errors import ResourceError
from whitewater.recsys import value_counting, value_table, vocabulary
from whitewater.recsys.categories import CategoryTable
from whitewater.recsys.counted_values import Counted, CountsWriter, MappedCounts
from whitewater.recsys.operator import Fitting
from whitewater.recsys.operators.categorify import Categorify
from whitewater.recsys.value_counting import Choice, Tally, merged
from whitewater.recsys.value_table import MappedTable
from whitewater.recsys.vocabulary import Vocabulary, restored_vocabulary

KINDS = {str: pa.string(), bytes: pa.binary(), int: pa.int64()}
LITTLE, PLENTY = 3000, 2**30


@pytest.fixture
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few values be many."""
    monkeypatch.setattr(value_counting, "FEWEST", 100)
    monkeypatch.setattr(value_counting, "PIECE", 50)


@contextmanager
def in_folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


def learnt(operator: Categorify, parts: Sequence[Block], memory: int) -> Vocabulary:
    """Return the vocabulary of the first column; check that no file is left but its own."""
    with in_folder() as scratch:
        fitting = Fitting(CPU, memory, scratch)
        (statistic,) = operator.statistics(tuple(parts[0])[:1], fields_of(parts[0]))
        observed = [statistic.observe(iter([part]), fitting) for part in parts]
        found = statistic.combine(observed, fitting)
        assert isinstance(found, Vocabulary)
        assert len(list(scratch.iterdir())) == isinstance(found._counted, MappedCounts)
        return found


def counted(values: Sequence[str | bytes | int], counts: Sequence[int]) -> Counted:
    return Counted(pa.array(values, KINDS[type(values[0])]), np.array(counts, np.int64))


def stored(counts: Counted, scratch: Path) -> MappedCounts:
    with CountsWriter(scratch, counts.values.type) as writer:
        for start in range(0, len(counts), 3):
            writer.add(counts.slice(start, min(start + 3, len(counts))))
    return writer.mapped(for_look_up=True)


def pairs(counts: Counted) -> list[tuple[Any, int]]:
    return list(zip(counts.values.to_pylist(), counts.counts.tolist(), strict=True))


def long_tail(seed: int, rows: int = 2500) -> list[str | None]:
    """Return texts of which a few are frequent, many rare, and some null."""
    random = Random(seed)
    drawn = [min(int(random.paretovariate(0.5)), 10**6) for _ in range(rows)]
    return [None if number % 17 == 0 else f"{number}" * (number % 3 + 1) for number in drawn]


@pytest.mark.usefixtures("_small_files")
@pytest.mark.parametrize("settings_", [{}, {"freq_threshold": 2}, {"max_size": 60}, {"num_buckets": 4}])
@pytest.mark.parametrize("whole", [str, int])
def test_little_memory_gives_the_same_vocabulary(settings_: dict[str, Any], whole: type) -> None:
    values = long_tail(1)
    numbers = [None if value is None else int(value[:9]) for value in values]
    block = {"C": categories(values if whole is str else numbers)}
    parts = [rows_of(block, slice(start, start + 500)) for start in range(0, len(values), 500)]
    operator = Categorify(**settings_)
    little, plenty = (learnt(operator, parts, memory) for memory in (LITTLE, PLENTY))
    assert little.facts() == plenty.facts()
    assert little.tables() == plenty.tables()
    assert applied(operator, block, {"C": little}) == applied(operator, block, {"C": plenty})
    known = plenty.id_of()
    assert [little.id_of()(value) for value in values if whole is str] == [known(v) for v in values if whole is str]


def test_a_vocabulary_that_leaves_others_little_room_is_counted_in_memory_and_kept_in_files(
    caplog: pytest.LogCaptureFixture,
) -> None:
    block = {"C": categories([f"{number % 900}" for number in range(1000)])}
    little, plenty = (learnt(Categorify(), [block, block], memory) for memory in (500_000, PLENTY))
    assert [type(each._counted) for each in (little, plenty)] == [MappedCounts, Counted]
    assert little.tables() == plenty.tables()
    assert applied(Categorify(), block, {"C": little}) == applied(Categorify(), block, {"C": plenty})
    assert not caplog.records


@pytest.mark.usefixtures("_small_files")
def test_combinations_go_to_files_too() -> None:
    values = long_tail(2, 900)
    block = {"A": categories(values), "B": categories(values[::-1])}
    operator = Categorify(encode_type="combo")
    found = []
    for memory in (LITTLE, PLENTY):
        with in_folder() as scratch:
            (statistic,) = operator.statistics((("A", "B"),), fields_of(block))
            fitting = Fitting(CPU, memory, scratch)
            found.append(statistic.combine([statistic.observe(iter([block]), fitting)], fitting))
    little, plenty = found
    assert isinstance(little, Vocabulary)
    assert isinstance(plenty, Vocabulary)
    assert isinstance(little._counted, MappedCounts)
    assert little.tables() == plenty.tables()


@pytest.mark.usefixtures("_small_files")
def test_the_log_says_so_before_values_go_to_files(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    tally = Tally("C7", pa.string(), memory=LITTLE, scratch=tmp_path)
    with caplog.at_level(logging.WARNING):
        tally.add(counted([f"{number}" for number in range(100)], [1] * 100))
    assert len(caplog.records) == 1
    assert caplog.messages[0].startswith("C7: ")
    assert "they go to" in caplog.messages[0]
    assert str(tmp_path) in caplog.messages[0]


@pytest.mark.usefixtures("_small_files")
@settings(max_examples=20, deadline=None)
@given(
    values=st.lists(st.text(st.characters(codec="utf-8"), max_size=4), min_size=1, max_size=150),
    memory=st.sampled_from([0, LITTLE, PLENTY]),
)
def test_a_tally_counts_whatever_its_memory(values: list[str], memory: int) -> None:
    with in_folder() as scratch:
        tally = Tally("C", pa.string(), memory=memory, scratch=scratch)
        for start in range(0, len(values), 9):
            part = values[start : start + 9]
            tally.add(counted(part, [1] * len(part)))
        found = [pair for share in tally.shares() for pair in pairs(share)]
        assert not list(scratch.iterdir())
    assert len(found) == len(dict(found))
    assert dict(found) == Counter(values)


def test_shares_that_are_too_large_are_parted_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(value_counting, "FEWEST", 3)
    monkeypatch.setattr(value_counting, "PIECE", 50)
    tally = Tally("C", pa.int64(), memory=0, scratch=tmp_path)
    tally.add(counted(list(range(400)), [2] * 400))
    shares = list(tally.shares())
    assert max(map(len, shares)) < 400 / value_counting.SHARES
    assert sorted(pair for share in shares for pair in pairs(share)) == [(number, 2) for number in range(400)]


def test_files_are_merged_few_at_a_time_with_windows_of_many_values(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Thousands of files at once would each give a value at a time."""
    merges: list[tuple[int, int]] = []

    def noted(parts: Sequence[Any], rows: int) -> Iterator[Any]:
        merges.append((len(parts), rows))
        return merged(parts, rows)

    for name, value in {"SHARE_BITS": 3, "SHARES": 8, "FEWEST": 16, "PIECE": 16}.items():
        monkeypatch.setattr(value_counting, name, value)
    monkeypatch.setattr(value_counting, "merged", noted)
    values = list(range(500))
    tally = Tally("C", pa.int64(), memory=0, scratch=tmp_path)
    tally.add(counted(values, [1 + value % 3 for value in values]))
    kept = value_counting.ordered(tally, Choice()).kept
    assert pairs(kept.slice(0, len(kept))) == sorted(
        ((each, 1 + each % 3) for each in values), key=lambda x: (-x[1], x[0])
    )
    assert len(merges) > 1
    assert all(parts <= value_counting.SHARES and rows >= 16 for parts, rows in merges)
    assert len(list(tmp_path.iterdir())) == 1


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.tuples(st.text("abé\U0001f600", max_size=3), st.integers(1, 4)), unique_by=lambda row: row[0]),
    parts=st.integers(1, 5),
    window=st.integers(1, 30),
)
def test_sorted_parts_are_merged_as_sorting_them_does(rows: list[tuple[str, int]], parts: int, window: int) -> None:
    expected = sorted(rows, key=lambda row: (-row[1], row[0].encode()))
    some = [expected[part::parts] for part in range(parts)]
    given_ = [counted([row[0] for row in part], [row[1] for row in part]) for part in some if part]
    with in_folder() as scratch:
        for each in (given_, [stored(part, scratch) for part in given_]):
            assert [pair for part in merged(each, window) for pair in pairs(part)] == expected


@pytest.mark.parametrize(
    "values", [["b", "", "aé", "c" * 20], [7, -(2**63), 2**63 - 1, 0], [b"\x00", b"\xff\x00", b""]]
)
def test_files_give_back_what_was_written(values: list[Any], tmp_path: Path) -> None:
    counts = counted(values, list(range(len(values))))
    mapped = stored(counts, tmp_path)
    assert pairs(mapped.slice(0, len(values))) == pairs(counts)
    assert pairs(mapped.slice(1, 2)) == pairs(counts)[1:2]
    assert mapped.wide().equals(counts.wide())
    mapped.remove()
    assert not list(tmp_path.iterdir())
    assert mapped.wide().equals(counts.wide())


def test_another_process_maps_the_files_while_they_are_there(tmp_path: Path) -> None:
    counts = counted(["b", "", "aé"], [1, 2, 3])
    mapped = stored(counts, tmp_path)
    there = pickle.dumps(mapped)
    assert pairs(pickle.loads(there).slice(0, 3)) == pairs(counts)  # noqa: S301
    mapped.remove()
    gone = pickle.dumps(mapped)
    assert pairs(pickle.loads(gone).slice(0, 3)) == pairs(counts)  # noqa: S301
    assert ["aé".encode() in data for data in (there, gone)] == [False, True]


@pytest.mark.parametrize("kind", list(KINDS.values()), ids=str)
def test_nothing_is_written_and_mapped(kind: pa.DataType, tmp_path: Path) -> None:
    mapped = stored(Counted(pa.array([], kind), np.empty(0, np.int64)), tmp_path)
    assert (len(mapped), len(mapped.wide()), len(mapped.slice(0, 0))) == (0, 0, 0)
    assert MappedTable(mapped).look_up(pa.array([None], kind).drop_null()).tolist() == []


@settings(max_examples=30, deadline=None)
@given(
    known=st.lists(st.text(max_size=3), unique=True, min_size=1), wanted=st.lists(st.text(max_size=3)),
    collide=st.booleans(),
)  # fmt: skip
def test_a_mapped_table_finds_what_one_in_memory_finds(known: list[str], wanted: list[str], collide: bool) -> None:
    values = pa.array([*wanted, *known], pa.string())
    with in_folder() as scratch, pytest.MonkeyPatch.context() as patch:
        patch.setattr(value_table, "_PIECE", 3)
        if collide:
            patch.setattr(value_table, "hashes_of", lambda strings: np.full(len(strings), 2**63 + 5, np.uint64))
        table = MappedTable(stored(counted(known, [1] * len(known)), scratch))
        found = table.look_up(values)
    assert found.tolist() == CategoryTable(pa.array(known)).look_up(values).tolist()
    assert found.tolist()[len(wanted) :] == list(range(len(known)))


def test_values_that_no_table_can_number_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(value_table, "MOST_VALUES", 1)
    with pytest.raises(ResourceError, match="2 categories are more than can be looked up, 1"):
        MappedTable(stored(counted(["a", "b"], [1, 1]), tmp_path))


@pytest.mark.parametrize("values", [["b", "a", "", "a" * 30], [5, -7, 2**40, 0]])
def test_a_vocabulary_is_restored_to_files_where_memory_is_short(
    monkeypatch: pytest.MonkeyPatch, values: list[Any]
) -> None:
    monkeypatch.setattr(vocabulary, "_PIECE", 3)
    operator = Categorify(num_buckets=2)
    fitted = learnt(operator, [{"C": categories([*values, values[2]])}], PLENTY)
    table = pa.concat_tables([each for each in [fitted.tables()["vocabulary"]] for each in (each[:1], each[1:])])
    plenty = restored_vocabulary(fitted.facts(), {"vocabulary": table})
    monkeypatch.setattr("whitewater.memory.available", lambda: 100)
    little = restored_vocabulary(fitted.facts(), {"vocabulary": table})
    assert isinstance(little._counted, MappedCounts)
    assert isinstance(plenty._counted, Counted)
    other = pa.array([*values, values[0] * 2], fitted.kind)
    assert little.ids(other).tolist() == plenty.ids(other).tolist() == fitted.ids(other).tolist()
    assert little.tables() == plenty.tables() == fitted.tables()
    assert little.id_of()(values[3]) == plenty.id_of()(values[3])


def test_a_choice_is_by_count_and_then_by_value() -> None:
    counts = counted(["b", "a", "d", "c"], [2, 2, 2, 3])
    assert pairs(Choice().of(counts)) == [("c", 3), ("a", 2), ("b", 2), ("d", 2)]
    assert pairs(Choice(most=2).of(counts)) == [("c", 3), ("a", 2)]
    assert pairs(Choice(least=3).of(counts)) == [("c", 3)]


# Limits what the process may allocate, above what it has when all code was loaded by work on a few values.
LIMITED = """
import logging, resource, sys
from pathlib import Path
import numpy as np
import pyarrow as pa
from whitewater.devices import resolve
from whitewater.devices.columns import Categories
from whitewater.recsys.operators.categorify import Categorify
from whitewater.recsys.operator import Applying, Fitting
from whitewater.recsys.schema import Field

WIDTH, ROWS, CPU = 800, 4096, resolve("cpu")
OPERATOR = Categorify()

def block(first):
    numbers = np.arange(first, first + ROWS)
    bytes_ = np.full((ROWS, WIDTH), ord("0"), np.uint8)
    bytes_[:, :10] += (numbers[:, None] // 10 ** np.arange(9, -1, -1) % 10).astype(np.uint8)
    offsets = np.arange(0, WIDTH * (ROWS + 1), WIDTH, np.int32)
    texts = pa.Array.from_buffers(pa.string(), ROWS, [None, pa.py_buffer(offsets), pa.py_buffer(bytes_)])
    odd = np.arange(1, ROWS, 2)
    return {"C": Categories(np.concatenate((np.arange(ROWS), odd)).astype(np.int32), texts)}

def blocks(values):
    return (block(first) for first in range(0, values, ROWS))

def learn(values, memory):
    (statistic,) = OPERATOR.statistics(("C",), {"C": Field("C", pa.string())})
    fitting = Fitting(CPU, memory, scratch)
    return statistic.combine([statistic.observe(blocks(values), fitting)], fitting)

def check(values, memory):
    vocabulary = learn(values, memory)
    for first in range(0, values, ROWS):
        found = OPERATOR.transform(("C",), block(first), {"C": vocabulary}, Applying(CPU))["C"].values[:ROWS]
        numbers = np.arange(first, first + ROWS)
        # Odd ones occur twice.
        assert np.array_equal(found, 3 + np.where(numbers % 2, 0, values // 2) + numbers // 2)
    return vocabulary

def allocated():
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmData"))

scratch, values, memory, more = Path(sys.argv[1]), *map(int, sys.argv[2:])
check(8 * ROWS, 1 << 20)
check(ROWS, 1 << 30)
limit = allocated() + more
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
logging.basicConfig(level="INFO")
print(check(values, memory).tables()["vocabulary"].nbytes // more, "times the limit")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA limits all allocations on Linux only")
def test_a_vocabulary_of_several_times_the_limit_of_memory_is_learnt_and_applied(tmp_path: Path) -> None:
    done = limited(tmp_path, values=1 << 17, memory=12 << 20, more=30 << 20)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 times the limit\n"
    assert "WARNING:whitewater.recsys.value_counting:C: " in done.stderr
    failed = limited(tmp_path, values=1 << 17, memory=1 << 40, more=30 << 20)
    assert failed.returncode != 0
    assert "MemoryError" in failed.stderr


def limited(folder: Path, **numbers: int) -> subprocess.CompletedProcess[str]:
    """Run it in a process of limited memory, whose allocators give back what is freed."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_MMAP_THRESHOLD_": "131072",
    }
    return subprocess.run(
        [sys.executable, "-c", LIMITED, str(folder), *map(str, numbers.values())],
        env=environment, capture_output=True, text=True, check=False
    )  # fmt: skip
