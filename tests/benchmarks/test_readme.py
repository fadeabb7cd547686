"""The tables of benchmarks/README.md say what the recorded files say."""

from pathlib import Path

import pytest

from benchmarks import readme
from benchmarks.process_tree import MeasurementError
from benchmarks.readme import README, published_table, tables, updated
from benchmarks.report import Report
from tests.benchmarks.benchmark_results import TEN, outcome, report, results

ROOT = Path(__file__).parents[2]
MARKED = """text
<!-- benchmarks:published -->
old
<!-- /benchmarks:published -->
more
<!-- benchmarks:applications -->
<!-- /benchmarks:applications -->
end
"""


def test_readme_is_what_the_recorded_files_say() -> None:
    found = (ROOT / README).read_text()
    assert found == updated(found, tables(ROOT / "benchmarks/results")), "run `python -m benchmarks.readme`"


def test_every_recorded_report_of_an_application_has_a_line() -> None:
    recorded = [path for path in (ROOT / "benchmarks/results").glob("*.json") if not path.stem.startswith("published-")]
    lines = tables(ROOT / "benchmarks/results")["applications"].splitlines()
    assert len(lines) == 2 + len(recorded)
    for path in recorded:
        assert sum(line.startswith(f"| {Report.read(path).name} |") for line in lines) >= 1, path


def test_a_line_gives_the_time_that_a_user_waits_for_the_best_peer_and_both_memories(tmp_path: Path) -> None:
    times = {"whitewater": TEN, "duckdb": [3 * each for each in TEN], "polars": [2 * each for each in TEN]}
    report(times, name="recsys: load", sampling="process").write(tmp_path / "recsys-load-9.json")
    report({"whitewater": TEN[:3]}, name="taxi A", sampling="process").write(tmp_path / "taxi-A-1.json")
    absent = outcome((), missing="not installed")
    void = outcome(TEN, void="wrong")
    report({"whitewater": void, "whitewater_dask": [4.0] * 3, "polars": absent}, name="taxi A").write(
        tmp_path / "taxi-A-2.json"
    )
    assert tables(tmp_path)["applications"].splitlines()[2:] == [
        "| recsys: load | 1,000 | 1.04 s | - | polars 2.09 s | 0.50 (0.50 - 0.50) | duckdb 3.14 s | 100 MB, 100 MB |",
        "| taxi A | 1,000 | 1.01 s | - | - | - | - | 100 MB |",
        "| taxi A | 1,000 | **void** | 4.00 s, 100 MB | - | - | - | - |",
    ]


def test_the_published_rows_stand_beside_ours_on_each_device() -> None:
    assert published_table([]) == "No run of all rows is recorded yet."
    cpu = results(report({"whitewater": TEN, "as_published": [2 * each for each in TEN], "polars": [4.0] * 3}))
    gpu = results(report({"whitewater": [0.005] * 10})).model_copy(update={"device": "gpu"})
    *_, header, _, line = published_table([cpu, gpu]).splitlines()
    cells = dict(zip(header.strip("| ").split(" | "), line.strip("| ").split(" | "), strict=True))
    assert cells["row"] == "R2 `frame` mean"
    assert (cells["scale"], cells["published"], cells["published code here"]) == ("0.05", "pandas 50.2 ms", "2.09 s")
    assert (cells["Whitewater, CPU"], cells["Whitewater, GPU"]) == ("1.04 s", "5.00 ms")
    assert (cells["ratio to code"], cells["ratio to it"]) == ("0.50 (0.50 - 0.50)", "0.25 (0.25 - 0.26), 75 %")


def test_text_outside_the_tables_stays(tmp_path: Path) -> None:
    found = updated(MARKED, {"published": "new", "applications": "lines"})
    assert found == MARKED.replace("old\n", "new\n").replace("applications -->\n<!--", "applications -->\nlines\n<!--")
    with pytest.raises(MeasurementError, match="no table published"):
        updated("text", {"published": "new"})


def test_the_check_writes_nothing_and_fails_where_a_table_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readme, "README", tmp_path / "README.md")
    monkeypatch.setattr(readme, "tables", lambda: {"published": "a", "applications": "b"})
    (tmp_path / "README.md").write_text(MARKED)
    with pytest.raises(SystemExit):
        readme.main(["--check"])
    assert (tmp_path / "README.md").read_text() == MARKED
    assert readme.main([]) == 0
    assert readme.main(["--check"]) == 0
