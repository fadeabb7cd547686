"""Which engine runs an operation: Dask, or the fast body for one machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from whitewater.errors import ConfigError

Engine = Literal["dask", "local"]
# No operation has a body for these engines and devices.
REFUSED = {
    ("local", "gpu"): "engine is 'local', which runs on the CPU only: with device=gpu, set engine to auto or dask."
}


def choose(config: Mapping[str, Any], device: str) -> Engine:
    """Return the engine for a device, from the root keys ``engine`` and ``cluster`` of a complete configuration.

    ``auto`` is Dask on GPUs and where a scheduler is named, else the fast body for one machine.

    Raises ConfigError if the one asked for is refused on the device, or the latter stands beside a scheduler.
    """
    attached = config["cluster"]["kind"] == "attach"
    if refusal := REFUSED.get((config["engine"], device)):
        raise ConfigError(refusal)
    if config["engine"] == "local" and attached:
        raise ConfigError("engine is 'local', but cluster.kind is 'attach': set engine to auto or dask to use it.")
    if config["engine"] == "auto":
        return "dask" if device == "gpu" or attached else "local"
    engine: Engine = config["engine"]
    return engine
