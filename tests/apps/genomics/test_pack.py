"""A packed folder holds the kept variants of its source, in their order, in its encoding."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from tests.helpers.genotype_folders import make_folder, packed_codes
from whitewater.config.base import Section
from whitewater.engines import resolve
from whitewater.errors import InputError, IntegrityError
from whitewater.genotypes import genotypes as genotype_folder
from whitewater.genotypes.genotypes import GenotypeFolder, open_genotypes
from whitewater.step import Output, Run
from whitewater_apps.genomics.decisions import IDENTITY
from whitewater_apps.genomics.steps.pack import pack

CPU = resolve("cpu")


def random_dosages(variants: int, samples: int, *, ploidy: int = 2) -> npt.NDArray[np.int8]:
    return np.random.default_rng(variants).integers(-1, ploidy + 1, (variants, samples)).astype(np.int8)


def keep(folder: GenotypeFolder, kept: npt.NDArray[np.bool_]) -> Path:
    """Write decisions on the variants of a folder."""
    path = folder.path.with_name("variants.parquet")
    folder.variants_table(IDENTITY).assign(kept=kept).to_parquet(path)
    return path


def packed(folder: GenotypeFolder, decisions: Path, *, threads: int = 2) -> tuple[GenotypeFolder, Any]:
    """Run the step; return the new folder and the facts noted."""
    target = folder.path.with_name("packed")
    shutil.rmtree(target, ignore_errors=True)
    run = Run("genomics", "pack", CPU, Section(), threads)
    pack(run, genotypes=folder.path, variants=decisions, packed=Output(target))
    return open_genotypes(target), run.facts


@pytest.mark.parametrize(("share", "samples"), [(0.02, 30), (0.5, 1), (0.5, 7), (1.0, 4), (1.0, 30)])
def test_kept_variants_are_those_of_the_source(tmp_path: Path, share: float, samples: int) -> None:
    dosages = random_dosages(700, samples)
    source = make_folder(tmp_path / "data", dosages)
    kept = np.random.default_rng(3).random(700) < share
    folder, facts = packed(source, keep(source, kept))
    assert folder.encoding == "two_bit"
    np.testing.assert_array_equal(folder.read(0, folder.variants).codes, packed_codes(dosages[kept]))
    pd.testing.assert_frame_equal(folder.variants_table(), source.variants_table()[kept].reset_index(drop=True))
    pd.testing.assert_frame_equal(folder.samples_table(), source.samples_table())
    assert facts["variants"] == kept.sum()
    assert facts["bytes"] == sum(path.stat().st_size for path in folder.path.rglob("*") if path.is_file())


@pytest.mark.parametrize("ploidy", [1, 4])
def test_other_ploidies_stay_dosages(tmp_path: Path, ploidy: int) -> None:
    dosages = random_dosages(600, 11, ploidy=ploidy)
    source = make_folder(tmp_path / "data", dosages, ploidy=ploidy)
    kept = np.arange(600) % 3 != 1
    folder, _ = packed(source, keep(source, kept))
    assert (folder.encoding, folder.ploidy) == ("int8", ploidy)
    np.testing.assert_array_equal(folder.read(17, 301).codes, dosages[kept][17:301])
    np.testing.assert_array_equal(folder.read_rows(np.array([0, 5, 6, 399])).codes, dosages[kept][[0, 5, 6, 399]])


@pytest.mark.parametrize("ploidy", [2, 3])
@pytest.mark.parametrize(("threads", "block_bytes"), [(1, 1), (3, 50)])
def test_blocks_and_workers_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ploidy: int, threads: int, block_bytes: int
) -> None:
    source = make_folder(tmp_path / "data", random_dosages(3_000, 9, ploidy=ploidy), ploidy=ploidy)
    decisions = keep(source, np.random.default_rng(4).random(3_000) < 0.6)
    whole, _ = packed(source, decisions, threads=1)
    expected = whole.read(0, whole.variants).codes
    monkeypatch.setattr(genotype_folder, "BLOCK_BYTES", block_bytes)
    # So small that a range has several blocks.
    monkeypatch.setattr(genotype_folder, "SLAB", 8)
    folder, _ = packed(source, decisions, threads=threads)
    first, last = folder.ranges()[0]
    assert len(folder.ranges()) > 1
    assert last - first > folder.block_variants
    np.testing.assert_array_equal(folder.read(0, folder.variants).codes, expected)


def test_nothing_kept_is_refused(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "data", random_dosages(5, 4))
    with pytest.raises(InputError, match="keeps no variant"):
        packed(source, keep(source, np.zeros(5, bool)))


def test_decisions_on_other_variants_are_refused(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "data", random_dosages(5, 4))
    decisions = keep(source, np.ones(5, bool))
    pd.read_parquet(decisions).iloc[::-1].to_parquet(decisions)
    with pytest.raises(IntegrityError, match="column position differs"):
        packed(source, decisions)


def test_a_source_that_ends_early_is_refused(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "data", random_dosages(5, 4))
    with (source.path / "calls.npy").open("r+b") as file:
        file.truncate((source.path / "calls.npy").stat().st_size - 1)
    with pytest.raises(InputError, match=r"calls\.npy cannot be read"):
        packed(source, keep(source, np.ones(5, bool)))
