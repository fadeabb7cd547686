"""Rows R16 to R19 of the published table: the map, and the applications' programs, against independent answers."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.measure import Variant, differences
from benchmarks.pagerank import (
    corpus,
    index_variant,
    index_with_duckdb,
    index_with_whitewater,
    rank_variant,
    rank_with_networkx,
    rank_with_scipy,
    rank_with_whitewater,
    rmat,
)
from benchmarks.placement import ON_CPU, Placement, add_options, placement_of
from benchmarks.published import pagerank, recsys_features, taxi_tips, umap
from benchmarks.published.row import ProcessCase, Work, load
from benchmarks.recsys import click_log, features_variant, features_with_duckdb, features_with_whitewater
from benchmarks.taxi.simulated_months import Months
from tests.benchmarks.published import disagreements, tiny_work


def test_a_map_can_be_trusted_and_one_of_chance_or_without_a_row_cannot() -> None:
    values = umap.draw(tiny_work(Path(), scale=0.0003))
    places = np.random.default_rng(1).uniform(0, 10, (len(values), 2))
    assert umap.trust(values, places) < 0.7
    assert umap.trust(values, values) > umap.TRUSTED
    assert umap.trust(values, values[1:]) == 0


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory) -> rmat.Edges:
    return rmat.prepare(tmp_path_factory.mktemp("edges"), scale=9, edges=3000, seed=1)


def ranked(rank: Callable[[rank_variant.Work], rank_variant.Ranked], edges: Path, folder: Path) -> dict[str, Any]:
    folder.mkdir()
    found = rank(rank_variant.Work(edges, threads=2, folder=folder))
    return {"vertices": found.vertices, "edges": found.edges, "ids": found.ids, "ranks": found.ranks}


def test_networkx_scipy_and_whitewater_rank_alike(edges: rmat.Edges, tmp_path: Path) -> None:
    expected = ranked(rank_with_scipy.rank, edges.folder, tmp_path / "scipy")
    for module in (rank_with_networkx, rank_with_whitewater):
        found = ranked(module.rank, edges.folder, tmp_path / module.__name__)
        assert list(differences(found, expected, tolerance=pagerank.RANK_TOLERANCE)) == []


def test_an_edge_that_is_lost_is_noticed(edges: rmat.Edges, tmp_path: Path) -> None:
    torn = tmp_path / "torn"
    torn.mkdir()
    table = pq.read_table(edges.files[0])
    pq.write_table(table.slice(1), torn / "edges-00000.parquet")
    whole, less = (
        ranked(rank_with_scipy.rank, each, tmp_path / name) for name, each in (("a", edges.folder), ("b", torn))
    )
    assert list(differences(less, whole, tolerance=pagerank.RANK_TOLERANCE))


@pytest.fixture
def few_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "WORDS", 700)


@pytest.mark.usefixtures("few_words")
def test_whitewater_and_duckdb_build_the_same_index(tmp_path: Path) -> None:
    documents = corpus.prepare(tmp_path, documents=1_003, seed=1).folder
    found = []
    for module in (index_with_whitewater, index_with_duckdb):
        folder = tmp_path / module.__name__
        folder.mkdir()
        module.build(index_variant.Work(documents, threads=2, folder=folder))
        found.append(index_variant.inspect(folder))
    assert list(differences(found[0], found[1], tolerance=1e-9)) == []


@pytest.fixture(scope="module")
def click_work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    return tiny_work(tmp_path_factory.mktemp("clicks"), scale=3_001 / recsys_features.ROWS)


def test_whitewater_and_duckdb_make_the_same_features(click_work: Work, tmp_path: Path) -> None:
    log: click_log.ClickLog = recsys_features.log(click_work)
    found = []
    for module in (features_with_whitewater, features_with_duckdb):
        folder = tmp_path / module.__name__
        folder.mkdir()
        module.make(features_variant.Work(log.folder, threads=2, folder=folder))
        found.append(features_variant.inspect(folder))
    assert list(differences(found[0], found[1], tolerance=recsys_features.TOLERANCE)) == []


def test_all_loaders_give_every_row_once_in_another_order_each_epoch(click_work: Work) -> None:
    assert disagreements("recsys_features", "load", click_work) == []


@pytest.fixture
def no_trips(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Months:
    """Months that need not be made."""
    months = Months((tmp_path / "2019-01.parquet",), (), tmp_path / "zones.csv", 1, "")
    monkeypatch.setattr(taxi_tips, "prepare_months", lambda *_, **__: months)
    return months


def commands(row: str, case: str, work: Work) -> dict[str, Variant]:
    of = load(row).case(case)
    assert isinstance(of, ProcessCase)
    found = {variant.name: variant for variant in of.variants(work)}
    assert of.oracle in found
    return found


@pytest.mark.usefixtures("no_trips", "few_words")
@pytest.mark.parametrize(
    ("row", "case"), [("taxi_tips", ""), ("pagerank", "rank"), ("pagerank", "index"), ("recsys_features", "features")]
)
def test_on_a_gpu_ours_runs_there_beside_the_oracle_on_the_cpu(row: str, case: str, click_work: Work) -> None:
    on_cpu = commands(row, case, click_work)
    on_gpu = commands(row, case, replace(click_work, device=cast(Any, SimpleNamespace(name="gpu"))))
    ours, *others = on_gpu.values()
    assert ours.name == "whitewater"
    assert "--device gpu" in " ".join(ours.command)
    assert [each.command for each in others] == [on_cpu[each.name].command for each in others]
    assert len(others) == 1
    assert "--device" not in " ".join(on_cpu["whitewater"].command)


def test_a_placement_comes_back_from_its_options() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    for placement in (ON_CPU, Placement("gpu", '{"kind":"attach","address":"tcp://127.0.0.1:1"}')):
        assert placement_of(parser.parse_args(placement.options)) == placement
