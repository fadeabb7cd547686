"""The comparison of two runs: a slowdown is found, no difference is not, and unlike things are refused."""

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import compare as comparing
from benchmarks.compare import compare, differing, only_in_one, together
from benchmarks.measure import Variant, measure
from benchmarks.report import Plan, Report, Size
from tests.benchmarks.benchmark_results import MACHINE, TEN, outcome, report, results

SLOW = [1.2 * each for each in TEN]


def verdicts(before: Any, after: Any, **fields: Any) -> list[str]:
    compared = compare({"case": report({"whitewater": before})}, {"case": report({"whitewater": after}, **fields)})
    return [each.verdict for each in compared]


def test_a_slowdown_and_a_gain_are_found() -> None:
    assert verdicts(TEN, SLOW) == ["slower"]
    assert verdicts(SLOW, TEN) == ["faster"]


def test_a_machine_that_became_slower_shows_in_all_together() -> None:
    before = {f"case {number}": report({"whitewater": TEN}) for number in range(5)}
    after = {f"case {number}": report({"whitewater": SLOW}) for number in range(5)}
    (line,) = together(compare(before, after))
    assert line.startswith("All 5 together: after / before is 1.20")
    assert not list(together(compare({"case": before["case 0"]}, {"case": after["case 0"]})))


def test_runs_of_one_distribution_do_not_differ() -> None:
    generator = random.Random(5)
    runs = [[generator.lognormvariate(0, 0.1) for _ in range(10)] for _ in range(400)]
    found = [verdict for pair in zip(runs[::2], runs[1::2], strict=True) for verdict in verdicts(*pair)]
    assert found.count("no difference") >= 190


def test_few_samples_are_not_a_verdict_unless_their_ranges_are_disjoint() -> None:
    assert verdicts(TEN[:3], [1.005, 1.015, 1.025]) == ["too few samples"]
    (found,) = compare({"case": report({"whitewater": TEN[:3]})}, {"case": report({"whitewater": SLOW[:3]})})
    assert (found.verdict, found.certain) == ("slower", False)
    assert "slower *" in comparing.text([found], first=[], last=[])


def test_void_figures_have_no_verdict() -> None:
    assert verdicts(outcome(TEN, void="wrong answer"), SLOW) == ["no verdict"]
    assert verdicts(TEN, outcome((), missing="not installed")) == ["no verdict"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"size": Size(rows=2, bytes=8_000_000, basis="memory")}, "its size is 1,000 rows"),
        ({"parameters": {"scale": 0.1}}, "its scale is 0.05 before and 0.1 after"),
        ({"sampling": "process"}, "samples are of a call before and of a process after"),
    ],
)
def test_a_case_of_another_size_is_refused(fields: dict[str, Any], reason: str) -> None:
    (found,) = compare({"case": report({"whitewater": TEN})}, {"case": report({"whitewater": SLOW}, **fields)})
    assert found.verdict == "no verdict"
    assert reason in found.reason


def test_what_else_changed_and_what_one_file_lacks_is_listed() -> None:
    machine = MACHINE.model_copy(update={"cores": 4})
    newer: dict[str, Any] = {"machine": machine, "versions": {"numpy": "2.1", "polars": "1.0"}}
    before = {"a": report({"whitewater": TEN, "duckdb": TEN}), "b": report({"whitewater": TEN})}
    after = {"a": report({"whitewater": TEN}, **newer), "c": report({"whitewater": TEN})}
    assert list(differing(before, after)) == ["cores: 2 -> 4", "numpy: 2.0 -> 2.1", "polars: None -> 1.0"]
    assert list(only_in_one(before, after)) == ["only before: a, duckdb", "only before: b", "only after: c"]
    assert list(differing(before, before)) == []


def test_a_slower_variant_fails_where_that_is_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before, after = str(tmp_path / "before.json"), str(tmp_path / "after.json")
    results(report({"whitewater": TEN, "polars": TEN})).write(Path(before))
    report({"whitewater": TEN, "polars": SLOW}).write(Path(after))
    assert comparing.main([before, after]) == 0
    assert comparing.main([before, after, "--fail-on-slower"]) == 1
    assert comparing.main([before, after, "--fail-on-slower", "--variants", "whitewater"]) == 0
    assert comparing.main([after, before, "--fail-on-slower"]) == 0
    assert "1.20 (" in capfd.readouterr().out
    with pytest.raises(SystemExit):
        comparing.main([before, after, "--variants", "none"])


def sleeping(seconds: float) -> Variant:
    """Return a process that sleeps at each call."""
    source = f"""
import sys, time
print("ready", flush=True)
for line in sys.stdin:
    start = time.perf_counter()
    time.sleep({seconds})
    seconds = time.perf_counter() - start
    print("done", flush=True)
    sys.stdin.readline()
    print('{{"compute_seconds": %r, "answer": 1}}' % seconds, flush=True)
"""
    return Variant("whitewater", (sys.executable, "-S", "-c", source))


def slept(seconds: float) -> Report:
    return measure(
        "sleep", [sleeping(seconds)], oracle="whitewater", plan=Plan(rounds=8),
        size=Size(rows=1, bytes=1, basis="memory"), parameters={}, sampling="call",
    )  # fmt: skip


def test_a_real_slowdown_is_found() -> None:
    before, after = slept(0.02), slept(0.05)
    (found,) = compare({"sleep": before}, {"sleep": after})
    assert (found.verdict, found.certain) == ("slower", True)
    assert json.loads(before.model_dump_json())["sampling"] == "call"
