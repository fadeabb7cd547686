"""The genomics steps give the CPU's results on the GPU: integers equal, floats within a stated tolerance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.gpu_proof.same import Rule, compare
from tests.contract import genomics_steps
from tests.contract.genomics_steps import EXHAUSTED, REPRODUCED, RULES, SMALL, assert_same_components
from tests.contract.site import Site
from tests.gpu.conftest import THREADS, Both, on_both
from tests.helpers.genotype_folders import packed_codes
from whitewater.engines import Device, resolve
from whitewater.genotypes.codes import count_genotypes, expand_genotypes
from whitewater.genotypes.genotypes import Genotypes
from whitewater.genotypes.linkage import correlated_variants
from whitewater.io.store import read_json

pytestmark = pytest.mark.gpu
VARIANTS, SAMPLES, WINDOW = 700, 601, 150
# Each device's library makes a map of its own.
OF_LIBRARIES = (
    Rule("*/umap.parquet", left_out=("UMAP1", "UMAP2")), Rule("*/umap.json", compared=False), *RULES
)  # fmt: skip


@pytest.fixture(scope="module")
def both(gpu: Device, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return on_both(Site(gpu, threads=THREADS), genomics_steps, tmp_path_factory.mktemp("genomics"))


def test_all_but_the_map_is_the_same(both: Both) -> None:
    assert set(compare(both.gpu, both.cpu, OF_LIBRARIES).values()) == {""}


@pytest.mark.parametrize("name", REPRODUCED)
def test_components_are_the_same(both: Both, name: str) -> None:
    assert_same_components(both.gpu / name, both.cpu / name)


def test_an_exhausted_space_has_all_eigenvalues(both: Both) -> None:
    np.testing.assert_allclose(np.load(both.gpu / EXHAUSTED), np.linalg.eigvalsh(SMALL)[::-1], rtol=1e-12)


def test_the_map_is_as_good(both: Both) -> None:
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
