"""The simulated genotypes: a published history, Mendel's rules, stated dirt, and a store that others read."""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import bio2zarr.tskit
import bio2zarr.vcz
import msprime
import numpy as np
import numpy.typing as npt
import pytest
import zarr

from whitewater.engines import resolve
from whitewater.errors import ConfigError
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import Simulate
from whitewater_apps.genomics.steps.simulate import simulate, write_vcz
from whitewater_apps.genomics.synthetic import (
    SAMPLE_CONCENTRATION,
    VARIANT_CONCENTRATION,
    Chromosome,
    american_admixture,
    chromosome_from_trees,
    draw_people,
    draw_rates,
    drop_heterozygotes,
    inherit,
    merge_neighbors,
    remove_calls,
    simulate_chromosome,
    simulate_trees,
)

Genotypes = npt.NDArray[np.int8]
POPULATIONS = ("AFR", "EUR", "ASIA", "ADMIX")
FOUNDERS = 30
SMALL = Simulate(
    samples_by_population={"AFR": 12, "EUR": 12, "ASIA": 0, "ADMIX": 6},
    families=2,
    chromosomes=3,
    chromosome_length=2e5,
    mutation_rate=2e-8,
)


def run(settings: Simulate, directory: Path) -> zarr.Group:
    """Run the step; what it writes is in the directory as simulated.vcz and labels.csv."""
    directory.mkdir()
    store, labels = Output(directory / "simulated.vcz"), Output(directory / "labels.csv")
    simulate(Run("genomics", "simulate", resolve("cpu"), settings), store=store, labels=labels)
    return zarr.open_group(store, mode="r")


def values(group: zarr.Group, name: str) -> npt.NDArray[Any]:
    array = group[name]
    assert isinstance(array, zarr.Array)
    return np.asarray(array[:])


def chromosome(number: int = 0, *, samples: int = FOUNDERS, mutation_rate: float = 5e-9) -> Chromosome:
    counts = dict.fromkeys(POPULATIONS, samples)
    random = np.random.default_rng((7, number))
    return chromosome_from_trees(simulate_trees(counts, length=1e6, mutation_rate=mutation_rate, random=random))


@pytest.fixture(scope="module")
def haplotypes() -> dict[str, Genotypes]:
    """Alternate alleles (variants, haplotypes) of each population, over six chromosomes of 1 Mb."""
    derived = np.concatenate([chromosome(number).genotypes > 0 for number in range(6)]).astype(np.int8)
    return {
        name: derived[:, FOUNDERS * place : FOUNDERS * (place + 1)].reshape(len(derived), -1)
        for place, name in enumerate(POPULATIONS)
    }


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("simulated") / "small"
    run(SMALL, path)
    return path


@pytest.fixture(scope="module")
def store(directory: Path) -> zarr.Group:
    return zarr.open_group(directory / "simulated.vcz", mode="r")


def fst(first: Genotypes, second: Genotypes) -> float:
    """Hudson's estimator, the ratio of averages (Bhatia et al. 2013, equation 10)."""
    p, q = first.mean(axis=1), second.mean(axis=1)
    within = p * (1 - p) / (first.shape[1] - 1) + q * (1 - q) / (second.shape[1] - 1)
    return float(((p - q) ** 2 - within).sum() / (p * (1 - q) + q * (1 - p)).sum())


def king(dosages: Genotypes, first: int, second: int) -> float:
    """KING-robust between two samples (Manichaikul et al. 2010, equation 11)."""
    a, b = dosages[:, first], dosages[:, second]
    a, b = a[(a >= 0) & (b >= 0)], b[(a >= 0) & (b >= 0)]
    fewer = min((a == 1).sum(), (b == 1).sum())
    shared = ((a == 1) & (b == 1)).sum() - 2 * (abs(a - b) == 2).sum()
    return float(shared / (2 * fewer) + 0.5 - ((a == 1).sum() + (b == 1).sum()) / (4 * fewer))


# The history


def test_the_populations_have_the_published_sizes() -> None:
    sizes = american_admixture().debug().population_size_trajectory([0, 11.999, 919.999, 2039, 5919, 5921])
    names = [population.name for population in american_admixture().populations]
    size = {name: sizes[:, place] for place, name in enumerate(names)}
    np.testing.assert_allclose(size["AFR"][[0, 1, 2, 3]], 14474)
    np.testing.assert_allclose(size["ADMIX"][:2], [30000 * np.exp(0.6), 30000], rtol=1e-3)
    np.testing.assert_allclose(size["EUR"][[0, 2]], [34039, 1032], rtol=1e-3)
    np.testing.assert_allclose(size["ASIA"][[0, 2]], [45852, 554], rtol=1e-3)
    assert (size["OUT_OF_AFRICA"][3], size["EXPANDED"][4], size["ANCESTRAL"][5]) == (1861, 14474, 7310)


def test_migration_is_the_published_one() -> None:
    debug = american_admixture().debug()
    today, before_the_split = (debug.epochs[epoch].migration_matrix for epoch in (0, 2))
    assert (today[0, 1], today[0, 2], today[1, 2]) == (2.5e-5, 7.8e-6, 3.11e-5)
    np.testing.assert_array_equal(today, today.T)
    assert not today[3].any()
    assert debug.epochs[2].start_time == 920
    assert before_the_split[0, 4] == before_the_split[4, 0] == 1.5e-4


def test_populations_differ_as_much_as_published(haplotypes: dict[str, Genotypes]) -> None:
    """1000 Genomes: about 0.14 between Africa and Europe, 0.11 between Europe and East Asia."""
    assert 0.11 < fst(haplotypes["AFR"], haplotypes["EUR"]) < 0.19
    assert 0.12 < fst(haplotypes["AFR"], haplotypes["ASIA"]) < 0.23
    assert 0.08 < fst(haplotypes["EUR"], haplotypes["ASIA"]) < 0.17


# From trees to a store


def test_variants_are_those_that_bio2zarr_makes_of_the_same_trees(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    trees = simulate_trees({"AFR": 5, "ADMIX": 4}, length=1e5, mutation_rate=3e-6, random=random)
    mapping = trees.map_to_vcf_model(position_transform=lambda positions: np.asarray(positions) + 1)
    bio2zarr.tskit.convert(trees, tmp_path / "theirs.vcz", model_mapping=mapping, zarr_format=3)
    theirs, ours = zarr.open_group(tmp_path / "theirs.vcz", mode="r"), chromosome_from_trees(trees)
    alleles = values(theirs, "variant_allele")
    assert alleles.shape[1] == 4
    assert len(ours.positions) > 5000
    np.testing.assert_array_equal(ours.genotypes, values(theirs, "call_genotype"))
    np.testing.assert_array_equal(ours.positions, values(theirs, "variant_position"))
    np.testing.assert_array_equal(ours.alleles, alleles)


@pytest.mark.parametrize("sizes", [[64], [1, 60, 3], [9, 9, 9, 9, 28], [0, 40, 0, 24, 0]])
def test_chunks_do_not_depend_on_the_sizes_of_the_chromosomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int]
) -> None:
    random = np.random.default_rng(0)
    given = [
        Chromosome(
            positions=np.arange(1, size + 1),
            alleles=np.array([["A", "CG", "", ""]] * size, dtype=np.dtypes.StringDType()).reshape(size, 4),
            genotypes=random.integers(-1, 2, (size, 5, 2)).astype(np.int8),
        )
        for size in sizes
    ]
    failed = [random.random(size) < 0.2 for size in sizes]
    contigs, names = {f"c{n}": 99 for n in range(len(sizes))}, [f"s{n}" for n in range(5)]
    monkeypatch.setattr("whitewater_apps.genomics.steps.simulate.CHUNK_VARIANTS", 10)
    written = write_vcz(tmp_path / "a.vcz", zip(given, failed, strict=True), contigs=contigs, samples=names)
    group = zarr.open_group(tmp_path / "a.vcz", mode="r")
    assert written == 64
    np.testing.assert_array_equal(values(group, "call_genotype"), np.concatenate([each.genotypes for each in given]))
    np.testing.assert_array_equal(values(group, "variant_contig"), np.repeat(np.arange(len(sizes)), sizes))
    np.testing.assert_array_equal(values(group, "variant_filter")[:, 1], np.concatenate(failed))
    np.testing.assert_array_equal(values(group, "sample_id"), names)
    assert values(group, "variant_allele")[5].tolist() == ["A", "CG", "", ""]
    assert values(group, "variant_id")[-1] == f"c{np.flatnonzero(sizes)[-1]}:{[size for size in sizes if size][-1]}"
    assert len(list((tmp_path / "a.vcz" / "call_genotype" / "c").iterdir())) == 7


def test_no_chunk_is_left_out(directory: Path, store: zarr.Group) -> None:
    """Also those that hold the fill value only, such as the masks of names."""
    for name, array in store.arrays():
        files = [path for path in (directory / "simulated.vcz" / name / "c").rglob("*") if path.is_file()]
        assert len(files) == array.nchunks, name


def test_the_store_is_of_the_form_of_bio2zarr(store: zarr.Group, tmp_path: Path) -> None:
    trees = msprime.sim_mutations(msprime.sim_ancestry(3, sequence_length=1e4, random_seed=1), rate=1e-3, random_seed=1)
    bio2zarr.tskit.convert(trees, tmp_path / "theirs.vcz", zarr_format=3)
    theirs = zarr.open_group(tmp_path / "theirs.vcz", mode="r")
    assert store.metadata.zarr_format == 3
    assert store.attrs["vcf_zarr_version"] == theirs.attrs["vcf_zarr_version"]
    for name, array in theirs.arrays():
        if name in ("variant_AA", "region_index"):  # of tree sequences only; an index that can be made
            continue
        ours = store[name]
        assert isinstance(ours, zarr.Array)
        assert ours.dtype.kind == array.dtype.kind, name
        assert getattr(ours.metadata, "dimension_names", None) == getattr(array.metadata, "dimension_names", None), name


def test_bio2zarr_indexes_the_store(tmp_path: Path) -> None:
    run(SMALL, tmp_path / "run")
    bio2zarr.vcz.VcfZarrIndexer(tmp_path / "run" / "simulated.vcz").create_index()
    group = zarr.open_group(tmp_path / "run" / "simulated.vcz", mode="r")
    index, counts = values(group, "region_index"), np.bincount(values(group, "variant_contig"))
    assert index[:, 1].tolist() == [0, 1, 2]
    assert index[:, 5].tolist() == counts.tolist()


# Relatives


def test_families_go_to_the_populations_in_turn() -> None:
    people = draw_people({"AFR": 5, "EUR": 2, "ADMIX": 4}, families=4, duplicates=1)
    children = [person for person in people if person.role == "child"]
    assert [each.population for each in children] == ["AFR", "AFR", "EUR", "EUR", "ADMIX", "ADMIX", "AFR", "AFR"]
    parents = [(people[each.mother].sample, people[each.father].sample) for each in children[::2]]
    assert parents == [
        ("AFR_001", "AFR_002"),
        ("EUR_001", "EUR_002"),
        ("ADMIX_001", "ADMIX_002"),
        ("AFR_003", "AFR_004"),
    ]
    assert (people[-1].role, people[people[-1].original].sample) == ("duplicate", "ADMIX_004")
    assert len({person.sample for person in people}) == len(people) == 11 + 8 + 1


@pytest.fixture(scope="module")
def family() -> tuple[npt.NDArray[np.int64], Genotypes]:
    """The founders' number and the haplotypes of ten families over twelve chromosomes."""
    people = draw_people({"AFR": 20}, families=10, duplicates=0)
    random = np.random.default_rng(11)
    whole = []
    for number in range(12):
        each = chromosome(number, samples=20)
        founders = replace(each, genotypes=each.genotypes[:, :20])
        whole.append(inherit(founders, people, crossovers=1.0, length=1e6, random=random))
    parents = np.array([[person.mother, person.father] for person in people if person.role == "child"])
    return parents, np.concatenate(whole)


def test_a_child_has_one_allele_of_each_parent(family: tuple[npt.NDArray[np.int64], Genotypes]) -> None:
    parents, haplotypes = family
    for child, (mother, father) in enumerate(parents, start=20):
        assert (haplotypes[:, mother] == haplotypes[:, child, :1]).any(axis=1).all()
        assert (haplotypes[:, father] == haplotypes[:, child, 1:]).any(axis=1).all()
        assert (haplotypes[:, mother] != haplotypes[:, child, 1:]).all(axis=1).any()


def test_kinship_is_a_quarter_in_families_and_none_between_them(
    family: tuple[npt.NDArray[np.int64], Genotypes],
) -> None:
    parents, haplotypes = family
    dosages = (haplotypes > 0).sum(axis=2).astype(np.int8)
    siblings = [king(dosages, child, child + 1) for child in range(20, 40, 2)]
    of_parents = [king(dosages, mother, child) for child, (mother, _) in enumerate(parents, start=20)]
    strangers = [king(dosages, first, second) for first, second in combinations(range(20), 2)]
    assert np.mean(siblings) == pytest.approx(0.25, abs=0.04)
    assert np.mean(of_parents) == pytest.approx(0.25, abs=0.02)
    assert np.mean(strangers) == pytest.approx(0, abs=0.04)  # biased downwards: the fewer heterozygotes divide


# Dirt


def test_a_third_allele_is_carried_where_the_next_variant_was() -> None:
    clean = Chromosome(
        positions=np.array([5, 9]),
        alleles=np.array([["A", "C", "", ""], ["G", "T", "", ""]], dtype=np.dtypes.StringDType()),
        genotypes=np.array([[[0, 1], [0, 0]], [[1, 1], [0, 1]]], np.int8),
    )
    dirty = merge_neighbors(clean, fraction=0.5, random=np.random.default_rng(0))
    assert dirty.positions.tolist() == [5]
    assert dirty.alleles.tolist() == [["A", "C", "T", ""]]
    assert dirty.genotypes.tolist() == [[[2, 1], [0, 2]]]


def in_equilibrium(variants: int, samples: int) -> Genotypes:
    random = np.random.default_rng(8)
    frequency = random.uniform(0.3, 0.7, (variants, 1, 1))
    return (random.random((variants, samples, 2)) < frequency).astype(np.int8)


def test_allelic_dropout_loses_the_stated_share_of_heterozygotes() -> None:
    clean = in_equilibrium(400, 300)
    dirty = drop_heterozygotes(clean, variants=0.25, heterozygotes=0.6, random=np.random.default_rng(1))
    before, after = ((each[..., 0] != each[..., 1]).sum(axis=1) for each in (clean, dirty))
    hit = after < before
    assert hit.sum() == 100
    np.testing.assert_array_equal(clean[~hit], dirty[~hit])
    assert after[hit].sum() / before[hit].sum() == pytest.approx(0.4, abs=0.02)
    assert dirty[hit].mean() == pytest.approx(clean[hit].mean(), abs=0.01)


def test_calls_are_missing_in_the_stated_mean_share() -> None:
    random = np.random.default_rng(6)
    clean = in_equilibrium(3000, 200)
    variants = draw_rates(3000, mean=0.05, concentration=VARIANT_CONCENTRATION, random=random)
    samples = draw_rates(200, mean=0.05, concentration=SAMPLE_CONCENTRATION, random=random)
    missing = (remove_calls(clean, rates=np.outer(variants, samples) / 0.05, random=random) < 0).all(axis=2)
    assert missing.mean() == pytest.approx(0.05, abs=0.005)
    # Heterogeneous: were all calls alike, these variances would be those of binomial shares.
    assert missing.mean(axis=1).var() > 3 * 0.05 * 0.95 / 200
    assert missing.mean(axis=0).var() > 3 * 0.05 * 0.95 / 3000


def test_the_store_has_poor_samples_failed_filters_and_third_alleles(store: zarr.Group) -> None:
    missing = values(store, "call_genotype_mask").all(axis=2)
    call_rates = np.sort(1 - missing.mean(axis=0))
    failed = values(store, "variant_filter")
    assert call_rates[:2] == pytest.approx([0.75, 0.85], abs=0.04)
    assert call_rates[2] > 0.94
    assert 0.01 < missing.mean(axis=0)[missing.mean(axis=0) < 0.1].mean() < 0.03
    assert failed.sum(axis=1).tolist() == [1] * len(failed)
    assert failed[:, 1].mean() == pytest.approx(0.03, abs=0.005)
    assert (values(store, "variant_allele")[:, 2] != "").mean() == pytest.approx(0.02, abs=0.008)
    assert values(store, "filter_id").tolist() == ["PASS", "LOW_QUALITY"]


def test_without_missing_calls_there_are_no_poor_samples() -> None:
    settings = SMALL.model_copy(update={"missing_fraction": 0.0})
    people = draw_people({"AFR": 12, "EUR": 12, "ASIA": 0, "ADMIX": 6}, families=0, duplicates=0)
    rates = draw_rates(len(people), mean=0.0, concentration=200.0, poor=(0.5,), random=np.random.default_rng(0))
    assert (simulate_chromosome(settings, people, rates, number=1)[0].genotypes >= 0).all()


# The step


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_equal_settings_give_equal_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(SMALL.model_copy(update={"seed": seed}), tmp_path / name)
    first, again, other = (files(tmp_path / name) for name in "abc")
    assert first == again
    assert first["labels.csv"] == other["labels.csv"]
    assert first["simulated.vcz/call_genotype/c/0/0/0"] != other["simulated.vcz/call_genotype/c/0/0/0"]


def test_a_chromosome_does_not_depend_on_how_many_others_there_are(tmp_path: Path, store: zarr.Group) -> None:
    alone = values(run(SMALL.model_copy(update={"chromosomes": 1}), tmp_path / "one"), "call_genotype")
    np.testing.assert_array_equal(alone, values(store, "call_genotype")[: len(alone)])


def test_the_labels_say_who_is_who_in_the_order_of_the_store(directory: Path, store: zarr.Group) -> None:
    with (directory / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["sample"] for row in rows] == values(store, "sample_id").tolist()
    assert list(rows[0].values()) == ["AFR_001", "AFR", "founder", "", ""]
    assert list(rows[30].values()) == ["family_001_child_1", "AFR", "child", "AFR_001", "AFR_002"]
    assert list(rows[-1].values()) == ["ADMIX_006_duplicate", "ADMIX", "duplicate", "", ""]


def test_a_duplicate_differs_by_faults_of_its_calls_only(store: zarr.Group) -> None:
    genotypes = values(store, "call_genotype")
    original, again = genotypes[:, 29], genotypes[:, -1]
    called = (original >= 0).all(axis=1) & (again >= 0).all(axis=1)
    different = (original[called] != again[called]).any(axis=1)
    assert different.mean() < 0.02
    dosages = np.where((genotypes < 0).any(axis=2), -1, (genotypes > 0).sum(axis=2)).astype(np.int8)
    assert king(dosages, 29, genotypes.shape[1] - 1) > 0.45


def test_no_mutation_at_all_is_refused(tmp_path: Path) -> None:
    settings = SMALL.model_copy(update={"mutation_rate": 1e-15})
    with pytest.raises(ConfigError, match="Raise chromosome_length or mutation_rate"):
        run(settings, tmp_path / "none")


@pytest.mark.parametrize(
    ("samples", "families", "message"),
    [((3, 5, 0, 0), 4, "makes only 3 pairs"), ((0, 0, 0, 0), 0, "has 0 in all")],
)
def test_too_few_samples_are_refused(samples: tuple[int, ...], families: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Simulate(samples_by_population=dict(zip(POPULATIONS, samples, strict=True)), families=families, duplicates=0)
