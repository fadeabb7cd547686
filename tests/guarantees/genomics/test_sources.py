"""Sources of genotypes that cannot be used, or not as they are: what is said, and that nothing keeps running."""

from __future__ import annotations

import gzip
import os
import signal
from typing import Any

import psutil
import pytest

from tests.genotype_stores import bgzipped, vcf_header, vcf_record, vcf_records
from tests.guarantees.running import MINE, Clone, Ended, Running, eventually, leftovers, workers

GENOTYPES = "data/genomics/genotypes"


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
    run = fresh.start_snakemake("--", GENOTYPES, files=MINE)
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
