"""Every source gives the calls that were written, whatever its chunks, and refuses what is damaged."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.genotype_stores import (
    Sites,
    dosages,
    random_alleles,
    random_sites,
    sample_names,
    write_array,
    write_malariagen,
    write_plink,
    write_vcz,
)
from tests.library.genotypes.encoded import encoded
from whitewater.errors import InputError, IntegrityError
from whitewater.genotypes.config import Malariagen, Vcz
from whitewater.genotypes.sources import source as source_module
from whitewater.genotypes.sources.opening import open_source
from whitewater.genotypes.sources.plink import open_plink
from whitewater.genotypes.sources.source import Source, block_shape
from whitewater.genotypes.sources.stores import open_malariagen, open_vcz
from whitewater_apps.genomics.config import Ingest

CALLS = random_alleles(23, 13, seed=1)
FEW = Sites(
    contig=["1", "1", "X"],
    position=[5, 5, 2],
    id=["rs5", ".", ""],
    reference=["A", "AT", "C"],
    alternate=["C", "A,G", ""],
)


def vcz(path: Path) -> Source:
    return open_vcz(Vcz(store=str(path)))


def check_calls(source: Source, alleles: npt.NDArray[Any]) -> None:
    """Compare calls, counts and missing calls with those of the array."""
    expected = dosages(alleles)
    found, counts, missing = encoded(source)
    assert (source.variants, len(source.samples), source.ploidy) == alleles.shape
    assert np.array_equal(found, expected)
    assert np.array_equal(missing, (expected < 0).sum(axis=0))
    for dosage in range(source.ploidy + 1):
        assert np.array_equal(counts[:, dosage], (expected == dosage).sum(axis=1))
    assert np.array_equal(counts[:, -1], (expected < 0).sum(axis=1))


@settings(max_examples=25, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 14), st.integers(1, 11)),
    ploidy=st.integers(1, 6),
    chunks=st.tuples(st.integers(1, 16), st.integers(1, 12)),
    site_chunk=st.integers(1, 16),
    zarr_format=st.sampled_from([2, 3]),
    block_bytes=st.sampled_from([1, 100, 8 << 20]),
)
def test_calls_of_vcf_zarr_do_not_depend_on_its_chunks(  # noqa: PLR0917
    tmp_path_factory: pytest.TempPathFactory,
    shape: tuple[int, int],
    ploidy: int,
    chunks: tuple[int, int],
    site_chunk: int,
    zarr_format: Literal[2, 3],
    block_bytes: int,
) -> None:
    alleles = random_alleles(*shape, ploidy, alleles=4)
    path = tmp_path_factory.mktemp("store") / "a.vcz"
    write_vcz(path, alleles, chunks=chunks, site_chunk=site_chunk, zarr_format=zarr_format)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whitewater.genotypes.sources.source.BLOCK_BYTES", block_bytes)
        source = vcz(path)
        check_calls(source, alleles)
    sites = random_sites(shape[0], alternates=max(1, int(alleles.max())))
    table = source.variants_table()
    for name in ("contig", "position", "id", "reference", "alternate"):
        assert table[name].tolist() == getattr(sites, name)
    assert table["filter_pass"].all()


@pytest.mark.parametrize("samples", [7, 8])
def test_a_sharded_array_is_read_by_its_inner_chunks(tmp_path: Path, samples: int) -> None:
    alleles = random_alleles(20, samples)
    source = vcz(write_vcz(tmp_path / "a.vcz", alleles, chunks=(4, 3), shards=(8, 6)))
    check_calls(source, alleles)


@pytest.mark.parametrize(("shape", "chunks"), [((50, 40), (3, 2)), ((50, 40), (50, 1)), ((50, 40), (1, 40))])
def test_a_range_holds_several_small_chunks_and_no_more_than_a_block(
    shape: tuple[int, int], chunks: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whitewater.genotypes.sources.source.BLOCK_BYTES", 1000)
    variants, samples = block_shape(shape, chunks, width=2)
    assert variants % chunks[0] == 0 or variants == shape[0]
    assert samples % chunks[1] == 0 or samples == shape[1]
    assert variants * samples * 2 <= max(1000, chunks[0] * chunks[1] * 2)
    assert variants * shape[1] <= max(1000, chunks[0] * shape[1])
    assert variants == chunks[0] or 2 * variants * samples * 2 > 1000 or variants * shape[1] * 2 > 1000


@pytest.mark.parametrize("dtype", ["<i2", ">i4", "<i8"])
def test_calls_of_wider_integers_are_converted(tmp_path: Path, dtype: str) -> None:
    alleles = CALLS.astype(dtype)
    check_calls(vcz(write_vcz(tmp_path / "a.vcz", alleles, zarr_format=2)), CALLS)


def test_an_allele_of_a_number_beyond_eight_bits_is_still_one_copy(tmp_path: Path) -> None:
    alleles = np.array([[[0, 200], [0, 0]]], np.int16)
    many = ",".join(f"A{'C' * number}" for number in range(1, 201))
    sites = Sites(["1"], [1], ["rs1"], ["A"], [many])
    source = vcz(write_vcz(tmp_path / "a.vcz", alleles, sites=sites))
    assert encoded(source)[0].tolist() == [[1, 0]]


def test_a_haploid_array_may_lack_the_dimension_of_ploidy(tmp_path: Path) -> None:
    alleles = random_alleles(9, 5, 1)
    check_calls(vcz(write_vcz(tmp_path / "a.vcz", alleles[:, :, 0], chunks=(4, 2))), alleles)


def test_a_call_of_lower_ploidy_is_missing(tmp_path: Path) -> None:
    alleles = np.array([[[0, -2], [1, -1], [1, 1]]], np.int8)
    assert encoded(vcz(write_vcz(tmp_path / "a.vcz", alleles)))[0].tolist() == [[-1, -1, 2]]


@pytest.mark.parametrize(
    ("ploidy", "dosage", "uneven"), [(0, [-1, -1, -1, 2], 2), (3, [-1, -1, -1, 2], 2), (2, [1, -1, -1, -1], 2)]
)
def test_calls_of_another_ploidy_than_the_one_asked_for_are_missing_and_counted(
    tmp_path: Path, ploidy: int, dosage: list[int], uneven: int
) -> None:
    alleles = np.array([[[0, 1, -2], [1, -2, -2], [-1, -1, -2], [1, 0, 1]]], np.int8)
    source = open_vcz(Vcz(store=str(write_vcz(tmp_path / "a.vcz", alleles)), ploidy=ploidy))
    assert encoded(source)[0].tolist() == [dosage]
    assert source.read_dosages(0, 1)[1].other_ploidy.tolist() == [uneven]


def test_a_ploidy_that_the_store_has_no_room_for_is_refused(tmp_path: Path) -> None:
    store = write_vcz(tmp_path / "a.vcz", CALLS)
    with pytest.raises(InputError, match="holds calls of 2 alleles at most, but the ploidy is set to 4"):
        open_vcz(Vcz(store=str(store), ploidy=4))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_table_counts_alleles_and_names_the_nameless(tmp_path: Path, zarr_format: Literal[2, 3]) -> None:
    store = write_vcz(tmp_path / "a.vcz", CALLS[:3].clip(-1, 0), sites=FEW, zarr_format=zarr_format)
    table = vcz(store).variants_table()
    assert table["id"].tolist() == ["rs5", "1:5:AT:A,G", "X:2:C:"]
    assert table["alleles"].tolist() == [2, 3, 1]
    assert table["alternate"].tolist() == ["C", "A,G", ""]
    assert {name: str(kind) for name, kind in table.dtypes.items()} == {
        "contig": "str", "position": "int64", "id": "str", "reference": "str", "alternate": "str", "alleles": "int32",
        "filter_pass": "bool",
    }  # fmt: skip


def add(path: Path, name: str, values: npt.NDArray[Any] | list[str]) -> None:
    shape = np.shape(values)
    write_array(zarr.open_group(path, mode="r+"), name, values, shape)


def test_a_variant_fails_by_a_filter_or_a_mask_but_not_for_lack_of_one(tmp_path: Path) -> None:
    path = write_vcz(tmp_path / "a.vcz", CALLS[:5])
    add(path, "filter_id", ["PASS", "q10", "s50"])
    flags = [[1, 0, 0], [0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 0, 0]]
    add(path, "variant_filter", np.array(flags, bool))
    assert vcz(path).variants_table()["filter_pass"].tolist() == [True, True, False, False, True]
    add(path, "variant_mask", np.array([True, False, False, False, False]))
    assert vcz(path).variants_table()["filter_pass"].tolist() == [False, True, False, False, True]
    add(path, "variant_filter_pass", np.array([True, True, True, True, False]))
    assert vcz(path).variants_table()["filter_pass"].tolist() == [False, True, False, False, False]


def test_a_masked_id_is_missing(tmp_path: Path) -> None:
    path = write_vcz(tmp_path / "a.vcz", CALLS[:3])
    add(path, "variant_id_mask", np.array([False, True, False]))
    assert vcz(path).variants_table()["id"].tolist() == ["rs0", "1:110:C:G", "rs2"]


def test_version_0_1_names_contigs_and_filters_in_attributes(tmp_path: Path) -> None:
    path = write_vcz(tmp_path / "a.vcz", CALLS, zarr_format=2)
    add(path, "variant_filter", np.tile([[True, False]], (23, 1)))
    shutil.rmtree(path / "contig_id")
    zarr.open_group(path, mode="r+").attrs.update({"contigs": ["chrA", "chrB"], "filters": ["q10", "PASS"]})
    table = vcz(path).variants_table()
    assert table["contig"].unique().tolist() == ["chrA", "chrB"]
    assert not table["filter_pass"].any()


@pytest.mark.parametrize("separate", [True, False])
@pytest.mark.parametrize("ploidy", [1, 2, 4])
def test_malariagen_stores_give_their_calls_and_the_alleles_that_occur(
    tmp_path: Path, ploidy: int, separate: bool
) -> None:
    alleles = random_alleles(23, 9, ploidy, alleles=4)
    alleles[3] = np.where(alleles[3] > 0, 2, alleles[3])
    sites = tmp_path / "sites" if separate else None
    write_malariagen(tmp_path / "calls", alleles, site_store=sites, chunks=(5, 4))
    source = open_malariagen(Malariagen(store=str(tmp_path / "calls"), sites=str(sites or "")))
    check_calls(source, alleles)
    for start, stop in source.ranges():
        seen = source.read_dosages(start, stop)[1].seen_alleles
        assert np.array_equal(seen, [[(row == allele).any() for allele in range(4)] for row in alleles[start:stop]])
    table = source.variants_table()
    assert table["contig"].tolist() == random_sites(23, contigs=("2R", "3L")).contig
    assert table["alternate"].iloc[0] == "C,G,T"
    assert table["id"].iloc[0] == "2R:100:A:C,G,T"


def test_contigs_of_malariagen_stores_are_chosen_and_filtered(tmp_path: Path) -> None:
    path = write_malariagen(tmp_path / "calls", CALLS)
    passed = np.arange(11) % 2 == 0
    write_array(zarr.open_group(path, mode="r+", use_consolidated=False), "3L/variants/filter_pass", passed, (4,))
    zarr.consolidate_metadata(str(path), zarr_format=2)
    source = open_malariagen(Malariagen(store=str(path), contigs=("3L",)))
    check_calls(source, CALLS[12:])
    assert source.variants_table()["filter_pass"].tolist() == passed.tolist()
    with pytest.raises(InputError, match=r"lacks X/calldata/GT.*it holds 2R/calldata/GT"):
        open_malariagen(Malariagen(store=str(path), contigs=("3L", "X")))


@pytest.mark.parametrize("samples", [1, 4, 13])
def test_plink_files_give_their_calls(tmp_path: Path, samples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whitewater.genotypes.sources.plink.BLOCK_BYTES", 12)
    source = open_plink(str(write_plink(tmp_path / "a", dosages(CALLS[:, :samples]))))
    assert len(source.ranges()) > 1
    check_calls(source, CALLS[:, :samples])


def test_the_alternate_of_plink_is_a1_and_allele_0_is_none(tmp_path: Path) -> None:
    prefix = write_plink(tmp_path / "data.v1", dosages(CALLS[:3]), sites=FEW)
    text = Path(f"{prefix}.bim").read_text()
    Path(f"{prefix}.bim").write_text(
        text.replace("\tA,G\tAT", "\tI\tD").replace("X\t\t0", "X\t.\t0").replace("\t\tC", "\t0\tC")
    )
    table = open_plink(str(prefix)).variants_table()
    assert table["reference"].tolist() == ["A", "D", "C"]
    assert table["alternate"].tolist() == ["C", "I", ""]
    assert table["alleles"].tolist() == [2, 2, 1]
    assert table["id"].tolist() == ["rs5", "1:5:D:I", "X:2:C:"]
    assert table["position"].tolist() == [5, 5, 2]


def test_families_tell_individuals_apart_where_their_names_do_not(tmp_path: Path) -> None:
    prefix = write_plink(tmp_path / "a", dosages(CALLS[:, :2]), samples=["1", "2"])
    assert open_plink(str(prefix)).samples == ("1", "2")
    Path(f"{prefix}.fam").write_text("A 1 0 0 0 -9\nB  1 0 0 0 -9\n")
    assert open_plink(str(prefix)).samples == ("A:1", "B:1")


def test_what_pads_a_row_of_alleles_is_none_wherever_it_stands() -> None:
    rows = [["A", "", "G", "."], ["C", "T", ".", "AC"], [".", "", "", ""], ["A", "C", "G", "T"]]
    alleles = np.array(rows, object)
    table = source_module.make_variants(
        contig=["1"] * 4, position=range(4), ids=None, alleles=alleles, filter_pass=[True] * 4
    )
    assert table["alternate"].tolist() == ["G", "T,AC", "", "C,G,T"]
    assert table["alleles"].tolist() == [2, 3, 0, 4]
    assert table["id"].tolist() == ["1:0:A:G", "1:1:C:T,AC", "1:2::", "1:3:A:C,G,T"]
    alone = source_module.make_variants(
        contig=["1"], position=[1], ids=["rs"], alleles=alleles[:1, :1], filter_pass=[True]
    )
    assert alone[["alternate", "alleles", "id"]].to_numpy().tolist() == [["", 1, "rs"]]


def test_alternates_that_no_call_holds_are_left_out_of_every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "BLOCK_ROWS", 2)
    table = pd.DataFrame({"alternate": ["C,G,T", "A", "", "G,T", "C"], "alleles": [4, 2, 1, 3, 2]})
    seen = np.array([[1, 0, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]], bool)
    found = source_module.drop_unseen_alleles(table, seen)
    assert found["alternate"].tolist() == ["G,T", "", "", "G", "C"]
    assert found["alleles"].tolist() == [3, 1, 1, 2, 2]


def cut_bed(prefix: Path) -> None:
    Path(f"{prefix}.bed").write_bytes(Path(f"{prefix}.bed").read_bytes()[:-1])


def replace_bed(at: int, byte: int) -> Callable[[Path], None]:
    def replace(prefix: Path) -> None:
        data = bytearray(Path(f"{prefix}.bed").read_bytes())
        data[at] = byte
        Path(f"{prefix}.bed").write_bytes(data)

    return replace


def rewrite(suffix: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def write(prefix: Path) -> None:
        Path(f"{prefix}{suffix}").write_text(change(Path(f"{prefix}{suffix}").read_text()))

    return write


def remove(suffix: str) -> Callable[[Path], None]:
    return lambda prefix: Path(f"{prefix}{suffix}").unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut_bed, r"a\.bed has 94 bytes, but 23 variants in the \.bim and 13 samples in the \.fam make 95"),
        (replace_bed(0, 0), r"a\.bed is not a \.bed of PLINK 1"),
        (replace_bed(2, 0), r"a\.bed is in the sample-major order"),
        (remove(".bim"), r"lacks a\.bim in"),
        (remove(".fam"), r"lacks a\.fam in"),
        (rewrite(".bim", lambda text: text.replace("\t0\t110\tG\tC", "\t0\t110\tG")), r"a\.bim: line 2 has too few"),
        (rewrite(".bim", lambda text: text.replace("\t110\t", "\t110 5\t")), r"a\.bim cannot be read:.*line 2, saw 7"),
        (rewrite(".bim", lambda text: text.replace("\t0\t", "\t")), r"a\.bim has 5 fields per line"),
        (rewrite(".bim", lambda text: text.replace("\t110\t", "\t11e1\t")), r"line 2 has the position '11e1'"),
        (rewrite(".bim", lambda text: text[text.index("\n") + 1 :]), r"For as many samples it holds 23 variants"),
        (rewrite(".fam", lambda text: text.replace("FS3\tS3", "FS2\tS2")), r"a\.fam names 1 samples more .*: FS2:S2"),
        (rewrite(".bim", lambda text: ""), r"a\.bim is empty"),
        (rewrite(".fam", lambda text: text.replace("FS3\tS3\t0\t0", "FS3\tS3")), r"a\.fam: line 4 has too few"),
    ],
)
def test_damaged_plink_files_are_refused_by_name(tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    prefix = write_plink(tmp_path / "a", dosages(CALLS), sites=random_sites(23))
    damage(prefix)
    with pytest.raises(InputError, match=message):
        open_plink(str(prefix)).variants_table()


def test_a_bed_that_shrinks_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    source = open_plink(str(write_plink(tmp_path / "a", dosages(CALLS))))
    cut_bed(tmp_path / "a")
    with pytest.raises(IntegrityError, match=r"a\.bed ends before variant 23"):
        encoded(source)


def test_plink_files_elsewhere_are_refused() -> None:
    with pytest.raises(InputError, match="local paths only"):
        open_plink("gs://bucket/data")


def without(name: str) -> Callable[[Path], None]:
    return lambda path: shutil.rmtree(path / name)


def instead(name: str, values: npt.NDArray[Any] | list[str]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        shutil.rmtree(path / name, ignore_errors=True)
        add(path, name, values)

    return write


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without("call_genotype"), r"lacks call_genotype, which VCF Zarr has; it holds contig_id, sample_id"),
        (without("variant_position"), r"lacks variant_position"),
        (without("contig_id"), r"no list of names in an array contig_id or an attribute contigs"),
        (instead("contig_id", np.zeros((2, 2), np.int8)), r"no list of names in an array contig_id"),
        (instead("call_genotype", np.zeros((23, 13, 2), np.float32)), r"call_genotype holds float32, not signed"),
        (instead("call_genotype", np.zeros((23, 13, 2), np.uint8)), r"call_genotype holds uint8, not signed"),
        (instead("call_genotype", np.zeros((23, 13, 2, 1), np.int8)), r"call_genotype has the shape \(23, 13, 2, 1\)"),
        (
            instead("call_genotype", np.zeros((23, 12, 2), np.int8)),
            r"sample_id has the shape \(13,\), but there are 12",
        ),
        (instead("call_genotype", np.zeros((22, 13, 2), np.int8)), r"variant_contig has the shape \(23,\).* 22 var"),
        (instead("variant_position", np.zeros(22, np.int32)), r"variant_position has the shape \(22,\).* 23 var"),
        (instead("variant_allele", ["A"] * 23), r"variant_allele holds .* has the shape \(23,\)"),
        (instead("variant_allele", np.zeros((23, 2), np.int8)), r"variant_allele holds int8"),
        (instead("variant_position", np.arange(23) + 0.5), r"variant_position holds float64 from 0\.5 to 22\.5"),
        (instead("variant_position", np.arange(23) - 1), r"variant_position holds int64 from -1 to 21"),
        (instead("variant_position", np.arange(23, dtype=np.uint64) + 2**63), r"variant_position holds uint64"),
        (instead("variant_position", np.zeros((23, 2), np.int32)), r"variant_position has the shape \(23, 2\)"),
        (instead("sample_id", np.zeros((13, 2), np.int32)), r"sample_id has the shape \(13, 2\)"),
        (instead("variant_contig", ["1"] * 23), r"variant_contig holds 1 to 1, but there are 2 contigs"),
        (instead("variant_contig", np.full(23, 7, np.int8)), r"variant_contig holds 7 to 7, but there are 2 contigs"),
        (instead("variant_contig", np.full(23, -1, np.int8)), r"variant_contig holds -1 to -1"),
        (instead("variant_mask", np.zeros(23, np.int8)), r"variant_mask holds int8, but should hold bool"),
    ],
)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_damaged_store_is_refused_by_name(
    tmp_path: Path, damage: Callable[[Path], None], message: str, zarr_format: Literal[2, 3]
) -> None:
    path = write_vcz(tmp_path / "a.vcz", CALLS, zarr_format=zarr_format)
    damage(path)
    with pytest.raises(InputError, match=message):
        vcz(path).variants_table()


def test_numbers_of_samples_are_their_names(tmp_path: Path) -> None:
    path = write_vcz(tmp_path / "a.vcz", CALLS)
    instead("sample_id", np.arange(13))(path)
    assert vcz(path).samples == tuple(map(str, range(13)))


def test_filters_without_names_are_refused(tmp_path: Path) -> None:
    path = write_vcz(tmp_path / "a.vcz", CALLS)
    add(path, "variant_filter", np.zeros((23, 2), bool))
    add(path, "filter_id", ["PASS"])
    with pytest.raises(InputError, match=r"variant_filter has the shape \(23, 2\), but there are 1 filters"):
        vcz(path)


@pytest.mark.parametrize("allele", [2, 77, -3])
def test_alleles_that_no_variant_has_are_refused(tmp_path: Path, allele: int) -> None:
    alleles = CALLS.copy()
    alleles[7, 2, 1] = allele
    source = vcz(write_vcz(tmp_path / "a.vcz", alleles, sites=random_sites(23)))
    with pytest.raises(InputError, match=rf"call_genotype holds the alleles .*{allele}.* have at most 2 alleles"):
        encoded(source)


@pytest.mark.parametrize(("zarr_format", "chunk"), [(2, "1.0.0"), (3, "c/1/0/0")])
def test_a_chunk_that_is_gone_is_an_error_that_names_it(tmp_path: Path, zarr_format: Literal[2, 3], chunk: str) -> None:
    path = write_vcz(tmp_path / "a.vcz", CALLS, chunks=(10, 5), zarr_format=zarr_format)
    (path / "call_genotype" / chunk).unlink()
    with pytest.raises(IntegrityError, match=rf"call_genotype.*{chunk}"):
        encoded(vcz(path))


def test_shapes_of_malariagen_stores_that_disagree_are_refused(tmp_path: Path) -> None:
    path = write_malariagen(tmp_path / "calls", CALLS)
    write_malariagen(tmp_path / "sites", CALLS[:20])
    with pytest.raises(InputError, match=r"2R/variants/POS has the shape \(10,\), but there are 12 variants in 2R/c"):
        open_malariagen(Malariagen(store=str(path), sites=str(tmp_path / "sites")))
    group = zarr.open_group(path, mode="r+", use_consolidated=False)
    shutil.rmtree(path / "samples")
    write_array(group, "samples", np.array(sample_names(12), "S8"), (5,))
    zarr.consolidate_metadata(str(path), zarr_format=2)
    with pytest.raises(InputError, match=r"2R/calldata/GT has the shape \(12, 13, 2\), but there are 12 samples"):
        open_malariagen(Malariagen(store=str(path)))


def test_a_store_of_vcf_zarr_is_not_taken_for_one_of_malariagen(tmp_path: Path) -> None:
    path = write_vcz(tmp_path / "a.vcz", CALLS)
    with pytest.raises(InputError, match=r"lacks <contig>/calldata/GT, which the layout of MalariaGEN has; it holds c"):
        open_malariagen(Malariagen(store=str(path)))


@pytest.mark.parametrize("place", ["nothing", "folder", "file"])
def test_what_is_not_a_store_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("text")
    with pytest.raises(InputError, match=place):
        vcz(tmp_path / place)


def test_the_simulated_store_must_be_given(tmp_path: Path) -> None:
    path = write_vcz(tmp_path / "simulated.vcz", CALLS)
    check_calls(open_source(Ingest(), {"simulated.vcz": path}, scratch=tmp_path / "scratch"), CALLS)
    with pytest.raises(InputError, match=r"simulated\.vcz was not given"):
        open_source(Ingest(), {}, scratch=tmp_path / "scratch")
