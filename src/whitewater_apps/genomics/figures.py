"""The pictures of the genomics application: functions of tables that return Matplotlib figures.

An argument named like a file of results is its content; ``pairs`` is that of `kinship.parquet`.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import cycle
from math import erfc, sqrt
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from whitewater.engines import Array
from whitewater.figures import shapes, style, words
from whitewater.figures.shapes import Look
from whitewater_apps.genomics.decisions import DEGREES

NO_LABEL, OTHER = "no label", "other labels"
# 6 colors and 7 marks give 42 looks, and neighbors in the legend differ in both.
_COLORS = (style.BLUE, style.ORANGE, style.GREEN, style.VERMILION, style.SKY_BLUE, style.PURPLE)
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
MOST_LABELS = len(_COLORS) * len(_MARKS)
_LONGEST_LABEL = 22
_LEGEND_LINES = 22
# More points are drawn as pixels, or an SVG would be slow to open.
_MANY_POINTS = 20_000
# Smaller p-values are drawn here, to leave room for the interesting ones.
_LEAST_P = 1e-60
# Components labeled with their share of the variance, and the height of a label as a fraction of the axis.
_MOST_SHARES, _LINE = 5, 0.045
# The gap between two contigs, and most of all gaps together, as fractions of the length of all contigs.
_GAP, _GAPS = 0.008, 0.2
# In points: the width of an axis, of the longest name, and between two names; and the size of letters.
_WIDTH, _LONGEST_NAME, _ROOM, _SIZE = 580, 120, 3, 9
_BINS = 50
_KEPT, _REJECTED = style.BLUE, style.VERMILION
# Range of the axis of kinship. Samples of different continents are far below 0; duplicates have 1/2.
_LEAST_KINSHIP, _MOST_KINSHIP = -0.3, 0.53
_DEGREE_LOOKS = {
    "duplicate": Look("duplicates or twins", style.BLACK, "X"),
    "first": Look("first degree", style.VERMILION, "o"),
    "second": Look("second degree", style.BLUE, "s"),
    "third": Look("third degree", style.GREEN, "^"),
}


@style.with_style
def component_pair(
    pcs: pd.DataFrame, projected: pd.DataFrame, *, eigenvalues: Mapping[str, Any], pair: tuple[int, int]
) -> Figure:
    """Draw the samples on two components (their numbers from 1), colored by label; projected samples are hollow."""
    x, y = (f"PC{number}" for number in pair)
    title = f"Samples on {x} and {y}"
    if max(pair) > (computed := len(eigenvalues["eigenvalues"])):
        return style.text_figure(title, f"There are {computed} components only: the data have no {y}.")
    placed = projected.dropna(subset=[x, y])
    subtitle = f"{words.count(len(pcs))} samples, {words.count(eigenvalues['variants'])} variants."
    if len(placed):
        subtitle += f" Hollow: {words.count(len(placed))} samples that the components were not computed from."
    lost = len(projected) - len(placed)
    why = "samples without scores: column `reason` of projected.parquet tells why"
    notes = [f"Not shown: {words.count(lost)} {why}."] if lost else []
    figure, body = style.new_figure(9, 5.4, title=title, subtitle=subtitle, notes=notes)
    axes = _draw_samples(body, pcs, projected, x=x, y=y)
    axes.axhline(0, color=style.GRAY, linewidth=0.6, zorder=1)
    axes.axvline(0, color=style.GRAY, linewidth=0.6, zorder=1)
    shares = [words.percent(eigenvalues["explained_variance_ratio"][number - 1]) for number in pair]
    axes.set(xlabel=f"{x} ({shares[0]} of the variance)", ylabel=f"{y} ({shares[1]} of the variance)")
    return figure


@style.with_style
def umap(embedding: pd.DataFrame, projected: pd.DataFrame, *, quality: Mapping[str, Any]) -> Figure:
    """Draw the map of the samples, colored by label, with its trustworthiness.

    ``embedding`` is `umap.parquet`; ``projected`` has the ``label`` of samples that are not on the map, so that labels
    look as in other pictures; ``quality`` is the content of `umap.json`.
    """
    title = "Samples on a map of their components"
    if quality["trustworthiness"] is None:
        reason = f"{words.count(len(embedding))} samples are not more than {quality['neighbors']} neighbors"
        return style.text_figure(title, f"No map was made: {reason} (genomics.umap.neighbors).")
    subtitle = (
        f"{words.count(len(embedding))} samples. Trustworthiness {quality['trustworthiness']:.3f}: 1 where neighbors "
        "on the map are neighbors in the components."
    )
    notes = ["Distances between groups, and their sizes, mean nothing."]
    figure, body = style.new_figure(9, 5.4, title=title, subtitle=subtitle, notes=notes)
    axes = _draw_samples(body, embedding, projected, x="UMAP1", y="UMAP2")
    axes.set(xlabel="UMAP 1", ylabel="UMAP 2", xticks=[], yticks=[])
    return figure


def looks(*labels: pd.Series) -> dict[str, Look]:
    """Return the look of each label, most frequent first if there are too many, then of samples without one.

    Pass the labels of all samples of a run, null for none, so that a label looks the same in all pictures.
    """
    counts = pd.concat(labels).value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable")
    names = sorted(counts.index[: MOST_LABELS if len(counts) <= MOST_LABELS else MOST_LABELS - 1])
    styles = zip(map(str, names), cycle(_COLORS), cycle(_MARKS), strict=False)
    by_label = {name: Look(name, color, mark) for name, color, mark in styles}
    if len(counts) > len(names):
        by_label[OTHER] = Look(OTHER, style.GRAY)
    if any(column.isna().any() for column in labels):
        by_label[NO_LABEL] = Look(NO_LABEL, style.GRAY if by_label else style.BLUE)
    return by_label


def _draw_samples(body: SubFigure, samples: pd.DataFrame, projected: pd.DataFrame, *, x: str, y: str) -> Axes:
    """Draw samples, and projected ones as outlines, with a legend of labels and their counts.

    Samples without a label of their own are below the others, and frequent labels below rare ones.
    """
    by_label = looks(samples["label"], projected["label"])
    # UMAP gives projected samples no coordinates, so that there are none to draw.
    hollow = projected.reindex(columns=["label", x, y]).dropna(subset=[x, y])
    axes, counts = body.subplots(), Counter[str]()
    for table, is_hollow in ((samples, False), (hollow, True)):
        # The more samples, the smaller.
        size = (1.6 if is_hollow else 1) * min(30.0, max(4.0, 1100.0 / max(len(table), 1) ** 0.5))
        names = table["label"].fillna(NO_LABEL).astype(str)
        names = names.where(names.isin(list(by_label)), OTHER)
        frequency = names.value_counts()
        counts.update(names.tolist())
        for name in sorted(frequency.index, key=lambda name: (name not in (NO_LABEL, OTHER), -frequency[name], name)):
            look, rows = by_label[name], table[names == name]
            axes.scatter(
                rows[x], rows[y], s=size, marker=look.mark, label=look.name, alpha=0.9,
                rasterized=len(table) > _MANY_POINTS, facecolors="none" if is_hollow else look.color,
                edgecolors=look.color if is_hollow else "white", linewidths=1.1 if is_hollow else 0.3,
                zorder=3 if is_hollow else 2,
            )  # fmt: skip
    entries = []
    for name in filter(counts.get, by_label):
        text = style.escape_missing_letters(name)
        text = text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"
        entries.append(by_label[name].entry(markersize=6, label=f"{text} ({words.count(counts[name])})"))
    if len(hollow):
        entries.append(Look("projected", style.BLACK).entry(markersize=6, markerfacecolor="none"))
    body.legend(
        handles=entries, loc="outside right upper", ncols=-(-len(entries) // _LEGEND_LINES), columnspacing=1.0,
        handletextpad=0.2, labelspacing=0.45,
    )  # fmt: skip
    return axes


@style.with_style
def scree(eigenvalues: Mapping[str, Any]) -> Figure:
    """Draw the eigenvalues with their thresholds of significance, and the p-values of the Tracy-Widom test."""
    values = np.asarray(eigenvalues["eigenvalues"], dtype=float)
    tests, significant = eigenvalues["tracy_widom"], int(eigenvalues["significant_components"])
    subtitle = (
        f"{significant} of the first {len(values)} components are significant. Percentages: share of the variance. "
        f"{words.count(eigenvalues['samples'])} samples, {words.count(eigenvalues['variants'])} variants."
    )
    smaller = any(test["p_value"] < _LEAST_P for test in tests)
    notes = [f"Smaller p-values are drawn at {_LEAST_P:g}."] if smaller else []
    title = "Which components are more than noise"
    figure, body = style.new_figure(9, 3.9, title=title, subtitle=subtitle, notes=notes)
    left, right = body.subplots(1, 2)
    components, p_values = np.arange(1, len(values) + 1), np.maximum([test["p_value"] for test in tests], _LEAST_P)
    left.plot(components, values, color=style.GRAY, linewidth=1)
    step = 1 if len(values) <= 12 else 2 if len(values) <= 24 else 5 * -(-len(values) // 60)
    for axes, heights in ((left, values), (right, p_values)):
        for part, face, name in (
            (slice(0, significant), style.BLUE, "significant"), (slice(significant, None), "white", "not significant")
        ):  # fmt: skip
            if len(heights[part]):
                axes.plot(
                    components[part], heights[part], "o", markersize=7, markerfacecolor=face,
                    markeredgecolor=style.BLUE, label=name, clip_on=False,
                )  # fmt: skip
        axes.set(xlim=(0.3, len(values) + 0.7), xlabel="Component", xticks=range(step, len(values) + 1, step))
        axes.grid(visible=False, axis="x")
    right.set(yscale="log", ylabel="p-value (Tracy-Widom)", ylim=(min(float(p_values.min()), 1e-3) ** 1.05, 1.5))
    thresholds = [test["threshold"] for test in tests]
    left.plot(
        components[: len(thresholds)], thresholds, color=style.VERMILION, linestyle="--", linewidth=1.2,
        label="least that would be significant",
    )  # fmt: skip
    top = 1.3 * float(values.max())
    for component in range(min(significant, _MOST_SHARES)):
        # Stop where components are so close that their labels would overlap.
        if component and values[component - 1] - values[component] < _LINE * top:
            break
        share = words.percent(eigenvalues["explained_variance_ratio"][component])
        shapes.write_beside(left, share, (component + 1, values[component]), (7, 3))
    left.set(ylabel="Eigenvalue", ylim=(0, max(top, 1.3 * max(thresholds, default=0))))
    left.legend(loc="upper right")
    return figure


@style.with_style
def loadings_by_position(loadings: Array, variants: pd.DataFrame, *, components: int) -> Figure:
    """Draw the squared loadings of the first components along the genome, relative to their mean.

    ``loadings`` are floats, (variants, components), unit columns; ``variants`` has ``contig`` and ``position``. Contigs
    are in the order of their first variants.
    """
    components = min(components, loadings.shape[1])
    places, spans = along_genome(variants)
    subtitle = (
        f"Squared loadings of {words.count(len(places))} variants; 1 where all have the same share. Towers: variants "
        "that are inherited together, as in inversions or regions of long-range LD."
    )
    title = "Where on the genome the components come from"
    figure, body = style.new_figure(9, 0.6 + 1.5 * components, title=title, subtitle=subtitle)
    panels = body.subplots(components, sharex=True, squeeze=False)[:, 0]
    odd = (variants["contig"].factorize()[0] % 2).astype(bool)
    for number, axes in enumerate(panels):
        shares = loadings[:, number].astype(float) ** 2 * len(places)
        for rows, color in ((~odd, style.BLUE), (odd, style.SKY_BLUE)):
            axes.plot(places[rows], shares[rows], ".", markersize=2.5, color=color, rasterized=True)
        axes.set(ylim=(0, 1.08 * max(float(shares.max()), 1.0)), xlim=(-_GAP, float(places.max()) + _GAP))
        axes.grid(visible=False, axis="x")
        axes.locator_params(axis="y", nbins=4)
        axes.set_title(f"PC{number + 1}")
    body.supylabel("Squared loading, relative to the mean", size=10)
    _name_contigs(panels[-1], spans)
    return figure


def along_genome(variants: pd.DataFrame) -> tuple[Array, dict[str, tuple[float, float]]]:
    """Lay the contigs, as long as the span of their variants, end to end.

    Returns the place of each variant, and the start and stop of each contig, from 0 to about 1.
    """
    codes, contigs = variants["contig"].factorize()
    positions = variants["position"].astype(float).groupby(codes)
    first, span = positions.min().to_numpy(), (positions.max() - positions.min()).to_numpy()
    total = span.sum() or 1.0
    length = span / total
    begin = length.cumsum() - length + np.arange(len(span)) * min(_GAP, _GAPS / max(len(span), 1))
    places = begin[codes] + (variants["position"].to_numpy() - first[codes]) / total
    return places, dict(zip(contigs, zip(begin.tolist(), (begin + length).tolist(), strict=True), strict=True))


def _name_contigs(axes: Axes, spans: Mapping[str, tuple[float, float]]) -> None:
    """Write names below the middles of contigs, longest contigs first, where there is room."""
    axes.tick_params(axis="x", length=0)
    left, right = axes.get_xlim()
    ticks: dict[float, str] = {}
    occupied: list[tuple[float, float]] = []
    # Rounding lets the first of equally long contigs come first.
    for contig, (start, stop) in sorted(spans.items(), key=lambda span: round(span[1][0] - span[1][1], 9)):
        name = style.fit_text(contig, points=_LONGEST_NAME, size=_SIZE)
        half, middle = (style.text_width(name, _SIZE) + _ROOM) / 2 / _WIDTH * (right - left), (start + stop) / 2
        first, last = middle - half, middle + half
        if left <= first and last <= right and all(last <= begin or end <= first for begin, end in occupied):
            ticks[middle] = name
            occupied.append((first, last))
    axes.set_xlabel("Contig" if len(ticks) == len(spans) else f"Contig ({len(ticks)} of {len(spans)} named)")
    axes.set_xticks(sorted(ticks), [ticks[middle] for middle in sorted(ticks)])


@style.with_style
def missingness(samples: pd.DataFrame, variants: pd.DataFrame) -> Figure:
    """Draw histograms of the call rates in `samples.parquet` and `variants.parquet`, in two colors at the threshold."""
    subtitle = "Share of genotypes that are called. Logarithmic counts, so that few can be seen beside many."
    figure, body = style.new_figure(9, 3.5, title="Call rates of samples and variants", subtitle=subtitle)
    left, right = body.subplots(1, 2)
    for axes, table, reasons, what in ((left, samples, "reason", "samples"), (right, variants, "reasons", "variants")):
        # A row has one or several reasons.
        by_reason = table.reset_index(drop=True)[reasons].explode().fillna("").str.startswith("call rate")
        left_out, rates = by_reason.groupby(level=0).any().to_numpy(bool), table["call_rate"].to_numpy(float)
        # The axis ends at 1 and starts at the least rate, or a little below 1. A bin starts at the threshold.
        least = min(rates.min(initial=1), 0.99)
        enough = rates[~left_out].min(initial=1) if left_out.any() else 1.0
        bins = max(1, round(_BINS * (1 - enough) / (1 - least)))
        width = (1 - enough) / bins if enough < 1 else (1 - least) / _BINS
        edges = 1 - width * np.arange(np.ceil((1 - least) / width) + 1)[::-1]
        parts = {f"{words.count(int((~left_out).sum()))} {what} with enough calls": (rates[~left_out], _KEPT)}
        if left_out.any():
            parts[f"{words.count(int(left_out.sum()))} left out: too few calls"] = (rates[left_out], _REJECTED)
        title = f"{what.capitalize()}: mean {words.percent(float(rates.mean()))}" if len(rates) else f"No {what}"
        axes.set(title=title, xlabel="Call rate", ylabel=what.capitalize())
        _draw_histograms(axes, parts, edges, room=1.35, loc="upper left")
    return figure


def _draw_histograms(
    axes: Axes, parts: Mapping[str, tuple[Array, str]], edges: Array, *, room: float, **legend: Any
) -> None:
    """Draw the values and color of each name in the legend, which needs ``room``: a factor of the logarithmic axis."""
    for name, (values, color) in parts.items():
        shapes.draw_histogram(axes, np.histogram(values, edges)[0], edges, color=color, alpha=0.85, label=name)
    axes.set_yscale("log")
    above = float(10 ** (room * np.log10(max(axes.get_ylim()[1], 10.0))))
    axes.set(ylim=(shapes.LEAST_COUNT, above), xlim=(edges[0], edges[-1]))
    axes.legend(**legend)
    shapes.in_percent(axes.xaxis)


@style.with_style
def variant_quality(variants: pd.DataFrame) -> Figure:
    """Draw the rejected variants of `variants.parquet` by reason, and allele frequencies before and after."""
    title, kept = "Which variants are kept", variants["kept"].to_numpy(bool)
    if not len(kept):
        return style.text_figure(title, "The source has no variant.")
    reasons = {str(name): int(number) for name, number in variants["reasons"].explode().value_counts().items()}
    bars = {"kept": int(kept.sum()), **shapes.most_frequent(reasons, 10)}
    subtitle = (
        f"{words.count(len(kept))} variants = {words.count(bars['kept'])} kept + "
        f"{words.count(int((~kept).sum()))} rejected. A variant with several reasons is in the bar of each."
    )
    figure, body = style.new_figure(9, max(3.2, 1.1 + 0.3 * len(bars)), title=title, subtitle=subtitle)
    left, right = body.subplots(1, 2)
    colors = [_KEPT, *[_REJECTED] * (len(bars) - 1)]
    shapes.draw_bars(left, bars, total=len(kept), colors=colors, xlabel="Share of variants", rows=4, room=1.7)
    frequency = variants["allele_frequency"].to_numpy(float)
    rarer, called = np.minimum(frequency, 1 - frequency), np.isfinite(frequency)
    parts = {"all": (rarer[called], style.GRAY)}
    if (called & kept).any():
        parts["kept"] = (rarer[called & kept], _KEPT)
    right.set(xlabel="Frequency of the rarer allele", ylabel="Variants")
    _draw_histograms(right, parts, np.linspace(0, 0.5, _BINS // 2 + 1), room=1.2, loc="upper right", ncols=2)
    return figure


@style.with_style
def kinship(pairs: pd.DataFrame, *, relatedness: Mapping[str, Any]) -> Figure:
    """Draw the relatives by kinship and the share of variants without a common allele, and the kinship of all pairs."""
    title, histogram = "Kinship of pairs of samples", relatedness["histogram"]
    total = sum(histogram["counts"]) + relatedness["undefined"]
    if not total:
        return style.text_figure(title, "No pairs were compared: genomics.relatedness.method is none.")
    degrees = [(name, least, _DEGREE_LOOKS[name]) for name, least in DEGREES.items()]
    numbers, error = relatedness["degrees"], relatedness["standard_error"]
    counts = "; ".join(
        f"{look.name}: {_beyond_chance(numbers[name], total, least, error)}" for name, least, look in degrees
    )
    below = sum(np.asarray(histogram["counts"])[np.asarray(histogram["edges"])[:-1] < _LEAST_KINSHIP - 1e-9].tolist())
    notes = ["Dotted: the kinship above which one of a pair is set aside."]
    notes += [f"Not shown: {words.count(below)} pairs of a kinship below {_LEAST_KINSHIP:g}."] if below else []
    subtitle = f"{words.count(total)} pairs. {counts.capitalize()}."
    figure, body = style.new_figure(9, 4.2, title=title, subtitle=subtitle, notes=notes)
    left, right = body.subplots(1, 2, sharey=True, width_ratios=(1.5, 1))
    above = np.inf
    for _, least, look in degrees:
        for axes in (left, right):
            axes.axhline(least, color=style.GRAY, linestyle="--", linewidth=0.8, zorder=1)
        shapes.write_at_right(right, look.name, (least + min(above, 0.5)) / 2)
        rows = pairs[(pairs["kinship"] >= least) & (pairs["kinship"] < above)]
        above = least
        left.scatter(
            rows["ibs0"] / rows["variants"], rows["kinship"], s=24, color=look.color, marker=look.mark, alpha=0.85,
            edgecolors="white", linewidths=0.3, label=look.name, zorder=2,
        )  # fmt: skip
    shapes.draw_histogram(
        right, histogram["counts"], histogram["edges"], orientation="horizontal", color=style.SKY_BLUE
    )
    left.set(title="Relatives", xlabel="Share of variants without a common allele (IBS0)")
    right.set(title="All pairs", xscale="log", xlabel="Pairs")
    right.set_xlim(shapes.LEAST_COUNT, 3 * max([10, *histogram["counts"]]))
    if pairs.empty:
        left.text(0.5, 0.87, "No pair is related.", transform=left.transAxes, ha="center", color=style.TEXT_GRAY)
    else:
        left.set_xlim(left=-0.002)
        left.legend(loc="lower left", title="Relationship", alignment="left")
    shapes.in_percent(left.xaxis)
    for axes in (left, right):
        axes.axhline(relatedness["maximum_kinship"], color=style.PURPLE, linestyle=":", linewidth=1.6, zorder=1)
    left.set(ylabel="Kinship (KING-robust)", ylim=(_LEAST_KINSHIP, _MOST_KINSHIP))
    return figure


def _beyond_chance(number: int, pairs: int, least: float, error: float | None) -> str:
    """Return a number of relatives, and whether it is no more than expected of unrelated pairs."""
    by_chance = pairs * erfc(least / error / sqrt(2)) / 2 if error else 0.0
    if not 0 < number <= by_chance:
        return words.count(number)
    return f"{words.count(number)}, no more than the {words.count(round(by_chance))} that chance may bring"
