"""The pictures of the taxi application: what they draw is what the tables say, legible and the same bytes each time."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tests.apps.pictures import labels_overlap, legend, no_text_is_cut, written
from whitewater_apps.taxi import figures
from whitewater_apps.taxi.schema import PLACES, SERVICES

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
    assert figure.axes[0].get_ylim()[0] == 0
    assert "21:00" in [label.get_text() for label in figure.axes[0].get_xticklabels()]


def test_hours_with_too_few_trips_are_left_out() -> None:
    table = by_hour("yellow")
    table.loc[table["hour"].isin([2, 3, 4, 17]), "trips"] = 29
    figure = figures.tip_fraction_by_hour(table, minimum_trips=30)
    assert np.flatnonzero(np.isnan(line(figure, "Yellow"))).tolist() == [2, 3, 4, 17]
    assert "Left out: hours with fewer than 30 such trips." in written(figure)


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
    rows = table[(table["service"] == "yellow") & (table["trips"] >= 30)]
    mean = np.average(rows["mean"], weights=rows["trips"])
    noise = rows[rows["mean_low"].le(mean) & rows["mean_high"].ge(mean)]
    (dots,) = figure.axes[0].lines
    np.testing.assert_array_equal(np.asarray(dots.get_xydata()) - 0.5, noise[["hour", "weekday"]].to_numpy(float))


def test_places_in_no_borough_are_last() -> None:
    figure = figures.tip_fraction_by_borough(by_borough("yellow"), minimum_trips=30)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == [*reversed(BOROUGHS), "no zone known"]  # whose mean is the largest


def test_zones_are_ranked_by_the_lower_end_of_the_interval_the_small_ones_left_out() -> None:
    table = by_zone("yellow")
    table.loc[table["location_id"] == 20, ["mean", "mean_low", "mean_high", "trips"]] = (0.9, 0.8, 1.0, 29)
    table.loc[table["location_id"] == 30, ["mean", "mean_low", "mean_high"]] = (0.8, 0.7, 0.9)
    table.loc[table["location_id"] == 10, ["mean", "mean_low", "mean_high"]] = (0.7, 0.0, 1.4)
    figure = figures.tip_fraction_by_zone(table, zones=5, minimum_trips=30)
    expected = table[(table["service"] == "yellow") & (table["trips"] >= 30) & table["location_id"].notna()]
    best = expected.sort_values("mean_low", ascending=False)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()][:3] == best["zone"].tolist()[:3]
    assert len(figure.axes[0].get_yticks()) == 5
    numbers = [text.get_text() for text in figure.axes[0].texts]
    assert numbers[0] == f"{best['trips'].iloc[0]:,}"
    assert "540 trips without a zone" in written(figure)


def test_bars_stack_the_share_of_each_reason_and_a_line_counts_each_row_once() -> None:
    axes = figures.data_quality(quality("yellow", months=["2019-01", "2019-02"])).axes[0]
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    np.testing.assert_allclose([bar.get_height() for bar in bars[:4]], [0.020, 0.021, 0.010, 0.010])
    np.testing.assert_allclose([bar.get_y() for bar in bars[:4]], [0, 0, 0.020, 0.021])
    (rejected,) = [lines for lines in axes.collections if isinstance(lines, LineCollection)]
    np.testing.assert_allclose([line[0, 1] for line in np.array(rejected.get_segments())], [0.025, 0.026])
    assert [text.get_text() for text in axes.texts] == ["1k rows", "1k rows"]


def test_services_have_one_scale_of_rejected_rows() -> None:
    found = quality("yellow", "green", months=["2019-01"])
    found["by_month"][0]["by_reason"]["fare_amount_not_above_0"] = 300
    first, second, _ = figures.data_quality(found).axes
    assert first.get_ylim() == second.get_ylim()
    assert first.get_ylim()[1] > 0.3


def test_entries_of_one_service_and_month_are_added_up() -> None:
    """Trips whose service is unknown are listed beside those of the first service, in an entry of their own."""
    found = quality("yellow", months=["2019-01"])
    unknown = {"service": "yellow", "month": "2019-01", "rows_in": 3, "rows_out": 0}
    found["by_month"].append({**unknown, "by_reason": {"unreadable_service": 3}})
    assert "Yellow taxis, 1,003 rows" in written(figures.data_quality(found))


def test_a_prediction_that_is_right_lies_at_45_degrees() -> None:
    held_out, metrics = predictions("yellow")
    for axes in figures.predicted_against_observed(held_out, metrics=metrics).axes:
        assert axes.get_xlim() == axes.get_ylim()
        assert axes.get_aspect() == 1


def test_every_service_is_drawn_and_has_a_name_in_sentences() -> None:
    drawn = figures.tip_fraction_by_hour(by_hour(*SERVICES), minimum_trips=10)
    for service in SERVICES:
        assert any(entry.startswith(figures.LOOKS[service].name) for entry in legend(drawn))
    assert list(PLACES) == list(SERVICES)


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
