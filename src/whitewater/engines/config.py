"""Where Dask's workers are."""

from typing import Literal

from pydantic import Field

from whitewater.config.base import Section


class Cluster(Section):
    """Where the tasks of a step run. Changes no result, so no step runs again, but where it makes `engine` another."""

    kind: Literal["auto", "threads", "processes", "attach"] = Field(
        "auto",
        description="threads: those of the step's own process, by Dask where that is the engine; processes: a Dask "
        "cluster on this machine, one worker process a thread; auto: threads on the CPU, but processes to parse many "
        "pages; attach: the Dask scheduler named below. On a GPU, auto is one Dask worker for each GPU.",
    )
    address: str = Field("", description="attach: address of the scheduler, such as tcp://127.0.0.1:8786.")
    scheduler_file: str = Field("", description="attach: file that the scheduler wrote.")
    performance_report: bool = Field(
        False, description="Save Dask's performance report beside each step's log; Dask then runs threads, too."
    )
