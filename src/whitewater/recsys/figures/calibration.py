"""Whether predicted probabilities mean what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater import style
from whitewater.recsys.figures.models import ALL, LOOKS, Look, test_rows
from whitewater.recsys.prediction_quality import NORMAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "Predicted and observed"

Floats = npt.NDArray[np.float64]


@style.styled
def calibration(metrics: Mapping[str, Any]) -> Figure:
    """Draw the share of positive labels against the mean prediction in groups of rows, a panel for each model.

    Parameters
    ----------
    metrics
        The content of `metrics.json`.
    """
    models = {name: metrics["models"][name][ALL] for name in LOOKS if metrics["models"].get(name, {}).get(ALL)}
    if not models:
        return style.explained(_TITLE, "No model was trained.")
    bins = [each for found in models.values() for each in found["calibration"]]
    subtitle = (
        f"{test_rows(metrics)}; models with all features. A point stands for {_rows(bins)} of about equal prediction; "
        "lines: intervals of 95 % (Wilson); dashed: where predictions mean what they say."
    )
    figure, body = style.titled(9, 4.2, title=_TITLE, subtitle=subtitle)
    panels = body.subplots(1, 2, sharex=True, sharey=True)
    most = min(1.0, max(max(each["predicted"], _wilson(each)[1]) for each in bins) * 1.05)
    for axes, (name, found) in zip(panels, models.items(), strict=False):
        _draw_model(axes, found, LOOKS[name], most=most)
    if len(models) < len(panels):
        style.explain(
            panels[1], f"No {next(LOOKS[name].name for name in LOOKS if name not in models)}:", "none was fit."
        )
    return figure


def _rows(bins: Sequence[Mapping[str, Any]]) -> str:
    numbers = sorted({each["rows"] for each in bins})
    if numbers == [1]:
        return "1 row"
    return " to ".join(dict.fromkeys(style.count(number) for number in (numbers[0], numbers[-1]))) + " rows"


def _wilson(each: Mapping[str, Any]) -> tuple[float, float]:
    """Return the interval of 95 % of a share (E. B. Wilson, J. Am. Stat. Assoc. 22, 1927), which holds at 0 and 1."""
    rows, share = each["rows"], each["observed"]
    spread = NORMAL**2 / rows
    middle = (share + spread / 2) / (1 + spread)
    half = NORMAL / (1 + spread) * np.sqrt(share * (1 - share) / rows + spread / rows / 4)
    # Rounding must not put the share outside.
    return min(float(middle - half), share), max(float(middle + half), share)


def _draw_model(axes: Axes, found: Mapping[str, Any], look: Look, *, most: float) -> None:
    bins = found["calibration"]
    predicted, observed = (np.array([each[name] for each in bins]) for name in ("predicted", "observed"))
    low, high = np.array([_wilson(each) for each in bins]).T
    axes.plot([0, 1], [0, 1], color=style.GREY, linestyle="--", linewidth=1.2, zorder=0)
    axes.errorbar(
        predicted, observed, yerr=(observed - low, high - observed), fmt=look.mark, color=look.colour, markersize=5.5,
        linewidth=1.3, capsize=2.5, label="test rows",
    )  # fmt: skip
    # Points of percent, which are not percent of the prediction.
    axes.set_title(f"{look.name.capitalize()}: off by {100 * found['calibration_error']:.2f} points on average")
    axes.set(
        xlabel="Mean prediction",
        ylabel="Share of rows with the label 1",
        xlim=(-0.03 * most, most),
        ylim=(-0.03 * most, most),
        aspect="equal",
    )
    style.in_percent(axes.xaxis, axes.yaxis)
