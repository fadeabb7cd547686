"""Which engine runs: for each key, device and cluster an engine, or a refusal that names the remedy."""

import pytest

from whitewater.engines.choose import Engine, choose
from whitewater.errors import ConfigError


@pytest.mark.parametrize(
    ("key", "device", "kind", "engine"),
    [
        ("auto", "cpu", "auto", "local"),
        ("auto", "cpu", "processes", "local"),
        ("auto", "cpu", "attach", "dask"),
        ("auto", "gpu", "auto", "dask"),
        ("dask", "cpu", "threads", "dask"),
        ("dask", "gpu", "attach", "dask"),
        ("local", "cpu", "processes", "local"),
    ],
)
def test_each_key_is_an_engine(key: str, device: str, kind: str, engine: Engine) -> None:
    assert choose({"engine": key, "cluster": {"kind": kind}}, device) == engine


@pytest.mark.parametrize(("device", "kind"), [("gpu", "auto"), ("cpu", "attach")])
def test_local_is_refused_on_a_gpu_and_beside_a_scheduler(device: str, kind: str) -> None:
    with pytest.raises(ConfigError, match=r"engine is 'local'.*set engine to auto or dask"):
        choose({"engine": "local", "cluster": {"kind": kind}}, device)
