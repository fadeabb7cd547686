"""Which engine runs the tasks of a step: Dask, or the step's own process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from whitewater.errors import ConfigError

Engine = Literal["dask", "local"]
# No operation has a body for these engines and devices.
REFUSED = {
    ("local", "gpu"): "engine is 'local', which runs on the CPU only: with device=gpu, set engine to auto or dask."
}


def choose(config: Mapping[str, Any], device: str) -> Engine:
    """Return the engine for a device, from the root keys ``engine`` and ``cluster`` of a complete configuration.

    ``auto`` is Dask on GPUs and where a scheduler is named, else the step's own process.

    Raises ConfigError if the engine is refused on the device, or is local where a scheduler is named.
    """
    engine, attached = config["engine"], config["cluster"]["kind"] == "attach"
    if refusal := REFUSED.get((engine, device)):
        raise ConfigError(refusal)
    if engine == "local" and attached:
        raise ConfigError("engine is 'local', but cluster.kind is 'attach': set engine to auto or dask to use it.")
    if engine == "auto":
        return "dask" if device == "gpu" or attached else "local"
    return cast(Engine, engine)
