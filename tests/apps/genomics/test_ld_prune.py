"""The variants kept are those that PLINK keeps, whatever the blocks and workers, and no two of them are linked."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from tests.helpers.genotype_folders import linked_dosages, make_folder
from tests.helpers.genotype_stores import numbered_sites, write_plink
from tests.helpers.plink2 import needs_plink2, needs_plink19, plink2, plink19, read_plink
from tests.helpers.real_data import needs_real_data, real_data
from whitewater.engines import resolve
from whitewater.errors import InputError, IntegrityError
from whitewater.genotypes.linkage import prune as prune_contig
from whitewater.genotypes.linkage import thin, window_ends
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import LdPrune, VariantQc
from whitewater_apps.genomics.steps import ld_prune as module
from whitewater_apps.genomics.steps.ld_prune import find_linked_pairs, ld_prune
from whitewater_apps.genomics.steps.variant_qc import variant_qc

CPU = resolve("cpu")
Dosages = npt.NDArray[np.int8]


def quality_control(folder: Path, **rules: Any) -> Path:
    """Decide on the variants of a folder; keep all that are not constant where no rules are given."""
    decisions = folder.with_name("variant_qc.parquet")
    everything = {"minimum_call_rate": 0, "minimum_allele_frequency": 0, "minimum_allele_count": 1}
    run = Run("genomics", "variant_qc", CPU, VariantQc(**{**everything, **rules}))
    variant_qc(run, genotypes=folder, variants=Output(decisions))
    return decisions


def prune(folder: Path, decisions: Path, *, threads: int = 2, **values: Any) -> pd.DataFrame:
    run = Run("genomics", "ld_prune", CPU, LdPrune(**values), threads)
    pruned = folder.with_name("variants.parquet")
    ld_prune(run, genotypes=folder, variants=decisions, pruned=Output(pruned))
    table = pd.read_parquet(pruned)
    assert run.facts["kept"] + run.facts["pruned"] == run.facts["candidates"]
    assert run.facts["kept"] == table["kept"].sum()
    return table


def windows(variants: int, *, size: int, step: int) -> list[tuple[int, int]]:
    """Return the windows over a contig, up to the first that reaches its end."""
    starts = range(0, max(1, variants - size + step), step)
    return [(start, min(start + size, variants)) for start in starts]


def squared_correlations(dosages: Dosages) -> npt.NDArray[np.float64]:
    """Return r2 of all pairs over the samples called in both, NaN where one is constant there."""
    called = (dosages >= 0).astype(float)
    values = np.where(dosages >= 0, dosages, 0).astype(float)
    shared, sums, squares = called @ called.T, values @ called.T, values**2 @ called.T
    covariance = shared * (values @ values.T) - sums * sums.T
    variance = shared * squares - sums**2
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation: npt.NDArray[np.float64] = covariance**2 / (variance * variance.T)
    return correlation


def kept_by_plink(folder: Path, dosages: Dosages, contigs: list[str], *arguments: float) -> tuple[list[str], list[str]]:
    """Return the ids that PLINK 1.9 and PLINK 2 keep."""
    write_plink(folder / "plink", dosages, sites=numbered_sites(len(dosages), contigs=contigs))
    plink19("--bfile", "plink", "--indep-pairwise", *arguments, cwd=folder)
    plink2("--bfile", "plink", "--indep-pairwise", *arguments, cwd=folder)
    first, second = ((folder / f"{name}.prune.in").read_text().split() for name in ("plink", "plink2"))
    return first, second


@needs_plink2
@needs_plink19
@pytest.mark.parametrize(
    ("samples", "window", "step", "r2"),
    [(60, 50, 5, 0.2), (90, 60, 17, 0.05), (150, 12, 12, 0.1), (80, 30, 1, 0.05), (55, 1000, 5, 0.1), (70, 2, 1, 0.3)],
)
def test_the_kept_set_is_plinks(tmp_path: Path, samples: int, window: int, step: int, r2: float) -> None:
    dosages = linked_dosages(500, samples, seed=samples)
    contigs = ["1"] * 211 + ["2"] * 230 + ["7"] * 59
    folder = make_folder(tmp_path / "data", dosages, columns={"contig": contigs})
    table = prune(folder.path, quality_control(folder.path), window=window, step=step, r2=r2)
    first, second = kept_by_plink(tmp_path, dosages, contigs, window, step, r2)
    assert table["id"][table["kept"]].tolist() == first == second
    assert 0 < len(first) < 500


@needs_plink2
@needs_plink19
def test_only_variants_that_passed_take_part(tmp_path: Path) -> None:
    dosages = linked_dosages(600, 100, seed=5)
    folder = make_folder(tmp_path / "data", dosages)
    decisions = quality_control(folder.path, minimum_allele_frequency=0.3)
    passed = pd.read_parquet(decisions)["kept"].to_numpy()
    assert 0.2 < passed.mean() < 0.8
    table = prune(folder.path, decisions, window=40, step=4, r2=0.1)
    theirs, _ = kept_by_plink(tmp_path, dosages[passed], ["1"] * int(passed.sum()), 40, 4, 0.1)
    assert np.flatnonzero(table["kept"]).tolist() == np.flatnonzero(passed)[[int(name[1:]) for name in theirs]].tolist()
    assert all(list(each) == ["allele frequency"] for each in table["reasons"][~passed])


def test_no_two_kept_variants_of_a_window_are_linked_and_partners_are_linked(tmp_path: Path) -> None:
    dosages = linked_dosages(400, 80, seed=2, switch=0.02)
    folder = make_folder(tmp_path / "data", dosages)
    decisions = quality_control(folder.path, minimum_allele_frequency=0.2)
    passed = np.flatnonzero(pd.read_parquet(decisions)["kept"])
    table = prune(folder.path, decisions, window=40, step=10, r2=0.15)
    linked = squared_correlations(dosages) > 0.15
    together = np.zeros((400, 400), bool)
    for start, stop in windows(len(passed), size=40, step=10):
        together[np.ix_(passed[start:stop], passed[start:stop])] = True
    np.fill_diagonal(linked, val=False)
    kept, partner = table["kept"].to_numpy(), table["ld_partner"].to_numpy()
    assert not (linked & together)[np.ix_(kept, kept)].any()
    pruned = np.setdiff1d(passed, np.flatnonzero(kept))
    has_kept_partner = (linked & together)[pruned][:, kept].any(axis=1)
    assert ((partner[pruned] >= 0) == has_kept_partner).all()
    with_partner = pruned[partner[pruned] >= 0]
    assert len(with_partner) > 100
    assert (linked & together)[with_partner, partner[with_partner]].all()
    assert kept[partner[with_partner]].all()
    assert (partner[kept] == -1).all()
    assert all(list(each) == ["linkage disequilibrium"] for each in table["reasons"][pruned])
    assert all(list(each) == [] for each in table["reasons"][kept])


@pytest.mark.parametrize(("threads", "task_bytes", "task_windows"), [(1, 1, 1), (3, 4_000, 1), (2, 1, 3)])
def test_blocks_and_workers_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, task_bytes: int, task_windows: int
) -> None:
    contigs = ["1"] * 33 + ["2"] * 300 + ["3"] * 1 + ["4"] * 166
    folder = make_folder(tmp_path / "data", linked_dosages(500, 70, seed=8), columns={"contig": contigs})
    decisions = quality_control(folder.path, minimum_allele_frequency=0.1)
    values: dict[str, Any] = {"window": 25, "step": 7, "r2": 0.05}
    whole = prune(folder.path, decisions, **values)
    monkeypatch.setitem(module.TASK_BYTES, "cpu", task_bytes)
    monkeypatch.setattr(module, "TASK_WINDOWS", task_windows)
    pd.testing.assert_frame_equal(prune(folder.path, decisions, threads=threads, **values), whole)


def test_contigs_are_pruned_as_if_each_were_alone(tmp_path: Path) -> None:
    dosages = linked_dosages(330, 70, seed=9)
    values: dict[str, Any] = {"window": 25, "step": 7, "r2": 0.05}
    kept = []
    for name, rows, contigs in (
        ("both", slice(0, 330), ["1"] * 130 + ["2"] * 200),
        ("first", slice(0, 130), ["1"] * 130),
        ("second", slice(130, 330), ["2"] * 200),
    ):
        folder = make_folder(tmp_path / name / "data", dosages[rows], columns={"contig": contigs})
        kept.append(prune(folder.path, quality_control(folder.path), **values)["kept"].tolist())
    assert kept[0] == kept[1] + kept[2]
    assert 0 < sum(kept[0]) < 330


def test_a_device_with_memory_of_its_own_finds_the_same_pairs(tmp_path: Path) -> None:
    dosages = linked_dosages(90, 40, seed=6)
    folder = make_folder(tmp_path / "data", dosages)
    rows = np.flatnonzero(np.arange(90) % 3)
    stops = np.minimum(np.arange(60) + 10, 60).astype(np.int32)
    with stand_in_for_cupy():
        by_device = [
            find_linked_pairs((20, 45), rows=rows, stops=stops, folder=folder, threshold=0.1, device=device)
            for device in (CPU, StrictDevice())
        ]
    r2 = squared_correlations(dosages[rows])
    pairs = [[row, col] for row in range(20, 45) for col in range(row + 1, stops[row]) if r2[row, col] > 0.1]
    assert by_device[0].tolist() == by_device[1].tolist() == pairs
    assert len(pairs) > 10


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_pruning_equals_the_rounds_of_its_description(data: st.DataObject) -> None:
    variants = data.draw(st.integers(1, 60))
    size = data.draw(st.integers(2, 25))
    step = data.draw(st.integers(1, size))
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    linked = np.triu(generator.random((variants, variants)) < generator.uniform(0, 0.5), 1)
    rarer, called = generator.integers(1, 8, variants), generator.integers(16, 18, variants)

    expected = np.ones(variants, bool)
    ends = window_ends(variants, size=size, step=step)
    pairs = np.array([(row, col) for row, col in np.argwhere(linked).tolist() if col < ends[row]], np.int32)
    kept, partners = prune_contig(pairs.reshape(-1, 2), size=size, step=step, rarer=rarer, called=called)
    met, winner = linked.copy(), np.full(variants, -1)
    for start, stop in windows(variants, size=size, step=step):
        while any(expected[row] and (met[row, :stop] & expected[:stop]).any() for row in range(start, stop)):
            for row in range(start, stop):
                left = np.flatnonzero(met[row, :stop] & expected[:stop] & expected[row])
                if len(left):
                    met[row, left[0]] = False
                    loses = rarer[row] / called[row] < rarer[left[0]] / called[left[0]]
                    loser, won = (row, left[0]) if loses else (left[0], row)
                    expected[loser], winner[loser] = False, won
    assert kept.tolist() == expected.tolist()
    assert (partners[kept] == -1).all()
    compared = linked & (np.arange(variants) < ends[:, None])
    for row in np.flatnonzero(~kept).tolist():
        others = np.flatnonzero((compared | compared.T)[row] & kept)
        first = others[0] if len(others) else -1
        assert partners[row] == (winner[row] if kept[winner[row]] else first)


def test_distance_keeps_variants_that_are_far_enough_from_the_last_kept_one(tmp_path: Path) -> None:
    positions = [10, 15, 19, 20, 29, 30, 5, 14, 15]
    columns = {"position": positions, "contig": ["1"] * 6 + ["2"] * 3}
    folder = make_folder(tmp_path / "data", linked_dosages(9, 8, seed=1), columns=columns)
    table = prune(folder.path, quality_control(folder.path), method="distance", minimum_distance=10)
    assert table["kept"].tolist() == [True, False, False, True, False, True, True, False, True]
    assert table["ld_partner"].tolist() == [-1, 0, 0, -1, 3, -1, -1, 6, -1]
    assert list(table["reasons"][1]) == ["closer than 10 bases"]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 50)), min_size=1), st.integers(0, 20))
@settings(deadline=None)
def test_thinning_equals_a_walk(sites: list[tuple[int, int]], distance: int) -> None:
    sites.sort()
    last: dict[int, int] = {}
    expected = []
    for row, (contig, position) in enumerate(sites):
        if contig in last and position - sites[last[contig]][1] < distance:
            expected.append(last[contig])
        else:
            last[contig] = row
            expected.append(-1)
    contigs, positions = np.array(sites).T
    assert thin(contigs, positions, minimum_distance=distance).tolist() == expected


def test_method_none_keeps_everything_in_any_order(tmp_path: Path) -> None:
    columns = {"position": [9, 5, 7], "contig": ["1", "2", "1"]}
    folder = make_folder(tmp_path / "data", linked_dosages(3, 8, seed=1), columns=columns)
    table = prune(folder.path, quality_control(folder.path), method="none")
    assert table["kept"].all()
    assert (table["ld_partner"] == -1).all()


def test_decisions_on_other_variants_are_refused(tmp_path: Path) -> None:
    dosages = linked_dosages(30, 8, seed=1)
    decisions = quality_control(make_folder(tmp_path / "data", dosages).path)
    for rows, columns, message in (
        (29, {}, "has 30 rows, not 29"),
        (30, {"id": [f"v{row}" for row in range(29)] + ["other"]}, "column id differs"),
        (30, {"position": np.arange(2, 32)}, "column position differs"),
    ):
        shutil.rmtree(tmp_path / "data")
        folder = make_folder(tmp_path / "data", dosages[:rows], columns=columns)
        with pytest.raises(IntegrityError, match=message):
            prune(folder.path, decisions)


def test_decisions_that_keep_nothing_are_refused(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "data", linked_dosages(3, 8, seed=1))
    decisions = quality_control(folder.path)
    pd.read_parquet(decisions).assign(kept=False).to_parquet(decisions)
    with pytest.raises(InputError, match="keeps no variant"):
        prune(folder.path, decisions)


def test_decisions_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "data", linked_dosages(3, 8, seed=1))
    (tmp_path / "variant_qc.parquet").write_bytes(b"PAR1 not at all")
    with pytest.raises(InputError, match=r"variant_qc\.parquet .*cannot be read"):
        prune(folder.path, tmp_path / "variant_qc.parquet")


@needs_real_data
@needs_plink2
@needs_plink19
@pytest.mark.parametrize(("r2", "pruned"), [(0.2, 0), (0.02, 1_000)])
def test_the_kept_set_of_hapmap3_is_plinks(tmp_path: Path, r2: float, pruned: int) -> None:
    """The data were thinned before: at 0.2 no variant is left to prune."""
    source = real_data("genomics", "hapmap3", "HM3_thinned_autosomal_overlap")
    sites = pd.read_csv(f"{source}.bim", sep=r"\s+", header=None, dtype={0: "str"})
    columns = {"contig": sites[0], "position": sites[3], "id": sites[1], "alternate": sites[4], "reference": sites[5]}
    folder = make_folder(tmp_path / "data", read_plink(source), columns=columns)
    table = prune(folder.path, quality_control(folder.path), window=50, step=5, r2=r2)
    ours = table["id"][table["kept"]].tolist()
    assert len(ours) <= 14_079 - pruned
    for program, name in ((plink19, "plink"), (plink2, "plink2")):
        program("--bfile", source, "--indep-pairwise", 50, 5, r2, cwd=tmp_path)
        assert ours == (tmp_path / f"{name}.prune.in").read_text().split()
