"""Which engine runs: for each key, device and cluster an engine, or a refusal that names the remedy."""

import pytest

from whitewater.engines.config import Engine, choose_engine
from whitewater.errors import ConfigError

ATTACHED = {"address": "tcp://127.0.0.1:8786"}


@pytest.mark.parametrize(
    ("key", "device", "cluster", "engine"),
    [
        ("auto", "cpu", {}, "local"),
        ("auto", "cpu", {"kind": "processes"}, "local"),
        ("auto", "cpu", ATTACHED, "dask"),
        ("auto", "gpu", {}, "dask"),
        ("auto", "gpu", {"kind": "threads"}, "dask"),
        ("dask", "cpu", {"kind": "threads"}, "dask"),
        ("dask", "gpu", ATTACHED, "dask"),
        ("local", "cpu", {"kind": "processes"}, "local"),
    ],
)
def test_each_key_is_an_engine(key: str, device: str, cluster: dict[str, str], engine: Engine) -> None:
    assert choose_engine({"engine": key, "cluster": cluster}, device) == engine


@pytest.mark.parametrize(("device", "cluster"), [("gpu", {}), ("cpu", ATTACHED)])
def test_local_is_refused_on_a_gpu_and_beside_a_scheduler(device: str, cluster: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"engine is 'local'.*set engine to auto or dask"):
        choose_engine({"engine": "local", "cluster": cluster}, device)


def test_worker_processes_are_refused_on_a_gpu() -> None:
    with pytest.raises(ConfigError, match=r"cluster\.kind is 'processes'.*whitewater cluster start --device gpu"):
        choose_engine({"engine": "auto", "cluster": {"kind": "processes"}}, "gpu")
