"""Settings of engines and clusters, which run the tasks of a step."""

from collections.abc import Mapping
from typing import Any, Literal, Self, cast

from pydantic import Field, model_validator

from whitewater.config.base import Section
from whitewater.errors import ConfigError

Engine = Literal["dask", "local"]
LOCAL_ON_GPU = "engine is 'local', which runs on the CPU only: with device=gpu, set engine to auto or dask."
PROCESSES_ON_GPU = (
    "cluster.kind is 'processes', but one GPU is used by one process, the step's own. Set cluster.kind to auto; for "
    "one process a GPU start a cluster, `whitewater cluster start --device gpu`, and set cluster.scheduler_file."
)
TLS = ("tls_ca_file", "tls_cert", "tls_key")


class Cluster(Section):
    """Where the tasks of a step run. Results do not depend on it; steps run again only if `engine` changes with it."""

    kind: Literal["auto", "threads", "processes", "attach"] = Field(
        "auto",
        description="threads: threads of the step's process, run by Dask if that is the engine; processes: a Dask "
        "cluster on this machine with one worker process per thread, CPU only; auto: threads, but processes for "
        "parsing many pages; attach: the cluster below, also implied by an address or a scheduler file.",
    )
    address: str = Field("", description="Scheduler of a running cluster, such as tcp://127.0.0.1:8786; empty: none.")
    scheduler_file: str = Field(
        "", description="Instead of the address: the file that the scheduler or `whitewater cluster start` wrote."
    )
    tls_ca_file: str = Field(
        "", description="Certificate of the authority that signed the certificates of a tls:// cluster."
    )
    tls_cert: str = Field("", description="Certificate that this side presents to a tls:// cluster.")
    tls_key: str = Field("", description="Private key of that certificate.")
    gpu_tasks: int = Field(
        4, ge=1, description="Tasks that use one GPU at once; each needs its share of the GPU's memory."
    )
    dashboard: bool = Field(
        False,
        description="Serve Dask's dashboard on the loopback interface while a step runs and log its address; threads "
        "then run under Dask.",
    )
    performance_report: bool = Field(
        False, description="Save Dask's performance report next to each step's log; threads then run under Dask."
    )

    @property
    def attached(self) -> bool:
        """Whether tasks run on a cluster that is already running."""
        return bool(self.address or self.scheduler_file)

    @property
    def tls(self) -> dict[str, str]:
        """The TLS files by their keys; empty without TLS."""
        return {name: path for name in TLS if (path := getattr(self, name))}

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if self.address and self.scheduler_file:
            raise ValueError("address and scheduler_file are both set: leave one of them empty")
        if self.kind == "attach" and not self.attached:
            raise ValueError("kind is 'attach': set cluster.address or cluster.scheduler_file")
        if self.attached and self.kind not in ("auto", "attach"):
            key = "address" if self.address else "scheduler_file"
            raise ValueError(f"kind is '{self.kind}', but {key} names a cluster: set kind to auto, or empty {key}")
        missing = [name for name in TLS if name not in self.tls]
        if missing and (self.tls or self.address.startswith("tls://")):
            raise ValueError(f"for TLS, {', '.join(TLS)} are needed: {' and '.join(missing)} is empty")
        if self.tls and (not self.attached or (self.address and not self.address.startswith("tls://"))):
            raise ValueError("the TLS files are for a cluster at a tls:// address, or of a scheduler_file")
        return self


def choose_engine(config: Mapping[str, Any], device: str) -> Engine:
    """Return the engine for a device, from the keys ``engine`` and ``cluster``. Raises ConfigError if they conflict."""
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
