"""The pictures of the PageRank application: functions of arrays and summaries that return Matplotlib figures."""

from whitewater.pagerank.figures.communities import communities
from whitewater.pagerank.figures.convergence import convergence
from whitewater.pagerank.figures.degrees import degrees
from whitewater.pagerank.figures.neighbourhood import neighbourhood
from whitewater.pagerank.figures.ranks import ranks

__all__ = ["communities", "convergence", "degrees", "neighbourhood", "ranks"]
