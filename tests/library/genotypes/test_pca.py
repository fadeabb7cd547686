"""Principal components: definitions, and what the result must not depend on."""

import json
import logging
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.helpers.genotype_structures import (
    Dosages,
    components_of,
    exact,
    scaled,
    shared,
    simulate,
    write_folder,
    write_samples,
)
from whitewater.engines import Device, memory, resolve
from whitewater.errors import InputError, IntegrityError, ResourceError
from whitewater.genotypes import genotypes as genotype_folder
from whitewater.genotypes import kernels_gpu
from whitewater.genotypes.codes import SLAB_CELLS
from whitewater.genotypes.config import Pca, Scaling
from whitewater.genotypes.pca import passes
from whitewater.genotypes.pca.components import (
    choose_solver,
    count_structure,
    fix_signs,
    variance_is_captured,
)
from whitewater.genotypes.pca.passes import Partition, ScaledGenotypes, compute_scaling, scaled_dosages
from whitewater.step import Output, Run
from whitewater_apps.genomics.steps.pca import pca

DOSAGES = simulate("populations", samples=121, variants=3_000, missing=0.05)
GRAM, RANDOMIZED = Pca(components=3, solver="gram"), Pca(components=3, solver="randomized")


def run_pca(
    folder: Path, dosages: Dosages, settings: Pca, *, threads: int = 1, used: npt.NDArray[np.bool_] | None = None
) -> dict[str, Path]:
    """Run the step; return its outputs by name."""
    if not (folder / "g").exists():
        write_folder(folder / "g", dosages)
    samples = write_samples(folder / "samples.parquet", np.ones(dosages.shape[1], bool) if used is None else used)
    out = {name: folder / f"{threads}-{name}" for name in ("pcs", "eigenvalues", "loadings", "selected")}
    run = Run("genomics", "pca", resolve("cpu"), settings, threads)
    pca(run, packed=folder / "g", samples=samples, **{name: Output(path) for name, path in out.items()})
    return out


@pytest.mark.parametrize("solver", ["gram", "randomized"])
def test_outputs_describe_the_components_of_the_samples_used(tmp_path: Path, solver: Literal["gram"]) -> None:
    used = np.arange(DOSAGES.shape[1]) % 5 > 0
    out = run_pca(tmp_path, DOSAGES, Pca(components=3, solver=solver), used=used)
    values, vectors = exact(scaled(DOSAGES[:, used]))
    found = json.loads(out["eigenvalues"].read_text())
    np.testing.assert_allclose(found["eigenvalues"], values[:3], rtol=1e-6)
    np.testing.assert_allclose(found["total_variance"], values.sum(), rtol=1e-6)
    np.testing.assert_allclose(found["explained_variance_ratio"], values[:3] / values.sum(), rtol=1e-6)
    assert (found["samples"], found["solver"]) == (used.sum(), solver)
    assert found["variants"] == scaled(DOSAGES[:, used]).shape[1]
    assert found["significant_components"] == 3
    assert [test["component"] for test in found["tracy_widom"]] == [1, 2, 3]
    assert (found["residuals"] is None) == (solver == "gram")
    table = pd.read_parquet(out["pcs"])
    assert table.columns.tolist() == ["sample", "label", "PC1", "PC2", "PC3"]
    assert table["sample"].tolist() == [f"S{at}" for at in np.flatnonzero(used)]
    expected = fix_signs(vectors[:, :3]) * np.sqrt(values[:3])
    np.testing.assert_allclose(table[["PC1", "PC2", "PC3"]], expected, atol=1e-4)
    assert pd.read_parquet(out["selected"])["used"].tolist() == used.tolist()


def test_slabs_cover_a_share_and_are_cut_from_larger_pieces(
    tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path / "g", DOSAGES)
    share, expected = Partition(folder, 100, 2_950, device), folder.read(100, 2_950).codes
    reads, read = [], passes.read_codes

    def counted(folder: genotype_folder.GenotypeFolder, start: int, stop: int, device: Device) -> npt.NDArray[np.uint8]:
        reads.append((start, stop))
        return read(folder, start, stop, device)

    monkeypatch.setattr(passes, "read_codes", counted)
    monkeypatch.setattr(passes, "PIECE_BYTES", 1_000 * folder.row_bytes)
    for rows, pieces in ((300, [100, 1_000, 1_900, 2_800, 2_950]), (1_200, [100, 1_300, 2_500, 2_950])):
        for each, read_as in ((share, [*pairwise(pieces)]), (share.load_codes(), [])):
            reads.clear()
            slabs = [(at, device.to_host(slab.codes)) for at, slab in each.slabs(rows)]
            assert reads == read_as
            assert [at for at, _ in slabs] == [*range(0, len(expected), rows)]
            assert max(len(codes) for _, codes in slabs) == rows
            np.testing.assert_array_equal(np.concatenate([codes for _, codes in slabs]), expected)


@pytest.mark.parametrize("solver", ["gram", "randomized"])
def test_passes_are_as_often_as_the_genotypes_were_read_and_a_gpu_reads_them_once(
    tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch, solver: Literal["gram"]
) -> None:
    reads, read = [], genotype_folder.GenotypeFolder.read_into

    def counted(folder: genotype_folder.GenotypeFolder, codes: npt.NDArray[np.uint8], start: int) -> None:
        reads.append((start, start + len(codes)))
        read(folder, codes, start)

    monkeypatch.setattr(genotype_folder.GenotypeFolder, "read_into", counted)
    found = components_of(write_folder(tmp_path / "g", DOSAGES), Pca(components=3, solver=solver), device)
    counting = 1
    assert reads == [(0, len(DOSAGES))] * (counting + found.spectrum.passes if device.name == "cpu" else 1)


@pytest.mark.parametrize("settings", [GRAM, RANDOMIZED])
def test_results_are_equal_to_the_bit_however_little_is_read_at_once(
    tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch, settings: Pca
) -> None:
    folder = write_folder(tmp_path / "g", DOSAGES)
    whole = components_of(folder, settings, device)
    monkeypatch.setitem(SLAB_CELLS, device.name, 500 * DOSAGES.shape[1])
    slabs = components_of(folder, settings, device)
    for module in (passes, kernels_gpu):
        monkeypatch.setattr(module, "PIECE_BYTES", 1)
    np.testing.assert_array_equal(components_of(folder, settings, device).scores, slabs.scores)
    np.testing.assert_allclose(slabs.scores, whole.scores, atol=1e-4)


@pytest.mark.parametrize("settings", [GRAM, RANDOMIZED])
def test_results_are_equal_to_the_bit_for_any_number_of_threads(
    tmp_path: Path, settings: Pca, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(genotype_folder, "BLOCK_BYTES", 1)
    runs = [run_pca(tmp_path, DOSAGES, settings, threads=threads) for threads in (1, 2, 5)]
    for name in ("pcs", "eigenvalues"):
        assert len({out[name].read_bytes() for out in runs}) == 1, name


@pytest.mark.parametrize("settings", [GRAM, RANDOMIZED])
def test_packing_and_order_of_variants_and_samples_do_not_matter(tmp_path: Path, device: Device, settings: Pca) -> None:
    order = np.random.default_rng(2).permutation(DOSAGES.shape[1])
    expected = components_of(write_folder(tmp_path / "two_bit", DOSAGES), settings, device)
    for name, folder in {
        "int8": write_folder(tmp_path / "int8", DOSAGES, encoding="int8"),
        "permuted": write_folder(tmp_path / "variants", np.random.default_rng(1).permutation(DOSAGES)),
    }.items():
        found = components_of(folder, settings, device)
        np.testing.assert_allclose(found.spectrum.eigenvalues, expected.spectrum.eigenvalues, rtol=1e-6, err_msg=name)
        np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5, err_msg=name)
    found = components_of(write_folder(tmp_path / "samples", DOSAGES[:, order]), settings, device)
    np.testing.assert_allclose(found.scores, expected.scores[order], atol=1e-4)


def test_scores_of_structure_do_not_depend_on_the_seed(tmp_path: Path, device: Device) -> None:
    folder = write_folder(tmp_path / "g", DOSAGES)
    settings = [Pca(components=3, solver="randomized", tolerance=1e-6, seed=seed) for seed in (0, 12)]
    one, two = (components_of(folder, each, device) for each in settings)
    assert one.spectrum.converged.all()
    np.testing.assert_allclose(one.scores, two.scores, rtol=0, atol=1e-5 * np.abs(one.scores).max())


@pytest.mark.parametrize("encoding", ["two_bit", "int8"])
@hypothesis_settings(max_examples=15, deadline=None)
@given(samples=st.integers(3, 40), variants=st.integers(1, 700), seed=st.integers(0, 1000))
def test_the_operator_and_its_adjoint_belong_to_one_matrix(
    tmp_path_factory: pytest.TempPathFactory, encoding: Literal["two_bit"], samples: int, variants: int, seed: int
) -> None:
    """<X'x, X'y> = m <x, K y>, where K y takes X after X', and X'x is that of a matrix made element by element."""
    rng = np.random.default_rng(seed)
    dosages = rng.integers(-1, 3, (variants, samples)).astype(np.int8)
    folder = write_folder(tmp_path_factory.mktemp("a") / "g", dosages, encoding=encoding)
    used = rng.random(samples) < 0.7
    used[:2] = True
    table = rng.normal(size=(variants, 4)).astype(np.float32)
    table[:, 3] = 0
    genotypes = ScaledGenotypes(shared(folder, resolve("cpu")), table, used, 7)
    matrix = np.take_along_axis(table.astype(float), dosages.astype(int) % 4, axis=1)[:, used]
    one, two = rng.normal(size=(2, int(used.sum()), 2))
    forward = np.concatenate([*genotypes.transpose_times(one)])
    np.testing.assert_allclose(forward, matrix @ one, atol=1e-4)
    left = (forward * np.concatenate([*genotypes.transpose_times(two)])).sum()
    right = 7 * (one * genotypes.covariance_times(two)).sum()
    size = np.linalg.norm(matrix @ one) * np.linalg.norm(matrix @ two)
    assert abs(left - right) <= 1e-6 * size
    np.testing.assert_allclose(7 * genotypes.covariance(), matrix.T @ matrix, atol=1e-3)


def test_scale_follows_the_convention_of_patterson(tmp_path: Path, device: Device) -> None:
    dosages = DOSAGES[:500]
    settings = GRAM.model_copy(update={"scaling": Scaling(frequency="patterson")})
    found = components_of(write_folder(tmp_path / "g", dosages), settings, device)
    for row, dosage in enumerate(dosages[:50]):
        called = dosage[dosage >= 0].astype(float)
        p = (1 + called.sum()) / (2 + 2 * len(called))
        assert found.scaling["mean"][row] == pytest.approx(called.mean())
        assert found.scaling["scale"][row] == pytest.approx(1 / np.sqrt(2 * p * (1 - p)))


def test_without_scaling_the_variance_is_that_of_the_dosages(tmp_path: Path, device: Device) -> None:
    dosages = simulate("cline", samples=60, variants=800, missing=0.0)
    settings = GRAM.model_copy(update={"scaling": Scaling(variance="none")})
    found = components_of(write_folder(tmp_path / "g", dosages), settings, device)
    varying = dosages[dosages.std(axis=1) > 0]
    assert found.total == pytest.approx(60 * varying.var(axis=1).mean())


def test_constant_variants_and_those_without_calls_do_not_count() -> None:
    counts = np.array([[9, 0, 0, 1], [0, 9, 0, 1], [0, 0, 0, 10], [5, 4, 0, 1]], np.int32)
    found = compute_scaling(counts, Scaling())
    assert (found["scale"] > 0).tolist() == [False, False, False, True]
    table = scaled_dosages(found, ploidy=2)
    assert (table[:3] == 0).all()
    assert (table[:, 3] == 0).all()


@pytest.mark.parametrize(("ploidy", "settings"), [(1, GRAM), (4, GRAM), (4, RANDOMIZED)])
def test_other_ploidies(tmp_path: Path, device: Device, ploidy: int, settings: Pca) -> None:
    rng = np.random.default_rng(3)
    p = rng.uniform(0.2, 0.8, (1_500, 4))[:, rng.integers(0, 4, 90)]
    dosages = rng.binomial(ploidy, p).astype(np.int8)
    dosages[rng.random(dosages.shape) < 0.05] = -1
    folder = write_folder(tmp_path / "g", dosages, encoding="int8", ploidy=ploidy)
    values, _ = exact(scaled(dosages, ploidy=ploidy))
    found = components_of(folder, settings, device)
    np.testing.assert_allclose(found.spectrum.eigenvalues, values[:3], rtol=1e-6)


@pytest.mark.parametrize("settings", [GRAM, RANDOMIZED])
def test_copies_of_samples_score_alike(tmp_path: Path, device: Device, settings: Pca) -> None:
    dosages = np.repeat(DOSAGES[:, :40], 3, axis=1)
    found = components_of(write_folder(tmp_path / "g", dosages), settings, device)
    np.testing.assert_allclose(found.scores[0::3], found.scores[1::3], atol=1e-5)
    values, _ = exact(scaled(dosages))
    np.testing.assert_allclose(found.spectrum.eigenvalues, values[:3], rtol=1e-4)


def test_all_components_can_be_had(tmp_path: Path, device: Device) -> None:
    dosages = DOSAGES[:, :12]
    values, _ = exact(scaled(dosages))
    for solver in ("gram", "randomized"):
        found = components_of(write_folder(tmp_path / solver, dosages), Pca(components=11, solver=solver), device)
        np.testing.assert_allclose(found.spectrum.eigenvalues, values[:11], rtol=1e-5)


def test_the_largest_score_of_a_component_is_positive_and_the_first_of_ties() -> None:
    vectors = np.array([[0.5, -0.7], [-0.9, 0.1], [0.9 * (1 + 1e-8), 0.7]])
    np.testing.assert_array_equal(fix_signs(vectors), vectors * [-1, -1])


def test_components_that_do_not_converge_are_named(
    tmp_path: Path, device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    settings = RANDOMIZED.model_copy(update={"maximum_passes": 2})
    with caplog.at_level(logging.WARNING):
        found = components_of(write_folder(tmp_path / "g", DOSAGES), settings, device)
    assert not found.spectrum.converged.all()
    assert "PC" in caplog.text
    assert "maximum_passes" in caplog.text


def test_variance_to_come_is_extrapolated() -> None:
    still = np.array([True])
    assert variance_is_captured([np.array([x]) for x in (1.0, 1.001, 1.0011, 1.00111)], unconverged=still)
    assert not variance_is_captured([np.array([x]) for x in (1.0, 1.001, 1.002, 1.003)], unconverged=still)
    assert not variance_is_captured([np.array([x]) for x in (1.0, 1.1, 1.12)], unconverged=still)


def test_structure_is_what_stands_above_the_bulk_of_a_wishart_matrix() -> None:
    rng = np.random.default_rng(0)
    for spikes in (0, 2):
        deviations = np.r_[np.full(spikes, 2.5), np.ones(300 - spikes)][:, None]
        noise = deviations * rng.normal(size=(300, 2_000))
        values = np.sort(np.linalg.eigvalsh(noise @ noise.T / 2_000))[::-1]
        found = count_structure(values[:10], total=values.sum(), samples=301, effective_variants=np.full(10, 2_000.0))
        assert found == spikes


def test_a_weak_component_that_still_grows_is_not_hidden_by_strong_ones() -> None:
    growing = [np.array([5_000.0, x]) for x in (0.9, 1.0, 1.02)]
    assert not variance_is_captured(growing, unconverged=np.array([False, True]))


@pytest.mark.parametrize(
    ("dosages", "settings", "expected"),
    [
        (DOSAGES[:, :3], GRAM, "at most 2 components"),
        (DOSAGES[:2], GRAM, "2 variants"),
        (np.zeros((50, 20), np.int8), GRAM, "0 variants"),
        (np.repeat(DOSAGES[:, :3], 5, axis=1), GRAM, "2 components with variance"),
        (np.repeat(DOSAGES[:, :3], 5, axis=1), RANDOMIZED, "2 components with variance"),
    ],
)
def test_too_many_components_are_refused_with_a_remedy(
    tmp_path: Path, device: Device, dosages: Dosages, settings: Pca, expected: str
) -> None:
    with pytest.raises(InputError, match=expected) as error:
        components_of(write_folder(tmp_path / "g", dosages), settings, device)
    assert "components" in str(error.value)


def test_what_does_not_fit_into_memory_is_refused_before_the_first_pass(
    tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available", lambda: 100_000)
    with pytest.raises(ResourceError, match=r"pca\.solver to randomized"):
        components_of(write_folder(tmp_path / "g", DOSAGES), GRAM, device)


def test_samples_of_another_folder_are_refused(tmp_path: Path) -> None:
    write_folder(tmp_path / "g", DOSAGES[:, :50])
    with pytest.raises(IntegrityError, match="not of the samples"):
        run_pca(tmp_path, DOSAGES, GRAM)


def test_few_samples_are_solved_exactly_and_many_by_passes() -> None:
    for samples, variants, solver in ((900, 14_000, "gram"), (2_504, 200_000, "randomized")):
        shape = {"samples": samples, "columns": samples, "variants": variants}
        assert choose_solver(Pca(), **shape)[0] == solver
        assert choose_solver(Pca(solver="randomized"), **shape)[0] == "randomized"
