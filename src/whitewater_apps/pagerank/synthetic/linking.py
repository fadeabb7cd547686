"""Who links to whom: a growing web in which links copy links.

The copying model of R. Kumar, P. Raghavan, S. Rajagopalan, D. Sivakumar, A. Tomkins and E. Upfal (2000), "Stochastic
models for the Web graph", FOCS: a new link leads to a random page, or, with probability `COPIED`, to where a random
older link leads. So pages gain links in proportion to those that they have, and in-degrees follow a power law of
exponent (2 - a) / (1 - a), a = 1 - `COPIED`: 2.18 here; A. Broder et al. (2000), "Graph structure in the Web", measured
2.1.

Unlike there, a page gets its links at any time after it was made, not only at once, so that old pages link to young
ones and the graph has cycles; and most links copy within their topic.
"""

import numpy as np
import numpy.typing as npt

from whitewater_apps.pagerank.synthetic.words import Numbers

COPIED = 0.85
WITHIN_TOPIC = 0.85
# How often a link that repeats one of its page is led elsewhere: within its topic, then anywhere.
TRIES_WITHIN, TRIES = 3, 5

Times = npt.NDArray[np.float64]


def draw_out_degrees(pages: int, *, dangling: float, mean: float, random: np.random.Generator) -> Numbers:
    """Return the number of links of each page, int64 (pages,).

    A share of the pages has none; the others have 1 and a geometric number more, ``mean`` in all; never more than
    there are other pages. The numbers are the quantiles of the distribution, so that their mean is as asked.
    """
    degrees = np.zeros(pages, np.int64)
    linking = random.permutation(pages)[round(dangling * pages) :]
    if mean > 0:
        left = 1 - (np.arange(len(linking)) + 0.5) / len(linking)
        degrees[linking] = 1 if mean == 1 else np.ceil(np.log(left) / np.log1p(-1 / mean))
    return np.minimum(degrees, pages - 1)


def draw_links(topic: Numbers, out_degrees: Numbers, *, random: np.random.Generator) -> tuple[Numbers, Numbers]:
    """Return source and target of the links of pages, which are numbered from the oldest on; both int64 (links,).

    They are in the order of source and target, no two alike, and none leads from a page to itself. ``topic`` and
    ``out_degrees`` are int64 (pages,); links that repeat one of their page after all tries are left out.
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
        again = _repeats(source, target, pages=pages)
        if number < TRIES_WITHIN:
            target[again] = _born_before(topic, topic[source[again]], np.ones(again.sum()), random=random)
        else:
            target[again] = random.integers(pages, size=int(again.sum()))
    kept = ~_repeats(source, target, pages=pages)
    order = np.lexsort((target[kept], source[kept]))
    return source[kept][order], target[kept][order]


def _grow(topic: Numbers, wanted: Numbers, time: Times, *, random: np.random.Generator) -> Numbers:
    """Return the targets of links within the topic ``wanted``, made at times from 0 to 1."""
    order = np.lexsort((time, wanted))
    wanted, time = wanted[order], time[order]
    targets = _born_before(topic, wanted, time, random=random)
    every, first = np.arange(len(order)), np.searchsorted(wanted, wanted)
    model = first + (random.random(len(order)) * (every - first)).astype(np.int64)
    followed = np.where((random.random(len(order)) < COPIED) & (every > first), model, every)
    # A copy of a copy leads where the first one does.
    while not np.array_equal(followed, further := followed[followed]):
        followed = further
    result = np.empty_like(targets)
    result[order] = targets[followed]
    return result


def _born_before(topic: Numbers, wanted: Numbers, time: Times, *, random: np.random.Generator) -> Numbers:
    """Return a random page of each topic ``wanted`` among those that were there at the time."""
    members = np.argsort(topic, kind="stable")
    key = topic[members] + members / len(topic)
    first = np.searchsorted(topic[members], wanted)
    count = np.searchsorted(key, wanted + np.minimum(time, np.nextafter(1.0, 0)), side="right") - first
    return np.asarray(members[first + (random.random(len(wanted)) * np.maximum(count, 1)).astype(np.int64)])


def _grow_across(pages: int, older: Numbers, times: Times, time: Times, *, random: np.random.Generator) -> Numbers:
    """Return the targets of links to anywhere: random pages, or copies of links within topics, sorted by time."""
    uniform = (random.random(len(time)) * np.maximum(1, np.ceil(time * pages))).astype(np.int64)
    earlier = np.searchsorted(times, time)
    copies = (random.random(len(time)) < COPIED) & (earlier > 0)
    chosen = (random.random(len(time)) * earlier).astype(np.int64)
    result = np.minimum(uniform, pages - 1)
    result[copies] = older[chosen[copies]]
    return result


def _repeats(source: Numbers, target: Numbers, *, pages: int) -> npt.NDArray[np.bool_]:
    """Return which links repeat one before them, or lead back to their page."""
    repeats = np.ones(len(source), bool)
    repeats[np.unique(source * pages + target, return_index=True)[1]] = False
    return np.asarray(repeats | (source == target))
