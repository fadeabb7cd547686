"""The pictures of the recsys application: functions of summaries and folders that return Matplotlib figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater.engines import Array
from whitewater.features.feature_folder import CONTINUOUS
from whitewater.figures import shapes, style
from whitewater.figures.shapes import Look
from whitewater_apps.recsys.drift_report import VERDICTS
from whitewater_apps.recsys.prediction_quality import ALL, NORMAL, PLAIN, WITHOUT, is_measured, measured_sets
from whitewater_apps.recsys.value_frequencies import Floats, frequencies, histogram, learned_vocabularies, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

    from whitewater.features.feature_folder import FeatureFolder
    from whitewater.features.log_folder import Log

# The models of `metrics.json`.
LOOKS = {
    "logistic_regression": Look("logistic regression", style.BLUE, "o"),
    "boosted_trees": Look("boosted trees", style.VERMILION, "s"),
}
# At most this many sets of features are drawn: those without which most is lost.
_MAX_SETS = 30
# How far the points of a model are shifted from the line of their set.
_SHIFT = 0.17
_MAX_COLUMNS = 40
# Height of a row in inches; fewer rows share the height of the minimum number.
_ROW_INCHES, _MIN_ROWS = 0.215, 3
# Up to this many cells side by side have edges, or room for a number.
_MAX_CELLS_WITH_EDGES, _MAX_CELLS_WITH_NUMBERS = 60, 12
_ABBREVIATIONS = {"psi": "PSI", "ks": "KS", "jensen_shannon": "JS", "new_categories": "new"}
# Points of a line of counts; more would overlap.
_POINTS = 200
_MAX_BARS = 30

Qualities = Mapping[str, Mapping[str, Any]]


# ---- models


@style.styled
def auc(metrics: Mapping[str, Any]) -> Figure:
    """Draw the area under the ROC curve of each model with each set of features, with 95% confidence intervals.

    ``metrics`` is the content of `metrics.json`.
    """
    title = "What the features are worth"
    models = {name: sets for name in LOOKS if (sets := measured_sets(metrics, name))}
    if not models:
        reason = "There is no area under the ROC curve: the test rows are all of one label, or no model was trained."
        return style.explained(title, reason)
    all_keys = _sort_sets(models)
    keys = all_keys[:_MAX_SETS]
    subtitle = (
        f"Area under the ROC curve on {_test_rows(metrics)}, all later than those trained on. Lines: intervals of 95 % "
        "(DeLong); dashed: with all features."
    )
    notes = _notes_of_sets(metrics["groups"], models, all_keys)
    if not any(is_measured(sets[ALL], metrics["parts"]["test"]) for sets in models.values() if ALL in sets):
        notes.insert(0, "So few test rows of a label do not measure it: no value here tells anything.")
    figure, body = style.titled(9, 1.15 + 0.42 * len(keys), title=title, subtitle=subtitle, notes=notes)
    axes = body.subplots()
    for number, (name, sets) in enumerate(models.items()):
        shift = (2 * number - (len(models) - 1)) * _SHIFT
        _draw_areas(axes, [sets.get(key) for key in keys], LOOKS[name], shift=shift)
    axes.set_yticks(range(len(keys)), [_name_of_set(key, metrics["groups"]) for key in keys])
    axes.set(ylim=(len(keys) - 0.45, -0.75), xlabel="Area under the ROC curve (0.5: chance, 1: perfect)")
    axes.margins(x=0.08)
    axes.grid(visible=False, axis="y")
    body.legend(handles=axes.containers, loc="outside upper left", ncols=2)
    return figure


def _test_rows(metrics: Mapping[str, Any]) -> str:
    """Return the number of test rows as text, with how many they were drawn from and the share of label 1."""
    test = metrics["parts"]["test"]
    drawn = f", drawn from {style.count(test['of'])}" if test["of"] > test["rows"] else ""
    rate = f", {style.percent(test['label_rate'])} of which have the label 1" if test["label_rate"] is not None else ""
    return f"{style.count(test['rows'])} test rows{drawn}{rate}"


def _sort_sets(models: Mapping[str, Qualities]) -> list[str]:
    """Return the keys of the feature sets: all, plain, and then those without a group, by descending loss."""

    def loss(key: str) -> float:
        with_key = [sets for sets in models.values() if key in sets]
        return float(np.mean([sets.get(ALL, {"auc": 0.0})["auc"] - sets[key]["auc"] for sets in with_key]))

    keys = {key for sets in models.values() for key in sets}
    return sorted(keys, key=lambda key: (key != ALL, key != PLAIN, -loss(key), key))


def _name_of_set(key: str, groups: Mapping[str, Sequence[str]]) -> str:
    if key == ALL:
        return "all features"
    group = key.removeprefix(WITHOUT)
    name = "plain numbers only" if key == PLAIN else f"without {style.fitted(group.replace('_', ' '))}"
    return f"{name} ({len(groups[group])})"


def _notes_of_sets(groups: Mapping[str, Any], models: Mapping[str, Qualities], keys: Sequence[str]) -> list[str]:
    if len(keys) == 1:
        return [f"The features of {style.counted(len(groups), 'group')}; none was left out to compare with."]
    notes = ["In parentheses: how many features a group has. Groups are left out one at a time."]
    if any(key not in sets for sets in models.values() for key in keys):
        notes.append("No mark: the model uses none of these features; ids of categories are for trees only.")
    if len(keys) > _MAX_SETS:
        notes.append(f"Not shown: {style.counted(len(keys) - _MAX_SETS, 'group')} without which less is lost.")
    return notes


def _draw_areas(axes: Axes, qualities: Sequence[Mapping[str, Any] | None], look: Look, *, shift: float) -> None:
    points = [(row + shift, quality) for row, quality in enumerate(qualities) if quality]
    half_widths = [NORMAL * (quality["auc_standard_error"] or 0.0) for _, quality in points]
    axes.errorbar(
        [quality["auc"] for _, quality in points], [y for y, _ in points], xerr=half_widths, fmt=look.mark,
        color=look.color, markersize=5.5, linewidth=1.5, capsize=2.5, label=look.name,
    )  # fmt: skip
    if qualities[0]:
        axes.axvline(qualities[0]["auc"], color=look.color, linestyle="--", linewidth=0.9, alpha=0.8, zorder=1)
    for (y, quality), half_width in zip(points, half_widths, strict=True):
        error = f" ± {half_width:.3f}" if quality["auc_standard_error"] is not None else ""
        shapes.write_at_right(axes, f"{quality['auc']:.3f}{error}", y, away=8, size=8.5, color=look.color)


@style.styled
def calibration(metrics: Mapping[str, Any]) -> Figure:
    """Draw the share of positive labels against the mean prediction in groups of rows, with one panel per model.

    ``metrics`` is the content of `metrics.json`.
    """
    title = "Predicted and observed"
    models = {name: metrics["models"][name][ALL] for name in LOOKS if metrics["models"].get(name, {}).get(ALL)}
    if not models:
        return style.explained(title, "No model was trained.")
    bins = [group for quality in models.values() for group in quality["calibration"]]
    counts = [style.count(number) for number in sorted({group["rows"] for group in bins})]
    rows = "1 row" if counts == ["1"] else f"{' to '.join(dict.fromkeys((counts[0], counts[-1])))} rows"
    subtitle = (
        f"{_test_rows(metrics)}; models with all features. A point stands for {rows} of about equal prediction; "
        "lines: intervals of 95 % (Wilson); dashed: where predictions mean what they say."
    )
    figure, body = style.titled(9, 4.2, title=title, subtitle=subtitle)
    panels = body.subplots(1, 2, sharex=True, sharey=True)
    limit = min(1.0, max(*(group["predicted"] for group in bins), *_wilson(bins)[1]) * 1.05)
    for axes, (name, quality) in zip(panels, models.items(), strict=False):
        _draw_calibration(axes, quality, LOOKS[name], limit=limit)
    for look in (LOOKS[name] for name in LOOKS if name not in models):
        style.explain(panels[1], f"No {look.name}:", "none was fit.")
    return figure


def _wilson(bins: Sequence[Mapping[str, Any]]) -> tuple[Array, Array]:
    """Return 95% intervals of shares (E. B. Wilson, J. Am. Stat. Assoc. 22, 1927), valid even near 0 and 1."""
    rows, share = (np.array([group[name] for group in bins]) for name in ("rows", "observed"))
    spread = NORMAL**2 / rows
    middle = (share + spread / 2) / (1 + spread)
    half_width = NORMAL / (1 + spread) * np.sqrt(share * (1 - share) / rows + spread / rows / 4)
    # Rounding must not put the share itself outside its interval.
    return np.minimum(middle - half_width, share), np.maximum(middle + half_width, share)


def _draw_calibration(axes: Axes, quality: Mapping[str, Any], look: Look, *, limit: float) -> None:
    bins = quality["calibration"]
    predicted, observed = (np.array([group[name] for group in bins]) for name in ("predicted", "observed"))
    low, high = _wilson(bins)
    axes.plot([0, 1], [0, 1], color=style.GRAY, linestyle="--", linewidth=1.2, zorder=0)
    axes.errorbar(
        predicted, observed, yerr=(observed - low, high - observed), fmt=look.mark, color=look.color, markersize=5.5,
        linewidth=1.3, capsize=2.5, label="test rows",
    )  # fmt: skip
    # Percentage points, not percent of the prediction.
    axes.set_title(f"{look.name.capitalize()}: off by {100 * quality['calibration_error']:.2f} points on average")
    bounds = (-0.03 * limit, limit)
    axes.set(xlabel="Mean prediction", ylabel="Share of rows with the label 1", xlim=bounds, ylim=bounds)
    axes.set_aspect("equal")
    shapes.in_percent(axes.xaxis, axes.yaxis)


# ---- drift


@style.styled
def drift(report: Mapping[str, Any]) -> Figure:
    """Draw a heat map of the population stability index of each column and day, or other period, and mark what drifts.

    ``report`` is the content of `drift.json`.
    """
    period = report["period"]
    title = f"Drift from the first {period}"
    if not report["columns"]:
        return style.explained(title, "The log has no column of numbers or categories.")
    if len(report["days"]) < 2:
        return style.explained(title, f"All rows are of one {period}: there is no later one to compare with it.")
    shown = sorted(report["columns"], key=_drift_rank)[:_MAX_COLUMNS]
    psi = np.array([[day["psi"] for day in column["days"]] for column in shown], float)
    verdicts = np.array([[VERDICTS.index(day["verdict"]) for day in column["days"]] for column in shown])
    height = _ROW_INCHES * max(len(shown), _MIN_ROWS)
    limits = ", ".join(
        f"{abbreviation} {report['thresholds'][name]:g}" for name, abbreviation in _ABBREVIATIONS.items()
    )
    drifting, chance = (len(report["summary"][verdict]) for verdict in ("drift", "chance"))
    other = f" Above it, but by no more than chance: {style.count(chance)}." if chance else ""
    subtitle = (
        f"A column drifts where a measure of some {period} is above its threshold ({limits}) and further than "
        f"chance brings it: {style.count(drifting)} of {style.count(len(report['columns']))}.{other} Reference: "
        f"{period} {report['reference']['day']} with {style.count(report['reference']['rows'])} rows."
    )
    notes = _notes_of_drift(report, psi, len(shown))
    figure, body = style.titled(9, 1.9 + height, title=title, subtitle=subtitle, notes=notes)
    axes, below = body.subplots(2, 1, height_ratios=[height, 0.14])
    threshold = report["thresholds"]["psi"]
    mesh = _draw_cells(axes, psi, threshold=threshold)
    _mark_cells(axes, verdicts)
    _label_cells(axes, shown, period=period)
    scale = figure.colorbar(mesh, cax=below, orientation="horizontal", extend="max", extendfrac=0.03)
    ticks = [times * threshold for times in range(6)]
    scale.set_ticks(ticks, labels=[f"{'threshold: ' * (tick == threshold)}{tick:.3g}" for tick in ticks])
    scale.set_label("Population stability index")
    below.set_xlim(left=0)
    below.axvline(threshold, color="black", linewidth=1.5)
    return figure


def _drift_rank(column: Mapping[str, Any]) -> tuple[int, float, str]:
    largest = max((day["psi"] for day in column["days"] if day["psi"] is not None), default=0.0)
    return VERDICTS.index(column["verdict"]), -largest, column["name"]


def _notes_of_drift(report: Mapping[str, Any], psi: Array, shown: int) -> list[str]:
    period = report["period"]
    notes = [
        "PSI: population stability index; KS: Kolmogorov-Smirnov distance; JS: Jensen-Shannon distance; new: share of "
        f"rows with a category unseen in the first {period}."
    ]
    if report["days_without_rows"]:
        notes.append(f"Left out: {style.count(report['days_without_rows'])} {period}s without rows.")
    if np.isnan(psi).any():
        notes.append(f"Grey: no index, for want of values in that {period} or the first.")
    if omitted := len(report["columns"]) - shown:
        notes.append(f"Not shown: {style.count(omitted)} columns that drift less.")
    return notes


def _draw_cells(axes: Axes, psi: Array, *, threshold: float) -> QuadMesh:
    rows, columns = psi.shape
    axes.set_facecolor(style.LIGHT_GRAY)
    linewidth = 0.6 if columns <= _MAX_CELLS_WITH_EDGES else 0
    mesh = axes.pcolormesh(
        np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5, np.ma.masked_invalid(psi), cmap=style.DIVERGING,
        vmin=-3 * threshold, vmax=5 * threshold, edgecolors="white", linewidth=linewidth,
    )  # fmt: skip
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    axes.grid(visible=False)
    if columns <= _MAX_CELLS_WITH_NUMBERS:
        for row, column in np.argwhere(~np.isnan(psi)).tolist():
            value = psi[row, column]
            color = "white" if value > 4 * threshold else "black"
            axes.text(column, row, f"{value:.2f}", ha="center", va="center_baseline", size=7.5, color=color)
    return mesh


def _mark_cells(axes: Axes, verdicts: Array) -> None:
    """Mark the cells that drift, and those above a threshold only by chance."""
    columns = verdicts.shape[1]
    left = 0.0 if columns > _MAX_CELLS_WITH_NUMBERS else -0.5 + 0.06 * max(1.0, columns / 6)
    for verdict, face, label in (
        ("drift", "black", "drifts"),
        ("chance", "white", "above a threshold, but as by chance"),
    ):
        row, column = np.nonzero(verdicts == VERDICTS.index(verdict))
        axes.plot(
            column + left, row, "o", markersize=4.5, markerfacecolor=face, markeredgecolor="black",
            markeredgewidth=0.7, label=label,
        )  # fmt: skip
    axes.figure.legend(handles=axes.get_lines(), loc="outside upper left", ncols=2)


def _label_cells(axes: Axes, columns: Sequence[Mapping[str, Any]], *, period: str) -> None:
    axes.set_yticks(range(len(columns)), [style.fitted(column["name"], size=8.5) for column in columns], size=8.5)
    days = [str(day["day"]) for day in columns[0]["days"]]
    step = -(-len(days) // 12)
    axes.set_xticks(range(0, len(days), step), days[::step])
    axes.set_xlabel(period.capitalize())
    axes.tick_params(length=0)
    for row, column in enumerate(columns):
        above = {name for day in column["days"] for name in day["above"]}
        measures = ", ".join(abbreviation for name, abbreviation in _ABBREVIATIONS.items() if name in above)
        axes.text(
            1.012, row, measures, transform=axes.get_yaxis_transform(), va="center", size=8, color=style.TEXT_GRAY
        )
    if any(column["verdict"] == "drift" for column in columns):
        shapes.write_beside(axes, "drifts by", (1.012, 1), (0, 3), coords="axes fraction")


# ---- categories


@style.styled
def categories(workflow: Path, *, rows: int) -> Figure:
    """Draw how often categories occur, by rank, and the share of the training rows whose category has its own id.

    ``workflow`` is the folder of the fitted workflow, and ``rows`` the number of training rows.
    """
    title, vocabularies = "Categories and their ids", learned_vocabularies(workflow)
    if not vocabularies:
        return style.explained(title, "The workflow learns no vocabulary: it has no operator Categorify.")
    by_loss = sorted(vocabularies, key=lambda each: (_share_without_id(each), each["all_values"], each["name"]))
    shown = by_loss[::-1][:_MAX_BARS]
    scope = "of some columns" if len(vocabularies) > 3 else "by column"
    subtitle = (
        f"{style.counted(len(vocabularies), 'vocabulary')} of {style.count(rows)} training rows. Left: how often the "
        f"values with an id of their own occur, {scope}; right: how many rows have them."
    )
    notes = []
    if any(vocabulary["rows"] != rows for vocabulary in vocabularies):
        notes.append("Of lists the elements count, and of columns that share a vocabulary the rows of all.")
    if omitted := len(vocabularies) - len(shown):
        notes.append(f"Not shown: {style.count(omitted)} columns that have fewer rows out of vocabulary.")
    figure, body = style.titled(9, max(4.6, 1.7 + 0.19 * len(shown)), title=title, subtitle=subtitle, notes=notes)
    left, right = body.subplots(1, 2)
    _draw_frequencies(left, vocabularies)
    _draw_shares(right, shown)
    for axes, columns, look in ((left, 1, {}), (right, 3, {"columnspacing": 1, "handlelength": 1.2})):
        axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=columns, fontsize=8.5, **look)
    return figure


def _share_without_id(vocabulary: Mapping[str, Any]) -> float:
    return float(vocabulary["out_of_vocabulary_rows"] / max(vocabulary["rows"], 1))


def _draw_frequencies(axes: Axes, vocabularies: Sequence[Mapping[str, Any]]) -> None:
    """Draw counts by rank, for the largest, the median and the smallest vocabulary."""
    ordered = sorted(vocabularies, key=lambda each: (-each["all_values"], each["name"]))
    last, highest = len(ordered) - 1, 10.0
    examples = [ordered[place] for place in dict.fromkeys((0, (last + 1) // 2, last))]
    roles = {1: ("the only one",), 2: ("largest", "smallest"), 3: ("largest", "median", "smallest")}
    looks = ((style.BLUE, "o"), (style.ORANGE, "s"), (style.GREEN, "^"))
    for role, vocabulary, (color, mark) in zip(roles[len(examples)], examples, looks, strict=False):
        counts, values = frequencies(vocabulary["table"])
        highest = max(highest, float(counts.max(initial=0)))
        # Values with the same count have consecutive ranks, which end at these.
        ends = np.cumsum(values)
        ranks = shapes.log_spaced(ends[-1], _POINTS) if len(ends) else ends
        label = f"{role}, {_describe_vocabulary(vocabulary)}"
        axes.plot(ranks, counts[np.searchsorted(ends, ranks)], color=color, marker=mark, markersize=3, linewidth=1,
                  label=label)  # fmt: skip
    for threshold in sorted({each["threshold"] for each in examples if each["threshold"] > 1}):
        shapes.draw_threshold(axes, threshold, f"threshold: {style.count(threshold)} rows")
    axes.set(xscale="log", yscale="log", xlabel="Rank of the value", ylabel="Training rows of the value")
    axes.set(ylim=(0.7, highest * 2), xlim=(0.8, max(10.0, axes.get_xlim()[1])))


def _describe_vocabulary(vocabulary: Mapping[str, Any]) -> str:
    name = style.fitted(vocabulary["name"], points=70, size=8.5)
    if not vocabulary["all_values"]:
        return f"{name}: no value"
    if vocabulary["out_of_vocabulary_values"] is None:
        return f"{name}: {style.count(vocabulary['values'])} values given"
    return f"{name}: {style.count(vocabulary['values'])} of {style.count(vocabulary['all_values'])} values"


def _draw_shares(axes: Axes, shown: Sequence[Mapping[str, Any]]) -> None:
    start, places = np.zeros(len(shown)), np.arange(len(shown))
    counted = ("rows", "nulls", "out_of_vocabulary_rows")
    rows, nulls, others = (np.array([each[name] for each in shown]) for name in counted)
    for label, color, counts in (
        ("id of its own", style.BLUE, rows - nulls - others),
        ("out of vocabulary", style.ORANGE, others),
        ("null", style.GRAY, nulls),
    ):
        shares = counts / np.maximum(rows, 1)
        axes.barh(places, shares, 0.78, left=start, color=color, label=label)
        start += shares
    axes.set_yticks(places, [style.fitted(each["name"], points=80, size=8) for each in shown], size=8)
    axes.set(xlim=(0, 1), ylim=(max(len(shown), 6) - 0.4, -0.6), xlabel="Share of the training rows")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    shapes.in_percent(axes.xaxis)


# ---- numbers


@style.styled
def numbers(statistics: Mapping[str, Any], *, events: Log, features: FeatureFolder) -> Figure:
    """Draw the distribution of a column of numbers before and after: the first one that is a feature of the same name.

    ``statistics`` is the content of `statistics.json`, which has the operators; ``events`` and ``features`` are a log
    and the features of its rows.
    """
    title = "A number before and after"
    loaded = {name for matrix in features.matrices if matrix.name == CONTINUOUS for name in matrix.columns}
    names = [name for name, role in events.columns.items() if role == "continuous" and name in loaded]
    if not names:
        return style.explained(title, "No column of numbers of the log is a feature of numbers under the same name.")
    name = names[0]
    shown = style.fitted(name, points=200, size=10.5)
    subtitle = f"Column {shown} of {style.count(features.rows)} test rows. {_operators(statistics['groups'], name)}"
    figure, body = style.titled(9, 3.9, title=title, subtitle=subtitle)
    left, right = body.subplots(1, 2)
    before, after = (values_of([rows.path / file.name for file in rows.files], name) for rows in (events, features))
    _draw_numbers(left, before, style.BLUE, subject="As it came", label="Value in the log")
    _draw_numbers(right, after, style.GREEN, subject="Feature", label="Value of the feature")
    return figure


def _operators(groups: Mapping[str, Any], name: str) -> str:
    """Return a sentence with the operators of the feature's group: the last one that has it."""
    owners = [group for group in groups if any(column["name"] == name for column in groups[group]["columns"])]
    if not owners:
        return ""
    operators = dict.fromkeys(stage["operator"] for stage in groups[owners[-1]]["operators"])
    return f"Operators of its group, {style.fitted(owners[-1])}: {', '.join(operators) or 'none'}."


def _draw_numbers(axes: Axes, values: Floats, color: str, *, subject: str, label: str) -> None:
    nulls, infinite = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    share = f"{style.percent(nulls / len(values))} null" if nulls else "no null"
    title = f"{subject}: {share}" + (f", {style.count(infinite)} infinite" if infinite else "")
    if len(values) == nulls + infinite:
        style.explain(axes, title, "There is no finite value to draw.")
        return
    counts, edges, long_tail = histogram(values[np.isfinite(values)])
    shapes.draw_histogram(axes, counts, edges, color=color, baseline=0.5)
    axes.set(title=title, yscale="log", xlabel=label, ylabel="Test rows", ylim=(0.5, float(counts.max()) * 2))
    if long_tail:
        axes.set(xscale="asinh", xlim=edges[[0, -1]], xlabel=f"{label} (logarithmic from 1 on)")
    else:
        shapes.limit_ticks(axes.xaxis, 6)
