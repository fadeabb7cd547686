"""The pictures of the taxi application: what they draw is what the tables say, legible and the same bytes each time."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch

from tests.pictures import labels_overlap, legend, no_text_is_cut, written
from whitewater import devices
from whitewater.config.taxi import Plot
from whitewater.step import Outputs, Run
from whitewater.taxi import figures
from whitewater.taxi.figures import readable, tenths
from whitewater.taxi.plot import plot

MEANS = {"yellow": 0.25, "green": 0.21, "fhvhv": 0.045}
BOROUGHS = ("Manhattan", "Brooklyn", "Queens", "Bronx")


def tips(keys: list[dict[str, Any]], *services: str, trips: int = 500) -> pd.DataFrame:
    """A tips table with means that differ from row to row, and a row of all services for each key."""
    rows = []
    for position, key in enumerate(keys):
        for service in (*services, "all"):
            mean = MEANS.get(service, 0.1) + 0.001 * (position % 24)
            margin = 0.002 + 0.0001 * (position % 7)
            rows.append({
                "service": service, **key, "all_trips": 2 * trips, "trips": trips + position, "mean": mean,
                "mean_low": mean - margin, "mean_high": mean + margin, "median": mean, "plain_trips": trips,
                "plain_mean": mean + 0.02,
            })  # fmt: skip
    table = pd.DataFrame(rows)
    table.attrs["confidence"] = 0.9
    return table


def by_hour(*services: str) -> pd.DataFrame:
    return tips([{"hour": hour} for hour in range(24)], *services).astype({"hour": "Int16"})


def by_weekday_hour(*services: str) -> pd.DataFrame:
    keys = [{"weekday": weekday, "hour": hour} for weekday, hour in product(range(7), range(24))]
    return tips(keys, *services).astype({"weekday": "Int16", "hour": "Int16"})


def by_borough(*services: str) -> pd.DataFrame:
    return tips([{"borough": borough} for borough in (*BOROUGHS, None)], *services)


def by_zone(*services: str) -> pd.DataFrame:
    long = "Governor's Island/Ellis Island/Liberty Island"
    zones = [
        {"location_id": 1 + i, "zone": long if i == 3 else f"Zone {i}", "borough": BOROUGHS[i % 4]} for i in range(40)
    ]
    return tips([*zones, {"location_id": None, "zone": None, "borough": None}], *services).astype(
        {"location_id": "Int16"}
    )


def quality(*services: str, months: list[str]) -> dict[str, Any]:
    by_month: list[dict[str, Any]] = []
    for service in services:
        for number, month in enumerate(months):
            by_reason = {"fare_amount_not_above_0": 20 + number, "duration_not_at_most_21600": 10}
            by_month.append(
                {"service": service, "month": month, "rows_in": 1000, "rows_out": 975 - number, "by_reason": by_reason}
            )
        by_month.append(
            {"service": service, "month": "2041-11", "rows_in": 7, "rows_out": 0, "by_reason": {"stray_month": 7}}
        )
    rows_in, rows_out = (sum(entry[key] for entry in by_month) for key in ("rows_in", "rows_out"))
    return {
        "totals": {"rows_in": rows_in, "rows_out": rows_out, "quarantined": rows_in - rows_out},
        "by_month": by_month,
    }


def predictions(*services: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    generator = np.random.default_rng(3)
    predicted = generator.normal(0.25, 0.03, 2000)
    observed = np.maximum(predicted + generator.normal(0, 0.1, 2000), 0)
    trips = pd.DataFrame({"observed": observed, "ridge": predicted, "forest": predicted + 0.01})
    estimate = {"value": 0.0625, "low": 0.05, "high": 0.075}
    scores = {model: {"r2": estimate, "mae": estimate} for model in ("constant", "hour_mean", "ridge", "forest")}
    metrics = {service: {"status": "fitted", "held_out": scores} for service in services}
    return pd.concat([trips.assign(service=service) for service in services]), {"services": metrics}


def every_picture(*services: str) -> dict[str, Figure]:
    held_out, metrics = predictions(*services)
    months = [f"{year}-{month:02d}" for year in range(2009, 2025) for month in range(1, 13)]
    return {
        "hour": figures.tip_fraction_by_hour(by_hour(*services), minimum_trips=30),
        "weekday": figures.tip_fraction_by_weekday_hour(by_weekday_hour(*services), minimum_trips=30),
        "borough": figures.tip_fraction_by_borough(by_borough(*services), minimum_trips=30),
        "zone": figures.tip_fraction_by_zone(by_zone(*services), zones=20, minimum_trips=30),
        "quality": figures.data_quality(quality(*services, months=months)),
        "prediction": figures.predicted_against_observed(held_out, metrics=metrics),
    }


def line(figure: Figure, label: str) -> np.ndarray:
    return next(
        np.asarray(line.get_ydata()) for line in figure.axes[0].lines if str(line.get_label()).startswith(label)
    )


def test_hours_show_the_mean_of_each_service_its_number_of_trips_and_the_level_of_the_interval() -> None:
    table = by_hour("yellow", "fhvhv")
    figure = figures.tip_fraction_by_hour(table, minimum_trips=30)
    for service, name in (("yellow", "Yellow"), ("fhvhv", "App rides"), ("all", "All together")):
        np.testing.assert_allclose(line(figure, name), table.loc[table["service"] == service, "mean"])
    trips = sum(500 + hour for hour in range(24))
    assert f"Yellow taxis, n = {trips:,}" in legend(figure)
    assert "90 % interval" in legend(figure)


def test_the_band_is_the_interval_of_the_table() -> None:
    table = by_hour("yellow")
    band = figures.tip_fraction_by_hour(table, minimum_trips=30).axes[0].collections[0].get_paths()[0].vertices
    expected = table[table["service"] == "yellow"]
    corners = {
        (hour, bound)
        for name in ("mean_low", "mean_high")
        for hour, bound in zip(range(24), expected[name], strict=True)
    }
    drawn = {(float(x), float(y)) for x, y in np.asarray(band)}
    assert corners <= drawn


def test_one_service_alone_has_no_line_of_all_services() -> None:
    assert not any("All" in label for label in legend(figures.tip_fraction_by_hour(by_hour("green"), minimum_trips=30)))


def test_the_plain_definition_has_a_dashed_line_and_an_entry_of_its_own() -> None:
    table = by_hour("yellow")
    figure = figures.tip_fraction_by_hour(table, minimum_trips=30)
    dashed = next(line for line in figure.axes[0].lines if line.get_linestyle() == "--")
    np.testing.assert_allclose(np.asarray(dashed.get_ydata()), table.loc[table["service"] == "yellow", "plain_mean"])
    assert any("plain definition" in label for label in legend(figure))


def test_hours_with_too_few_trips_are_left_out_and_named() -> None:
    table = by_hour("yellow")
    table.loc[table["hour"].isin([2, 3, 4, 17]), "trips"] = 29
    figure = figures.tip_fraction_by_hour(table, minimum_trips=30)
    assert np.flatnonzero(np.isnan(line(figure, "Yellow"))).tolist() == [2, 3, 4, 17]
    assert "Yellow taxis 2-4, 17 h" in written(figure)


def test_trips_without_an_hour_are_counted_in_a_note() -> None:
    table = by_hour("yellow")
    table.loc[table["hour"] == 5, "hour"] = pd.NA
    figure = figures.tip_fraction_by_hour(table, minimum_trips=30)
    assert "505 trips without a time of pickup" in written(figure)


def test_the_heat_map_compares_each_cell_with_the_mean_of_its_own_service_on_one_scale() -> None:
    table = by_weekday_hour("yellow", "fhvhv")
    table.loc[(table["weekday"] == 6) & (table["hour"] == 4), "trips"] = 3
    figure = figures.tip_fraction_by_weekday_hour(table, minimum_trips=30)
    meshes = [axes.collections[0] for axes in figure.axes[:2]]
    for service, mesh in zip(("yellow", "fhvhv"), meshes, strict=True):
        rows = table[table["service"] == service]
        points = 100 * (rows["mean"] - np.average(rows["mean"], weights=rows["trips"])).to_numpy().reshape(7, 24)
        drawn: np.ndarray = np.ma.filled(np.ma.asarray(mesh.get_array()), np.nan).reshape(7, 24)
        assert np.isnan(drawn[6, 4])
        points[6, 4] = np.nan
        np.testing.assert_allclose(drawn, points)
    assert meshes[0].get_clim() == meshes[1].get_clim()
    assert "Hatched: fewer than 30" in written(figure)


def test_zones_are_ranked_by_mean_the_small_ones_left_out() -> None:
    table = by_zone("yellow")
    table.loc[table["location_id"] == 20, ["mean", "mean_low", "mean_high", "trips"]] = (0.9, 0.8, 1.0, 29)
    table.loc[table["location_id"] == 30, ["mean", "mean_low", "mean_high"]] = (0.8, 0.7, 0.9)
    figure = figures.tip_fraction_by_zone(table, zones=5, minimum_trips=30)
    expected = table[(table["service"] == "yellow") & (table["trips"] >= 30) & table["location_id"].notna()]
    best = expected.sort_values("mean", ascending=False)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()][:3] == best["zone"].tolist()[:3]
    assert len(figure.axes[0].get_yticks()) == 5
    numbers = [text.get_text() for text in figure.axes[0].texts]
    assert numbers[0] == f"{best['trips'].iloc[0]:,}"
    assert "540 trips without a zone" in written(figure)


def test_a_service_without_a_zone_of_enough_trips_has_no_panel_but_a_note() -> None:
    table = by_zone("yellow", "green")
    table.loc[table["service"] == "yellow", "trips"] = 29
    figure = figures.tip_fraction_by_zone(table, zones=5, minimum_trips=30)
    assert [axes.get_title(loc="left").splitlines()[0] for axes in figure.axes] == ["Green taxis"]
    assert "Yellow taxis: no zone has 30 such trips." in written(figure)


def test_boroughs_keep_the_trips_without_a_zone() -> None:
    figure = figures.tip_fraction_by_borough(by_borough("green"), minimum_trips=30)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert sorted(labels) == sorted([*BOROUGHS, "no zone known"])


def test_boroughs_with_too_few_trips_are_left_out_and_named() -> None:
    table = by_borough("green")
    table.loc[table["borough"].isin(["Queens", "Bronx"]), "trips"] = 3
    figure = figures.tip_fraction_by_borough(table, minimum_trips=30)
    labels = {label.get_text() for label in figure.axes[0].get_yticklabels()}
    assert labels == {"Manhattan", "Brooklyn", "no zone known"}
    assert "Green taxis: left out, with fewer than 30 such trips: Bronx, Queens." in written(figure)


def bars(patch: Artist) -> np.ndarray:
    """The tops of bars that are one shape; every other value is the gap after a bar."""
    assert isinstance(patch, StepPatch)
    return np.asarray(patch.get_data()[0])[::2]


def test_bars_stack_the_share_of_each_reason_and_a_line_counts_each_row_once() -> None:
    figure = figures.data_quality(quality("yellow", months=["2019-01", "2019-02"]))
    fare, duration, _, rejected = (bars(patch) for patch in figure.axes[0].patches)
    np.testing.assert_allclose(fare, [0.020, 0.021])
    np.testing.assert_allclose(duration - fare, 0.010)
    np.testing.assert_allclose(rejected, [0.025, 0.026])


def test_months_of_a_wrong_clock_have_no_bar_but_are_in_the_totals() -> None:
    figure = figures.data_quality(quality("yellow", months=["2019-01"]))
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["2019-01"]
    assert "7 (0.695 %)" in written(figure)
    assert "7 rows whose month is unknown or not of their file" in written(figure)


def test_more_reasons_than_colours_end_in_one_bar() -> None:
    content = quality("yellow", months=["2019-01"])
    content["by_month"][0]["by_reason"] = {f"missing_column_{number}": 30 - number for number in range(10)}
    figure = figures.data_quality(content)
    labels = [label.get_text() for label in figure.axes[1].get_yticklabels()]
    assert len(labels) == 8
    assert labels[0] == "column 0 missing"
    assert labels[-1] == "other reasons"
    widths = [bar.get_width() for bar in figure.axes[1].patches if isinstance(bar, Rectangle)]
    assert round(sum(widths) * 1007) == sum(30 - number for number in range(10)) + 7


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("fare_amount_not_above_0", "fare amount ≤ 0 $"),
        ("trip_distance_not_at_most_200", "trip distance > 200 miles"),
        ("duration_not_at_most_21600", "duration > 21,600 s"),
        ("tip_fraction_not_at_most_5", "tip fraction > 5"),
        ("missing_dropoff_datetime", "drop-off datetime missing"),
        ("unreadable_payment_type", "payment type unreadable"),
        ("stray_month", "month not of this file"),
        ("pickup_in_Staten Island", "pickup in Staten Island"),
        ("malformed_line", "malformed line"),
    ],
)
def test_reasons_are_readable(reason: str, text: str) -> None:
    assert readable(reason) == text


def test_calibration_is_the_mean_observed_in_each_tenth_of_the_predictions() -> None:
    held_out, _ = predictions("yellow")
    predicted, observed, margin = tenths(held_out["ridge"].to_numpy(), held_out["observed"].to_numpy())
    groups = held_out.groupby(pd.qcut(held_out["ridge"], 10), observed=True)
    np.testing.assert_allclose(predicted, groups["ridge"].mean())
    np.testing.assert_allclose(observed, groups["observed"].mean())
    np.testing.assert_allclose(margin, 1.96 * groups["observed"].sem())


def test_equal_predictions_are_one_group() -> None:
    predicted, observed, _ = tenths(np.full(50, 0.2), np.linspace(0, 1, 50))
    assert (predicted.tolist(), observed.tolist()) == ([pytest.approx(0.2)], [pytest.approx(0.5)])


def test_predictions_come_with_scores_and_intervals_and_skipped_services_with_their_reason() -> None:
    held_out, metrics = predictions("yellow")
    metrics["services"]["green"] = {"status": "skipped", "reason": "12 trips with a recorded tip, fewer than 200"}
    text = written(figures.predicted_against_observed(held_out, metrics=metrics))
    assert "R² 0.06 [0.05, 0.07], MAE 6.2 [5.0, 7.5] points" in text
    assert "Green taxis: no model, 12 trips with a recorded tip, fewer than 200." in text


def test_where_there_is_nothing_to_draw_the_picture_says_why() -> None:
    nothing = by_hour("yellow").assign(trips=0, mean=np.nan)
    assert "No trip has a recorded tip" in written(figures.tip_fraction_by_hour(nothing, minimum_trips=30))
    few = by_zone("yellow").assign(trips=2)
    assert "No place of pickup" in written(figures.tip_fraction_by_zone(few, zones=5, minimum_trips=30))
    skipped = {"services": {"yellow": {"status": "skipped", "reason": "3 trips"}}}
    no_predictions = predictions("yellow")[0].head(0)
    assert "3 trips" in written(figures.predicted_against_observed(no_predictions, metrics=skipped))
    empty = {"totals": {"rows_in": 0, "rows_out": 0, "quarantined": 0}, "by_month": []}
    assert "No row was read" in written(figures.data_quality(empty))


@pytest.mark.parametrize("services", [("yellow",), ("yellow", "green", "fhvhv")], ids=["one service", "three services"])
def test_no_text_is_cut_and_no_labels_of_an_axis_overlap(services: tuple[str, ...]) -> None:
    drawn = every_picture(*services).items()
    assert [name for name, figure in drawn if not no_text_is_cut(figure) or labels_overlap(figure)] == []


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The inputs of the step, as the steps before it leave them."""
    for name, table in (
        ("hour", by_hour),
        ("weekday_hour", by_weekday_hour),
        ("borough", by_borough),
        ("zone", by_zone),
    ):
        table("yellow").to_parquet(tmp_path / f"tips_by_{name}.parquet", index=False)
    (tmp_path / "quality.json").write_text(json.dumps(quality("yellow", months=["2019-03"])))
    held_out, metrics = predictions("yellow")
    (tmp_path / "model").mkdir()
    held_out.to_parquet(tmp_path / "model" / "predictions.parquet", index=False)
    (tmp_path / "model" / "metrics.json").write_text(json.dumps(metrics))
    return tmp_path


def draw(results: Path, *files: str) -> list[str]:
    run = Run(application="taxi", step="plot", device=devices.resolve("cpu"), settings=Plot())
    tables = {
        f"tips_by_{name}": results / f"tips_by_{name}.parquet" for name in ("hour", "weekday_hour", "borough", "zone")
    }
    plot(run, **tables, quality=results / "quality.json", model=results / "model",
         plots=Outputs({file: results / file for file in files}))  # fmt: skip
    pictures: list[str] = run.facts["pictures"]
    return pictures


def test_the_step_writes_each_picture_in_each_format_that_its_outputs_name(results: Path) -> None:
    files = (
        "tip_fraction_by_hour.png",
        "tip_fraction_by_hour.svg",
        "data_quality.svg",
        "predicted_against_observed.png",
    )
    assert draw(results, *files) == ["data_quality", "predicted_against_observed", "tip_fraction_by_hour"]
    for file in files:
        start = (results / file).read_bytes()[:8]
        assert start == b"\x89PNG\r\n\x1a\n" if file.endswith("png") else start.startswith(b"<?xml")
