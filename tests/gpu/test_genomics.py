"""The genomics steps give the CPU's results on the GPU: integers equal, floats within a stated tolerance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.contract.genomics_steps import (
    EXACT,
    EXHAUSTED,
    PLACED,
    REPRODUCED,
    SMALL,
    assert_same_components,
    assert_same_packed,
    assert_same_table,
    run_steps,
    small_blocks,
    write_inputs,
)
from tests.genotype_folders import packed_codes
from tests.gpu.conftest import Both, on_both
from whitewater.engines import Device, resolve
from whitewater.genotypes.decode import count_genotypes, expand_genotypes
from whitewater.genotypes.genotypes import Genotypes
from whitewater.genotypes.linkage.pairs import correlated_variants
from whitewater.io.store import read_json

pytestmark = pytest.mark.gpu
VARIANTS, SAMPLES, WINDOW = 700, 601, 150


@pytest.fixture(scope="module")
def both(gpu: Device, tmp_path_factory: pytest.TempPathFactory) -> Both[Path]:
    folder = tmp_path_factory.mktemp("genomics")
    inputs = write_inputs(folder)
    with small_blocks():
        return on_both(
            gpu,
            lambda site, results: run_steps(site, inputs=inputs, results=results),
            folder,
        )


@pytest.mark.parametrize("name", EXACT)
def test_the_same_variants_samples_and_relatives_are_found(both: Both[Path], name: str) -> None:
    cpu, gpu = (pd.read_parquet(each / name) for each in (both.cpu, both.gpu))
    pd.testing.assert_frame_equal(gpu, cpu, check_exact=True)


@pytest.mark.parametrize("ploidy", ["diploid", "triploid"])
def test_relatedness_and_packed_calls_are_the_same(both: Both[Path], ploidy: str) -> None:
    cpu, gpu = (each / ploidy for each in (both.cpu, both.gpu))
    assert read_json(gpu / "relatedness.json") == read_json(cpu / "relatedness.json")
    assert_same_packed(gpu / "packed", cpu / "packed")


@pytest.mark.parametrize("name", REPRODUCED)
def test_components_are_the_same(both: Both[Path], name: str) -> None:
    assert_same_components(both.gpu / name, both.cpu / name)


def test_an_exhausted_space_has_all_eigenvalues(both: Both[Path]) -> None:
    np.testing.assert_allclose(np.load(both.gpu / EXHAUSTED), np.linalg.eigvalsh(SMALL)[::-1], rtol=1e-12)


@pytest.mark.parametrize("name", PLACED)
def test_outliers_and_places_of_samples_are_the_same(both: Both[Path], name: str) -> None:
    assert_same_table(both.gpu / name, both.cpu / name)


def test_the_map_is_of_the_same_samples_and_as_good(both: Both[Path]) -> None:
    cpu, gpu = (pd.read_parquet(each / "diploid" / "umap.parquet") for each in (both.cpu, both.gpu))
    pd.testing.assert_frame_equal(gpu[["sample", "label"]], cpu[["sample", "label"]])
    measured = [read_json(each / "diploid" / "umap.json")["trustworthiness"] for each in (both.cpu, both.gpu)]
    assert measured[1] > measured[0] - 0.1


@pytest.mark.parametrize("ploidy", [1, 2, 3])
def test_the_primitives_agree_where_there_are_many_blocks_of_threads(gpu: Device, ploidy: int) -> None:
    random = np.random.default_rng(ploidy)
    shape = (VARIANTS, SAMPLES)
    linked = np.where(random.random(shape) < 0.6, random.integers(0, ploidy + 1, SAMPLES), -1)
    dosages = np.where(linked < 0, random.integers(-1, ploidy + 1, shape), linked).astype(np.int8)
    genotypes = Genotypes(packed_codes(dosages) if ploidy == 2 else dosages, SAMPLES, ploidy)
    table = random.normal(size=(VARIANTS, ploidy + 2)).astype(np.float32)
    chosen = random.random(SAMPLES) < 0.7
    stops = np.minimum(np.arange(VARIANTS) + WINDOW, VARIANTS).astype(np.int32)

    def found(device: Device) -> list[np.ndarray]:
        placed = replace(genotypes, codes=device.to_device(genotypes.codes))
        return [
            device.to_host(expand_genotypes(device, placed, device.to_device(table))),
            device.to_host(count_genotypes(device, placed, device.to_device(chosen))),
            correlated_variants(device, placed, stops, 0.2),
        ]

    cpu = found(resolve("cpu"))
    assert 10_000 < len(cpu[2]) < (stops - np.arange(1, VARIANTS + 1)).sum() - 10_000
    for mine, other in zip(found(gpu), cpu, strict=True):
        np.testing.assert_array_equal(mine, other)
