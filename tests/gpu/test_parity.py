"""The taxi steps give the same results on the GPU as on the CPU: integers equal, floats within a stated tolerance."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.apps.taxi.pipeline import TABLES, Results, run_taxi
from tests.apps.taxi.raw_trips import write_raw
from tests.apps.taxi.test_engines import DIRTY, rows_of
from tests.contract.site import Site
from tests.contract.strict_device import StrictDevice
from tests.gpu.conftest import THREADS
from whitewater.engines import Device, resolve
from whitewater.engines.choose import Engine
from whitewater.engines.config import Cluster
from whitewater.engines.gpu_memory import peak_memory

pytestmark = pytest.mark.gpu
# Ridge regression by another decomposition.
RIDGE_RTOL = 1e-6


@dataclass(frozen=True)
class Both:
    """What the steps made on either device."""

    cpu: Results
    gpu: Results


def run_both(site: Site, folder: Path) -> Both:
    """Run the steps from raw files to predictions on the CPU, and by Dask at a site."""
    files, zones = write_raw(folder)
    run = partial(run_taxi, files, zones=zones, settings=DIRTY, threads=THREADS, upto="predict")
    # Frames of a GPU have no stand-in: its arrays come from Polars.
    engine: Engine = "local" if isinstance(site.device, StrictDevice) else "dask"
    gpu = run(folder=folder / "gpu", device=site.device, engine=engine, cluster=site.cluster)
    return Both(run(folder=folder / "cpu", device=resolve("cpu")), gpu)


@pytest.fixture(scope="module")
def both(gpu: Device, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return run_both(Site(gpu), tmp_path_factory.mktemp("taxi"))


@pytest.mark.parametrize("read", [Results.trips, Results.quarantine], ids=["trips", "quarantine"])
def test_the_same_trips_are_kept_and_rejected_bit_for_bit(both: Both, read: Any) -> None:
    assert rows_of(read(both.gpu)) == rows_of(read(both.cpu))


def test_quality_and_tables_are_the_same(both: Both) -> None:
    assert both.gpu.quality == both.cpu.quality
    for name in TABLES:
        pd.testing.assert_frame_equal(both.gpu.table(name), both.cpu.table(name), check_exact=True)


def test_ridge_predictions_agree(both: Both) -> None:
    cpu, gpu = (pd.read_parquet(each.folder / "predictions") for each in (both.cpu, both.gpu))
    exact = ["service", "pickup_datetime", "observed"]
    pd.testing.assert_frame_equal(gpu[exact], cpu[exact])
    np.testing.assert_allclose(gpu["ridge"], cpu["ridge"], rtol=RIDGE_RTOL, atol=RIDGE_RTOL)


def test_forests_are_as_good_within_their_intervals(both: Both) -> None:
    cpu, gpu = (
        json.loads((each.folder / "model" / "metrics.json").read_text())["services"] for each in (both.cpu, both.gpu)
    )
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
