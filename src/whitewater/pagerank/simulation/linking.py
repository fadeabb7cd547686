"""Who links to whom: a growing web in which links copy links.

The copying model of R. Kumar, P. Raghavan, S. Rajagopalan, D. Sivakumar, A. Tomkins and E. Upfal (2000), "Stochastic
models for the Web graph", FOCS: a new link leads to a random page, or, with probability `COPIED`, to where a random
older link leads. So pages gain links in proportion to those that they have, and in-degrees follow a power law of
exponent (2 - a) / (1 - a), a = 1 - `COPIED`: 2.18 here; A. Broder et al. (2000), "Graph structure in the Web", measured
2.1.

Unlike there, a page gets its links at any time after it was made, not only at once, so that old pages link to young
ones and the graph has cycles; and most links copy within their topic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

COPIED = 0.85
WITHIN_TOPIC = 0.85
# How often a link that repeats one of its page is led elsewhere: within its topic, then anywhere. What repeats still is
# left out.
_TRIES_WITHIN, _TRIES = 3, 5

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Linking:
    """Links by source, then by target, no two alike, none from a page to itself.

    Attributes
    ----------
    source, target
        int64 (links,): numbers of pages.
    """

    source: Numbers
    target: Numbers

    def __len__(self) -> int:
        return len(self.source)


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


def draw_links(topic: Numbers, out_degrees: Numbers, *, random: np.random.Generator) -> Linking:
    """Return the links of pages that are numbered from the oldest on.

    Parameters
    ----------
    topic
        int64 (pages,): the topic of each page.
    out_degrees
        int64 (pages,): links of each page.
    random
        Equal states give equal links.
    """
    pages = len(topic)
    source = np.repeat(np.arange(pages), out_degrees)
    born = source / pages
    time = born + (1 - born) * random.random(len(source))
    inside = random.random(len(source)) < WITHIN_TOPIC
    target = np.empty_like(source)
    target[inside] = _grow(topic, topic[source[inside]], time[inside], random=random)
    older, order = target[inside], np.argsort(time[inside], kind="stable")
    target[~inside] = _grow_across(pages, older[order], time[inside][order], time[~inside], random=random)
    return _without_repeats(source, target, topic, random=random)


def _grow(topic: Numbers, wanted: Numbers, time: npt.NDArray[np.float64], *, random: np.random.Generator) -> Numbers:
    """Return the targets of links within the topic ``wanted``, made at times from 0 to 1."""
    order = np.lexsort((time, wanted))
    wanted, time = wanted[order], time[order]
    targets = _born_before(topic, wanted, time, random=random)
    first = np.searchsorted(wanted, wanted)
    earlier = np.arange(len(order)) - first
    model = first + (random.random(len(order)) * earlier).astype(np.int64)
    copies = (random.random(len(order)) < COPIED) & (earlier > 0)
    followed = _follow(np.where(copies, model, np.arange(len(order))))
    result = np.empty_like(targets)
    result[order] = targets[followed]
    return result


def _born_before(
    topic: Numbers, wanted: Numbers, time: npt.NDArray[np.float64], *, random: np.random.Generator
) -> Numbers:
    """Return a random page of each topic ``wanted`` among those that were there at the time."""
    members = np.argsort(topic, kind="stable")
    key = topic[members] + members / len(topic)
    first = np.searchsorted(topic[members], wanted)
    count = np.searchsorted(key, wanted + np.minimum(time, np.nextafter(1.0, 0)), side="right") - first
    chosen: Numbers = members[first + (random.random(len(wanted)) * np.maximum(count, 1)).astype(np.int64)]
    return chosen


def _follow(model: Numbers) -> Numbers:
    """Return for each link the one that it copies in the end; ``model`` is the one it copies, or itself."""
    while True:
        further = model[model]
        if np.array_equal(further, model):
            return model
        model = further


def _grow_across(
    pages: int,
    older: Numbers,
    times: npt.NDArray[np.float64],
    time: npt.NDArray[np.float64],
    *,
    random: np.random.Generator,
) -> Numbers:
    """Return the targets of links to anywhere: random pages, or copies of links within topics, sorted by time."""
    uniform = (random.random(len(time)) * np.maximum(1, np.ceil(time * pages))).astype(np.int64)
    earlier = np.searchsorted(times, time)
    copies = (random.random(len(time)) < COPIED) & (earlier > 0)
    chosen = (random.random(len(time)) * earlier).astype(np.int64)
    result = np.minimum(uniform, pages - 1)
    result[copies] = older[chosen[copies]]
    return result


def _without_repeats(source: Numbers, target: Numbers, topic: Numbers, *, random: np.random.Generator) -> Linking:
    """Lead links that repeat one of their page, or lead back to it, elsewhere."""
    pages = len(topic)
    for number in range(_TRIES):
        again = _repeats(source, target, pages=pages)
        target = target.copy()
        if number < _TRIES_WITHIN:
            wanted = topic[source[again]]
            target[again] = _born_before(topic, wanted, np.ones(len(wanted)), random=random)
        else:
            target[again] = random.integers(pages, size=int(again.sum()))
    kept = ~_repeats(source, target, pages=pages)
    order = np.lexsort((target[kept], source[kept]))
    return Linking(source[kept][order], target[kept][order])


def _repeats(source: Numbers, target: Numbers, *, pages: int) -> npt.NDArray[np.bool_]:
    first = np.zeros(len(source), bool)
    first[np.unique(source * pages + target, return_index=True)[1]] = True
    repeats: npt.NDArray[np.bool_] = ~first | (source == target)
    return repeats
