"""The pictures of the recsys application: functions of summaries and folders that return Matplotlib figures.

``metrics``, ``report`` and ``statistics`` are the contents of `metrics.json`, `drift.json` and `statistics.json`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.parquet as pq
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from whitewater.features.artifact import FORMAT
from whitewater.features.feature_folder import CONTINUOUS, FeatureFolder
from whitewater.features.log_folder import Log
from whitewater.features.operators.categorify import TABLE
from whitewater.figures import shapes, style, words
from whitewater.figures.shapes import Look
from whitewater.io.store import read_json
from whitewater.tables.arrow_arrays import to_numpy
from whitewater_apps.recsys.headline import greatest_psi
from whitewater_apps.recsys.prediction_quality import ALL, NORMAL, PLAIN, WITHOUT, estimate, is_measured, measured_sets
from whitewater_apps.recsys.steps.drift import VERDICTS, Floats, floats

Integers = npt.NDArray[np.int64]
Values = Mapping[str, Any]
LOOKS = {
    "logistic_regression": Look("logistic regression", style.BLUE, "o"),
    "boosted_trees": Look("boosted trees", style.VERMILION, "s"),
}
# Largest number of feature sets, or columns, that are drawn.
_MOST_ROWS = 40
# Up to this many cells side by side have room for a number.
_MOST_NUMBERS = 12
_ABBREVIATIONS = {"psi": "PSI", "ks": "KS", "jensen_shannon": "JS", "new_categories": "new"}
_BINS = 60


# ---- models


@style.with_style
def auc(metrics: Values) -> Figure:
    """Draw the area under the ROC curve of each model with each set of features, with 95% confidence intervals."""
    title = "What the features are worth"
    models = {name: sets for name in LOOKS if (sets := measured_sets(metrics, name))}
    if not models:
        reason = "There is no area under the ROC curve: the test rows are all of one label, or no model was trained."
        return style.text_figure(title, reason)
    keys = _sort_sets(models)
    sets_drawn = keys[:_MOST_ROWS]
    subtitle = (
        f"Area under the ROC curve on {_test_rows(metrics)}, all later than those trained on. Lines: intervals of 95 % "
        "(DeLong); dashed: with all features."
    )
    notes = _notes_of_sets(metrics, models, keys)
    figure, body = style.new_figure(9, 1.15 + 0.42 * len(sets_drawn), title=title, subtitle=subtitle, notes=notes)
    axes = body.subplots()
    for number, (name, sets) in enumerate(models.items()):
        look, qualities = LOOKS[name], [sets[key] for key in sets_drawn if key in sets]
        # Models are drawn side by side.
        places = np.flatnonzero([key in sets for key in sets_drawn]) + 0.34 * (number - (len(models) - 1) / 2)
        areas = [quality["auc"] for quality in qualities]
        margins = [NORMAL * (quality["auc_standard_error"] or 0.0) for quality in qualities]
        axes.errorbar(areas, places, xerr=margins, linewidth=1.5, label=look.name, **_points(look))
        for place, quality in zip(places.tolist(), qualities, strict=True):
            shapes.write_at_right(axes, estimate(quality), place, away=8, size=8.5, color=look.color)
        if ALL in sets:
            axes.axvline(sets[ALL]["auc"], color=look.color, linestyle="--", linewidth=0.9, alpha=0.8, zorder=1)
    axes.set_yticks(range(len(sets_drawn)), [_name_of_set(key, metrics["groups"]) for key in sets_drawn])
    axes.set(ylim=(len(sets_drawn) - 0.45, -0.75), xlabel="Area under the ROC curve (0.5: chance, 1: perfect)")
    axes.margins(x=0.08)
    axes.grid(visible=False, axis="y")
    body.legend(handles=axes.containers, loc="outside upper left", ncols=2)
    return figure


def _points(look: Look) -> dict[str, Any]:
    return {"fmt": look.mark, "color": look.color, "markersize": 5.5, "capsize": 2.5}


def _test_rows(metrics: Values) -> str:
    """Return the number of test rows as text, with how many they were drawn from and the share of label 1."""
    test = metrics["parts"]["test"]
    drawn = f", drawn from {words.count(test['of'])}" if test["of"] > test["rows"] else ""
    rate = words.percent(test["label_rate"])
    return f"{words.count(test['rows'])} test rows{drawn}, {rate} of which have the label 1"


def _sort_sets(models: Mapping[str, Mapping[str, Values]]) -> list[str]:
    """Return the keys of the feature sets: all, plain, and then those without a group, by descending loss."""
    areas = pd.DataFrame({name: {key: each["auc"] for key, each in sets.items()} for name, sets in models.items()})
    gains = (areas - areas.reindex([ALL]).to_numpy()).mean(axis=1)
    return sorted(areas.index, key=lambda key: (key != ALL, key != PLAIN, gains[key], key))


def _name_of_set(key: str, groups: Mapping[str, Sequence[str]]) -> str:
    if key == ALL:
        return "all features"
    group = key.removeprefix(WITHOUT)
    name = "plain numbers only" if key == PLAIN else f"without {style.fit_text(group.replace('_', ' '))}"
    return f"{name} ({len(groups[group])})"


def _notes_of_sets(metrics: Values, models: Mapping[str, Mapping[str, Values]], keys: Sequence[str]) -> list[str]:
    notes = []
    if not any(is_measured(sets[ALL], metrics["parts"]["test"]) for sets in models.values() if ALL in sets):
        notes.append("Too few test rows of a label: no value here is meaningful.")
    if len(keys) == 1:
        groups = words.pluralize(len(metrics["groups"]), "group")
        return [*notes, f"The features of {groups}; none was left out to compare with."]
    notes.append("In parentheses: how many features a group has. Groups are left out one at a time.")
    if any(key not in sets for sets in models.values() for key in keys):
        notes.append("No mark: the model uses none of these features; ids of categories are for trees only.")
    if len(keys) > _MOST_ROWS:
        notes.append(f"Not shown: {words.pluralize(len(keys) - _MOST_ROWS, 'group')} without which less is lost.")
    return notes


@style.with_style
def calibration(metrics: Values) -> Figure:
    """Draw the share of positive labels against the mean prediction in groups of rows, with one panel per model."""
    title = "Predicted and observed"
    models = {name: sets[ALL] for name in LOOKS if ALL in (sets := metrics["models"].get(name, {}))}
    if not models:
        return style.text_figure(title, "No model was trained.")
    bins = {name: _with_wilson(pd.DataFrame(quality["calibration"])) for name, quality in models.items()}
    every = pd.concat(bins.values())
    fewest, most = every["rows"].agg(["min", "max"]).tolist()
    rows = f"{words.count(fewest)} to " * (fewest < most) + words.pluralize(most, "row")
    subtitle = (
        f"{_test_rows(metrics)}; models with all features. A point stands for {rows} of about equal prediction; "
        "lines: intervals of 95 % (Wilson); dashed: where predictions mean what they say."
    )
    notes = [f"No {LOOKS[name].name}: none was fit." for name in LOOKS if name not in models]
    figure, body = style.new_figure(9, 4.2, title=title, subtitle=subtitle, notes=notes)
    limit = min(1.0, every[["predicted", "high"]].to_numpy().max() * 1.05)
    bounds = (-0.03 * limit, limit)
    panels = body.subplots(1, len(models), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (name, groups) in zip(panels, bins.items(), strict=True):
        look, observed = LOOKS[name], groups["observed"]
        margins = observed - groups["low"], groups["high"] - observed
        axes.plot([0, 1], [0, 1], color=style.GRAY, linestyle="--", linewidth=1.2, zorder=0)
        axes.errorbar(groups["predicted"], observed, yerr=margins, linewidth=1.3, label="test rows", **_points(look))
        # Percentage points, not percent of the prediction.
        error = 100 * models[name]["calibration_error"]
        axes.set_title(f"{look.name.capitalize()}: off by {error:.2f} points on average")
        axes.set(xlabel="Mean prediction", ylabel="Share of rows with the label 1", xlim=bounds, ylim=bounds)
        axes.set_aspect("equal")
        shapes.in_percent(axes.xaxis, axes.yaxis)
    return figure


def _with_wilson(bins: pd.DataFrame) -> pd.DataFrame:
    """Add 95% intervals of shares (E. B. Wilson, J. Am. Stat. Assoc. 22, 1927), valid even near 0 and 1."""
    rows, share = bins["rows"], bins["observed"]
    spread = NORMAL**2 / rows
    middle = (share + spread / 2) / (1 + spread)
    half_width = NORMAL / (1 + spread) * np.sqrt(share * (1 - share) / rows + spread / rows / 4)
    # Rounding must not put the share itself outside its interval.
    return bins.assign(low=np.minimum(middle - half_width, share), high=np.maximum(middle + half_width, share))


# ---- drift


@style.with_style
def drift(report: Values) -> Figure:
    """Draw a heat map of the population stability index of each column and day, or period, and mark what drifts."""
    period, days, columns = report["period"], report["days"], report["columns"]
    title = f"Drift from the first {period}"
    if not columns:
        return style.text_figure(title, "The log has no column of numbers or categories.")
    if len(days) < 2:
        return style.text_figure(title, f"All rows are of one {period}: there is no later one to compare with it.")
    ranked = sorted(columns, key=lambda each: (VERDICTS.index(each["verdict"]), -greatest_psi(each), each["name"]))
    columns_drawn = ranked[:_MOST_ROWS]
    psi = np.array([[day["psi"] for day in column["days"]] for column in columns_drawn], float)
    limits = ", ".join(f"{short} {report['thresholds'][name]:g}" for name, short in _ABBREVIATIONS.items())
    drifting, chance = (words.count(len(report["summary"][verdict])) for verdict in ("drift", "chance"))
    other = "" if chance == "0" else f" Above it, but by no more than chance: {chance}."
    subtitle = (
        f"A column drifts where a measure of some {period} is above its threshold ({limits}) and further than "
        f"chance brings it: {drifting} of {words.count(len(columns))}.{other} Reference: {period} "
        f"{report['reference']['day']} with {words.count(report['reference']['rows'])} rows."
    )
    notes = [
        "PSI: population stability index; KS: Kolmogorov-Smirnov distance; JS: Jensen-Shannon distance; new: share of "
        f"rows with a category unseen in the first {period}."
    ]
    if report["days_without_rows"]:
        notes.append(f"Left out: {words.count(report['days_without_rows'])} {period}s without rows.")
    if np.isnan(psi).any():
        notes.append(f"Grey: no index, for want of values in that {period} or the first.")
    if omitted := len(columns) - len(columns_drawn):
        notes.append(f"Not shown: {words.count(omitted)} columns that drift less.")
    height = 0.215 * max(len(columns_drawn), 3)
    figure, body = style.new_figure(9, 1.9 + height, title=title, subtitle=subtitle, notes=notes)
    axes, below = body.subplots(2, 1, height_ratios=[height, 0.14])
    threshold = report["thresholds"]["psi"]
    cells = _draw_cells(axes, psi, threshold=threshold)
    scale = figure.colorbar(cells, cax=below, orientation="horizontal", extend="max", extendfrac=0.03)
    ticks = [times * threshold for times in range(6)]
    scale.set_ticks(ticks, labels=[f"{'threshold: ' * (tick == threshold)}{tick:.3g}" for tick in ticks])
    scale.set_label("Population stability index")
    below.set_xlim(left=0)
    below.axvline(threshold, color="black", linewidth=1.5)
    _mark_cells(axes, columns_drawn)
    names = [style.fit_text(column["name"], size=8.5) for column in columns_drawn]
    axes.set_yticks(range(len(names)), names, size=8.5)
    step = -(-(len(days) - 1) // 12)
    axes.set_xticks(range(0, len(days) - 1, step), [str(day["day"]) for day in days[1::step]])
    axes.set_xlabel(period.capitalize())
    axes.tick_params(length=0)
    return figure


def _draw_cells(axes: Axes, psi: Floats, *, threshold: float) -> Any:
    """Draw a colored cell for each column and day, with its number where there is room; return the colors."""
    rows, days = psi.shape
    axes.set_facecolor(style.LIGHT_GRAY)
    mesh = axes.pcolormesh(
        np.arange(days + 1) - 0.5, np.arange(rows + 1) - 0.5, np.ma.masked_invalid(psi), cmap=style.DIVERGING,
        vmin=-3 * threshold, vmax=5 * threshold, edgecolors="white", linewidth=0.6 if days <= 60 else 0,
    )  # fmt: skip
    axes.set(xlim=(-0.5, days - 0.5), ylim=(rows - 0.5, -0.5))
    axes.grid(visible=False)
    for row, day in np.argwhere(~np.isnan(psi)).tolist() if days <= _MOST_NUMBERS else []:
        color = "white" if psi[row, day] > 4 * threshold else "black"
        axes.text(day, row, f"{psi[row, day]:.2f}", ha="center", va="center_baseline", size=7.5, color=color)
    return mesh


def _mark_cells(axes: Axes, columns: Sequence[Values]) -> None:
    """Mark the cells that drift and those above a threshold only by chance; write beside by what columns drift."""
    verdicts = np.array([[day["verdict"] for day in column["days"]] for column in columns])
    days = verdicts.shape[1]
    left = 0.0 if days > _MOST_NUMBERS else -0.5 + 0.06 * max(1.0, days / 6)
    looks = {"drift": ("black", "drifts"), "chance": ("white", "above a threshold, but as by chance")}
    for verdict, (face, label) in looks.items():
        row, day = np.nonzero(verdicts == verdict)
        axes.plot(day + left, row, "o", markersize=4.5, mfc=face, mec="black", markeredgewidth=0.7, label=label)
    axes.figure.legend(handles=axes.get_lines(), loc="outside upper left", ncols=2)
    for place, column in enumerate(columns):
        above = {name for each in column["days"] for name in each["above"]}
        measures = ", ".join(short for name, short in _ABBREVIATIONS.items() if name in above)
        shapes.write_beside(axes, measures, (1.012, place), (0, 0), coords=("axes fraction", "data"), va="center")
    if any(column["verdict"] == "drift" for column in columns):
        shapes.write_beside(axes, "drifts by", (1.012, 1), (0, 3), coords="axes fraction")


# ---- categories


@style.with_style
def categories(workflow: Path, *, rows: int) -> Figure:
    """Draw how often categories occur, by rank, and the share of the training rows whose category has its own id."""
    title, vocabularies = "Categories and their ids", learned_vocabularies(workflow)
    if not vocabularies:
        return style.text_figure(title, "The workflow learns no vocabulary: it has no operator Categorify.")
    most_lost = sorted(vocabularies, key=lambda each: (-each["lost"], -each["all_values"], each["name"]))[:_MOST_ROWS]
    scope = "of some columns" if len(vocabularies) > 3 else "by column"
    subtitle = (
        f"{words.pluralize(len(vocabularies), 'vocabulary')} of {words.count(rows)} training rows. Left: how often the "
        f"values with an id of their own occur, {scope}; right: how many rows have them."
    )
    notes = []
    if any(vocabulary["rows"] != rows for vocabulary in vocabularies):
        notes.append("Of lists the elements count, and of columns that share a vocabulary the rows of all.")
    if omitted := len(vocabularies) - len(most_lost):
        notes.append(f"Not shown: {words.count(omitted)} columns that have fewer rows out of vocabulary.")
    figure, body = style.new_figure(
        9, max(4.6, 1.7 + 0.19 * len(most_lost)), title=title, subtitle=subtitle, notes=notes
    )
    left, right = body.subplots(1, 2)
    _draw_frequencies(left, vocabularies)
    _draw_shares(right, most_lost)
    for axes, columns, look in ((left, 1, {}), (right, 3, {"columnspacing": 1, "handlelength": 1.2})):
        axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=columns, fontsize=8.5, **look)
    return figure


def learned_vocabularies(workflow: Path) -> list[dict[str, Any]]:
    """Return the vocabularies of the `Categorify` operators of a fitted workflow, with their facts, such as ``rows``.

    Values with fewer rows than ``threshold`` have no id of their own; ``lost`` is the share of rows with such values,
    and ``all_values`` counts all that occur, as far as they were counted.
    """
    return [
        {
            "name": name,
            "threshold": node["parameters"]["freq_threshold"],
            "table": workflow / each["tables"][TABLE],
            "all_values": facts["values"] + (facts["out_of_vocabulary_values"] or 0),
            "lost": facts["out_of_vocabulary_rows"] / max(facts["rows"], 1),
            **facts,
        }
        for node in read_json(workflow / FORMAT.name)["nodes"]
        if node["operator"] == "Categorify"
        for name, each in node["statistics"].items()
        for facts in [each["facts"]]
    ]


def frequencies(table: Path) -> Integers:
    """Return how often the values of a vocabulary occur, descending; those that do not are left out."""
    counts = np.sort(to_numpy(pq.read_table(table, columns=["count"], use_threads=False).column(0)))[::-1]
    return counts[counts > 0]


def _draw_frequencies(axes: Axes, vocabularies: Sequence[Values]) -> None:
    """Draw counts by rank, for the largest, the median and the smallest vocabulary."""
    ordered = sorted(vocabularies, key=lambda each: (-each["all_values"], each["name"]))
    last, highest = len(ordered) - 1, 10
    roles = {0: "largest", (last + 1) // 2: "median", last: "smallest" if last else "the only one"}
    looks = ((style.BLUE, "o"), (style.ORANGE, "s"), (style.GREEN, "^"))
    for (place, role), (color, mark) in zip(roles.items(), looks, strict=False):
        each = ordered[place]
        counts, is_given = frequencies(each["table"]), each["out_of_vocabulary_values"] is None
        of = "values given" if is_given else f"of {words.count(each['all_values'])} values"
        label = f"{role}, {style.fit_text(each['name'], points=70, size=8.5)}: {words.count(each['values'])} {of}"
        highest = max([highest, *counts[:1].tolist()])
        ranks = shapes.log_spaced(len(counts), 200) if len(counts) else np.arange(0)  # more points would overlap
        axes.plot(ranks, counts[ranks - 1], color=color, marker=mark, markersize=3, linewidth=1, label=label)
    for threshold in sorted({ordered[place]["threshold"] for place in roles} - {0, 1}):
        shapes.draw_threshold(axes, threshold, f"threshold: {words.count(threshold)} rows")
    axes.set(xscale="log", yscale="log", xlabel="Rank of the value", ylabel="Training rows of the value")
    axes.set(ylim=(0.7, highest * 2), xlim=(0.8, max(10.0, axes.get_xlim()[1])))


def _draw_shares(axes: Axes, vocabularies: Sequence[Values]) -> None:
    start, places = np.zeros(len(vocabularies)), np.arange(len(vocabularies))
    rows, nulls, others = pd.DataFrame(vocabularies)[["rows", "nulls", "out_of_vocabulary_rows"]].to_numpy().T
    for label, color, counts in (
        ("id of its own", style.BLUE, rows - nulls - others),
        ("out of vocabulary", style.ORANGE, others),
        ("null", style.GRAY, nulls),
    ):
        shares = counts / np.maximum(rows, 1)
        axes.barh(places, shares, 0.78, left=start, color=color, label=label)
        start += shares
    axes.set_yticks(places, [style.fit_text(each["name"], points=80, size=8) for each in vocabularies], size=8)
    axes.set(xlim=(0, 1), ylim=(max(len(vocabularies), 6) - 0.4, -0.6), xlabel="Share of the training rows")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    shapes.in_percent(axes.xaxis)


# ---- numbers


@style.with_style
def numbers(statistics: Values, *, events: Log, features: FeatureFolder) -> Figure:
    """Draw the distribution of the first column of numbers that is a feature of the same name, before and after."""
    title = "A number before and after"
    loaded = {name for matrix in features.matrices if matrix.name == CONTINUOUS for name in matrix.columns}
    name = next((name for name, role in events.columns.items() if role == "continuous" and name in loaded), None)
    if name is None:
        return style.text_figure(title, "No column of numbers of the log is a feature of numbers under the same name.")
    subtitle = f"Column {style.fit_text(name, points=200, size=10.5)} of {words.count(features.rows)} test rows."
    groups = statistics["groups"]
    owners = [group for group in groups if any(column["name"] == name for column in groups[group]["columns"])]
    for owner in owners[-1:]:
        operators = ", ".join(dict.fromkeys(stage["operator"] for stage in groups[owner]["operators"])) or "none"
        subtitle += f" Operators of its group, {style.fit_text(owner)}: {operators}."
    figure, body = style.new_figure(9, 3.9, title=title, subtitle=subtitle)
    left, right = body.subplots(1, 2)
    before, after = (read_column([rows.path / file.name for file in rows.files], name) for rows in (events, features))
    _draw_numbers(left, before, style.BLUE, subject="As it came", label="Value in the log")
    _draw_numbers(right, after, style.GREEN, subject="Feature", label="Value of the feature")
    return figure


def _draw_numbers(axes: Axes, values: Floats, color: str, *, subject: str, label: str) -> None:
    nulls, infinite = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    share = f"{words.percent(nulls / len(values))} null" if nulls else "no null"
    title = f"{subject}: {share}" + (f", {words.count(infinite)} infinite" if infinite else "")
    if len(values) == nulls + infinite:
        style.write_text(axes, title, "There is no finite value to draw.")
        return
    counts, edges, long_tail = histogram(values[np.isfinite(values)])
    shapes.draw_histogram(axes, counts, edges, color=color, baseline=0.5)
    axes.set(title=title, yscale="log", xlabel=label, ylabel="Test rows", ylim=(0.5, float(counts.max()) * 2))
    if long_tail:
        axes.set(xscale="asinh", xlim=edges[[0, -1]], xlabel=f"{label} (logarithmic from 1 on)")
    else:
        shapes.limit_ticks(axes.xaxis, 6)


def read_column(files: Iterable[Path], name: str) -> Floats:
    """Return a column of numbers of Parquet files as float64 (rows,), NaN where they are null."""
    parts = (pq.read_table(path, columns=[name], use_threads=False).column(0) for path in files)
    return np.concatenate([np.empty(0), *map(floats, parts)])


def histogram(finite: Floats) -> tuple[Integers, Floats, bool]:
    """Return the rows of each bin, the edges of the bins, and whether the numbers, at least one, have a long tail.

    A few integers get one bin each, other numbers bins of equal width. If one bin would hold nine tenths of them, the
    bins have equal width on the axis of asinh instead, which is logarithmic from 1 on.
    """
    low, high = float(finite.min()), float(finite.max())
    if low == high:
        # Far from 0 a half is less than the next number is away.
        width = max(0.5, abs(low) * 1e-6)
        edges = np.array([low - width, low + width])
    elif high - low < _BINS and (finite == np.round(finite)).all():
        edges = np.arange(low, high + 2) - 0.5
    else:
        # By halves, as the whole distance may be more than a number can be.
        edges = 2 * np.linspace(low / 2, high / 2, _BINS + 1)
    counts, _ = np.histogram(finite, edges)
    long_tail = len(counts) > 1 and bool(counts.max() > 0.9 * len(finite))
    if long_tail:
        edges = np.sinh(np.linspace(np.arcsinh(low), np.arcsinh(high), _BINS + 1))
        edges[[0, -1]] = low, high
        counts, _ = np.histogram(finite, edges)
    return counts, edges, long_tail
