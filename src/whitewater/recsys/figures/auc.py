"""What features are worth: the area under the ROC curve with all of them, and without some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater import style
from whitewater.recsys.figures.models import ALL, LOOKS, PLAIN, WITHOUT, Look, test_rows
from whitewater.recsys.figures.names import shown_name
from whitewater.recsys.prediction_quality import NORMAL, is_measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "What the features are worth"
# Sets of features that are drawn; of more, those that differ most from all.
_MOST = 30
# How far from its line a model is drawn.
_APART = 0.17
_VALUE_SIZE = 8.5

Qualities = Mapping[str, Mapping[str, Any]]


@style.styled
def auc(metrics: Mapping[str, Any]) -> Figure:
    """Draw the area under the ROC curve of each model with each set of features, with intervals of 95 %.

    Parameters
    ----------
    metrics
        The content of `metrics.json`.
    """
    models = {name: _measured(metrics["models"][name]) for name in LOOKS if metrics["models"].get(name)}
    models = {name: sets for name, sets in models.items() if sets}
    if not models:
        return style.explained(
            _TITLE,
            "There is no area under the ROC curve: the test rows are all of one label, or no model was trained.",
        )
    ordered = _ordered(models)
    shown = ordered[:_MOST]
    subtitle = (
        f"Area under the ROC curve on {test_rows(metrics)}, all later than those trained on. Lines: intervals of 95 % "
        "(DeLong); dashed: with all features."
    )
    notes = _notes(metrics["groups"], models, ordered)
    if not any(is_measured(sets[ALL], metrics["parts"]["test"]) for sets in models.values() if ALL in sets):
        notes.insert(0, "So few test rows of a label do not measure it: no value here tells anything.")
    figure, body = style.titled(9, 1.15 + 0.42 * len(shown), title=_TITLE, subtitle=subtitle, notes=notes)
    axes = body.subplots()
    for number, (name, sets) in enumerate(models.items()):
        shift = (2 * number - (len(models) - 1)) * _APART
        _draw_model(axes, [sets.get(key) for key in shown], LOOKS[name], shift=shift)
    axes.set_yticks(range(len(shown)), [_label(key, metrics["groups"]) for key in shown])
    axes.set(ylim=(len(shown) - 0.45, -0.75), xlabel="Area under the ROC curve (0.5: chance, 1: perfect)")
    axes.margins(x=0.08)
    axes.grid(visible=False, axis="y")
    body.legend(handles=axes.containers, loc="outside upper left", ncols=2)
    return figure


def _measured(sets: Qualities) -> dict[str, Mapping[str, Any]]:
    return {key: each for key, each in sets.items() if each["auc"] is not None}


def _ordered(models: Mapping[str, Qualities]) -> list[str]:
    """Return the sets of features: all, the plain ones, and then those without a group from the greatest loss on."""
    losses: dict[str, list[float]] = {}
    for sets in models.values():
        reference = sets[ALL]["auc"] if ALL in sets else 0.0
        for key, each in sets.items():
            losses.setdefault(key, []).append(reference - each["auc"])
    first = [key for key in (ALL, PLAIN) if key in losses]
    others = sorted((key for key in losses if key not in first), key=lambda key: (-float(np.mean(losses[key])), key))
    return first + others


def _label(key: str, groups: Mapping[str, Sequence[str]]) -> str:
    if key == ALL:
        return "all features"
    if key == PLAIN:
        return f"plain numbers only ({len(groups[PLAIN])})"
    group = key.removeprefix(WITHOUT)
    return f"without {shown_name(group)} ({len(groups[group])})"


def _notes(groups: Mapping[str, Sequence[str]], models: Mapping[str, Qualities], ordered: Sequence[str]) -> list[str]:
    if len(ordered) == 1:
        return [f"The features of {_counted(len(groups), 'group')}; none was left out to compare with."]
    notes = ["In parentheses: how many features a group has. Groups are left out one at a time."]
    if any(key not in sets for sets in models.values() for key in ordered):
        notes.append("No mark: the model uses none of these features; ids of categories are for trees only.")
    if len(ordered) > _MOST:
        notes.append(f"Not shown: {_counted(len(ordered) - _MOST, 'group')} without which less is lost.")
    return notes


def _counted(number: int, what: str) -> str:
    return f"{style.count(number)} {what}{'s' if number != 1 else ''}"


def _draw_model(axes: Axes, qualities: Sequence[Mapping[str, Any] | None], look: Look, *, shift: float) -> None:
    drawn = [(row + shift, each) for row, each in enumerate(qualities) if each]
    values = [each["auc"] for _, each in drawn]
    half = [NORMAL * (each["auc_standard_error"] or 0.0) for _, each in drawn]
    axes.errorbar(
        values, [y for y, _ in drawn], xerr=half, fmt=look.mark, color=look.colour, markersize=5.5, linewidth=1.5,
        capsize=2.5, label=look.name,
    )  # fmt: skip
    if qualities[0]:
        axes.axvline(qualities[0]["auc"], color=look.colour, linestyle="--", linewidth=0.9, alpha=0.8, zorder=1)
    for (y, each), width in zip(drawn, half, strict=True):
        error = f" ± {width:.3f}" if each["auc_standard_error"] is not None else ""
        axes.annotate(
            f"{each['auc']:.3f}{error}", (1, y), xycoords=("axes fraction", "data"), xytext=(8, 0),
            textcoords="offset points", va="center", ha="left", size=_VALUE_SIZE, color=look.colour,
        )  # fmt: skip
