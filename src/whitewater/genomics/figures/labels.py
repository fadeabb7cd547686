"""The labels of samples as pictures show them: a colour and a mark each, the same in every picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whitewater import style
from whitewater.lettering import spelled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure
    from matplotlib.lines import Line2D

NO_LABEL = "no label"
OTHER = "other labels"
# With 6 colours and 7 marks no two of 42 labels look alike, and neighbours in the legend differ in both.
_COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.VERMILION, style.SKY_BLUE, style.PURPLE)
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
MOST_LABELS = len(_COLOURS) * len(_MARKS)
_LONGEST_NAME = 22
_LEGEND_LINES = 22
# Points beyond which a picture in SVG would be slow to open: they are drawn as pixels there.
_MANY_POINTS = 20_000


@dataclass(frozen=True)
class Look:
    """How the samples of a label are drawn."""

    colour: str
    mark: str


def looks(*labels: pd.Series) -> dict[str, Look]:
    """Return the look of each label, those without one last; of very many labels, the most frequent have their own.

    Parameters
    ----------
    labels
        Labels of all samples of a run, null where one has none: equal labels give equal looks, so that a colour means
        the same in all pictures, whichever samples they show.
    """
    import pandas as pd

    counts = pd.concat(labels).value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable")
    own = sorted(counts.index[: MOST_LABELS if len(counts) <= MOST_LABELS else MOST_LABELS - 1])
    found = {name: Look(_COLOURS[i % len(_COLOURS)], _MARKS[i % len(_MARKS)]) for i, name in enumerate(map(str, own))}
    if len(counts) > len(own):
        found[OTHER] = Look(style.GREY, "o")
    if any(each.isna().any() for each in labels):
        found[NO_LABEL] = Look(style.GREY if found else style.BLUE, "o")
    return found


def by_look(table: pd.DataFrame, shown: Mapping[str, Look]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each label of `looks` that has rows, with them, those that say most last: they are drawn above the others.

    First the samples without a label of their own, then the labels from the most to the least frequent.
    """
    names = table["label"].fillna(NO_LABEL).astype(str)
    names = names.where(names.isin(list(shown)), OTHER)
    counts = names.value_counts()
    for name in sorted(counts.index, key=lambda name: (name not in (NO_LABEL, OTHER), -counts[name], name)):
        yield name, table[names == name]


def draw_samples(
    axes: Axes, table: pd.DataFrame, shown: Mapping[str, Look], *, x: str, y: str, hollow: bool = False
) -> None:
    """Draw samples as points in the look of their labels; ``hollow`` ones as outlines."""
    size = (1.6 if hollow else 1) * point_size(len(table))
    for name, rows in by_look(table, shown):
        look = shown[name]
        axes.scatter(
            rows[x], rows[y], s=size, marker=look.mark, label=name, alpha=0.9, rasterized=len(table) > _MANY_POINTS,
            facecolors="none" if hollow else look.colour, edgecolors=look.colour if hollow else "white",
            linewidths=1.1 if hollow else 0.3, zorder=3 if hollow else 2,
        )  # fmt: skip


def point_size(points: int) -> float:
    """Return the area of a point, in square points: smaller where there are more."""
    return float(min(30.0, max(4.0, 1100.0 / max(points, 1) ** 0.5)))


def draw_legend(body: SubFigure, shown: Mapping[str, Look], counts: Mapping[str, int], *, hollow: str = "") -> None:
    """List the labels that have samples, and how many, at the right; ``hollow`` names what is drawn as outlines."""
    entries = [_entry(cut(name, counts[name]), look) for name, look in shown.items() if counts[name]]
    if hollow:
        entries.append(_entry(hollow, Look(style.BLACK, "o"), filled=False))
    body.legend(
        handles=entries, loc="outside right upper", ncols=-(-len(entries) // _LEGEND_LINES), columnspacing=1.0,
        handletextpad=0.2, labelspacing=0.45,
    )  # fmt: skip


def cut(name: str, samples: int) -> str:
    """Return a label as the legend has it: cut where it is long, with its number of samples."""
    shown = spelled(name)
    short = shown if len(shown) <= _LONGEST_NAME else f"{shown[: _LONGEST_NAME - 1]}…"
    return f"{short} ({style.count(samples)})"


def sample_counts(shown: Mapping[str, Look], *tables: pd.DataFrame) -> dict[str, int]:
    """Return the number of samples of each label of `looks` in all tables together."""
    counts = dict.fromkeys(shown, 0)
    for table in tables:
        for name, rows in by_look(table, shown):
            counts[name] += len(rows)
    return counts


def _entry(name: str, look: Look, *, filled: bool = True) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D(
        [], [], linestyle="none", marker=look.mark, markersize=6, label=name, markeredgecolor=look.colour,
        markerfacecolor=look.colour if filled else "none",
    )  # fmt: skip
