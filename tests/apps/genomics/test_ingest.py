"""The step `ingest`: one folder whatever the source, its chunks and the threads, and every call is counted."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import bio2zarr.plink
import numpy as np
import pandas as pd
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.gcs_emulator import BUCKET, Fault, Faults, emulator, faulty, upload
from tests.helpers.genotype_stores import (
    Sites,
    dosages,
    random_alleles,
    random_sites,
    read_dosages,
    sample_names,
    write_malariagen,
    write_plink,
    write_vcz,
)
from tests.helpers.real_data import needs_real_data, real_data
from whitewater.engines import memory, resolve
from whitewater.errors import InputError, IntegrityError, ResourceError
from whitewater.genotypes.genotypes import open_genotypes
from whitewater.genotypes.sources.opening import open_source
from whitewater.genotypes.sources.source import Tally
from whitewater.io.store import read_json, sha256
from whitewater.step import Inputs, Output, Run, execute
from whitewater_apps.genomics.config import Ingest
from whitewater_apps.genomics.steps.ingest import check_counts, check_order, forecast, ingest

CALLS = random_alleles(23, 13, seed=1)
SITES = random_sites(23)


def settings_of(source: str, place: Path, **more: Any) -> Ingest:
    key = {"vcz": "store", "malariagen": "store", "plink": "prefix", "vcf": "paths"}[source]
    value = [str(place)] if source == "vcf" else str(place)
    return Ingest.model_validate({"source": source, source: {key: value}, **more})


def run_ingest(
    given: Ingest, folder: Path, *, threads: int = 1, simulated: dict[str, Path] | None = None
) -> tuple[Path, Run[Ingest]]:
    """Run the step; return the folder of genotypes and the run with its facts."""
    run = Run("genomics", "ingest", resolve("cpu"), given, threads)
    paths = {"genotypes": Output(folder / "genotypes"), "inputs": Output(folder / "inputs.json")}
    ingest(run, simulated=Inputs(simulated or {}), **paths)
    return folder / "genotypes", run


@pytest.fixture(scope="module")
def plink(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PLINK files of `CALLS`."""
    return write_plink(tmp_path_factory.mktemp("plink") / "a", dosages(CALLS), sites=SITES)


@pytest.fixture(scope="module")
def genotypes(tmp_path_factory: pytest.TempPathFactory, plink: Path) -> Path:
    """The folder made from them."""
    return run_ingest(settings_of("plink", plink), tmp_path_factory.mktemp("results"))[0]


@settings(max_examples=8, deadline=None)
@given(
    chunks=st.tuples(st.integers(1, 25), st.integers(1, 14)),
    zarr_format=st.sampled_from([2, 3]),
    threads=st.integers(1, 3),
    block_bytes=st.sampled_from([1, 100, 8 << 20]),
)
def test_one_folder_comes_from_every_format_chunking_and_number_of_threads(
    genotypes: Path,
    tmp_path_factory: pytest.TempPathFactory,
    *,
    chunks: tuple[int, int],
    zarr_format: Literal[2, 3],
    threads: int,
    block_bytes: int,
) -> None:
    folder = tmp_path_factory.mktemp("folder")
    store = write_vcz(folder / "a.vcz", CALLS, sites=SITES, chunks=chunks, site_chunk=7, zarr_format=zarr_format)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whitewater.genotypes.sources.source.BLOCK_BYTES", block_bytes)
        found, _ = run_ingest(settings_of("vcz", store), folder, threads=threads)
    assert sha256(found) == sha256(genotypes)


def test_the_folder_holds_the_calls_and_their_counts(genotypes: Path) -> None:
    folder, expected = open_genotypes(genotypes), dosages(CALLS)
    assert np.array_equal(read_dosages(genotypes), expected)
    variants, samples = folder.variants_table(), folder.samples_table()
    for name, dosage in (("count_0", 0), ("count_1", 1), ("count_2", 2), ("count_missing", -1)):
        assert variants[name].tolist() == (expected == dosage).sum(axis=1).tolist()
        assert variants[name].dtype == np.int32
    assert samples["count_missing"].tolist() == (expected < 0).sum(axis=0).tolist()
    assert samples["sample"].tolist() == sample_names(13)
    assert samples["label"].isna().all()
    for name in ("contig", "position", "id", "reference", "alternate"):
        assert variants[name].tolist() == getattr(SITES, name)


@pytest.mark.parametrize("ploidy", [1, 3, 6])
def test_other_ploidies_are_dosages_of_eight_bits(tmp_path: Path, ploidy: int) -> None:
    alleles = random_alleles(9, 5, ploidy)
    store = write_vcz(tmp_path / "a.vcz", alleles, chunks=(4, 3))
    found, run = run_ingest(settings_of("vcz", store), tmp_path)
    assert open_genotypes(found).encoding == "int8"
    assert np.array_equal(read_dosages(found), dosages(alleles))
    assert run.facts["ploidy"] == ploidy
    assert open_genotypes(found).variants_table()[f"count_{ploidy}"].sum() == (dosages(alleles) == ploidy).sum()


@pytest.mark.parametrize(("rule", "flags"), [("exclude", [False, True]), ("collapse", [False, False])])
def test_variants_of_several_alternates_are_kept_and_flagged(tmp_path: Path, rule: str, flags: list[bool]) -> None:
    alleles = np.array([[[0, 1], [1, 1]], [[0, 2], [1, 2]]], np.int8)
    sites = Sites(["1", "1"], [1, 2], ["a", "b"], ["A", "A"], ["C", "C,G"])
    store = write_vcz(tmp_path / "a.vcz", alleles, sites=sites)
    found, run = run_ingest(settings_of("vcz", store, multiallelic=rule), tmp_path)
    table = open_genotypes(found).variants_table()
    assert table["multiallelic"].tolist() == flags
    assert table["alleles"].tolist() == [2, 3]
    assert read_dosages(found).tolist() == [[1, 2], [1, 2]]
    assert run.facts["multiallelic"] == 1


def test_only_alternates_that_occur_count_in_stores_that_list_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whitewater.genotypes.sources.source.BLOCK_BYTES", 1)  # a range is one chunk, of one variant
    alleles = np.array([[[0, 0], [0, 3]], [[1, 1], [2, 0]], [[0, 0], [0, -1]], [[2, 2], [2, 2]]], np.int8)
    sites = Sites(["X"] * 4, [1, 2, 3, 4], [""] * 4, ["A"] * 4, ["C,G,T"] * 4)
    store = write_malariagen(tmp_path / "calls", alleles, sites=sites, chunks=(1, 1))
    found, _ = run_ingest(settings_of("malariagen", store), tmp_path)
    table = open_genotypes(found).variants_table()
    assert table["alternate"].tolist() == ["T", "C,G", "", "G"]
    assert table["alleles"].tolist() == [2, 3, 1, 2]
    assert table["multiallelic"].tolist() == [False, True, False, False]
    assert table["id"].tolist() == [f"X:{row}:A:C,G,T" for row in range(1, 5)]


def test_inputs_are_described_with_checksums_and_the_record_has_facts(tmp_path: Path, plink: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("name,region\nS0,north\nS12,south\n")
    table = {"table": str(labels), "sample_column": "name", "label_column": "region"}
    found, run = run_ingest(settings_of("plink", plink, labels=table), tmp_path)
    described = read_json(tmp_path / "inputs.json")
    paths = [Path(f"{plink}{suffix}") for suffix in (".bed", ".bim", ".fam")]
    assert described["files"] == [
        {"path": str(path), "bytes": path.stat().st_size, "sha256": sha256(path)} for path in [*paths, labels]
    ]
    facts = {name: run.facts[name] for name in ("variants", "samples", "ploidy", "missing_calls", "multiallelic")}
    missing = int((dosages(CALLS) < 0).sum())
    assert facts == {"variants": 23, "samples": 13, "ploidy": 2, "missing_calls": missing, "multiallelic": 0}
    assert run.facts["local_bytes"] == sum(each["bytes"] for each in described["files"])
    given = open_genotypes(found).samples_table()["label"]
    assert given.dropna().to_dict() == {0: "north", 12: "south"}


def test_the_simulated_store_has_the_labels_of_the_simulation(tmp_path: Path) -> None:
    labels = tmp_path / "simulated_labels.csv"
    labels.write_text("".join(["sample,population,role\n", *(f"{name},POP,founder\n" for name in sample_names(13))]))
    store = write_vcz(tmp_path / "simulated.vcz", CALLS)
    found, _ = run_ingest(Ingest(), tmp_path, simulated={path.name: path for path in (labels, store)})
    assert (open_genotypes(found).samples_table()["label"] == "POP").all()
    with pytest.raises(InputError, match=r"simulated_labels\.csv was not given"):
        run_ingest(Ingest(), tmp_path / "again", simulated={store.name: store})


def test_nothing_of_a_converted_vcf_file_is_left(tmp_path: Path) -> None:
    header = "##fileformat=VCFv4.3\n##contig=<ID=1>\n##FORMAT=<ID=GT,Number=1,Type=String,Description=G>\n"
    lines = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ta\tb\n1\t7\tx\tA\tC\t.\t.\t.\tGT\t0/1\t./.\n"
    (tmp_path / "a.vcf").write_text(header + lines)
    found, _ = run_ingest(settings_of("vcf", tmp_path / "a.vcf"), tmp_path)
    assert read_dosages(found).tolist() == [[1, -1]]
    names = {"calls.npy", "genotypes.json", "samples.parquet", "variants.parquet"}
    assert {path.name for path in found.iterdir()} == names
    assert [each["path"] for each in read_json(tmp_path / "inputs.json")["files"]] == [str(tmp_path / "a.vcf")]


def test_a_run_that_fails_leaves_nothing(tmp_path: Path) -> None:
    store = write_vcz(tmp_path / "a.vcz", CALLS, chunks=(5, 5))
    (store / "call_genotype" / "c" / "4" / "2" / "0").unlink()
    run = Run("genomics", "ingest", resolve("cpu"), settings_of("vcz", store), 2)
    outputs = {"genotypes": tmp_path / "results" / "genotypes", "inputs": tmp_path / "results" / "inputs.json"}
    with pytest.raises(IntegrityError, match=r"call_genotype.*c/4/2/0"):
        execute(run, ingest, inputs={"simulated": {}}, outputs=outputs, record=None)
    assert [path.name for path in (tmp_path / "results").iterdir()] == [".genomics-ingest.owner"]


def test_a_sample_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    names = ["a", "b", "a", "c", "c"]
    store = write_vcz(tmp_path / "a.vcz", CALLS[:, :5], samples=names)
    with pytest.raises(InputError, match=r"a\.vcz.* names 2 samples more than once: a, c"):
        run_ingest(settings_of("vcz", store), tmp_path)


@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 0, 2)])
def test_an_empty_store_is_refused(tmp_path: Path, shape: tuple[int, int, int]) -> None:
    store = write_vcz(tmp_path / "a.vcz", np.zeros(shape, np.int8))
    with pytest.raises(InputError, match=rf"there are {shape[0]} variants and {shape[1]} samples"):
        run_ingest(settings_of("vcz", store), tmp_path)


def variants(contigs: list[str], positions: list[int]) -> pd.DataFrame:
    return pd.DataFrame({"contig": contigs, "position": positions, "id": [f"v{row}" for row in range(len(contigs))]})


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=8))
def test_variants_out_of_order_are_refused_by_name(sites: list[tuple[str, int]]) -> None:
    table = variants([contig for contig, _ in sites], [position for _, position in sites])
    wrong = [
        row
        for row, (contig, position) in enumerate(sites)
        if row
        and (
            (contig == sites[row - 1][0] and position < sites[row - 1][1])
            or (contig != sites[row - 1][0] and contig in [name for name, _ in sites[:row]])
        )
    ]
    if not wrong:
        check_order(table, place="a.vcz")
        return
    with pytest.raises(InputError, match=rf"variant {wrong[0]} \(v{wrong[0]}, "):
        check_order(table, place="a.vcz")


def test_the_two_ways_of_disorder_are_told_apart() -> None:
    with pytest.raises(InputError, match=r"a\.vcz: variant 2 \(v2, 1:9\) is of contig 1, which ended before"):
        check_order(variants(["1", "2", "1"], [1, 2, 9]), place="a.vcz")
    with pytest.raises(InputError, match=r"a\.vcz: variant 1 \(v1, 1:4\) comes after position 5"):
        check_order(variants(["1", "1"], [5, 4]), place="a.vcz")


def test_lost_calls_are_noticed() -> None:
    counts, missing = np.array([[2, 0, 0, 1], [1, 1, 1, 0]], np.int32), np.array([0, 1, 0])
    uneven, seen = np.zeros(2, np.int64), np.zeros((2, 0), bool)
    check_counts(Tally(0, counts, missing, uneven, seen), samples=3)
    with pytest.raises(IntegrityError, match="variant 0 has 3 calls counted, not 4"):
        check_counts(Tally(0, counts, missing, uneven, seen), samples=4)
    with pytest.raises(IntegrityError, match="2 calls are missing by sample, but 1 by variant"):
        check_counts(Tally(0, counts, missing + np.array([0, 0, 1]), uneven, seen), samples=3)


def test_a_store_that_does_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, plink: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1000)
    with pytest.raises(ResourceError, match=r"reading 23 variants of 13 samples needs .* Use fewer threads"):
        run_ingest(settings_of("plink", plink), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_forecast_grows_with_the_threads_and_not_with_the_calls_of_more_variants(tmp_path: Path) -> None:
    stores = [write_vcz(tmp_path / f"{rows}.vcz", np.zeros((rows, 1000, 2), np.int8)) for rows in (9_000, 18_000)]
    sources = [open_source(settings_of("vcz", store), {}, scratch=tmp_path) for store in stores]
    small, large = (forecast(source, threads=1) for source in sources)
    assert large - small < 9_000 * 1000
    assert forecast(sources[0], threads=3) - small > 2 * sources[0].parts[0].block_bytes


@needs_real_data
def test_hapmap3_is_ingested_whole(tmp_path: Path) -> None:
    folder = real_data("genomics", "hapmap3")
    prefix = folder / "HM3_thinned_autosomal_overlap"
    labels = {"table": str(folder / "relationships_w_pops_121708.txt"), "sample_column": "IID"}
    found, run = run_ingest(settings_of("plink", prefix, labels=labels), tmp_path, threads=2)
    bed = np.fromfile(prefix.with_suffix(".bed"), np.uint8, offset=3).reshape(14_079, -1)
    codes = ((bed[:, :, None] >> np.array([0, 2, 4, 6], np.uint8)) & 3).reshape(14_079, -1)[:, :957]
    variants, samples = (open_genotypes(found).variants_table(), open_genotypes(found).samples_table())
    for name, code in (("count_0", 3), ("count_1", 2), ("count_2", 0), ("count_missing", 1)):
        assert np.array_equal(variants[name], (codes == code).sum(axis=1))
    assert np.array_equal(samples["count_missing"], (codes == 1).sum(axis=0))
    assert np.array_equal(read_dosages(found), np.array([2, -1, 1, 0])[codes])
    assert run.facts["missing_calls"] == 20_548
    assert samples["label"].notna().all()
    assert samples["label"].nunique() == 11


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_store_that_bio2zarr_wrote_is_read_as_it_is(tmp_path: Path, zarr_format: Literal[2, 3]) -> None:
    """The chunk of variant_contig holds zeros where there is one contig, and zarr writes no such chunk."""
    one_contig = write_plink(tmp_path / "one", dosages(CALLS), sites=replace(SITES, contig=["1"] * len(CALLS)))
    store = tmp_path / "one.vcz"
    bio2zarr.plink.convert(one_contig, store, zarr_format=zarr_format)
    folder, _ = run_ingest(settings_of("vcz", store), tmp_path / "read")
    np.testing.assert_array_equal(read_dosages(folder), dosages(CALLS))
    assert set(open_genotypes(folder).variants_table()["contig"]) == {"1"}
    # Of a store of an unknown writer nothing is filled in, and calls never are.
    zarr.open_group(store, mode="r+").attrs["source"] = "unknown"
    if zarr_format == 2:
        zarr.consolidate_metadata(str(store), zarr_format=2)
    next(each for each in (store / "call_genotype").rglob("*0") if each.is_file()).unlink()
    with pytest.raises(IntegrityError, match=r"variant_contig.* is not stored.*list variant_contig in filled_arrays"):
        run_ingest(settings_of("vcz", store), tmp_path / "refused")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_store_in_a_bucket_gives_the_same_folder_although_the_network_fails_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whitewater.io.zarr_arrays.FIRST_PAUSE", 0.001)
    local = write_vcz(tmp_path / "store" / "calls.vcz", CALLS, sites=SITES, chunks=(5, 4))
    on_disk, _ = run_ingest(settings_of("vcz", local), tmp_path / "disk")
    faults = Faults()
    with emulator() as server, faulty(server, faults) as endpoint:
        upload(server, tmp_path / "store")
        passing: dict[str, Fault] = {"c/0/1/0": 503, "c/1/0/0": "reset", "c/2/2/0": "short", "c/3/0/0": 429}
        for chunk, fault in passing.items():
            faults.plan(f"call_genotype/{chunk}", fault, times=1)
        store = {"store": f"gs://{BUCKET}/calls.vcz", "endpoint": endpoint}
        given = Ingest.model_validate({"source": "vcz", "vcz": store})
        from_bucket, _ = run_ingest(given, tmp_path / "bucket", threads=2)
        assert sha256(from_bucket) == sha256(on_disk)
        assert all(left == 0 for _, left in faults.planned.values()), "each fault struck"
        faults.plan("call_genotype/c/4/0/0", 403)
        with pytest.raises(InputError, match=r"call_genotype.*anonymous"):
            run_ingest(given, tmp_path / "refused")
