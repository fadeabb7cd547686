"""Step `project`: the samples that were left out, and those of a second data set, on the axes of the others."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from tests.helpers.genotype_folders import make_folder
from tests.helpers.genotype_stores import Sites, write_plink, write_vcz
from whitewater.engines import Device
from whitewater.errors import InputError
from whitewater.genotypes.config import Pca
from whitewater.genotypes.genotypes import GenotypeFolder
from whitewater.genotypes.pca import passes
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import Project
from whitewater_apps.genomics.steps.pca import pca
from whitewater_apps.genomics.steps.project import project

SAMPLES, USED, VARIANTS = 60, 50, 1_500
COMPONENTS = ["PC1", "PC2"]
NAMES: dict[str, list[Any]] = {
    "id": [f"rs{row}" for row in range(VARIANTS)],
    "position": list(range(100, 100 + VARIANTS)),
    "reference": ["AC"[row % 2] for row in range(VARIANTS)],
    "alternate": ["GT"[row % 2] for row in range(VARIANTS)],
}


def simulated() -> Any:
    random = np.random.default_rng(1)
    frequencies = random.beta(2, 2, (VARIANTS, 3))
    dosages = random.binomial(2, frequencies[:, np.arange(SAMPLES) % 3]).astype(np.int8)
    dosages[random.random(dosages.shape) < 0.03] = -1
    return dosages


class Fitted:
    """A packed folder, and components of its first samples."""

    def __init__(self, folder: Path, device: Device) -> None:
        self.folder, self.device, self.dosages = folder, device, simulated()
        make_folder(folder / "packed", self.dosages, columns=NAMES)
        used = np.arange(SAMPLES) < USED
        people = pd.DataFrame({"sample": [f"S{at}" for at in range(SAMPLES)], "label": "here", "call_rate": 0.97})
        people.assign(used=used, reason=np.where(used, "", "relative of S1")).to_parquet(folder / "chosen.parquet")
        names = {"pcs": "pcs.parquet", "eigenvalues": "e.json", "loadings": "l.zarr", "selected": "samples.parquet"}
        outputs = {name: Output(folder / file) for name, file in names.items()}
        run = Run("genomics", "pca", device, Pca(components=2), threads=2)
        pca(run, packed=folder / "packed", samples=folder / "chosen.parquet", **outputs)

    def project(self, *, threads: int = 2, **settings: Any) -> pd.DataFrame:
        run = Run("genomics", "project", self.device, Project.model_validate(settings), threads=threads)
        output = self.folder / "projected.parquet"
        paths = {"packed": self.folder / "packed", "samples": self.folder / "samples.parquet"}
        project(run, **paths, loadings=self.folder / "l.zarr", projected=Output(output))
        return pd.read_parquet(output)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory, device: Device) -> Fitted:
    return Fitted(tmp_path_factory.mktemp("fitted"), device)


def test_no_more_is_read_at_once_than_a_piece(fitted: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, reads, read = fitted.project(), [], GenotypeFolder.read_into

    def counted(folder: GenotypeFolder, codes: npt.NDArray[np.uint8], start: int) -> None:
        reads.append(len(codes))
        read(folder, codes, start)

    monkeypatch.setattr(GenotypeFolder, "read_into", counted)
    for module in (passes.__name__, project.__module__):
        monkeypatch.setattr(f"{module}.PIECE_BYTES", 100 * -(-SAMPLES // 4))
    pd.testing.assert_frame_equal(fitted.project(), expected)
    assert reads == [100] * (VARIANTS // 100)


def test_exactly_the_samples_that_were_left_out_are_projected(fitted: Fitted) -> None:
    table = fitted.project()
    assert table["sample"].tolist() == [f"S{at}" for at in range(USED, SAMPLES)]
    assert table.columns.tolist() == ["sample", "label", "data_set", "reason", "variants", *COMPONENTS]
    assert set(table["reason"]) == {"relative of S1"}
    assert set(table["data_set"]) == {"first"}
    assert table["variants"].tolist() == (fitted.dosages[:, USED:] >= 0).sum(axis=0).tolist()


def test_they_lie_among_the_samples_of_their_population(fitted: Fitted) -> None:
    table = fitted.project()[COMPONENTS].to_numpy()
    scores = pd.read_parquet(fitted.folder / "pcs.parquet")[COMPONENTS].to_numpy()
    centers = np.array([scores[np.arange(USED) % 3 == population].mean(axis=0) for population in range(3)])
    nearest = np.linalg.norm(table[:, None] - centers, axis=2).argmin(axis=1)
    assert nearest.tolist() == [at % 3 for at in range(USED, SAMPLES)]


def test_the_number_of_threads_changes_nothing(fitted: Fitted) -> None:
    pd.testing.assert_frame_equal(fitted.project(threads=1), fitted.project(threads=3), check_exact=True)


def test_a_second_data_set_is_joined_whatever_its_order_and_allele_that_counts(fitted: Fitted) -> None:
    """The same samples again, in other files: fewer variants, backwards, some with their alleles swapped."""
    rows = np.arange(VARIANTS)[::-1][: VARIANTS * 3 // 4]
    swapped = rows % 3 == 0
    dosages = fitted.dosages[rows]
    dosages[swapped] = np.where(dosages[swapped] < 0, -1, 2 - dosages[swapped])
    alleles = np.stack([(dosages > 0).astype(np.int8), (dosages > 1).astype(np.int8)], axis=2)
    alleles[dosages < 0] = -1
    names = {name: np.array(values)[rows] for name, values in NAMES.items()}
    first, second = names["reference"], names["alternate"]
    sites = Sites(["1"] * len(rows), np.arange(1, 1 + len(rows)).tolist(), names["id"].tolist(),
                  np.where(swapped, second, first).tolist(), np.where(swapped, first, second).tolist())  # fmt: skip
    few = fitted.dosages.copy()
    few[np.setdiff1d(np.arange(VARIANTS), rows)] = -1
    plink = write_plink(fitted.folder / "second", dosages, sites=sites)
    vcz = write_vcz(fitted.folder / "second.vcz", alleles, sites=sites, chunks=(100, 7))
    of_plink, of_vcz = (fitted.project(second=str(each), method="regression") for each in (plink, vcz))
    for table in (of_plink, of_vcz):
        added = table[table["data_set"] == "second"]
        assert added["sample"].tolist() == [f"S{at}" for at in range(SAMPLES)]
        assert added["variants"].tolist() == (few >= 0).sum(axis=0).tolist()
        scores = pd.read_parquet(fitted.folder / "pcs.parquet")[COMPONENTS].to_numpy()
        # A quarter of the variants is missing; where all are there, the scores are the fitted ones.
        agreement = np.corrcoef(added[COMPONENTS].to_numpy()[:USED].ravel(), scores.ravel())[0, 1]
        assert agreement > 0.99
    pd.testing.assert_frame_equal(of_plink, of_vcz, rtol=1e-5)


def test_a_data_set_of_other_variants_is_refused(fitted: Fitted) -> None:
    sites = Sites(["9"] * 20, list(range(1, 21)), [f"x{at}" for at in range(20)], ["A"] * 20, ["G"] * 20)
    other = write_plink(fitted.folder / "other", np.full((20, 3), 2), sites=sites)
    with pytest.raises(InputError, match=r"holds 0\.0 % of the 1500 variants.*genome build"):
        fitted.project(second=str(other))
