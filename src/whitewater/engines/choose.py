"""Which engine runs the tasks of a step: Dask, or the step's own process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from whitewater.engines.config import Cluster
from whitewater.errors import ConfigError

Engine = Literal["dask", "local"]
LOCAL_ON_GPU = "engine is 'local', which runs on the CPU only: with device=gpu, set engine to auto or dask."
PROCESSES_ON_GPU = (
    "cluster.kind is 'processes', but one GPU is used by one process, the step's own. Set cluster.kind to auto; for "
    "one process a GPU start a cluster, `whitewater cluster start --device gpu`, and set cluster.scheduler_file."
)


def choose(config: Mapping[str, Any], device: str) -> Engine:
    """Return the engine for a device, from the root keys ``engine`` and ``cluster`` of a complete configuration.

    ``auto`` is Dask on GPUs and where a scheduler is named, else the step's own process.

    Raises ConfigError if the engine or the cluster is refused on the device, or the engine is local where a scheduler
    is named.
    """
    engine, cluster = config["engine"], Cluster(**config["cluster"])
    if engine == "local" and device == "gpu":
        raise ConfigError(LOCAL_ON_GPU)
    if engine == "local" and cluster.attached:
        raise ConfigError("engine is 'local', but cluster names a scheduler: set engine to auto or dask to use it.")
    if device == "gpu" and cluster.kind == "processes":
        raise ConfigError(PROCESSES_ON_GPU)
    if engine == "auto":
        return "dask" if device == "gpu" or cluster.attached else "local"
    return cast(Engine, engine)
