"""Sources of genotypes that cannot be used, or not as they are: what is said, and that nothing keeps running."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bio2zarr.plink
import numpy as np
import pandas as pd
import psutil
import pytest

from tests.guarantees.running import MINE, Clone, Ended, Running, eventually, leftovers, workers
from tests.helpers.genotype_stores import (
    Sites,
    bgzipped,
    read_dosages,
    vcf_header,
    vcf_record,
    vcf_records,
    write_plink,
)

GENOTYPES, PROJECTED = "data/genomics/genotypes", "results/genomics/cpu/projected.parquet"


def ingest(clone: Clone, source: str, **settings: Any) -> Ended:
    """Ingest a source by Snakemake, on two cores."""
    return clone.run("genomics", {"ingest": {"source": source, **settings}}, GENOTYPES)


def refused(clone: Clone, source: str, **settings: Any) -> str:
    """Return the one message with which a source is refused; nothing is left of the attempt."""
    ended = ingest(clone, source, **settings)
    assert ended.status == 1, ended.terminal
    assert ended.message.startswith("InputError: "), ended.message
    assert not (clone / GENOTYPES).exists()
    assert leftovers(clone) == []
    return ended.message


# ---- VCF


GOOD = vcf_header() + vcf_records(50)
BROKEN: dict[str, tuple[str, bytes, list[str]]] = {
    "two contigs without an index": (
        "cohort.vcf",
        (GOOD + vcf_record(5, contig="2")).encode(),
        ["cohort.vcf", "contig 2 at 2:5", "has no index", "bgzip", "bcftools index"],
    ),
    "a filter that the header lacks": (
        "cohort.vcf",
        (GOOD + vcf_record(2000, filters="q99")).encode(),
        ["cohort.vcf", "1:2000", "q99", "##FILTER=<ID=q99"],
    ),
    "plain gzip": (
        "cohort.vcf.gz",
        gzip.compress((GOOD + vcf_record(5, contig="2")).encode()),
        ["cohort.vcf.gz", "gzip, not bgzip", "gunzip", "bgzip", "bcftools index"],
    ),
    "a damaged record": (
        "cohort.vcf.gz",
        bgzipped((GOOD + "1\t40000\trs\tA\n" + vcf_record(50000)).encode()) + bgzipped(b""),
        ["cohort.vcf.gz", "line 57", "after the one at 1:500"],
    ),
    "a call that is none": (
        "cohort.vcf",
        (GOOD + vcf_record(2000, calls=["0/0", "x/1", "1/1"])).encode(),
        ["cohort.vcf", "line 57", "1:2000", "GT"],
    ),
}


# One that ends in a worker as it reads, one as it writes; the others are of the same code.
FAST = ("a damaged record", "a filter that the header lacks")


@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in BROKEN]
)
def test_a_vcf_file_that_cannot_be_converted_ends_the_run_with_its_name_the_place_and_the_remedy(
    fresh: Clone, fault: str
) -> None:
    name, data, said = BROKEN[fault]
    (fresh / name).write_bytes(data)
    message = refused(fresh, "vcf", vcf={"paths": [name]})
    for part in said:
        assert part in message, message


@pytest.fixture
def converting(fresh: Clone) -> tuple[Running, psutil.Process, list[psutil.Process]]:
    """A run in the middle of a conversion, its step, and the processes that convert."""
    (fresh / "cohort.vcf").write_text(
        vcf_header(samples=[f"S{each}" for each in range(20)]) + vcf_records(60_000, samples=20)
    )
    fresh.write("mine.yaml", {"genomics": {"ingest": {"source": "vcf", "vcf": {"paths": ["cohort.vcf"]}}}})
    run = fresh.start_snakemake("--set-threads", "genomics_ingest=2", "--", GENOTYPES, files=MINE)
    step = run.step("ingest")
    # One part is one process: a file without an index is not cut.
    return run, step, eventually(lambda: workers(step), what="a process that converts")


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGKILL], ids=["terminated", "killed"])
def test_processes_that_convert_end_with_a_step_that_is_stopped(
    converting: tuple[Running, psutil.Process, list[psutil.Process]], stop: signal.Signals
) -> None:
    run, step, converters = converting
    step.send_signal(stop)
    assert run.ended().status == 1
    assert not psutil.wait_procs(converters, timeout=60)[1]


def test_a_process_that_dies_as_it_converts_ends_the_run(
    converting: tuple[Running, psutil.Process, list[psutil.Process]],
) -> None:
    run, _, converters = converting
    converters[0].kill()
    ended = run.ended()
    assert ended.status == 1
    assert ended.message.startswith("ResourceError: a process that converts VCF files died")


def test_a_conversion_that_is_interrupted_leaves_nothing(
    fresh: Clone, converting: tuple[Running, psutil.Process, list[psutil.Process]]
) -> None:
    run, _, converters = converting
    os.killpg(run.process.pid, signal.SIGINT)  # as Ctrl-C does
    ended = run.ended()
    assert ended.status == 1
    assert "genomics ingest was interrupted and left nothing unfinished." in ended.terminal
    assert leftovers(fresh) == []
    assert not psutil.wait_procs(converters, timeout=60)[1]


def test_one_call_of_three_alleles_does_not_make_all_others_missing_in_silence(fresh: Clone) -> None:
    records = vcf_records(80) + vcf_record(2000, calls=["0/0", "0/1/1", "1/1"])
    (fresh / "cohort.vcf").write_text(vcf_header() + records)
    message = refused(fresh, "vcf", vcf={"paths": ["cohort.vcf"]})
    assert "cohort.vcf: 242 of 243 calls do not have 3 alleles" in message
    assert "sample b at 1:2000 (rs2000)" in message
    assert "genomics.ingest.vcf.ploidy" in message
    ended = ingest(fresh, "vcf", vcf={"paths": ["cohort.vcf"], "ploidy": 2})
    assert ended.status == 0, ended.terminal
    assert "1 of 243 calls do not have 2 alleles and count as missing, the first at 1:2000 (rs2000)" in ended.terminal
    assert read_dosages(fresh / GENOTYPES).tolist() == [[0, 1, 2]] * 80 + [[0, -1, 2]]


# ---- words


def write_undeclared_contig(folder: Path) -> dict[str, Any]:
    (folder / "cohort.vcf").write_text(vcf_header(contigs=["2"]) + vcf_records(9))
    return {"source": "vcf", "vcf": {"paths": ["cohort.vcf"]}}


def write_stale_index(folder: Path) -> dict[str, Any]:
    """Write a file of 50 variants, and an index (the tabix specification) that counts 60."""
    header, records = bgzipped(vcf_header().encode()), bgzipped(vcf_records(50).encode())
    (folder / "cohort.vcf.gz").write_bytes(header + records + bgzipped(b""))
    chunk = struct.pack("<QQ", len(header) << 16, (len(header) + len(records)) << 16)
    bins = struct.pack("<Ii", 4681, 1) + chunk + struct.pack("<Ii", 37450, 2) + chunk + struct.pack("<QQ", 60, 0)
    contigs = struct.pack("<8i", 1, 2, 1, 2, 0, ord("#"), 0, 2) + b"1\0" + struct.pack("<i", 2) + bins
    index = b"TBI\1" + contigs + struct.pack("<iQ", 1, len(header) << 16)
    (folder / "cohort.vcf.gz.tbi").write_bytes(bgzipped(index) + bgzipped(b""))
    return {"source": "vcf", "vcf": {"paths": ["cohort.vcf.gz"]}}


def write_twins(folder: Path) -> dict[str, Any]:
    names = vcf_header(samples=["anna", "bob", "anna", "carl", "bob"])
    (folder / "cohort.vcf").write_text(names + vcf_records(9, samples=5))
    return {"source": "vcf", "vcf": {"paths": ["cohort.vcf"]}}


def plink(suffix: str, change: Callable[[str], str]) -> Callable[[Path], dict[str, Any]]:
    """Return what writes PLINK files of 16 samples, of which one is changed."""

    def write(folder: Path) -> dict[str, Any]:
        write_plink(folder / "cohort", np.random.default_rng(1).integers(0, 3, (20, 16)))
        path = folder / f"cohort{suffix}"
        path.write_text(change(path.read_text()))
        return {"source": "plink", "plink": {"prefix": "cohort"}}

    return write


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (write_undeclared_contig, ["cohort.vcf", "does not declare the contig 1", "##contig=<ID=1>"]),
        (write_stale_index, ["cohort.vcf.gz", "holds 50 records, but its index counts 60", "bcftools index --force"]),
        (write_twins, ["cohort.vcf names 2 samples more than once: anna, bob", "make the names unique"]),
        (
            plink(".fam", lambda text: text[text.index("\n") + 1 :]),
            ["cohort.bed holds genotypes of more samples than the 15 in the .fam", "lacks lines"],
        ),
        (
            plink(".fam", lambda text: "".join(text.splitlines(keepends=True)[:12])),
            ["cohort.bed has 83 bytes", "12 samples in the .fam make 63", "holds 13 to 16 samples"],
        ),
        (
            plink(".bim", lambda text: text.replace("\t5\tA", "\t-5\tA")),
            [
                "cohort.bim: line 5 has the position '-5'",
                "`plink --make-bed` drops variants of negative positions",
            ],
        ),
    ],
    ids=["contig", "index", "twins", "a line short", "lines short", "negative position"],
)
def test_what_is_wrong_with_a_file_is_said_with_its_name_its_place_and_the_remedy(
    fresh: Clone, write: Callable[[Path], dict[str, Any]], said: list[str]
) -> None:
    message = refused(fresh, **write(fresh.folder))
    for part in said:
        assert part in message, message


@pytest.mark.slow
def test_a_mistyped_prefix_of_plink_files_is_said_wherever_it_is_given(copied: Clone) -> None:
    write_plink(copied / "cohort", np.zeros((4, 4), np.int64))
    shutil.rmtree(copied / GENOTYPES)
    message = refused(copied, "plink", plink={"prefix": "chort"})
    second = copied.run("genomics", {"project": {"second": "cohrt"}}, PROJECTED).message
    for given, told in (("chort", message), ("cohrt", second)):
        assert f"lacks {given}.bed, {given}.bim, {given}.fam" in told
        assert "Did you mean cohort?" in told


# ---- a second data set


def write_second_plink(folder: Path, dosages: Any, sites: pd.DataFrame) -> dict[str, Any] | str:
    columns: Any = [sites[name].tolist() for name in ("contig", "position", "id", "reference", "alternate")]
    write_plink(folder / "second", dosages, sites=Sites(*columns))
    return "second"


def write_second_store(folder: Path, dosages: Any, sites: pd.DataFrame) -> dict[str, Any] | str:
    """Write a store as bio2zarr does: without the chunks of the first contig and of the mask of ids."""
    write_second_plink(folder, dosages, sites)
    first = int((sites["contig"] == sites["contig"].iloc[0]).sum())
    bio2zarr.plink.convert(folder / "second", folder / "second.vcz", variants_chunk_size=first)
    assert not (folder / "second.vcz/variant_contig/0").exists()
    return {"source": "vcz", "vcz": {"store": "second.vcz", "retries": 1, "anonymous": False}}


def write_second_vcf(folder: Path, dosages: Any, sites: pd.DataFrame) -> dict[str, Any] | str:
    """Write a file for each contig."""
    names = {-1: "./.", 0: "0/0", 1: "0/1", 2: "1/1"}
    contigs = sites["contig"].unique().tolist()
    header = vcf_header(samples=[f"S{each}" for each in range(dosages.shape[1])], contigs=contigs)
    columns = sites[["contig", "position", "id", "reference", "alternate"]].astype("str").to_numpy().tolist()
    lines = [
        "\t".join([*site, ".", "PASS", ".", "GT", *(names[dosage] for dosage in row)]) + "\n"
        for site, row in zip(columns, dosages, strict=True)
    ]
    paths = [f"second-{contig}.vcf" for contig in contigs]
    for contig, path in zip(contigs, paths, strict=True):
        (folder / path).write_text(header + "".join(line for line in lines if line.startswith(f"{contig}\t")))
    return {"source": "vcf", "vcf": {"paths": paths}}


@pytest.mark.parametrize(
    ("write", "watched"),
    [
        (write_second_plink, "second.fam"),
        (write_second_store, "second.vcz/.zattrs"),
        (write_second_vcf, "second-1.vcf"),
    ],
    ids=["plink", "bio2zarr", "vcf"],
)
def test_a_second_data_set_is_described_as_the_first_and_followed(
    copied: Clone, write: Callable[[Path, Any, pd.DataFrame], dict[str, Any] | str], watched: str
) -> None:
    kept = pd.read_parquet(copied / "results/genomics/cpu/variants.parquet").query("kept")
    dosages = read_dosages(copied / GENOTYPES)[kept.index][:, :9]
    second = {"second": write(copied.folder, dosages, kept), "ambiguous": "keep"}
    ended = copied.run("genomics", {"project": second}, PROJECTED)
    assert ended.status == 0, ended.terminal
    table = pd.read_parquet(copied / PROJECTED).query("data_set == 'second'")
    assert table["sample"].tolist() == [f"S{each}" for each in range(9)]
    assert table["variants"].tolist() == (dosages >= 0).sum(axis=0).tolist()
    assert leftovers(copied) == []

    assert copied.dry_run({"genomics": {"project": second}}, "--", PROJECTED).jobs == set()
    changed = copied / watched
    changed.write_text(changed.read_text() + "\n")
    assert copied.dry_run({"genomics": {"project": second}}, "--", PROJECTED).jobs == {"genomics_project"}
