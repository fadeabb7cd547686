"""The whole configuration: the device, the cluster, and a section for each application and for the benchmarks."""

from typing import Literal

from pydantic import Field

from whitewater.config.base import Section
from whitewater.config.benchmarks import Benchmarks
from whitewater.config.cluster import Cluster
from whitewater.config.genomics import Genomics
from whitewater.config.pagerank import PageRank
from whitewater.config.recsys import Recsys
from whitewater.config.taxi import Taxi


class Config(Section):
    """Whitewater's configuration."""

    device: Literal["cpu", "gpu", "auto"] = Field(
        "cpu", description="Where steps compute; auto takes the GPU where one is usable and says which it took."
    )
    refresh: bool = Field(
        False,
        description="Download again what was downloaded before; give it with `--forcerun` and the name of the rule.",
    )
    cluster: Cluster = Cluster()
    taxi: Taxi = Taxi()
    genomics: Genomics = Genomics()
    pagerank: PageRank = PageRank()
    recsys: Recsys = Recsys()
    benchmarks: Benchmarks = Benchmarks()
