"""The taxi steps give the same results on the GPU as on the CPU: integers equal, floats within a stated tolerance."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.contract.raw_trips import write_inputs
from tests.contract.taxi_steps import TABLES, Results, read, run_steps
from tests.gpu.conftest import Both, on_both
from whitewater.engines import Device
from whitewater.engines.config import Cluster
from whitewater.engines.gpu_memory import peak_memory

pytestmark = pytest.mark.gpu
# Sums of 64-bit floats in another order; ridge regression by another decomposition.
SUM_RTOL, RIDGE_RTOL = 1e-9, 1e-6


@pytest.fixture(scope="module")
def both(gpu: Device, tmp_path_factory: pytest.TempPathFactory) -> Both[Results]:
    folder = tmp_path_factory.mktemp("taxi")
    inputs, zones = write_inputs(folder)
    return on_both(
        gpu,
        lambda site, results: run_steps(site, inputs=inputs, zones=zones, results=results),
        folder,
    )


@pytest.mark.parametrize("name", ["trips", "quarantine", "nothing_kept", "all_kept"])
def test_the_same_trips_are_kept_and_rejected_bit_for_bit(both: Both[Results], name: str) -> None:
    pd.testing.assert_frame_equal(read(getattr(both.gpu, name)), read(getattr(both.cpu, name)))


def test_quality_is_the_same(both: Both[Results]) -> None:
    assert json.loads(both.gpu.quality.read_text()) == json.loads(both.cpu.quality.read_text())


@pytest.mark.parametrize("name", TABLES)
def test_counts_are_equal_and_means_and_medians_agree(both: Both[Results], name: str) -> None:
    cpu, gpu = (pd.read_csv(each.tables / f"{name}.csv") for each in (both.cpu, both.gpu))
    pd.testing.assert_frame_equal(gpu, cpu, rtol=SUM_RTOL)


def test_ridge_predictions_agree(both: Both[Results]) -> None:
    cpu, gpu = (pd.read_parquet(each.predictions) for each in (both.cpu, both.gpu))
    exact = ["service", "pickup_datetime", "observed"]
    pd.testing.assert_frame_equal(gpu[exact], cpu[exact])
    np.testing.assert_allclose(gpu["ridge"], cpu["ridge"], rtol=RIDGE_RTOL, atol=RIDGE_RTOL)


def test_forests_are_as_good_within_their_intervals(both: Both[Results]) -> None:
    cpu, gpu = (json.loads((each.model / "metrics.json").read_text())["services"] for each in (both.cpu, both.gpu))
    for service, fitted in cpu.items():
        mine: dict[str, Any] = fitted["held_out"]["forest"]["r2"]
        other: dict[str, Any] = gpu[service]["held_out"]["forest"]["r2"]
        assert mine["low"] <= other["high"]
        assert other["low"] <= mine["high"]


def test_this_process_is_the_worker_of_one_gpu_and_says_what_it_allocated(hardware: Device) -> None:
    with hardware.workers(Cluster(), threads=1) as client:
        assert list(client.threads) == [1]
        assert list(client.completed(partial(_rows_on, device=hardware), [1_000_000], {})) == [(0, 1_000_000)]
        assert max(peak or 0 for peak in client.call_on_each(peak_memory)) >= 8_000_000


def _rows_on(rows: int, *, device: Device) -> int:
    return len(device.xp.zeros(rows))
