"""Kinship equals PLINK's, relatives land in their degrees, and nothing depends on workers, tiles or slabs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from tests.helpers.genotype_folders import make_folder
from tests.helpers.genotype_stores import write_plink
from tests.helpers.plink2 import needs_plink2, plink2, read_plink
from tests.helpers.real_data import needs_real_data, real_data
from whitewater.engines import Device, resolve
from whitewater.errors import ConfigError, InputError, IntegrityError, ResourceError
from whitewater.genotypes import genotypes as genotype_folder
from whitewater.genotypes import kinship
from whitewater.genotypes.codes import SLAB_CELLS
from whitewater.genotypes.config import Relatedness
from whitewater.genotypes.kinship import BINS
from whitewater.io.store import read_json
from whitewater.step import Output, Run
from whitewater_apps.genomics.steps.relatedness import relatedness

Dosages = npt.NDArray[np.int8]
CUT_OFF = 2**-4.5
# Tests of what is computed need not have enough data for what it means.
FEW = {"minimum_samples": 2, "maximum_chance_relatives": 1e9}
# Of each family: mother and father, two children and the wife of the first, a child of theirs, and the cousin that the
# second child has with an unrelated person.
FAMILY = 8
DEGREES = {"first": {(0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (2, 5), (4, 5), (3, 7), (6, 7)},
           "second": {(0, 5), (1, 5), (3, 5), (0, 7), (1, 7), (2, 7)}, "third": {(5, 7)}}  # fmt: skip


@dataclass(frozen=True)
class Found:
    """What the step wrote."""

    kinship: pd.DataFrame
    summary: dict[str, Any]
    samples: pd.DataFrame


def children(mother: Dosages, father: Dosages, random: np.random.Generator) -> Dosages:
    """Drop one of two unlinked alleles of each parent."""
    return (random.binomial(1, mother / 2) + random.binomial(1, father / 2)).astype(np.int8)


def families(count: int, *, variants: int = 6_000, missing: float = 0.02, seed: int = 3) -> Dosages:
    """Simulate families of two populations, one after the other, and last a second call of the first sample."""
    random = np.random.default_rng(seed)
    ancestral = random.uniform(0.15, 0.85, variants)
    frequency = random.beta(9 * ancestral, 9 * (1 - ancestral), (2, variants))
    people: list[Dosages] = []
    for family in range(count):
        founders = random.binomial(2, frequency[family % 2], (4, variants)).astype(np.int8)
        mother, father, wife, partner = founders
        first, second = children(mother, father, random), children(mother, father, random)
        grandchild, cousin = children(first, wife, random), children(second, partner, random)
        people += [mother, father, first, second, wife, grandchild, partner, cousin]
    dosages = np.stack([*people, people[0]], axis=1)
    dosages[random.random(dosages.shape) < missing] = -1
    # The last tenth has all its calls.
    dosages[-variants // 10 :] = np.abs(dosages[-variants // 10 :])
    return dosages


def keep(folder: Path, kept: npt.NDArray[np.bool_]) -> Path:
    path = folder / "variants.parquet"
    variants = pd.read_parquet(folder / "genotypes" / "variants.parquet").iloc[: len(kept)]
    called = 2 * (variants[["count_0", "count_1", "count_2"]].sum(axis=1))
    frequency = (variants["count_1"] + 2 * variants["count_2"]) / called
    variants.assign(kept=kept, allele_frequency=frequency).to_parquet(path)
    return path


def run_step(
    folder: Path, dosages: Dosages, *, kept: npt.NDArray[np.bool_] | None = None, ploidy: int = 2, threads: int = 1,
    device: Device | None = None, config: dict[str, object] | None = None,
) -> Found:  # fmt: skip
    folder.mkdir(exist_ok=True)
    if not (folder / "genotypes").exists():
        make_folder(folder / "genotypes", dosages, ploidy=ploidy)
    settings = Relatedness.model_validate(FEW | (config or {}))
    run = Run("genomics", "relatedness", device or resolve("cpu"), settings, threads=threads)
    outputs = {name: Output(folder / name) for name in ("kinship", "summary", "samples")}
    variants = keep(folder, np.ones(len(dosages), bool) if kept is None else kept)
    relatedness(run, genotypes=folder / "genotypes", variants=variants, **outputs)
    tables = (pd.read_parquet(outputs[name]) for name in ("kinship", "samples"))
    return Found(next(tables), read_json(outputs["summary"]), next(tables))


def places(table: pd.DataFrame) -> pd.Series:
    """Return the pair of places, (smaller, larger), of each row."""
    columns = [table[name].str.removeprefix("S").astype(int) for name in ("sample_1", "sample_2")]
    numbers = np.sort(columns, axis=0)
    return pd.Series([*zip(*numbers.tolist(), strict=True)], index=table.index)


def king_table(dosages: Dosages, folder: Path, *options: str | float) -> pd.DataFrame:
    """Return PLINK's table of the pairs, sorted, with the names of ours."""
    prefix = write_plink(folder / "input", dosages)
    plink2("--bfile", prefix, "--make-king-table", "counts", *options, cwd=folder)
    ours = {"NSNP": "variants", "HETHET": "het_het", "IBS0": "ibs0", "KINSHIP": "kinship"}
    table = pd.read_table(folder / "plink2.kin0", comment=None).rename(columns=ours)
    return by_pairs(table.rename(columns={"IID1": "sample_1", "#IID1": "sample_1", "IID2": "sample_2"}))


def by_pairs(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(pair=places(table)).sort_values("pair", ignore_index=True)


def assert_equal(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    ours, columns = by_pairs(ours), ["pair", "variants", "het_het", "ibs0"]
    pd.testing.assert_frame_equal(ours[columns], theirs[columns])
    np.testing.assert_allclose(ours["kinship"], theirs["kinship"], rtol=0, atol=1e-6)


def kept_by_plink(dosages: Dosages, folder: Path) -> int:
    plink2("--bfile", write_plink(folder / "input", dosages), "--king-cutoff", 0.0884, cwd=folder)
    return len((folder / "plink2.king.cutoff.in.id").read_text().splitlines()) - 1


@pytest.fixture(scope="module")
def dosages() -> Dosages:
    return families(6)


@pytest.fixture(scope="module")
def found(dosages: Dosages, tmp_path_factory: pytest.TempPathFactory) -> Found:
    return run_step(tmp_path_factory.mktemp("found"), dosages)


@needs_plink2
def test_related_pairs_equal_plink(dosages: Dosages, found: Found, tmp_path: Path) -> None:
    assert_equal(found.kinship, king_table(dosages, tmp_path, "--king-table-filter", CUT_OFF))


@needs_real_data
@needs_plink2
def test_related_pairs_of_hapmap3_equal_plink(tmp_path: Path) -> None:
    dosages = read_plink(real_data("genomics", "hapmap3", "HM3_thinned_autosomal_overlap"))
    found = run_step(tmp_path, dosages, threads=2)
    assert_equal(found.kinship, king_table(dosages, tmp_path, "--king-table-filter", CUT_OFF))
    assert found.summary["unrelated"] >= kept_by_plink(dosages, tmp_path)


@needs_plink2
def test_all_pairs_equal_plink(dosages: Dosages, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "genotypes", dosages)
    run = Run("genomics", "relatedness", resolve("cpu"), Relatedness())
    with run.workers() as workers:
        rows = np.arange(folder.variants)
        pairs = kinship.kinship_of_pairs(run, folder, rows, threshold=-np.inf, workers=workers)
    theirs = king_table(dosages, tmp_path)
    order = np.lexsort((pairs.related[:, 1], pairs.related[:, 0]))
    np.testing.assert_array_equal(pairs.related[order, :2], theirs["pair"].tolist())
    np.testing.assert_array_equal(pairs.related[order, 2:], theirs[["variants", "het_het", "ibs0"]])
    np.testing.assert_allclose(pairs.kinship[order], theirs["kinship"], rtol=0, atol=1e-6)
    expected, _ = np.histogram(np.clip(pairs.kinship, -0.5, 0.5), np.arange(BINS + 1) / BINS - 0.5)
    np.testing.assert_array_equal(pairs.histogram, expected)


def test_relatives_land_in_their_degrees(found: Found) -> None:
    limits = {"duplicate": 2**-1.5, "first": 2**-2.5, "second": 2**-3.5, "third": CUT_OFF}
    degree = found.kinship["kinship"].map(lambda value: next(name for name, limit in limits.items() if value >= limit))
    by_degree = places(found.kinship).groupby(degree).agg(set).to_dict()
    expected = {
        name: {(FAMILY * family + one, FAMILY * family + other) for family in range(6) for one, other in pairs}
        for name, pairs in DEGREES.items()
    }
    for name, pairs in DEGREES.items():
        expected[name] |= {(other, 48) for one, other in pairs if one == 0}
    assert by_degree == expected | {"duplicate": {(0, 48)}}
    assert found.summary["degrees"] == {name: len(pairs) for name, pairs in by_degree.items()}
    assert found.summary["pairs"] == len(found.kinship)


def test_pairs_are_ordered_by_kinship_and_samples_by_their_source(found: Found) -> None:
    assert found.kinship["kinship"].is_monotonic_decreasing
    assert (found.kinship["sample_1"].str[1:].astype(int) < found.kinship["sample_2"].str[1:].astype(int)).all()
    assert found.samples["sample"].tolist() == [f"S{place}" for place in range(49)]
    assert list(found.kinship) == ["sample_1", "sample_2", "variants", "het_het", "ibs0", "kinship"]


def test_histogram_counts_every_pair(found: Found) -> None:
    histogram = found.summary["histogram"]
    assert sum(histogram["counts"]) + found.summary["undefined"] == 49 * 48 // 2
    assert len(histogram["edges"]) == len(histogram["counts"]) + 1


def test_no_used_samples_are_relatives(found: Found) -> None:
    used = set(found.samples.loc[found.samples["used"], "sample"])
    near = found.kinship[found.kinship["kinship"] > 0.0884]
    assert not (near["sample_1"].isin(used) & near["sample_2"].isin(used)).any()
    assert found.summary["unrelated"] == len(used)


@needs_plink2
def test_at_least_as_many_samples_are_used_as_plink_keeps(dosages: Dosages, found: Found, tmp_path: Path) -> None:
    assert found.summary["unrelated"] >= kept_by_plink(dosages, tmp_path)


@pytest.mark.parametrize(("threads", "tile"), [(1, 8), (3, 8), (2, 20), (1, 512), (3, 512)])
def test_results_do_not_depend_on_workers_tiles_slabs_and_blocks(
    threads: int, tile: int, dosages: Dosages, found: Found, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinship, "SMALLEST_TILE", tile)
        patch.setattr(kinship, "LARGEST_TILE", tile)
        patch.setattr(genotype_folder, "BLOCK_BYTES", 13 * 37)
        patch.setitem(SLAB_CELLS, "cpu", 1_500)
        again = run_step(tmp_path, dosages, threads=threads)
    pd.testing.assert_frame_equal(again.kinship, found.kinship, check_exact=True)
    pd.testing.assert_frame_equal(again.samples, found.samples, check_exact=True)
    assert again.summary == found.summary


def test_only_kept_variants_take_part_and_all_count_for_the_call_rate(dosages: Dosages, tmp_path: Path) -> None:
    kept = np.random.default_rng(8).random(len(dosages)) < 0.4
    some = run_step(tmp_path / "some", dosages, kept=kept)
    alone = run_step(tmp_path / "alone", dosages[kept])
    pd.testing.assert_frame_equal(some.kinship, alone.kinship, check_exact=True)
    np.testing.assert_allclose(some.samples["call_rate"], (dosages >= 0).mean(axis=0), rtol=1e-12)


def test_samples_without_relatives_make_an_empty_table(tmp_path: Path) -> None:
    found = run_step(tmp_path, families(2)[:, [0, 1, 4, 8, 9, 12]])
    assert found.samples["used"].all()
    assert found.kinship.dtypes.astype(str).tolist() == ["str", "str", "int64", "int64", "int64", "float64"]
    assert (len(found.kinship), found.summary["pairs"], found.summary["unrelated"]) == (0, 0, 6)


def test_a_pair_without_heterozygous_calls_is_undefined(tmp_path: Path) -> None:
    calls = np.array([[0, 0, 1], [2, 0, 1], [0, 2, 0]], np.int8)
    found = run_step(tmp_path, calls)
    assert found.summary["undefined"] == 3
    assert len(found.kinship) == 0


@pytest.mark.parametrize(("limit", "second"), [(0.02, "relative of S0"), (0.04, "")])
def test_a_limit_below_that_of_the_table_makes_relatives_too(limit: float, second: str, tmp_path: Path) -> None:
    """Of 100 heterozygous calls each 6 are in common: kinship 1/2 - (94 + 94) / 400 = 0.03."""
    calls = np.array([[1, 1]] * 6 + [[1, 0]] * 94 + [[2, 1]] * 94, np.int8)
    found = run_step(tmp_path, calls, config={"maximum_kinship": limit})
    assert found.samples["reason"].tolist() == ["", second]
    assert len(found.kinship) == 0


def strangers(variants: int, samples: int, *, least_frequency: float = 0.05) -> Dosages:
    random = np.random.default_rng(11)
    frequency = random.uniform(least_frequency, 1 - least_frequency, (variants, 1))
    return random.binomial(2, frequency, (variants, samples)).astype(np.int8)


@pytest.mark.parametrize("least_frequency", [0.02, 0.3])
def test_the_standard_error_is_the_spread_of_the_kinship_of_strangers(tmp_path: Path, least_frequency: float) -> None:
    found = run_step(tmp_path, strangers(1_500, 150, least_frequency=least_frequency))
    counts, edges = (np.array(found.summary["histogram"][key], float) for key in ("counts", "edges"))
    middles = (edges[:-1] + edges[1:]) / 2
    mean = np.average(middles, weights=counts)
    spread = np.sqrt(np.average((middles - mean) ** 2, weights=counts) - 1 / 128**2 / 12)
    assert found.summary["standard_error"] == pytest.approx(spread, rel=0.05)


def test_as_many_strangers_are_relatives_as_are_expected_by_chance(tmp_path: Path) -> None:
    found = run_step(tmp_path, strangers(300, 150))
    related = (found.kinship["kinship"] > 0.0884).sum()
    assert related == pytest.approx(found.summary["chance_pairs"], rel=0.4)
    assert related > 50


def test_other_ploidies_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ploidy 4, but KING-robust .*relatedness\.method to none"):
        run_step(tmp_path, np.ones((5, 3), np.int8), ploidy=4)


def test_without_a_method_nobody_is_a_relative_at_any_ploidy(tmp_path: Path) -> None:
    found = run_step(tmp_path, np.ones((5, 3), np.int8), ploidy=4, config={"method": "none"})
    assert found.samples["used"].all()
    assert (len(found.kinship), found.summary["pairs"], sum(found.summary["histogram"]["counts"])) == (0, 0, 0)


def test_no_kept_variant_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"keeps no variant.*Relax the rules of variant_qc"):
        run_step(tmp_path, np.ones((5, 3), np.int8), kept=np.zeros(5, bool))


def test_a_table_of_other_variants_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="has 4 rows, not 5"):
        run_step(tmp_path, np.ones((5, 3), np.int8), kept=np.ones(4, bool))


def test_too_little_memory_is_forecast(dosages: Dosages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whitewater.engines.memory.available", lambda: 1_000_000)
    with pytest.raises(ResourceError, match=r"kinship of 49 samples at 6000 variants needs about .*ld_prune\.r2"):
        run_step(tmp_path, dosages)


@pytest.mark.parametrize("samples", [1, 511, 513, 2_504, 4_097, 100_001])
def test_tiles_cover_all_samples_and_begin_at_whole_bytes(samples: int) -> None:
    tiles = kinship.split_into_tiles(samples)
    assert [tile[0] for tile in tiles] == [0, *(tile[1] for tile in tiles[:-1])]
    assert tiles[-1][1] == samples
    assert all(start % 4 == 0 and 0 < stop - start <= 2_048 for start, stop in tiles)
