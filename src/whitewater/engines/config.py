"""Where the tasks of a step run: in its process, in worker processes, or on a Dask cluster that runs already."""

from typing import Literal, Self

from pydantic import Field, model_validator

from whitewater.config.base import Section

TLS = ("tls_ca_file", "tls_cert", "tls_key")


class Cluster(Section):
    """Where the tasks of a step run. No result depends on it, so no step runs again unless `engine` changes with it."""

    kind: Literal["auto", "threads", "processes", "attach"] = Field(
        "auto",
        description="threads: those of the step's own process, run by Dask if that is the engine; processes: a Dask "
        "cluster on this machine, a worker process per thread, on the CPU only; auto: threads, but processes to parse "
        "many pages; attach: the cluster named below, which naming an address or a scheduler file also implies.",
    )
    address: str = Field("", description="Scheduler of a running cluster, such as tcp://127.0.0.1:8786; empty: none.")
    scheduler_file: str = Field(
        "", description="Instead of the address: the file that the scheduler or `whitewater cluster start` wrote."
    )
    tls_ca_file: str = Field(
        "", description="Certificate of the authority that signed the certificates of a tls:// cluster."
    )
    tls_cert: str = Field("", description="Certificate that this side shows a tls:// cluster.")
    tls_key: str = Field("", description="Private key of that certificate.")
    gpu_tasks: int = Field(
        4, ge=1, description="Tasks that use one GPU at once; each needs its share of the GPU's memory."
    )
    dashboard: bool = Field(
        False,
        description="Serve Dask's dashboard on the loopback interface while a step runs and log its address; Dask then "
        "runs threads, too.",
    )
    performance_report: bool = Field(
        False, description="Save Dask's performance report beside each step's log; Dask then runs threads, too."
    )

    @property
    def attached(self) -> bool:
        """Whether tasks run on a cluster that runs already."""
        return bool(self.address or self.scheduler_file)

    @property
    def tls(self) -> dict[str, str]:
        """The files of TLS by their keys; none without TLS."""
        return {name: path for name in TLS if (path := getattr(self, name))}

    @model_validator(mode="after")
    def _settings_agree(self) -> Self:
        if self.address and self.scheduler_file:
            raise ValueError("address and scheduler_file are both set: leave one of them empty")
        if self.kind == "attach" and not self.attached:
            raise ValueError("kind is 'attach': set cluster.address or cluster.scheduler_file")
        if self.attached and self.kind not in ("auto", "attach"):
            named = "address" if self.address else "scheduler_file"
            raise ValueError(f"kind is '{self.kind}', but {named} names a cluster: set kind to auto, or empty {named}")
        missing = [name for name in TLS if name not in self.tls]
        if missing and (self.tls or self.address.startswith("tls://")):
            raise ValueError(f"for TLS, {', '.join(TLS)} are needed: {' and '.join(missing)} is empty")
        if self.tls and (not self.attached or (self.address and not self.address.startswith("tls://"))):
            raise ValueError("files of TLS are for a cluster at a tls:// address, or of a scheduler_file")
        return self
