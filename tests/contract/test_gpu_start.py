"""What `whitewater cluster start --device gpu` asks of dask_cuda, which is stood in for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from distributed import Client

from tests.contract.device_array import recording
from tests.contract.gaps import known_gaps
from tests.contract.signatures import problems, recorded
from whitewater.engines.gpu_memory import ENVIRONMENT
from whitewater.engines.start import ClusterRequest, gpu_processes


def test_workers_take_memory_from_one_pool_spill_at_the_limit_and_listen_on_loopback(asked: dict[str, Any]) -> None:
    settings = ClusterRequest(file=Path("x.json"), device="gpu", workers=2, device_memory_limit="40GB")
    with recording() as calls, gpu_processes(settings):
        pass
    assert problems(calls, recorded().get) == []
    assert known_gaps(calls) == []
    assert (
        asked
        | {
            "n_workers": 2,
            "protocol": "tcp",
            "host": "127.0.0.1",
            "security": None,
            "rmm_async": True,
            "rmm_allocator_external_lib_list": ["cupy"],
            "enable_cudf_spill": True,
            "device_memory_limit": "40GB",
            "memory_limit": "0",
        }
        == asked
    )
    assert {name: os.environ[name] for name in ENVIRONMENT} == ENVIRONMENT


def test_a_worker_says_how_many_tasks_may_use_its_gpu_and_has_threads_for_others(asked: dict[str, Any]) -> None:
    settings = ClusterRequest(file=Path("x.json"), device="gpu", workers=1, threads_per_worker=9, gpu_tasks=3)
    with gpu_processes(settings) as cluster, Client(cluster) as client:
        assert [each["resources"] for each in client.scheduler_info()["workers"].values()] == [{"GPU": 3}]
    assert asked["threads_per_worker"] == 9
