"""The pictures of the recsys application: they draw what the files say, and any result can be drawn."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from tests.apps import pictures
from tests.apps.pictures import no_text_is_cut
from tests.helpers.recsys_logs import clicks, write_log
from whitewater.engines import resolve
from whitewater.features.config import Feature, Fit
from whitewater.features.feature_folder import open_features
from whitewater.features.log_folder import open_log
from whitewater.figures import style, words
from whitewater.io.store import read_json
from whitewater.step import Output, Outputs, Run
from whitewater_apps.recsys import figures
from whitewater_apps.recsys.config import Drift as DriftSettings
from whitewater_apps.recsys.config import Features, Plot
from whitewater_apps.recsys.figures import frequencies, histogram, learned_vocabularies, read_column
from whitewater_apps.recsys.steps.drift import drift
from whitewater_apps.recsys.steps.features import features
from whitewater_apps.recsys.steps.fit import fit
from whitewater_apps.recsys.steps.plot import plot

CPU = resolve("cpu")
PICTURES = ("auc", "calibration", "categories", "drift", "numbers")
GROUPS = (
    Feature(name="numbers", columns=("I*",), operators=({"Clip": {"min_value": 0}}, "LogOp", "FillMedian")),
    Feature(name="categories", columns=("C*", "L*"), operators=({"Categorify": {"freq_threshold": 5}},)),
)
TARGETS = Feature(name="targets", columns=("C1",), operators=({"TargetEncoding": {"target": "label"}},))
ODD_NAMES = ("_", "$x$ and $y$", "日本語の列", "W" * 300, r"\frac{1}{", "a\nb", " ")


def written(figure: Figure) -> str:
    return " ".join(pictures.written(figure).split())


def y_labels(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def points(axes: Axes, start: str) -> npt.NDArray[np.float64]:
    """The points (points, 2) of the line whose label begins so."""
    lines = [each for each in axes.lines if str(each.get_label()).startswith(start)]
    lines += [
        each.lines[0]
        for each in axes.containers
        if isinstance(each, ErrorbarContainer) and str(each.get_label()).startswith(start) and each.lines[0] is not None
    ]
    (line,) = lines
    return np.column_stack([np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)])


# ---- auc and calibration


def quality(auc: float | None, *, error: float | None = 0.005, bins: int = 10) -> dict[str, Any]:
    shares = np.linspace(0, 1, bins)
    return {
        "auc": auc, "auc_standard_error": None if auc is None else error, "calibration_error": 0.0123, "log_loss": 0.5,
        "calibration": [{"rows": 70, "predicted": share * 0.4, "observed": share * 0.5} for share in shares.tolist()],
    }  # fmt: skip


def metrics(*, rows: int = 700, of: int = 700, **models: Mapping[str, float | None]) -> dict[str, Any]:
    keys = {key for sets in models.values() for key in sets}
    groups = {key.removeprefix("without "): ["x", "y"] for key in keys if key != "all"} or {"other": ["x"]}
    return {
        "parts": {"test": {"rows": rows, "of": of, "label_rate": 0.25}},
        "groups": groups,
        "models": {name: {key: quality(auc) for key, auc in sets.items()} for name, sets in models.items()},
    }


TREES = {"all": 0.74, "plain": 0.69, "without a": 0.735, "without b": 0.70, "without ids": 0.75}
REGRESSION = {"all": 0.73, "plain": 0.68, "without a": 0.72, "without b": 0.71}


def test_each_set_of_features_has_a_row_those_that_are_missed_most_first() -> None:
    figure = figures.auc(metrics(boosted_trees=TREES, logistic_regression=REGRESSION))
    (axes,) = figure.axes
    assert y_labels(axes) == [
        "all features", "plain numbers only (2)", "without b (2)", "without a (2)", "without ids (2)"
    ]  # fmt: skip
    assert points(axes, "boosted trees")[:, 0].tolist() == [0.74, 0.69, 0.70, 0.735, 0.75]
    assert points(axes, "logistic regression")[:, 0].tolist() == [0.73, 0.68, 0.71, 0.72]
    assert "0.740 ± 0.010" in written(figure)
    assert "No mark: the model uses none of these features" in written(figure)


def test_the_calibration_has_a_panel_for_each_model_and_counts_rows() -> None:
    found = metrics(boosted_trees=TREES, logistic_regression=REGRESSION, of=9_000)
    figure = figures.calibration(found)
    for axes in figure.axes:
        np.testing.assert_allclose(points(axes, "test rows"), np.outer(np.linspace(0, 1, 10), [0.4, 0.5]), atol=1e-12)
    assert "700 test rows, drawn from 9,000" in written(figure)
    assert "stands for 70 rows" in written(figure)
    assert "Boosted trees: off by 1.23 points on average" in written(figure)


@pytest.mark.parametrize(
    "found",
    [
        metrics(boosted_trees=TREES, logistic_regression=REGRESSION),
        metrics(boosted_trees={"all": 0.7}, logistic_regression={}),
        metrics(boosted_trees={"all": 0.7}, logistic_regression={"all": 0.7}),
        metrics(boosted_trees={"all": 1.0, "without a": 0.0}),
        metrics(boosted_trees={"all": 0.7, **{f"without {'w' * 80}{number}": 0.6 for number in range(41)}}),
        metrics(boosted_trees={"all": 0.7, **{f"without {name}": 0.6 for name in ODD_NAMES}}),
        metrics(boosted_trees={}, logistic_regression={}),
    ],
    ids=["both", "one model", "no groups", "extremes", "many groups", "odd names", "no model"],
)
def test_any_metrics_are_drawn_and_no_text_is_cut(found: dict[str, Any]) -> None:
    assert no_text_is_cut(figures.auc(found))
    assert no_text_is_cut(figures.calibration(found))


# ---- drift


def drifted(
    psi: Mapping[str, Sequence[float | None]], *, verdicts: Mapping[str, str] | None = None, gaps: int = 0
) -> dict[str, Any]:
    """What the step drift writes; the verdict of a column is that of all its days."""
    verdict = {name: (verdicts or {}).get(name, "stable") for name in psi}
    days = len(next(iter(psi.values()), ()))
    return {
        "columns": [
            {
                "name": name, "verdict": verdict[name], "days": [
                    {
                        "day": 1 + number, "psi": value, "verdict": verdict[name],
                        "above": ["psi", "ks"] if verdict[name] == "drift" else [],
                    }
                    for number, value in enumerate(values)
                ],
            }
            for name, values in psi.items()
        ],
        "period": "day", "days": [{"day": number} for number in range(days + 1)], "days_without_rows": gaps,
        "reference": {"day": 0, "rows": 9_091},
        "summary": {each: [name for name in psi if verdict[name] == each] for each in ("drift", "chance", "stable")},
        "thresholds": {"psi": 0.25, "ks": 0.1, "jensen_shannon": 0.1, "new_categories": 0.05},
    }  # fmt: skip


def mapped(figure: Figure) -> npt.NDArray[np.float64]:
    """The values of the map, (columns, days), NaN for none."""
    (mesh,) = [each for each in figure.axes[0].collections if each.get_array() is not None]
    values = mesh.get_array()
    assert values is not None
    return np.ma.filled(np.ma.asarray(values, float), np.nan)


def test_columns_that_drift_most_come_first_with_the_measures_by_which() -> None:
    psi: dict[str, list[float | None]] = {"I1": [0.01, 0.02], "C1": [0.3, None], "C2": [0.1, 0.9], "C3": [2.0, 0.1]}
    figure = figures.drift(drifted(psi, verdicts={"C1": "drift", "C2": "drift", "C3": "chance"}))
    axes = figure.axes[0]
    assert y_labels(axes) == ["C2", "C1", "C3", "I1"]
    np.testing.assert_array_equal(mapped(figure), [[0.1, 0.9], [0.3, np.nan], [2.0, 0.1], [0.01, 0.02]])
    assert [text.get_text() for text in axes.texts].count("PSI, KS") == 2
    assert points(axes, "drifts")[:, 1].tolist() == [0, 0, 1, 1]
    assert points(axes, "above a threshold")[:, 1].tolist() == [2, 2]
    assert "brings it: 2 of 4. Above it, but by no more than chance: 1." in written(figure)
    assert "Grey: no index" in written(figure)


def test_the_colors_of_drift_are_neutral_at_the_threshold() -> None:
    found = drifted({"C1": [0.03, 0.5]})
    (mesh,) = [each for each in figures.drift(found).axes[0].collections if each.get_array() is not None]
    limits = mesh.get_clim()
    assert sum(limits) / 2 == found["thresholds"]["psi"]
    red, green, blue, _ = mesh.cmap(0.5)
    assert max(red, green, blue) - min(red, green, blue) < 0.02


@pytest.mark.parametrize(
    ("psi", "verdict"),
    [
        ({"C1": [0.3]}, "drift"),
        ({name: [0.3, 1e-9, 1e9] for name in ODD_NAMES}, "drift"),
        ({"C1": [None, None]}, "stable"),
        ({f"C{number}": [0.3] * 2000 for number in range(5)}, "chance"),
        ({f"C{number}": [12.5] * 12 for number in range(5)}, "drift"),
        ({f"C{number}": [0.5] * 13 for number in range(5)}, "drift"),
    ],
    ids=["one", "odd names", "nulls", "thousands of days", "numbers", "no numbers"],
)
def test_any_drift_is_drawn_and_no_text_is_cut(psi: Mapping[str, Sequence[float | None]], verdict: str) -> None:
    found = drifted(psi, verdicts=dict.fromkeys(psi, verdict), gaps=3)
    assert no_text_is_cut(figures.drift(found))


# ---- categories


def test_counts_of_a_vocabulary_are_those_of_its_values(tmp_path: Path) -> None:
    counts = np.random.default_rng(0).zipf(1.4, 5000).clip(max=1000) - 1
    table = pa.table({"value": pa.array([str(number) for number in range(5000)]), "count": pa.array(counts)})
    pq.write_table(table, tmp_path / "counts.parquet", row_group_size=700)
    assert frequencies(tmp_path / "counts.parquet").tolist() == sorted(counts[counts > 0].tolist(), reverse=True)


def write_vocabularies(place: Path, counts: Mapping[str, Sequence[int]], *, threshold: int = 5, nulls: int = 0) -> Path:
    """Write of a fitted workflow what the picture reads; values of fewer rows have no id."""
    place.mkdir()
    statistics = {}
    for number, (name, each) in enumerate(counts.items()):
        kept = sorted((count for count in each if count >= threshold), reverse=True)
        table = pa.table({"value": pa.array(range(len(kept)), pa.int64()), "count": pa.array(kept, pa.int64())})
        pq.write_table(table, place / f"{number}.parquet")
        facts = {
            "rows": sum(each) + nulls, "nulls": nulls, "values": len(kept),
            "out_of_vocabulary_rows": sum(each) - sum(kept), "out_of_vocabulary_values": len(each) - len(kept),
        }  # fmt: skip
        statistics[name] = {"facts": facts, "tables": {"vocabulary": f"{number}.parquet"}}
    node = {"operator": "Categorify", "parameters": {"freq_threshold": threshold}, "statistics": statistics}
    (place / "workflow.json").write_text(json.dumps({"nodes": [{"operator": "LogOp"}, node] if counts else []}))
    return place


def test_counts_are_drawn_by_rank_of_the_largest_the_median_and_the_smallest_column(tmp_path: Path) -> None:
    counts = {"a": [9, 5], "b": [8, 7, 2, 1], "c": [99, 20, 20, 5, 4, 1], "d": [7, 6, 5]}
    figure = figures.categories(write_vocabularies(tmp_path / "workflow", counts), rows=149)
    axes = figure.axes[0]
    assert points(axes, "largest, c: 4 of 6").tolist() == [[1, 99], [2, 20], [3, 20], [4, 5]]
    assert points(axes, "median, d: 3 of 3").tolist() == [[1, 7], [2, 6], [3, 5]]
    assert points(axes, "smallest, a: 2 of 2").tolist() == [[1, 9], [2, 5]]
    assert points(axes, "threshold: 5 rows")[:, 1].tolist() == [5, 5]


@pytest.mark.parametrize(
    "counts",
    [
        {},
        {"a": []},
        {"a": [7]},
        {"a": [7, 6], "b": []},
        {name: [50, 3] for name in ODD_NAMES},
        {f"C{number}": [10**6 // (1 + place) for place in range(20)] for number in range(41)},
    ],
    ids=["no Categorify", "nulls only", "one value", "two columns", "odd names", "many columns"],
)
def test_any_vocabularies_are_drawn_and_no_text_is_cut(tmp_path: Path, counts: Mapping[str, Sequence[int]]) -> None:
    figure = figures.categories(write_vocabularies(tmp_path / "workflow", counts, nulls=3), rows=10)
    assert no_text_is_cut(figure)
    assert ("no operator Categorify" in written(figure)) == (not counts)


# ---- numbers


@given(st.lists(st.one_of(st.none(), st.floats(width=32)), max_size=40), st.sampled_from([pa.float32(), pa.float64()]))
@settings(max_examples=30, deadline=None)
def test_every_row_is_in_a_bin_or_null_or_infinite(
    tmp_path_factory: pytest.TempPathFactory, values: list[float | None], type_: pa.DataType
) -> None:
    place = tmp_path_factory.mktemp("numbers") / "x.parquet"
    pq.write_table(pa.table({"x": pa.array(values, type_)}), place, row_group_size=7)
    found = read_column([place], "x")
    np.testing.assert_array_equal(found, np.array([np.nan if value is None else value for value in values], float))
    finite = found[np.isfinite(found)]
    assert not len(finite) or histogram(finite)[0].sum() == len(finite)


@pytest.mark.parametrize(
    ("values", "bins"),
    [([3, 3], 1), ([0, 1, 1, 5], 6), ([0, 1000], 60), ([10**12, 10**12 + 3], 4), ([10**18] * 2, 1)],
)
def test_few_integers_have_a_bin_each(values: list[int], bins: int) -> None:
    found, _, _ = histogram(np.array(values, float))
    assert len(found) == bins
    assert sorted(found[found > 0].tolist()) == sorted(Counter(values).values())


def test_a_long_tail_has_bins_of_equal_width_on_a_logarithmic_axis() -> None:
    values = np.random.default_rng(5).lognormal(1, 3, 3_000)
    counts, edges, long_tail = histogram(values)
    assert long_tail
    np.testing.assert_allclose(np.diff(np.arcsinh(edges)), np.ptp(np.arcsinh(values)) / len(counts))
    np.testing.assert_array_equal(counts, np.histogram(values, edges)[0])
    assert counts.sum() == len(values)
    assert counts.max() < 0.2 * len(values)
    assert not histogram(np.linspace(0, 5, 300))[2]


def test_values_as_far_apart_as_numbers_go_are_drawn() -> None:
    counts, edges, _ = histogram(np.array([-1.7e308, 1.7e308, 0.0]))
    assert np.isfinite(edges).all()
    assert counts.sum() == 3


# ---- all of them


def results(place: Path, *groups: Feature, rows: int = 600) -> Path:
    """Make what the steps before it leave; models are not trained."""
    log = write_log(clicks(rows), place / "log", row_group_rows=1000)
    run = Run("recsys", "fit", CPU, Fit(features=groups))
    fit(run, train=log, workflow=Output(place / "workflow"), statistics=Output(place / "statistics.json"))
    features(
        Run("recsys", "features", CPU, Features()), train=log, valid=log, test=log, workflow=place / "workflow",
        train_features=Output(place / "train"), valid_features=Output(place / "valid"),
        test_features=Output(place / "test"),
    )  # fmt: skip
    drift(Run("recsys", "drift", CPU, DriftSettings()), events=log, drift=Output(place / "drift.json"))
    found = metrics(boosted_trees=TREES, logistic_regression=REGRESSION)
    (place / "metrics.json").write_text(json.dumps(found))
    return place


def draw(place: Path, out: Path, *files: str) -> list[str]:
    run = Run("recsys", "plot", CPU, Plot())
    out.mkdir()
    plot(
        run, metrics=place / "metrics.json", drift=place / "drift.json", statistics=place / "statistics.json",
        workflow=place / "workflow", events=place / "log", test=place / "test",
        plots=Outputs({file: out / file for file in files}),
    )  # fmt: skip
    pictures: list[str] = run.facts["pictures"]
    return pictures


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return results(tmp_path_factory.mktemp("results"), *GROUPS)


def test_every_picture_is_drawn_of_real_results(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(style, "save", lambda figure, path: drawn.append(figure))
    assert draw(made, tmp_path / "plots", *(f"{name}.png" for name in PICTURES)) == list(PICTURES)
    assert [name for name, figure in zip(PICTURES, drawn, strict=True) if not no_text_is_cut(figure)] == []


def test_vocabularies_are_those_of_the_training_rows(made: Path) -> None:
    learned = {each["name"]: each for each in learned_vocabularies(made / "workflow")}
    assert list(learned) == ["C1", "C2", "C3", "C4", "L1", "L2"]
    counts = Counter(value for value in clicks(600)["C1"].to_pylist() if value is not None)
    kept = [count for count in counts.values() if count >= 5]
    assert [learned["C1"][name] for name in ("threshold", "values", "all_values")] == [5, len(kept), len(counts)]
    assert learned["C1"]["out_of_vocabulary_rows"] == sum(counts.values()) - sum(kept)
    assert frequencies(learned["C1"]["table"]).tolist() == sorted(kept, reverse=True)


def test_a_number_is_drawn_before_and_after_with_its_nulls_and_operators(made: Path) -> None:
    figure = figures.numbers(
        read_json(made / "statistics.json"), events=open_log(made / "log"), features=open_features(made / "test")
    )
    raw = clicks(600)["I1"].to_pylist()
    nulls = raw.count(None)
    for axes, rows in zip(figure.axes, (600 - nulls, 600), strict=True):
        (steps,) = [patch for patch in axes.patches if isinstance(patch, StepPatch)]
        assert np.sum(steps.get_data()[0]) == rows
    assert f"As it came: {words.percent(nulls / 600)} null" in written(figure)
    assert "Feature: no null" in written(figure)
    assert "Column I1 of 600 test rows. Operators of its group, numbers: Clip, LogOp, FillMedian." in written(figure)
    # As where a tag of the user's stands behind that of the group.
    figure = figures.numbers({"groups": {}}, events=open_log(made / "log"), features=open_features(made / "test"))
    assert "Column I1 of 600 test rows." in written(figure)


def test_results_without_numbers_and_categories_have_every_picture(tmp_path: Path) -> None:
    place = results(tmp_path, TARGETS)
    assert draw(place, tmp_path / "plots", *(f"{name}.svg" for name in PICTURES)) == list(PICTURES)
    figure = figures.numbers(
        read_json(place / "statistics.json"), events=open_log(place / "log"), features=open_features(place / "test")
    )
    assert "No column of numbers of the log is a feature" in written(figure)
