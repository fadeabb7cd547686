"""The pagerank application, as its entry point declares it."""

from whitewater.application import Application
from whitewater_apps.pagerank.config import PageRank

PAGERANK = Application(
    "pagerank",
    settings=PageRank,
    package="whitewater_apps.pagerank",
    steps=(
        "simulate",
        "fetch",
        "parse",
        "edges",
        "renumber",
        "pagerank",
        "communities",
        "index",
        "search",
        "plot",
        "manifest",
    ),
    commands={"query": "whitewater_apps.pagerank.query:main"},
    headline="whitewater_apps.pagerank.headline:headline",
)
