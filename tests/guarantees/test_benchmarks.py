"""The workflow of the published tables: what it plans, one row measured from end to end, and what void means."""

from __future__ import annotations

import re

import pytest

from tests.guarantees.running import Clone

ROW = "results/benchmarks/cpu/rows/array_elementwise.json"
TINY = {"benchmarks": {"scale": 1e-5, "rounds": 3, "seconds": 0.1}}
END = {"limits", "scaling", "results", "table", "plots", "check"}


def benchmarks(*rules: str) -> set[str]:
    return {f"benchmarks_{rule}" for rule in rules}


def test_all_rows_are_measured_by_their_own_target_only(copied: Clone) -> None:
    planned = copied.dry_run({}, "benchmarks")
    rows = copied.json("config/schema.json")["$defs"]["Benchmarks"]["properties"]
    others = {"scale", "seconds", "rounds", "limits", "scaling"}
    assert planned.jobs == benchmarks("row", *END) | {"benchmarks"}
    assert set(re.findall(r"wildcards: device=cpu, row=(\w+)", planned.terminal)) == rows.keys() - others
    assert not copied.dry_run({}).jobs


def test_both_devices_are_planned_in_one_run(copied: Clone) -> None:
    planned = copied.dry_run({}, "results/benchmarks/table.md").terminal
    assert all(f"--device {device} " in planned for device in ("cpu", "gpu"))


@pytest.mark.slow
def test_a_row_is_measured_again_only_where_its_own_settings_change(copied: Clone) -> None:
    tiny = copied.write("rows.yaml", TINY)
    first = copied.snakemake("--", ROW, files=(tiny,))
    assert first.status == 0, first.terminal
    assert "R1 array_elementwise: whitewater " in first.terminal
    (report,) = copied.json(ROW)["reports"]
    assert [len(outcome["samples"]) for outcome in report["outcomes"].values()] == [3, 3]
    assert report["parameters"]["scale"] == 1e-5
    other = {"benchmarks": {**TINY["benchmarks"], "frame": {"scale": 0.5}}}
    assert "Nothing to be done" in copied.snakemake("--", ROW, files=(copied.write("rows.yaml", other),)).terminal
    own = {"benchmarks": {**TINY["benchmarks"], "scale": 2e-5}}
    again = copied.snakemake("--dry-run", ROW, files=(copied.write("rows.yaml", own),))
    assert again.jobs == benchmarks("row")
    assert "row=array_elementwise" in again.terminal


def test_a_scale_that_is_too_small_for_a_row_is_one_error(copied: Clone) -> None:
    wrong = copied.write("rows.yaml", {"benchmarks": {"frame": {"scale": 0}}})
    ended = copied.snakemake("--", "benchmarks", files=(wrong,))
    assert ended.status == 1
    assert "benchmarks.frame.scale = 0" in ended.message
