"""Whether a row's variants fit is said before they start."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.published import row as rows
from benchmarks.published.measuring import commands
from benchmarks.published.room import require
from benchmarks.published.row import CallCase, Row, Timed, Variant, Work
from benchmarks.report import Size
from tests.benchmarks.published import tiny_work
from whitewater.engines import memory
from whitewater.errors import ResourceError


@contextmanager
def nothing(work: Work) -> Iterator[Timed]:
    yield Timed(lambda: 1)


def case_of(*variants: Variant) -> CallCase:
    """A case of 1 GB at scale 1, whose oracle is the first variant."""
    size = lambda work: Size(rows=1, bytes=round(1e9 * work.scale), basis="memory")  # noqa: E731
    return CallCase(name="join", variants=variants, oracle=variants[0].name, size=size)


def row_of(case: CallCase) -> Row:
    return Row("R6", "join_dask", "a join", (case,))


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    """Work at scale 1 where 3 GB of memory and 2 GB of disk are free."""
    monkeypatch.setattr(memory, "available", lambda: 3_000_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=2_000_000_000))
    return tiny_work(tmp_path, scale=1)


def test_variants_that_fit_are_started(work: Work) -> None:
    case = case_of(Variant("whitewater", nothing, memory=1), Variant("numpy", nothing, memory=2, disk=2))
    require(row_of(case), case, case.variants, work)
    assert [each.missing for each in commands(row_of(case), case, work)] == [None, None]


def test_variants_that_do_not_fit_together_are_refused_with_the_scale_that_fits(work: Work) -> None:
    case = case_of(Variant("whitewater", nothing, memory=2), Variant("numpy", nothing, memory=2.5))
    with pytest.raises(ResourceError, match=r"R6 join_dask, join, at scale 1 needs about 4\.50 GB of memory.* "
                                            r"Set benchmarks\.join_dask\.scale to 0\.6 at most"):  # fmt: skip
        require(row_of(case), case, case.variants, work)


def test_data_that_do_not_fit_on_the_disk_are_refused(work: Work) -> None:
    case = case_of(Variant("whitewater", nothing, disk=4))
    with pytest.raises(ResourceError, match=r"4\.00 GB of disk.*2\.00 GB are available.*scale to 0\.5 at most"):
        require(row_of(case), case, case.variants, work)


def test_a_peer_that_alone_is_too_large_is_left_out_and_named(work: Work) -> None:
    case = case_of(Variant("whitewater", nothing), Variant("numpy", nothing, memory=1000))
    require(row_of(case), case, case.variants, work)
    missing = [each.missing for each in commands(row_of(case), case, work)]
    assert missing == [None, "needs about 1.00 TB of memory, 3.00 GB are available"]


@pytest.mark.parametrize("name", ["join_dask", "svd_genotypes", "packing"])
def test_the_largest_rows_are_refused_at_the_published_size(name: str, work: Work) -> None:
    row = rows.load(name)
    case = row.cases[0]
    assert isinstance(case, CallCase)
    with pytest.raises(ResourceError, match=f"Set benchmarks.{name}.scale"):
        require(row, case, case.variants, work)
