"""Draw links by the copying model: a new link leads to a random page or copies an older link.

Source: R. Kumar et al. (2000), "Stochastic models for the Web graph", FOCS. In-degrees follow a power law of exponent
(2 - a) / (1 - a), a = 1 - `COPIED`: 2.18 here; A. Broder et al. (2000), "Graph structure in the Web", measured 2.1.
Unlike there, pages get links at any time after their creation, so that the graph has cycles, and most links copy within
their topic.
"""

import numpy as np
import numpy.typing as npt

from whitewater_apps.pagerank.synthetic.words import Numbers

COPIED = 0.85
WITHIN_TOPIC = 0.85
# How often a repeated link is redrawn: within its topic, then anywhere.
TRIES_WITHIN, TRIES = 3, 5

Times = npt.NDArray[np.float64]


def draw_out_degrees(pages: int, *, dangling: float, mean: float, random: np.random.Generator) -> Numbers:
    """Return the number of links of each page, int64 (pages,): 0 for dangling pages, geometric for the others.

    The numbers are the quantiles of the distribution, so that their mean is ``mean``.
    """
    degrees = np.zeros(pages, np.int64)
    linking = random.permutation(pages)[round(dangling * pages) :]
    if mean > 0:
        left = 1 - (np.arange(len(linking)) + 0.5) / len(linking)
        degrees[linking] = 1 if mean == 1 else np.ceil(np.log(left) / np.log1p(-1 / mean))
    return np.minimum(degrees, pages - 1)


def draw_links(topic: Numbers, out_degrees: Numbers, *, random: np.random.Generator) -> tuple[Numbers, Numbers]:
    """Return source and target of the links, int64 (links,), sorted, unique and without self-links.

    ``topic`` and ``out_degrees`` are int64 (pages,), the oldest page first. Links that still repeat another one after
    all tries are dropped.
    """
    pages = len(topic)
    source = np.repeat(np.arange(pages), out_degrees)
    born = source / pages
    time = born + (1 - born) * random.random(len(source))
    inside = random.random(len(source)) < WITHIN_TOPIC
    target = np.empty_like(source)
    target[inside] = _grow(topic, topic[source[inside]], time[inside], random=random)
    order = np.argsort(time[inside], kind="stable")
    older, times = target[inside][order], time[inside][order]
    target[~inside] = _grow_across(pages, older, times, time[~inside], random=random)
    for number in range(TRIES):
        repeated = np.flatnonzero(_repeats(source, target, pages=pages))
        if number < TRIES_WITHIN:
            topics, now = topic[source[repeated]], np.ones(len(repeated))
            target[repeated] = _choose_older_pages(topic, topics, now, random=random)
        else:
            target[repeated] = random.integers(pages, size=len(repeated))
    kept = ~_repeats(source, target, pages=pages)
    order = np.lexsort((target[kept], source[kept]))
    return source[kept][order], target[kept][order]


def _grow(topic: Numbers, topics: Numbers, time: Times, *, random: np.random.Generator) -> Numbers:
    """Return the targets of links within their topics ``topics``, created at ``time`` from 0 to 1."""
    order = np.lexsort((time, topics))
    topics, time = topics[order], time[order]
    targets = _choose_older_pages(topic, topics, time, random=random)
    every, first = np.arange(len(order)), np.searchsorted(topics, topics)
    model = first + (random.random(len(order)) * (every - first)).astype(np.int64)
    origin = np.where((random.random(len(order)) < COPIED) & (every > first), model, every)
    # A copy of a copy has the target of the original.
    while not np.array_equal(origin, next_origin := origin[origin]):
        origin = next_origin
    result = np.empty_like(targets)
    result[order] = targets[origin]
    return result


def _choose_older_pages(topic: Numbers, topics: Numbers, time: Times, *, random: np.random.Generator) -> Numbers:
    """Return a random page of each topic ``topics`` among those that existed at the time."""
    members = np.argsort(topic, kind="stable")
    key = topic[members] + members / len(topic)
    first = np.searchsorted(topic[members], topics)
    count = np.searchsorted(key, topics + np.minimum(time, np.nextafter(1.0, 0)), side="right") - first
    return np.asarray(members[first + (random.random(len(topics)) * np.maximum(count, 1)).astype(np.int64)])


def _grow_across(pages: int, older: Numbers, times: Times, time: Times, *, random: np.random.Generator) -> Numbers:
    """Return the targets of links to any topic: random pages, or those of ``older`` links, sorted by ``times``."""
    uniform = (random.random(len(time)) * np.maximum(1, np.ceil(time * pages))).astype(np.int64)
    earlier = np.searchsorted(times, time)
    copies = (random.random(len(time)) < COPIED) & (earlier > 0)
    chosen = (random.random(len(time)) * earlier).astype(np.int64)
    result = np.minimum(uniform, pages - 1)
    result[copies] = older[chosen[copies]]
    return result


def _repeats(source: Numbers, target: Numbers, *, pages: int) -> npt.NDArray[np.bool_]:
    """Return which links repeat an earlier one, or lead to their own page."""
    repeats = np.ones(len(source), bool)
    repeats[np.unique(source * pages + target, return_index=True)[1]] = False
    return np.asarray(repeats | (source == target))
