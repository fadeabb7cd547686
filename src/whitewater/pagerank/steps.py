"""The steps of the PageRank application: where each one is, and the section of the configuration that it gets.

`query` is no step: it asks the index and prints.
"""

from whitewater.config import pagerank
from whitewater.registry import Step

STEPS = {
    "simulate": Step("whitewater.pagerank.simulate:simulate", pagerank.Simulate),
    "fetch": Step("whitewater.pagerank.fetch:fetch", pagerank.Fetch),
    "parse": Step("whitewater.pagerank.parse:parse", pagerank.Parse),
    "edges": Step("whitewater.pagerank.edges:edges", pagerank.EdgeRules),
    "renumber": Step("whitewater.pagerank.renumber:renumber", pagerank.Renumber),
    "pagerank": Step("whitewater.pagerank.pagerank:pagerank", pagerank.Pagerank),
    "communities": Step("whitewater.pagerank.communities:communities", pagerank.Communities),
    "index": Step("whitewater.pagerank.index:index", pagerank.Index),
    "search": Step("whitewater.pagerank.search:search", pagerank.Search),
    "plot": Step("whitewater.pagerank.plot:plot", pagerank.Plot),
    "manifest": Step("whitewater.manifest:manifest", pagerank.PageRank),
}
COMMANDS = {"query": "whitewater.pagerank.query:main"}
