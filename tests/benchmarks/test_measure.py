"""The benchmark harness: what it counts, what it refuses, and the order in which it measures."""

import itertools
import json
import math
import sys
from collections import Counter
from pathlib import Path

import pytest
from pydantic import JsonValue

from benchmarks.measure import Variant, balanced_order, differences, measure
from benchmarks.process_tree import MeasurementError, run
from benchmarks.report import Plan, Report, Size, paired_ratios
from benchmarks.spread import spread
from tests.benchmarks.benchmark_results import sample

MEBIBYTE = 2**20
SIZE = Size(rows=7, bytes=70, basis="file")


def python(source: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", source)


def answering(answer: JsonValue, *, name: str, before: str = "") -> Variant:
    line = json.dumps({"compute_seconds": 0.5, "answer": answer})
    return Variant(name, python(f"{before}\nprint('a line of chatter')\nprint('''{line}''')"))


def measured(*variants: Variant, oracle: str = "oracle", rounds: int = 2) -> Report:
    return measure("test", variants, oracle=oracle, plan=Plan(rounds=rounds), size=SIZE, parameters={"months": 1})


def test_a_wrong_answer_is_void_and_fails_the_run() -> None:
    report = measured(answering({"trips": 3}, name="wrong"), answering({"trips": 4}, name="oracle"))
    assert report.exit_status == 1
    assert report.outcomes["wrong"].void == "wrong answer: answer.trips is 3 instead of 4"
    assert report.outcomes["wrong"].samples == ()
    assert len(report.outcomes["oracle"].samples) == 2
    assert report.ratios == {}


def test_equal_answers_within_the_tolerance_are_valid() -> None:
    report = measured(answering([1, 0.1 + 0.2, None], name="ours"), answering([1, 0.3, None], name="oracle"))
    assert report.exit_status == 0
    assert [len(outcome.samples) for outcome in report.outcomes.values()] == [2, 2]
    assert report.outcomes["ours"].warm_up is not None


@pytest.mark.parametrize(
    ("answer", "expected", "different"),
    [
        (1.0 + 1e-12, 1.0, False),
        (1.0 + 1e-6, 1.0, True),
        (10**15, 10**15 + 1, True),
        (2, 2.0, False),
        (math.nan, math.nan, True),
        ("1", 1, True),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ([1, 2], [1], True),
        ([{"a": [None]}], [{"a": [None]}], False),
    ],
)
def test_integers_and_structure_must_be_equal_and_reals_close(
    answer: JsonValue, expected: JsonValue, different: bool
) -> None:
    assert bool(list(differences(answer, expected, tolerance=1e-9))) is different


def test_what_was_written_is_part_of_the_answer_and_removed_before_each_sample(tmp_path: Path) -> None:
    written = tmp_path / "written.txt"
    line = json.dumps({"compute_seconds": 0.5, "answer": 1})
    appending = Variant(
        "appending",
        python(f"open({str(written)!r}, 'a').write('x'); print('''{line}''')"),
        outputs=(written,),
        inspect=written.read_text,
    )
    faithful = Variant("oracle", python(f"print('''{line}''')"), inspect=lambda: "x")
    report = measured(appending, faithful)
    assert report.exit_status == 0
    assert report.answer == {"printed": 1, "inspected": "x"}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise SystemExit('no such column')", "no such column"),
        ("print('done')", "did not print its answer"),
        ("", "did not print its answer"),
    ],
)
def test_a_variant_that_fails_or_prints_no_answer_is_void(source: str, reason: str) -> None:
    report = measured(Variant("broken", python(source)), answering(1, name="oracle"), rounds=1)
    assert reason in str(report.outcomes["broken"].void)
    assert report.exit_status == 1


def test_without_the_oracles_answer_there_is_no_report() -> None:
    with pytest.raises(MeasurementError, match="ended with status 1"):
        measured(Variant("oracle", python("raise SystemExit(1)")), answering(1, name="ours"))
    with pytest.raises(MeasurementError, match="not among the variants: ours"):
        measured(answering(1, name="ours"))


def test_a_sleeping_command_uses_less_cpu_than_wall_time() -> None:
    cost = run(python("import time; time.sleep(0.4)"), environment={}, timeout=60)
    assert cost.wall_seconds >= 0.4
    assert cost.cpu_seconds < cost.wall_seconds


def test_cpu_time_of_children_counts() -> None:
    work = "import time\nwhile time.process_time() < 0.3: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {work!r}])"
    assert run(python(parent), environment={}, timeout=60).cpu_seconds >= 0.3


def test_memory_of_children_counts_beside_that_of_the_parent() -> None:
    hold = "import time; held = b'x' * (64 * 2**20); time.sleep(0.5)"
    both = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-S', '-c', {hold!r}]); {hold}; p.wait()"
    alone = run(python(hold), environment={}, timeout=60)
    tree = run(python(both), environment={}, timeout=60)
    assert alone.peak_memory_bytes >= 64 * MEBIBYTE
    assert alone.peak_anonymous_bytes >= 64 * MEBIBYTE
    assert tree.peak_memory_bytes >= 128 * MEBIBYTE
    assert tree.peak_anonymous_bytes >= 128 * MEBIBYTE


def test_a_command_that_hangs_is_killed_with_its_children_and_void(tmp_path: Path) -> None:
    survived = tmp_path / "survived"
    child = f"import time; time.sleep(3); open({str(survived)!r}, 'w')"
    hang = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {child!r}])"
    cost = run(python(hang), environment={}, timeout=0.5)
    assert cost.exit_status == -9
    assert cost.wall_seconds < 3
    assert not survived.exists()


def test_every_variant_is_bounded_to_the_same_threads() -> None:
    variables = ("OMP_NUM_THREADS", "POLARS_MAX_THREADS", "NUMBA_NUM_THREADS")
    source = f"""
import json, os
answer = [os.environ[name] for name in {variables}]
print(json.dumps(dict(compute_seconds=0.5, answer=answer)))
"""
    plan = Plan(rounds=1, threads=3)
    report = measure("test", [Variant("oracle", python(source))], oracle="oracle", plan=plan, size=SIZE, parameters={})
    assert report.answer == ["3", "3", "3"]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
def test_the_order_is_balanced_over_places_and_predecessors(count: int) -> None:
    rounds = count if count % 2 == 0 else 2 * count
    orders = [balanced_order(count, number) for number in range(rounds)]
    assert all(sorted(order) == list(range(count)) for order in orders)
    places = Counter((place, variant) for order in orders for place, variant in enumerate(order))
    assert set(places.values()) == {rounds // count}
    follows = Counter(pair for order in orders for pair in itertools.pairwise(order))
    assert len(follows) == count * (count - 1)
    assert len(set(follows.values())) <= 1


def test_rounds_interleave_the_variants() -> None:
    report = measured(answering(1, name="ours"), answering(1, name="oracle"), rounds=2)
    places = {name: [sample.place for sample in outcome.samples] for name, outcome in report.outcomes.items()}
    assert places == {"ours": [0, 1], "oracle": [1, 0]}


def test_a_time_budget_ends_the_rounds_but_not_before_the_least_number() -> None:
    plan = Plan(rounds=50, at_least=2, seconds=0.001)
    report = measure("test", [answering(1, name="oracle")], oracle="oracle", plan=plan, size=SIZE, parameters={})
    assert len(report.outcomes["oracle"].samples) == 2


def test_the_interval_of_the_median_has_the_stated_binomial_coverage() -> None:
    ten = spread([float(value) for value in range(1, 11)])
    assert (ten.median, ten.low, ten.high) == (5.5, 2.0, 9.0)  # x(2), x(9): 97.9 %, as tables of the sign test give
    assert ten.coverage == pytest.approx(0.978515625)
    three = spread([3.0, 1.0, 2.0])
    assert (three.low, three.median, three.high, three.coverage) == (1.0, 2.0, 3.0, 0.75)
    assert spread([4.0]).coverage == 0.0


def test_ratios_are_taken_round_by_round() -> None:
    report = measured(answering(1, name="ours"), answering(1, name="oracle"), rounds=3)
    ours, theirs = (report.outcomes[name].samples for name in ("ours", "oracle"))
    expected = sorted(a.wall_seconds / b.wall_seconds for a, b in zip(ours, theirs, strict=True))
    ratio = report.ratios["oracle"]["wall_seconds"]
    assert [ratio.low, ratio.median, ratio.high] == pytest.approx(expected)


def test_processes_too_short_for_the_kernel_to_count_their_time_have_a_ratio() -> None:
    nothing, something = sample(1, 0.0), sample(1, 0.5)
    assert paired_ratios([nothing], [nothing])["cpu_seconds"].median == 1
    assert paired_ratios([something], [nothing])["cpu_seconds"].median > 1000


def test_a_report_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "results" / "test.json"
    report = measured(answering({"mean": 0.25}, name="ours"), answering({"mean": 0.25}, name="oracle"))
    report.write(path)
    assert Report.read(path) == report
    assert [file.name for file in path.parent.iterdir()] == ["test.json"]
    kept = json.loads(path.read_text())
    assert kept["answer"] == {"mean": 0.25}
    assert [sample["round"] for sample in kept["outcomes"]["ours"]["samples"]] == [1, 2]
    assert kept["size"] == {"rows": 7, "bytes": 70, "basis": "file"}
    assert kept["machine"]["cores"] >= 1
    assert kept["versions"]["numpy"]
