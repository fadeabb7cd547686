"""The pictures of the published tables: what is in them, and that they are readable."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from benchmarks.published import figures, plots
from benchmarks.report import Report, Reports, Size
from benchmarks.results_file import CaseResult, Results
from benchmarks.results_file import Figure as Published
from benchmarks.standing import why_none
from tests.benchmarks.benchmark_results import TEN, limits, outcome, report, results


def searched(case: str, size: int) -> CaseResult:
    measured = report(
        {"whitewater": [size * 1e-6] * 10, "as_published": [size * 1e-5] * 10},
        row="grid_search", case=case, size=Size(rows=size // 80, bytes=size, basis="memory"), operations=50.0 * size,
    )  # fmt: skip
    figure = Published(on="cuML+Dask-ML", seconds=0.74)
    return CaseResult(id="R14", title="GridSearchCV", published=(figure,), report=measured)


SEARCH = Results(
    device="cpu",
    limits=limits(),
    cases=(searched("28KB", 5_600), searched("2.8MB", 560_000), searched("28MB", 5_600_000)),
)


def scaled(name: str = "R7 array_random: scaling") -> Report:
    times = {f"{kind}-{workers}": [each / workers for each in TEN] for kind in KINDS for workers in (1, 2, 4)}
    return report(times, name=name, row="array_random")


KINDS = ("threads", "processes", "attached")


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in letters(figure)]


def letters(figure: Figure) -> list[Any]:
    found: list[Any] = figure.findobj(Text)
    return [text for text in found if text.get_visible() and text.get_text()]


def all_axes(figure: Figure) -> list[Any]:
    return list(figure.axes)


def test_every_variant_of_every_case_has_a_bar_or_the_reason_why_not() -> None:
    void, absent = outcome(TEN, void="wrong answer"), outcome((), missing="not installed: polars")
    times: dict[str, Any] = {"whitewater": TEN, "as_published": TEN, "duckdb": void, "polars": absent}
    drawn = figures.variants(results(report(times), report(times, case="merge", sampling="process")))
    (axes,) = all_axes(drawn)
    assert len(axes.patches) == 4
    assert {round(bar.get_width(), 3) for bar in axes.patches} == {1.045, 1.046}
    found = texts(drawn)
    assert [name for name in found if name in ("duckdb", "polars")] == ["duckdb", "polars"] * 2
    assert (found.count("void"), found.count("not tried")) == (2, 2)
    assert "R2 frame merge: 1,000 rows, processes" in found


def test_the_roofline_has_the_limits_and_a_point_for_each_case_with_operations() -> None:
    uncounted = results(report({"whitewater": TEN})).cases
    drawn = figures.roofline(SEARCH.model_copy(update={"cases": (*SEARCH.cases, *uncounted)}))
    axes = all_axes(drawn)[0]
    points = {line.get_label(): line.get_xydata().ravel().tolist() for line in axes.lines if line.get_label()[0] != "_"}
    assert points["Whitewater, or tuned"] == pytest.approx([50.0, 5e7] * 3)
    assert points["the published code"] == pytest.approx([50.0, 5e6] * 3)
    assert points["copying of memory, 16.0 GB/s"][2:] == pytest.approx([4.0, 64e9])
    found = texts(drawn)
    assert {"R14 grid search 28KB", "float64 products, 32.0 Gop/s", "copying of memory, 16.0 GB/s"} <= set(found)
    assert not any("R2" in text for text in found)


def test_figures_that_do_not_count_are_drawn_nowhere() -> None:
    void = outcome(TEN, void="wrong answer")
    bad = report({"whitewater": void, "threads-1": void}, row="grid_search", operations=1.0)
    assert why_none(bad, "whitewater") == "void: wrong answer"
    of = results(bad)
    assert "No figures of grid_search or forest_search were measured." in texts(figures.search(of))
    assert "No figures of scaling were measured." in texts(figures.scaling([bad]))
    assert any("has figures" in text for text in texts(figures.roofline(of)))
    assert len(figures.variants(of).axes[0].patches) == 0


def test_exactly_the_files_that_are_asked_for_are_drawn_and_equal_figures_give_equal_bytes(tmp_path: Path) -> None:
    SEARCH.write(tmp_path / "results.json")
    Reports(reports=(scaled(),)).write(tmp_path / "scaling.json")
    inputs = ["--results", str(tmp_path / "results.json"), "--scaling", str(tmp_path / "scaling.json")]
    for folder in ("a", "b"):
        files = [str(tmp_path / folder / name) for name in ("search.svg", "scaling.png")]
        assert plots.main([*inputs, "--plots", *files]) == 0
    drawn = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    assert sorted(drawn) == ["scaling.png", "search.svg"]
    assert drawn == {path.name: path.read_bytes() for path in (tmp_path / "b").iterdir()}
    with pytest.raises(SystemExit):
        plots.main([*inputs, "--plots", str(tmp_path / "other.svg")])
