"""What became of samples and variants: call rates, and the reasons that variants were rejected for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from whitewater import style
from whitewater.devices import Array

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CALL_RATE = "call rate"
_MISSINGNESS = "Call rates of samples and variants"
_VARIANTS = "Which variants are kept"
_BINS = 50
_MOST_REASONS = 10
# Where logarithmic axes of counts begin, so that a bar of 1 can be seen.
_LEAST_COUNT = 0.7
_KEPT, _REJECTED = style.BLUE, style.VERMILION


@style.styled
def missingness(samples: pd.DataFrame, variants: pd.DataFrame) -> Figure:
    """Draw histograms of the call rates, coloured by whether the threshold left the sample or variant out.

    Parameters
    ----------
    samples
        `samples.parquet`: ``call_rate``, ``reason``.
    variants
        `variants.parquet`: ``call_rate``, ``reasons``.
    """
    subtitle = "Share of genotypes that are called. Logarithmic counts, so that few can be seen beside many."
    figure, body = style.titled(9, 3.5, title=_MISSINGNESS, subtitle=subtitle)
    left, right = body.subplots(1, 2)
    for axes, table, reasons, what in ((left, samples, "reason", "samples"), (right, variants, "reasons", "variants")):
        rows = table.reset_index(drop=True)
        _draw_call_rates(axes, rows["call_rate"].to_numpy(float), _left_out(rows[reasons].explode()), what=what)
    return figure


def _left_out(reasons: pd.Series) -> Array:
    """Return whether a reason of each row is its call rate, bool (rows,); rows with several repeat in the index."""
    named = reasons.fillna("").str.startswith(CALL_RATE)
    out: Array = named.groupby(level=0).any().to_numpy(bool)
    return out


def _draw_call_rates(axes: Axes, rates: Array, left_out: Array, *, what: str) -> None:
    kept = f"{style.count(int((~left_out).sum()))} {what} with enough calls"
    axes.set_title(f"{what.capitalize()}: mean {style.percent(float(rates.mean()))}" if len(rates) else f"No {what}")
    edges = _edges(rates)
    _draw_histogram(axes, rates[~left_out], edges, color=_KEPT, label=kept)
    if left_out.any():
        too_few = f"{style.count(int(left_out.sum()))} left out: too few calls"
        _draw_histogram(axes, rates[left_out], edges, color=_REJECTED, label=too_few)
    axes.set_yscale("log")
    axes.set(
        ylim=(_LEAST_COUNT, _above(axes, 1.35)),
        xlim=(edges[0], edges[-1]),
        xlabel="Call rate",
        ylabel=what.capitalize(),
    )
    axes.legend(loc="upper left")
    style.in_percent(axes.xaxis)


def _above(axes: Axes, factor: float) -> float:
    """Return where a logarithmic axis of counts must end to have room for a legend above the bars."""
    return float(10 ** (factor * np.log10(max(axes.get_ylim()[1], 10.0))))


def _edges(rates: Array) -> Array:
    """Return the edges of bins from the least rate, or a little below 1 where all are equal, to 1."""
    least = min(float(rates.min()), 0.99) if len(rates) else 0.99
    return np.linspace(max(0.0, least - 0.02 * (1 - least)), 1.0, _BINS + 1)


@style.styled
def variant_quality(variants: pd.DataFrame) -> Figure:
    """Draw how many variants were rejected for each reason, and the frequencies of the rarer allele before and after.

    Parameters
    ----------
    variants
        `variants.parquet`: ``allele_frequency``, ``kept``, ``reasons`` (a list, each reason that holds).
    """
    kept = variants["kept"].to_numpy(bool)
    total = len(variants)
    if not total:
        return style.explained(_VARIANTS, "The source has no variant.")
    reasons = _counted(variants["reasons"].explode().value_counts())
    subtitle = (
        f"{style.count(total)} variants = {style.count(int(kept.sum()))} kept + "
        f"{style.count(int((~kept).sum()))} rejected. A variant with several reasons is in the bar of each."
    )
    figure, body = style.titled(9, max(3.2, 1.4 + 0.3 * len(reasons)), title=_VARIANTS, subtitle=subtitle)
    left, right = body.subplots(1, 2)
    _draw_reasons(left, {"kept": int(kept.sum()), **reasons}, total=total)
    _draw_frequencies(right, variants["allele_frequency"].to_numpy(float), kept)
    return figure


def _counted(counts: pd.Series) -> dict[str, int]:
    """Return the number of each reason, the most frequent first; where there are many, the last ones as one."""
    ordered = sorted(
        ((str(name), int(number)) for name, number in counts.to_dict().items()), key=lambda each: (-each[1], each[0])
    )
    if len(ordered) <= _MOST_REASONS:
        return dict(ordered)
    first, rest = ordered[: _MOST_REASONS - 1], ordered[_MOST_REASONS - 1 :]
    return dict(first) | {"other reasons": sum(number for _, number in rest)}


def _draw_reasons(axes: Axes, bars: Mapping[str, int], *, total: int) -> None:
    places, numbers = np.arange(len(bars)), np.array(list(bars.values()))
    colours = [_KEPT, *[_REJECTED] * (len(bars) - 1)]
    axes.barh(places, numbers / total, 0.7, color=colours)
    for place, number in zip(places, numbers, strict=True):
        text = f"{style.count(int(number))} ({style.percent(number / total)})"
        axes.annotate(text, (number / total, place), xytext=(4, 0), textcoords="offset points", va="center", size=8.5)
    axes.set_yticks(places, list(bars))
    axes.set(ylim=(max(len(bars), 4) - 0.4, -0.6), xlim=(0, 1.7 * numbers.max() / total), xlabel="Share of variants")
    axes.grid(visible=False, axis="y")
    style.in_percent(axes.xaxis)
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= 1])


def _draw_frequencies(axes: Axes, frequencies: Array, kept: Array) -> None:
    rarer = np.minimum(frequencies, 1 - frequencies)
    known = np.isfinite(rarer)
    edges = np.linspace(0, 0.5, _BINS // 2 + 1)
    _draw_histogram(axes, rarer[known], edges, color=style.GREY, label="all")
    if (known & kept).any():
        _draw_histogram(axes, rarer[known & kept], edges, color=_KEPT, label="kept")
    axes.set_yscale("log")
    axes.set(
        ylim=(_LEAST_COUNT, _above(axes, 1.2)), xlim=(0, 0.5), xlabel="Frequency of the rarer allele", ylabel="Variants"
    )
    axes.legend(loc="upper right", ncols=2)
    style.in_percent(axes.xaxis)


def _draw_histogram(axes: Axes, values: Array, edges: Array, *, color: str, label: str) -> None:
    counts, _ = np.histogram(values, edges)
    axes.stairs(counts, edges, fill=True, baseline=_LEAST_COUNT, color=color, alpha=0.85, label=label)
