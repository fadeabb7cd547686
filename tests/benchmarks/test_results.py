"""The file of all results, its samples, and the check that refuses void ones."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pydantic import JsonValue

from benchmarks import check, results_file
from benchmarks.measure import differences, in_part
from benchmarks.process_tree import MeasurementError
from benchmarks.report import Report, Reports, Size
from benchmarks.results_file import Results, collect, read_reports, samples_table
from tests.benchmarks.benchmark_results import limits, outcome, report, results

RECORDED = [
    path
    for path in sorted((Path(__file__).parents[2] / "benchmarks/results").glob("*.json"))
    if not path.stem.startswith("published-")
]


def of_row(**times: object) -> Report:
    """Return a report of a row that there is."""
    return report(times, row="array_elementwise", case="", operations=6e6)  # type: ignore[arg-type]


def written(folder: Path, *reports: Report) -> Path:
    Reports(reports=reports).write(folder / "row.json")
    limits().write(folder / "limits.json")
    given = ["--limits", "limits.json", "--rows", "row.json", "--json", "all/results.json", "--parquet", "all/samples"]
    assert results_file.main([part if part.startswith("--") else str(folder / part) for part in given]) == 0
    return folder / "all"


def test_the_file_holds_everything_that_was_measured_and_the_definition(tmp_path: Path) -> None:
    measured = of_row(whitewater=[1.0, 2.0], as_published=[3.0, 4.0])
    folder = written(tmp_path, measured)
    found = Results.read(folder / "results.json")
    assert [case.report for case in found.cases] == [measured]
    assert found.limits == limits()
    assert (found.cases[0].id, found.cases[0].published[0].on) == ("R1", "NumPy")
    assert sorted(path.name for path in folder.iterdir()) == ["results.json", "samples"]


def test_the_samples_are_one_line_each_with_all_that_they_were_taken_on(tmp_path: Path) -> None:
    void = outcome([5.0], void="wrong answer: answer is 1 instead of 2")
    measured = of_row(whitewater=[1.0, 2.0], duckdb=void, polars=outcome((), missing="not installed: polars"))
    lines = pq.read_table(written(tmp_path, measured) / "samples").to_pylist()
    assert [(line["variant"], line["warm_up"], line["round"], line["compute_seconds"]) for line in lines] == [
        ("whitewater", True, 0, 9.0),
        ("whitewater", False, 1, 1.0),
        ("whitewater", False, 2, 2.0),
        ("duckdb", True, 0, 45.0),
        ("duckdb", False, 1, 5.0),
        ("polars", None, None, None),
    ]
    assert lines[3]["void"] == "wrong answer: answer is 1 instead of 2"
    assert lines[5]["missing"] == "not installed: polars"
    same = {"id": "R1", "row": "array_elementwise", "case": "", "rows": 1000, "bytes": 8_000_000, "basis": "memory"}
    same |= {"operations": 6e6, "scale": 0.05, "cores": 2, "commit": "0123456789abcdef", "changed": False}
    assert all(line[key] == value for line in lines for key, value in same.items())
    assert json.loads(lines[0]["versions"]) == {"numpy": "2.0"}


def test_every_field_of_a_sample_and_a_size_is_a_column() -> None:
    names = set(samples_table(results(report({"whitewater": [1.0]}))).column_names)
    fields = {*Size.model_fields, *results(report({"a": [1.0]})).cases[0].report.outcomes["a"].samples[0].model_dump()}
    assert fields <= names


def test_a_report_of_no_row_or_of_another_device_is_refused() -> None:
    with pytest.raises(MeasurementError, match="no row"):
        collect([report({"whitewater": [1.0]}, row="taxi")], limits=limits())
    elsewhere = {"row": "array_elementwise", "case": "", "device": "gpu"}
    with pytest.raises(MeasurementError, match="Not measured on cpu"):
        collect([report({"whitewater": [1.0]}, parameters=elsewhere)], limits=limits())


@pytest.mark.parametrize("text", ["no JSON", '{"outcomes": 1}', "[]", '{"cases": []}'])
def test_a_file_of_something_else_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(MeasurementError, match=r"other\.json cannot be read"):
        read_reports(tmp_path / "other.json")
    with pytest.raises(MeasurementError, match=r"none\.json cannot be read"):
        read_reports(tmp_path / "none.json")


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_reports_that_were_recorded_before_can_be_read(path: Path) -> None:
    (found,) = read_reports(path).values()
    assert found.sampling == "process"


def test_a_wrong_answer_fails_the_check_by_name_and_a_missing_package_does_not(tmp_path: Path) -> None:
    absent = outcome((), missing="not installed: polars")
    results(report({"whitewater": [1.0], "polars": absent})).write(tmp_path / "good.json")
    wrong = outcome([1.0], void="wrong answer: answer is 1 instead of 2")
    results(report({"whitewater": [1.0], "duckdb": wrong})).write(tmp_path / "bad.json")
    Reports(reports=(report({"threads-1": wrong}, case="scaling"),)).write(tmp_path / "scaling.json")

    def checked(name: str, *more: str) -> int:
        return check.main(["--results", str(tmp_path / name), "--checked", str(tmp_path / "checked.txt"), *more])

    assert checked("good.json") == 0
    assert "frame: mean: polars: not installed: polars" in (tmp_path / "checked.txt").read_text()
    with pytest.raises(SystemExit):
        checked("bad.json")
    with pytest.raises(SystemExit):
        checked("good.json", "--scaling", str(tmp_path / "scaling.json"))


def test_an_answer_in_part_is_compared_where_it_says_something_and_must_say_something() -> None:
    expected: JsonValue = {"printed": None, "inspected": {"terms": 3, "words": 9}}
    told: JsonValue = {"printed": None, "inspected": {"terms": 3}}
    wrong: JsonValue = {"printed": None, "inspected": {"terms": 4}}
    silent: JsonValue = {"printed": None, "inspected": {}}
    assert not list(differences(told, in_part(told, expected), tolerance=0))
    for answer in (wrong, silent):
        assert list(differences(answer, in_part(answer, expected), tolerance=0))
