"""A folder of genotypes: rows are written and read at their place, and whatever is damaged is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whitewater.errors import InputError, IntegrityError
from whitewater.genotypes.genotypes import SLAB, GenotypeFolder, create_genotypes, open_genotypes

VARIANTS, SAMPLES = 7, 10
ROW_BYTES = {"two_bit": 3, "int8": SAMPLES}


def finished(path: Path, encoding: Literal["two_bit", "int8"] = "two_bit") -> GenotypeFolder:
    """Make a folder of codes 0, 1, 2, ...; the last rows are written first."""
    folder = create_genotypes(path, encoding=encoding, ploidy=2, variants=VARIANTS, samples=SAMPLES)
    codes = expected(encoding)
    for start, stop in ((4, 7), (0, 4)):
        folder.write(start, codes[start:stop])
    variants = pd.DataFrame({"id": [f"v{row}" for row in range(VARIANTS)], "position": range(VARIANTS)})
    samples = pd.DataFrame({"sample": [f"S{row}" for row in range(SAMPLES)]})
    folder.finish(variants=variants, samples=samples)
    return folder


def expected(encoding: str) -> npt.NDArray[Any]:
    width = ROW_BYTES[encoding]
    dtype = np.uint8 if encoding == "two_bit" else np.int8
    return np.arange(VARIANTS * width).astype(dtype).reshape(VARIANTS, width)


@pytest.mark.parametrize("encoding", ["two_bit", "int8"])
def test_rows_are_read_as_they_were_written_whatever_the_order(
    tmp_path: Path, encoding: Literal["two_bit", "int8"]
) -> None:
    finished(tmp_path / "genotypes", encoding)
    folder = open_genotypes(tmp_path / "genotypes")
    for start, stop in ((0, VARIANTS), (2, 5), (6, 7), (3, 3)):
        genotypes = folder.read(start, stop)
        assert np.array_equal(genotypes.codes, expected(encoding)[start:stop])
        assert (genotypes.samples, genotypes.ploidy, genotypes.packed) == (SAMPLES, 2, encoding == "two_bit")


def test_numpy_reads_the_file_of_calls(tmp_path: Path) -> None:
    finished(tmp_path / "genotypes")
    assert np.array_equal(np.load(tmp_path / "genotypes" / "calls.npy"), expected("two_bit"))


def test_the_tables_are_those_that_were_given(tmp_path: Path) -> None:
    finished(tmp_path / "genotypes")
    folder = open_genotypes(tmp_path / "genotypes")
    assert folder.variants_table()["id"].tolist() == [f"v{row}" for row in range(VARIANTS)]
    assert folder.variants_table(["position"]).columns.tolist() == ["position"]
    assert folder.samples_table()["sample"].tolist() == [f"S{row}" for row in range(SAMPLES)]


@given(variants=st.integers(1, 50_000_000), samples=st.integers(1, 600_000), maximum=st.integers(1, 200))
def test_ranges_are_whole_slabs_that_cover_all_variants_once(variants: int, samples: int, maximum: int) -> None:
    ranges = GenotypeFolder(Path(), "two_bit", 2, variants, samples).ranges(maximum=maximum)
    assert [start for start, _ in ranges] == [0, *(stop for _, stop in ranges[:-1])]
    assert ranges[-1][1] == variants
    assert all(start % SLAB == 0 and start < stop for start, stop in ranges)
    assert len(ranges) <= maximum


def test_tables_of_other_lengths_are_refused(tmp_path: Path) -> None:
    folder = create_genotypes(tmp_path / "genotypes", encoding="int8", ploidy=1, variants=2, samples=3)
    with pytest.raises(IntegrityError, match="3 variants and 3 samples are described, but it holds 2 and 3"):
        folder.finish(variants=pd.DataFrame({"id": list("abc")}), samples=pd.DataFrame({"sample": list("abc")}))
    with pytest.raises(InputError, match=r"genotypes\.json"):
        open_genotypes(tmp_path / "genotypes")


def test_a_file_that_is_cut_before_or_while_it_is_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    folder = finished(tmp_path / "genotypes")
    assert np.array_equal(folder.read(0, 6).codes, expected("two_bit")[:6])
    folder._calls_path.write_bytes(folder._calls_path.read_bytes()[:-1])
    with pytest.raises(IntegrityError, match=r"calls\.npy ends before variant 7"):
        folder.read(5, 7)
    with pytest.raises(InputError, match=r"calls\.npy cannot be read"):
        open_genotypes(folder.path).read(5, 7)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"\x00" + data[1:], "cannot be read"),
        (lambda data: data[:8], "cannot be read"),
        (lambda data: data.replace(b"(7, 3)", b"(5, 3)"), r"holds uint8 \(5, 3\), not uint8 \(7, 3\)"),
        (lambda data: data.replace(b"|u1", b"|i1"), r"holds int8 \(7, 3\), not uint8"),
        (lambda data: data.replace(b"False", b"True "), "column by column"),
    ],
    ids=["magic", "cut", "shape", "dtype", "order"],
)
def test_a_damaged_header_is_an_error(tmp_path: Path, damage: Callable[[bytes], bytes], message: str) -> None:
    calls = finished(tmp_path / "genotypes")._calls_path
    calls.write_bytes(damage(calls.read_bytes()))
    with pytest.raises((InputError, IntegrityError), match=message):
        open_genotypes(tmp_path / "genotypes").read(0, 1)


@pytest.mark.parametrize("name", ["variants.parquet", "samples.parquet"])
def test_a_table_that_is_damaged_missing_or_too_short_is_an_error(tmp_path: Path, name: str) -> None:
    folder = finished(tmp_path / "genotypes")
    read = folder.variants_table if name == "variants.parquet" else folder.samples_table
    pd.read_parquet(folder.path / name).iloc[:-1].to_parquet(folder.path / name)
    with pytest.raises(IntegrityError, match=rf"{name} has \d rows, not"):
        read()
    (folder.path / name).write_bytes(b"PAR1")
    with pytest.raises(InputError, match=rf"{name} cannot be read"):
        read()
    (folder.path / name).unlink()
    with pytest.raises(InputError, match=rf"{name} cannot be read"):
        read()


def test_a_missing_file_of_calls_is_an_error(tmp_path: Path) -> None:
    folder = finished(tmp_path / "genotypes")
    folder._calls_path.unlink()
    with pytest.raises(InputError, match=r"calls\.npy"):
        open_genotypes(folder.path).read(0, 1)
