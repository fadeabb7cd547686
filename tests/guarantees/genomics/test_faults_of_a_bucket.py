"""Genotypes in a bucket: faults that pass change nothing, those that stay are named, and no variant is lost."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.guarantees.running import Clone, Ended, leftovers
from tests.helpers.gcs_emulator import BUCKET, Fault, Faults, emulator, faulty, upload
from tests.helpers.genotype_stores import dosages, random_alleles, write_vcz

GENOTYPES = "data/genomics/genotypes"
DECISIONS = "results/genomics/cpu/variant_qc.parquet"
VARIANTS, SAMPLES = 60, 20
CHUNKS = [f"call_genotype/c/{row}/{column}/0" for row in range(3) for column in range(2)]


@dataclass(frozen=True)
class Bucket:
    """A store of called alleles in a bucket, and what goes wrong on the way to it."""

    url: str
    faults: Faults
    calls: np.ndarray[tuple[int, ...], np.dtype[np.int8]]

    def run(self, clone: Clone, target: str) -> Ended:
        store = {"store": f"gs://{BUCKET}/calls.vcz", "endpoint": self.url, "retries": 1}
        return clone.run("genomics", {"ingest": {"source": "vcz", "vcz": store}}, target)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    folder: Path = tmp_path_factory.mktemp("bucket")
    calls = random_alleles(VARIANTS, SAMPLES, missing=0.03, seed=3)
    calls[5], calls[17], calls[40] = -1, 0, 1  # nobody is called, and everybody is the same
    calls[30] = 0
    calls[30, 3, 1] = 1  # one copy
    write_vcz(folder / "calls.vcz", calls, chunks=(20, 10))
    faults = Faults()
    with emulator() as endpoint, faulty(endpoint, faults) as url:
        upload(endpoint, folder)
        yield Bucket(url, faults, calls)


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        (404, "IntegrityError", "not stored"),
        (403, "InputError", "may not be read"),
        ("flip", "IntegrityError", "2 tries"),
        ("reset", "InputError", "2 tries"),
    ],
)
def test_a_chunk_that_cannot_be_had_stops_the_run_and_is_named(
    fresh: Clone, bucket: Bucket, fault: Fault, kind: str, said: str
) -> None:
    bucket.faults.planned.clear()
    bucket.faults.plan(CHUNKS[3], fault)
    ended = bucket.run(fresh, GENOTYPES)
    assert ended.message.startswith(f"{kind}: ")
    assert "call_genotype" in ended.message
    assert said in ended.message
    assert not (fresh / GENOTYPES).exists()
    assert leftovers(fresh) == []


def test_faults_that_pass_lose_no_variant_and_change_none(fresh: Clone, bucket: Bucket) -> None:
    bucket.faults.planned.clear()
    passing: list[Fault] = [503, "reset", "short", "flip"]
    for chunk, fault in zip(CHUNKS, passing, strict=False):
        bucket.faults.plan(chunk, fault, times=1)
    ended = bucket.run(fresh, DECISIONS)
    assert ended.status == 0, ended.terminal
    assert not [fault for fault, times in bucket.faults.planned.values() if times]

    found, expected = pd.read_parquet(fresh / DECISIONS), dosages(bucket.calls)
    called = (expected >= 0).sum(axis=1)
    alternates = np.where(expected >= 0, expected, 0).sum(axis=1)
    rarer = np.minimum(alternates, 2 * called - alternates)
    assert found["id"].tolist() == [f"rs{row}" for row in range(VARIANTS)]
    np.testing.assert_allclose(found["call_rate"], called / SAMPLES)
    assert found["allele_count"].tolist() == alternates.tolist()
    kept = (called / SAMPLES >= 0.95) & (rarer >= 2)
    assert found["kept"].tolist() == kept.tolist()
    assert (found["reasons"].str.len() > 0).tolist() == (~kept).tolist()
    assert 0 < kept.sum() < VARIANTS
