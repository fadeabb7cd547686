"""The taxi operations in Dask ask of frames what cuDF has, and make the same of frames that do as cuDF does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from tests.apps.taxi.pipeline import Results, Threaded, run_taxi
from tests.apps.taxi.raw_trips import write_raw
from tests.apps.taxi.test_engines import DIRTY
from tests.contract.frame_calls import frames_as_cudf
from tests.contract.gaps import faults
from tests.contract.signatures import Call
from tests.guarantees.running import contents


@dataclass(frozen=True)
class Scenario:
    """What the steps made on pandas, and on pandas that does as cuDF, and what they asked of it."""

    plain: Results
    as_cudf: Results
    calls: Mapping[Call, Sequence[str]]


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    folder = tmp_path_factory.mktemp("taxi")
    files, zones = write_raw(folder)

    def run(name: str) -> Results:
        return run_taxi(files, zones=zones, folder=folder / name, device=Threaded(partition_rows=1000), engine="dask",
                        settings=DIRTY, upto="predict")  # fmt: skip

    plain = run("plain")
    with frames_as_cudf() as calls:
        as_cudf = run("as_cudf")
    return Scenario(plain, as_cudf, calls)


def test_every_call_is_one_that_cudf_accepts_and_runs_into_no_gap(scenario: Scenario) -> None:
    assert faults(scenario.calls) == []


def test_the_results_do_not_rely_on_what_cudf_does_otherwise(scenario: Scenario) -> None:
    plain, as_cudf = contents(scenario.plain.folder), contents(scenario.as_cudf.folder)
    assert sorted(plain) == sorted(as_cudf)
    assert [name for name in plain if plain[name] != as_cudf[name]] == []


def test_frames_are_seen_to_be_asked(scenario: Scenario) -> None:
    assert {"cudf.DataFrame.__getitem__", "cudf.Series.astype", "cudf.Series.fillna"} <= {
        call.name for call in scenario.calls
    }
