"""Clusters: where they listen, what they are made of, and how they refuse."""

from pathlib import Path

import psutil
import pytest
from distributed import LocalCluster

from whitewater.cluster import attach, cpu_cluster
from whitewater.config import Cluster
from whitewater.errors import ConfigError, InputError


def listening_addresses() -> set[str]:
    """Return where this process and its children listen, as the kernel says."""
    me = psutil.Process()
    return {
        connection.laddr.ip
        for process in (me, *me.children(recursive=True))
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_cluster_listens_on_loopback_only(kind: str) -> None:
    settings = Cluster.model_validate({"kind": kind})
    before = listening_addresses()
    with cpu_cluster(settings, threads=2, large=False) as client:
        assert client.submit(sum, (1, 2)).result() == 3
        assert listening_addresses() - before <= {"127.0.0.1"}


def test_auto_takes_processes_for_large_work_only() -> None:
    for large, workers in ((False, 1), (True, 2)):
        with cpu_cluster(Cluster(), threads=2, large=large) as client:
            assert len(client.scheduler_info()["workers"]) == workers


def test_attach_uses_a_running_cluster_and_leaves_it_running() -> None:
    with LocalCluster(
        n_workers=1, processes=False, host="127.0.0.1", protocol="tcp", dashboard_address="127.0.0.1:0"
    ) as own:
        with attach(Cluster(kind="attach", address=own.scheduler_address)) as client:
            assert client.submit(sum, (1, 2)).result() == 3
        assert own.scheduler.workers


def test_attach_without_an_address_is_a_configuration_error() -> None:
    with (
        pytest.raises(ConfigError, match=r"cluster\.address or cluster\.scheduler_file"),
        attach(Cluster(kind="attach")),
    ):
        pass


def test_attach_to_a_missing_scheduler_file_says_how_to_start_one(tmp_path: Path) -> None:
    settings = Cluster(kind="attach", scheduler_file=str(tmp_path / "none.json"))
    with pytest.raises(InputError, match=r"does not exist\. Start the scheduler with"), attach(settings):
        pass
