"""The taxi steps give the same results on the GPU as on the CPU: integers equal, floats within a stated tolerance."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.apps.taxi.pipeline import TABLES, Results
from tests.apps.taxi.test_engines import rows_of
from tests.contract import taxi_steps
from tests.contract.site import Site
from tests.gpu.conftest import THREADS, Both, on_both
from whitewater.engines import Device
from whitewater.engines.config import Cluster
from whitewater.io.store import read_json

pytestmark = pytest.mark.gpu
# Ridge regression by another decomposition.
RIDGE_RTOL = 1e-6


@pytest.fixture(scope="module")
def both(gpu: Device, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return on_both(Site(gpu, threads=THREADS), taxi_steps, tmp_path_factory.mktemp("taxi"))


def test_trips_kept_and_rejected_quality_and_tables_are_the_same_bit_for_bit(both: Both) -> None:
    assert_same_tables(both)


def assert_same_tables(both: Both) -> None:
    """Compare what has no floats of models, whichever files the trips are in."""
    cpu, gpu = Results(both.cpu), Results(both.gpu)
    for read in (Results.trips, Results.quarantine):
        assert rows_of(read(gpu)) == rows_of(read(cpu))
    assert gpu.quality == cpu.quality
    for name in TABLES:
        pd.testing.assert_frame_equal(gpu.table(name), cpu.table(name), check_exact=True)


def test_ridge_predictions_agree(both: Both) -> None:
    cpu, gpu = (pd.read_parquet(each / "predictions") for each in (both.cpu, both.gpu))
    exact = ["service", "pickup_datetime", "observed"]
    pd.testing.assert_frame_equal(gpu[exact], cpu[exact])
    np.testing.assert_allclose(gpu["ridge"], cpu["ridge"], rtol=RIDGE_RTOL, atol=RIDGE_RTOL)


def test_forests_are_as_good_within_their_intervals(both: Both) -> None:
    cpu, gpu = (read_json(each / "model" / "metrics.json")["services"] for each in (both.cpu, both.gpu))
    for service, fitted in cpu.items():
        mine: dict[str, Any] = fitted["held_out"]["forest"]["r2"]
        other: dict[str, Any] = gpu[service]["held_out"]["forest"]["r2"]
        assert mine["low"] <= other["high"]
        assert other["low"] <= mine["high"]


def test_this_process_is_the_worker_of_one_gpu_and_says_what_it_allocated(hardware: Device) -> None:
    with hardware.workers(Cluster(), threads=1) as client:
        assert list(client.threads) == [1]
        assert list(client.as_completed(partial(_rows_on, device=hardware), [1_000_000], {})) == [(0, 1_000_000)]
        assert max(peak or 0 for peak in client.call_on_each(hardware.peak_memory)) >= 8_000_000


def _rows_on(rows: int, *, device: Device) -> int:
    return len(device.xp.zeros(rows))
