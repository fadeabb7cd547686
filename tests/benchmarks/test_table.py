"""The table beside the published numbers."""

import pytest

from benchmarks.published.amounts import amount, digits, interval, ratio, seconds
from benchmarks.published.table import DEFINITION, MEASURED, markdown
from benchmarks.results_file import Results
from benchmarks.spread import spread
from tests.benchmarks.benchmark_results import TEN, outcome, report, results
from whitewater.errors import ConfigError

PUBLISHED_CODE = [2 * each for each in TEN]
SLOWEST = [9.0] * 10


def cells(of: Results, *others: Results) -> dict[str, str]:
    """Return the cells of the only case by the names of their columns."""
    lines = [line.strip("| ").split(" | ") for line in markdown([of, *others]).splitlines() if line.startswith("|")]
    header, _, line = lines
    return dict(zip(header, line, strict=True))


def test_ours_stands_beside_the_published_code_and_the_best_peer() -> None:
    times = {"whitewater": TEN, "as_published": PUBLISHED_CODE, "polars": [3 * each for each in TEN], "duckdb": SLOWEST}
    found = cells(results(report(times, operations=16e9)))
    assert found["row"] == "R2 frame mean"
    assert found["size"] == "scale 0.05: 1,000 rows, 8.00 MB in memory"
    assert found["published"] == "pandas 50.2 ms"
    assert found["Whitewater"] == "1.04 (1.01 - 1.08) s"
    assert found["as published"] == "2.09 (2.02 - 2.16) s"
    assert found["best peer"] == "polars 3.14 (3.03 - 3.24) s"
    assert found["ratio to as published"] == "0.50 (0.50 - 0.50)"
    assert found["ratio to best peer"] == "0.33 (0.33 - 0.33)"
    assert (found["samples"], found["CPU time"], found["first call"]) == ("10 calls", "2.09 s", "9.00 s")
    # 8 MB and 16e9 operations in 1.045 s, of 16 GB/s and 32 Gop/s
    assert found["of the limit"] == "7.66 MB/s (0.0478 % of copy), 15.3 Gop/s (47.8 % of GEMM)"


def test_other_forms_of_ours_and_of_the_published_code_are_not_peers() -> None:
    times = {"whitewater": TEN, "tuned": [0.1], "as_published_dask": [0.1], "duckdb": TEN}
    assert cells(results(report(times)))["best peer"].startswith("duckdb ")


def test_tuned_code_is_never_called_whitewater_and_is_compared_only_where_there_is_no_other_of_ours() -> None:
    found = cells(results(report({"tuned": TEN, "as_published": PUBLISHED_CODE})))
    assert (found["Whitewater"], found["tuned for this table"]) == ("-", "1.04 (1.01 - 1.08) s")
    assert found["ratio to as published"] == "0.50 (0.50 - 0.50)"
    both = cells(results(report({"whitewater": TEN, "tuned": [0.1] * 10, "as_published": PUBLISHED_CODE})))
    assert both["ratio to as published"] == "0.50 (0.50 - 0.50)"


def test_bytes_in_files_are_compared_with_reading() -> None:
    in_files = report({"whitewater": [1.0]}).model_copy(update={"sampling": "process"})
    size = in_files.size.model_copy(update={"basis": "file", "bytes": 4_004_000_000})
    found = cells(results(in_files.model_copy(update={"size": size})))
    assert found["of the limit"] == "4.00 GB/s (50.0 % of read)"
    assert found["samples"] == "1 process (0%)"


def test_void_and_missing_figures_are_shown_as_such_with_their_reasons() -> None:
    wrong = outcome(TEN, void="wrong answer: 1 | 2")
    absent = outcome((), missing="not installed: polars")
    of = results(report({"whitewater": wrong, "as_published": TEN, "polars": absent, "duckdb": TEN}))
    found = cells(of)
    assert found["Whitewater"] == "**void**"
    assert (found["ratio to as published"], found["of the limit"]) == ("-", "-")
    assert found["best peer"].startswith("duckdb ")
    assert "CPU, R2 frame mean: whitewater: void: wrong answer: 1 \\| 2" in markdown([of])
    assert "CPU, R2 frame mean: polars: not installed: polars" in markdown([of])


def test_devices_stand_beside_each_other() -> None:
    cpu = results(report({"whitewater": TEN, "as_published": PUBLISHED_CODE}))
    gpu = results(report({"whitewater": [0.005] * 10})).model_copy(update={"device": "gpu"})
    found = cells(cpu, gpu)
    assert list(found) == [*DEFINITION, *(f"{device}: {name}" for device in ("CPU", "GPU") for name in MEASURED)]
    assert (found["CPU: Whitewater"], found["GPU: Whitewater"]) == ("1.04 (1.01 - 1.08) s", "5.00 (5.00 - 5.00) ms")
    assert found["GPU: as published"] == "-"
    with pytest.raises(ConfigError, match="once"):
        markdown([cpu, cpu])


def test_amounts_have_three_digits_and_a_unit_that_fits() -> None:
    assert [digits(each) for each in (0, 1234567, 999.6, 99.96, 0.012345)] == [
        "0",
        "1,234,567",
        "1,000",
        "100",
        "0.0123",
    ]
    assert [seconds(each) for each in (9540.0, 119.0, 12.34, 0.402, 1.2e-5)] == [
        "159 min", "119 s", "12.3 s", "402 ms", "12.0 µs"
    ]  # fmt: skip
    assert amount(62_377_016, "B") == "62.4 MB"
    assert interval(spread([0.9, 1.1, 130.0])) == "1.10 (0.900 - 130) s"
    assert ratio(spread([0.05, 0.1, 123.4])) == "0.10 (0.050 - 123)"
